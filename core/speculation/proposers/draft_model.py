"""A small model that drafts for a large one of the same vocabulary, for all sequences in one batch."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from core.cost.calibration import USUAL_WIDTHS, MeasuredContext
from core.cost.cost_model import attended
from core.kv_cache.memory import choose_memory
from core.llama.context import Batch
from core.llama.model import Model
from core.scheduler.sequence import Sequence
from core.speculation.proposers.context_proposer import PRIORS, ContextProposer
from core.speculation.proposers.proposer import DraftChain, ProposedToken
from core.values.engine_options import MAX_READ_ALONG

# Up to this many unread tokens of a text are read in the decode that drafts; more take decodes of their own.
_FEW = 8
# On a GPU, up to this many tokens take less time in decodes of recorded widths than in one of a width of its own.
_IN_PARTS = 4 * USUAL_WIDTHS[-1]
# The least rows by which a long text is read in a step.
_SMALLEST_PIECE = 16


class DraftModelProposer(ContextProposer):
    """Drafts with a second model in a context of its own; its cache keeps the longest common prefix of each slot."""

    name = "draft"
    model: Model

    def __init__(self, model: Model, own: MeasuredContext, n_vocab: int) -> None:
        """Take over ``model`` and ``own``; ``n_vocab`` is the size of the target's vocabulary."""
        super().__init__(own, PRIORS, n_vocab)
        self.model = model
        self._batch = Batch(own.context.n_batch)
        # One row less than the width: the decode that drafts has one more.
        self._few = USUAL_WIDTHS[-1] - 1 if own.context.is_asynchronous else _FEW
        self._memory = choose_memory(own.context, own.cost, is_recurrent=False, window=model.window)

    def n_unread(self, sequence: Sequence) -> int:
        """Return how many tokens of a sequence the draft model has not read, with the last one."""
        return len(sequence.tokens) - self._held_for(sequence).common_prefix(sequence.tokens.view)

    def catch_up_seconds(self, n_behind: int) -> float:
        """Return the expected seconds of reading ``n_behind`` tokens."""
        return self.cost.time(n_behind, attended(n_behind, 0))

    def catch_up(self, sequence: Sequence, seconds: float) -> bool:
        """Read unread tokens but the last few; return whether a draft can begin now. Raises DraftFailed."""
        n_unread = self._n_unread(sequence)
        if n_unread <= self._few:
            return True
        if seconds <= 0.0:
            return False
        began = self._clock()
        self._use(sequence)
        n_past = len(self._held_for(sequence))
        rows = min(n_unread, self._batch.capacity)
        while rows > _SMALLEST_PIECE and self.cost.time(rows, attended(rows, n_past)) > seconds:
            rows //= 2
        self._read_some(sequence, rows)
        self._context.synchronize()
        self._observe(rows, attended(rows, n_past), self._clock() - began)
        return n_unread - rows <= self._few

    def extend(self, chains: list[DraftChain]) -> list[ProposedToken | None]:
        """Return the draft model's next token for each chain; None if its logits are not finite. Raises DraftFailed."""
        began = self._clock()
        for chain in chains:
            self._use(chain.sequence)
        n_read, unread = self._read_what_is_far_behind(chains)
        self._batch.clear()
        # For each row with logits: None for a draft, else the sequence and position whose token it is compared with.
        outputs: list[tuple[Sequence, int] | None] = []
        for chain in chains:
            self._add(chain, unread, outputs)
        self._decode(self._batch, [chain.sequence for chain in chains], sum([chain.position for chain in chains]))
        self._context.synchronize()
        found: list[ProposedToken | None] = []
        for row, judged in zip(self._context.logits(len(outputs)), outputs, strict=True):
            if judged is None:
                chain = chains[len(found)]
                found.append(self._sampler.choose(chain.sequence, row, chain.position, chain.tokens))
            else:
                self._judge(*judged, row)
        self._observe(n_read + self._batch.n_tokens, 0, self._clock() - began)
        return found

    def read_along(self, sequence: Sequence) -> None:
        """Read the new tokens, and note how often the draft model would have been right. Raises DraftFailed."""
        began = self._clock()
        self._use(sequence)
        rows = self._read_up_to_here(sequence)
        if rows:
            self._observe(rows, 0, self._clock() - began)

    def _read_what_is_far_behind(self, chains: list[DraftChain]) -> tuple[int, set[str]]:
        """Read texts that are far behind; return how many rows that took, and the texts with a few tokens left."""
        n_rows, unread = 0, set()
        room = self._context.n_outputs - len(chains)
        for chain in chains:
            if chain.tokens:
                continue
            n_unread = self._n_unread(chain.sequence)
            if n_unread > min(self._few, room):
                n_rows += self._read_up_to_here(chain.sequence)
            elif n_unread:
                room -= n_unread
                unread.add(chain.sequence.id)
        return n_rows, unread

    def _add(self, chain: DraftChain, unread: set[str], outputs: list[tuple[Sequence, int] | None]) -> None:
        """Add the row whose logits give the next token of a chain, after the unread tokens of its text."""
        sequence, batch = chain.sequence, self._batch
        slot, held, tokens = sequence.slot, self._held_for(sequence), sequence.tokens.view
        if not chain.tokens and sequence.id in unread:
            for position in range(len(held), len(tokens) - 1):
                token = int(tokens[position])
                if position >= sequence.n_prompt - 1:
                    batch.add(token, position, slot.id)
                    outputs.append((sequence, position))
                else:
                    batch.add_run(tokens[position : position + 1], position, slot.id, n_wanted=0)
                held.append(token)
        token = chain.tokens[-1] if chain.tokens else sequence.tokens.last
        batch.add(token, chain.position - 1, slot.id)
        held.append(token)
        outputs.append(None)

    def _n_unread(self, sequence: Sequence) -> int:
        """Drop held tokens that differ from the text; return how many of its tokens are unread, without the last."""
        held, tokens = self._held_for(sequence), sequence.tokens
        n_known = min(held.common_prefix(tokens.view), len(tokens) - 1)
        if n_known < len(held):
            held.truncate(self._memory.take_back(sequence.slot.id, n_known))
        return len(tokens) - 1 - len(held)

    def _read_up_to_here(self, sequence: Sequence) -> int:
        """Evaluate all tokens of a sequence but the last; return how many rows that took."""
        n_rows = self._n_unread(sequence)
        held = self._held_for(sequence)
        while len(held) < len(sequence.tokens) - 1:
            self._read_some(sequence, min(self._batch.capacity, len(sequence.tokens) - 1 - len(held)))
        return n_rows

    def _read_some(self, sequence: Sequence, n_rows: int) -> None:
        """Evaluate the next ``n_rows`` unread tokens, or all but the text's last."""
        is_in_parts = self._context.is_asynchronous and n_rows <= _IN_PARTS
        part = USUAL_WIDTHS[-1] if is_in_parts else max(n_rows, 1)
        for first in range(0, n_rows, part):
            self._read_part(sequence, min(part, n_rows - first))

    def _read_part(self, sequence: Sequence, n_rows: int) -> None:
        """Evaluate ``n_rows`` unread tokens, or all but the text's last, in one decode."""
        slot, held, tokens = sequence.slot.id, self._held_for(sequence), sequence.tokens.view
        start = len(held)
        end = min(len(tokens) - 1, start + n_rows)
        # Rows whose next token was generated show whether the draft would have found it.
        first_judged = max(start, sequence.n_prompt - 1, len(tokens) - 1 - MAX_READ_ALONG)
        self._batch.clear()
        if first_judged > start:
            self._batch.add_run(tokens[start : min(first_judged, end)], start, slot, n_wanted=0)
        judged = range(max(first_judged, start), end)
        for position in judged:
            self._batch.add(int(tokens[position]), position, slot)
        self._decode(self._batch, [sequence], end)
        held.extend(tokens[start:end])
        if not judged:
            return
        self._context.synchronize()
        logits = self._context.logits(len(judged))
        for position, row in zip(judged, logits, strict=True):
            self._judge(sequence, position, row)

    def _judge(self, sequence: Sequence, position: int, row: npt.NDArray[np.float32]) -> None:
        """Compare the draft model's choice after ``position`` with the text."""
        self._compare(sequence, position + 1, self._sampler.choose(sequence, row, position + 1))
