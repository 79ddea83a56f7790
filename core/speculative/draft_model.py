"""A small model that drafts for a large one of the same vocabulary, for all sequences in one batch."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from core.cost_model import CostModel
from core.llama.batch import Batch
from core.llama.context import Context, DecodeStatus
from core.llama.model import Model
from core.meter import ReadCost
from core.sequence import Sequence
from core.speculative.acceptance import AcceptanceTable
from core.speculative.choice import PRIORS, Chooser
from core.speculative.drafter import Chain, Guess, Observation
from core.token_buffer import TokenBuffer

# While catching up, this many of the latest tokens are compared with what the draft would have said.
MOST_SHADOWED = 32


class _Lane:
    """The tokens whose keys and values the draft model holds for one slot."""

    def __init__(self) -> None:
        self.resident = TokenBuffer(np.empty(0, np.int32))


class DraftModel:
    """Drafts with a second model in a context of its own; its cache keeps the longest common prefix of each slot."""

    name = "draft"

    def __init__(
        self,
        model: Model,
        context: Context,
        cost: CostModel,
        *,
        n_slots: int,
        n_vocab: int,
        reads: ReadCost | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """Take over ``model`` and ``context`` (``close`` frees them); ``cost`` is that of the context's decodes.

        ``n_vocab`` is the size of the target's vocabulary. ``reads`` says what a decode reads, for the meter.
        """
        self.table = AcceptanceTable(PRIORS)
        self.cost = cost
        self._model = model
        self._context = context
        self._clock = clock
        self._reads = reads
        self._bytes_read = 0
        self._lanes = tuple(_Lane() for _ in range(n_slots))
        self._batch = Batch(context.n_batch)
        self._chooser = Chooser(n_vocab)
        self._observations: list[Observation] = []

    def admit(self, sequence: Sequence) -> None:
        """Do nothing yet: the prompt is read when drafting first pays."""

    def forget(self, sequence: Sequence) -> None:
        """Keep the cache: the next turn of the conversation begins with it."""

    def clear(self) -> None:
        """Forget what every slot holds."""
        self._context.clear()
        for lane in self._lanes:
            lane.resident.truncate(0)

    def n_behind(self, sequence: Sequence) -> int:
        """Return how many tokens of a sequence the draft model has not read."""
        lane = self._lane(sequence)
        return len(sequence.tokens) - lane.resident.common_prefix(sequence.tokens.view)

    def round_seconds(self, n_chains: int) -> float:
        """Return the expected seconds of a round."""
        return self.cost.time(n_chains)

    def catch_up_seconds(self, n_behind: int) -> float:
        """Return the expected seconds of reading ``n_behind`` tokens."""
        return self.cost.time(n_behind)

    def extend(self, chains: list[Chain]) -> list[Guess | None]:
        """Return the draft model's next token for each chain."""
        if not chains:
            return []
        began = self._clock()
        rows = sum(self._read_up_to_here(chain.sequence) for chain in chains if not chain.tokens)
        self._batch.clear()
        for chain in chains:
            self._add_last(chain)
        rows += self._batch.n_tokens
        if self._context.decode(self._batch) is not DecodeStatus.OK:
            self._start_over(chains)
            return [None] * len(chains)
        self._count(sum(chain.position for chain in chains), len(chains))
        self._context.synchronize()
        logits = self._context.logits(len(chains))
        guesses = [
            self._chooser.choose(chain.sequence, row, chain.position) for chain, row in zip(chains, logits, strict=True)
        ]
        self.cost.observe(rows, 0, self._clock() - began)
        return guesses

    def shadow(self, sequence: Sequence) -> None:
        """Read what a sequence has said since, and note how often the draft would have been right. Drafts nothing."""
        began = self._clock()
        rows = self._read_up_to_here(sequence)
        if rows:
            self.cost.observe(rows, 0, self._clock() - began)

    def take_observations(self) -> list[Observation]:
        """Return what catching up has shown."""
        taken, self._observations = self._observations, []
        return taken

    def take_bytes_read(self) -> int:
        """Return the bytes that were read since this was last asked."""
        taken, self._bytes_read = self._bytes_read, 0
        return taken

    def close(self) -> None:
        """Free context and model."""
        self._context.close()
        self._model.close()

    def _count(self, n_cells: int, n_sequences: int) -> None:
        if self._reads is not None:
            self._bytes_read += self._reads.step(self._batch.n_tokens, n_cells, n_sequences)

    def _lane(self, sequence: Sequence) -> _Lane:
        assert sequence.slot is not None
        return self._lanes[sequence.slot.id]

    def _read_up_to_here(self, sequence: Sequence) -> int:
        """Evaluate all tokens of a sequence but the last; return how many rows that took."""
        assert sequence.slot is not None
        slot, lane, tokens = sequence.slot.id, self._lane(sequence), sequence.tokens
        n_known = min(lane.resident.common_prefix(tokens.view), len(tokens) - 1)
        if n_known < len(lane.resident):
            self._cut(slot, lane, n_known)
        n_rows = len(tokens) - 1 - len(lane.resident)
        while len(lane.resident) < len(tokens) - 1:
            self._read_some(sequence, slot, lane)
        return n_rows

    def _read_some(self, sequence: Sequence, slot: int, lane: _Lane) -> None:
        tokens = sequence.tokens.view
        start = len(lane.resident)
        end = min(len(tokens) - 1, start + self._batch.capacity)
        # Rows whose next token was generated show whether the draft would have found it.
        first_judged = max(start, sequence.n_prompt - 1, len(tokens) - 1 - MOST_SHADOWED)
        self._batch.clear()
        if first_judged > start:
            self._batch.add_run(tokens[start : min(first_judged, end)], start, slot, want_last=False)
        judged = range(max(first_judged, start), end)
        for position in judged:
            self._batch.add(int(tokens[position]), position, slot)
        if self._context.decode(self._batch) is not DecodeStatus.OK:
            self._cut(slot, lane, 0)
            raise DraftFailed
        self._count(end, 1)
        lane.resident.extend(tokens[start:end])
        if not judged:
            return
        self._context.synchronize()
        logits = self._context.logits(len(judged))
        for position, row in zip(judged, logits, strict=True):
            guess = self._chooser.choose(sequence, row, position + 1)
            if guess is None:
                continue
            was_right = guess.token == int(tokens[position + 1])
            self._observations.append(Observation(sequence.id, guess.evidence, was_right))

    def _add_last(self, chain: Chain) -> None:
        """Add the row whose logits give the chain's next token."""
        slot = chain.sequence.slot
        assert slot is not None
        token = chain.tokens[-1] if chain.tokens else chain.sequence.tokens.last
        lane = self._lane(chain.sequence)
        self._batch.add(token, chain.position - 1, slot.id)
        lane.resident.append(token)

    def _cut(self, slot: int, lane: _Lane, size: int) -> None:
        if not self._context.remove(slot, size):
            self._context.remove(slot, 0)
            size = 0
        lane.resident.truncate(size)

    def _start_over(self, chains: list[Chain]) -> None:
        """After a failed decode nothing is known of these lanes."""
        for chain in chains:
            slot = chain.sequence.slot
            assert slot is not None
            self._cut(slot.id, self._lane(chain.sequence), 0)


class DraftFailed(Exception):
    """The draft model could not evaluate its batch; the step goes on without drafts."""
