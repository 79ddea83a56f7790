"""Heads: they draft from the target's hidden states.

MTP: prediction layers in the target's own file (multi-token prediction, DeepSeek-V3, 2024), token after token. EAGLE-3:
a head in a file of its own (Li et al., 2025), token after token. DFlash: a head in a file of its own that fills in a
block of tokens with one decode.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence as Series

import numpy as np

from core.cost.calibration import MeasuredContext
from core.llama import heads
from core.llama.context import Batch, Context, DecodeStatus, EmbeddingBatch
from core.llama.heads import StateBatch, StateRows
from core.llama.model import Model
from core.scheduler.sequence import Sequence
from core.speculation.proposers.context_proposer import HiddenStateProposer, UnreadSpan
from core.speculation.proposers.proposer import DraftChain, DraftFailed, Evaluated, ProposedToken

# While reading along, this many of the latest tokens are compared with the head's own choice.
_MOST_SHADOWED = 16
# Rows of one batch whose logits may be wanted.
MOST_OUTPUTS = 32


class AutoregressiveHead(HiddenStateProposer):
    """Drafts with a head in a context of its own, fed with the target's hidden states, for all sequences at once.

    It reads pairs of a token and the target's state before it. A drafted token is paired with the head's own state;
    once accepted, it is read again with the target's (as common/speculative.cpp does). Rows read with the target's
    states are kept by longest common prefix.
    """

    reads_last = 1

    def __init__(
        self,
        own: MeasuredContext,
        target: Context,
        features: Callable[[int], tuple[StateRows, ...]],
        first_position: int,
        state_width: int,
    ) -> None:
        """As the base class; features become states of ``state_width`` numbers."""
        super().__init__(own, target, features, first_position)
        self._state_width = state_width
        self._batch = StateBatch(own.context.n_batch, state_width)
        # The head's own hidden state after the last token of each slot.
        self._own_states: dict[int, StateRows] = {}
        heads.export_hidden(own.context, of_outputs_only=True)

    def _states(self, features: StateRows) -> StateRows:
        """Return the head's states of features, shape (n, state_width): by default these are the states."""
        return features

    # -- drafting -----------------------------------------------------------------------------------------------

    def extend(self, chains: list[DraftChain]) -> list[ProposedToken | None]:
        """Return the next token of each chain; None if states were not kept. Raises DraftFailed."""
        began = self._clock()
        for chain in chains:
            self._use(chain.sequence)
        n_rows = 0
        spans = {id(chain): self._unread(chain.sequence) for chain in chains if not chain.tokens}
        ready = [chain for chain in chains if chain.tokens or spans[id(chain)] is not None]
        if not ready:
            return [None] * len(chains)
        new = [span for span in spans.values() if span is not None]
        if sum(span.n_rows for span in new) + len(ready) - len(new) > self._context.n_outputs:
            parts = [span.split(span.end - 1) for span in new]
            n_rows += sum(self._read(before) for before, _ in parts)
            new = [last for _, last in parts]
        by_sequence = {span.sequence.id: span for span in new}
        states = self._states_of(new)
        self._batch.clear()
        rows = {}
        for chain in ready:
            span = by_sequence.get(chain.sequence.id)
            if span is not None and not chain.tokens:
                self._add_span(span, states)
            else:
                self._add_drafted(chain)
            rows[id(chain)] = self._batch.n_tokens - 1
        n_rows += self._batch.n_tokens
        logits, own = self._evaluate([chain.sequence for chain in ready], sum([chain.position for chain in ready]))
        guesses: list[ProposedToken | None] = []
        for chain in chains:
            row = rows.get(id(chain))
            if row is None:
                guesses.append(None)
                continue
            self._own_states[chain.sequence.slot.id] = own[row].copy()
            guess = self._sampler.choose(chain.sequence, logits[row], chain.position, chain.tokens)
            guesses.append(self._deeper(guess) if chain.tokens else guess)
        self._observe(n_rows, 0, self._clock() - began)
        return guesses

    def read_along(self, sequence: Sequence) -> None:
        """Read the new tokens, and note how often the head would have been right. Raises DraftFailed."""
        span = self._unread(sequence)
        if span is None or span.n_rows < 2:
            return
        began = self._clock()
        self._use(sequence)
        known, _ = span.split(span.end - 1)
        first_judged = max(sequence.n_prompt - 1, known.end - min(_MOST_SHADOWED, self._context.n_outputs))
        before, judged = known.split(first_judged)
        self._read(before)
        if judged.n_rows:
            self._judge(judged)
        self._observe(known.n_rows, 0, self._clock() - began)

    # -- helpers ------------------------------------------------------------------------------------------------

    def _states_of(self, spans: list[UnreadSpan]) -> dict[str, StateRows]:
        """Return the states that go with the tokens of spans, by sequence."""
        if not spans:
            return {}
        features = [self._windows[span.slot].rows(span.start - 1, span.end - 1) for span in spans]
        states = self._states(np.concatenate(features) if len(features) > 1 else features[0])
        ends = np.cumsum([span.n_rows for span in spans])
        return {
            span.sequence.id: states[end - span.n_rows : end] for span, end in zip(spans, ends.tolist(), strict=True)
        }

    def _add_span(self, span: UnreadSpan, states: dict[str, StateRows]) -> None:
        """Add rows for a span, all of them outputs.

        Either all rows of a batch are outputs or none: some graphs return the first rows instead of the chosen ones.
        """
        self._make_way(span)
        row = self._batch.n_tokens
        tokens = span.sequence.tokens.view[span.start : span.end]
        for offset, token in enumerate(tokens.tolist()):
            self._batch.add(token, span.start + offset + self._shift, span.slot)
        self._batch.states[row : row + span.n_rows] = states[span.sequence.id]
        self._held[span.slot].extend(tokens)

    def _add_drafted(self, chain: DraftChain) -> None:
        slot = chain.sequence.slot
        row = self._batch.n_tokens
        self._batch.add(chain.tokens[-1], chain.position - 1 + self._shift, slot.id)
        self._batch.states[row] = self._own_states[slot.id]

    def _read(self, span: UnreadSpan) -> int:
        """Read a span without asking for logits; return how many rows that took."""
        rest = span
        while rest.n_rows:
            part, rest = rest.split(rest.start + self._batch.capacity)
            states = self._states_of([part])[span.sequence.id]
            self._make_way(part)
            tokens = span.sequence.tokens.view[part.start : part.end]
            self._batch.clear()
            self._batch.add_run(tokens, part.start + self._shift, span.slot, n_wanted=0)
            self._batch.states[: part.n_rows] = states
            self._decode(self._batch, [span.sequence], part.end)
            self._held[span.slot].extend(tokens)
        return span.n_rows

    def _judge(self, span: UnreadSpan) -> None:
        """Read a span, and compare the head's choice after each token with the text."""
        sequence = span.sequence
        states = self._states_of([span])
        self._batch.clear()
        self._add_span(span, states)
        logits, _ = self._evaluate([sequence], span.end)
        for row, position in enumerate(range(span.start + 1, span.end + 1)):
            self._compare(sequence, position, self._sampler.choose(sequence, logits[row], position))

    def _evaluate(self, sequences: Series[Sequence], n_cells: int) -> tuple[StateRows, StateRows]:
        """Evaluate the batch, all of whose rows are outputs; return their logits and the head's own states."""
        self._decode(self._batch, sequences, n_cells)
        self._context.synchronize()
        n_rows = self._batch.n_tokens
        return self._context.logits(n_rows), heads.hidden(self._context, n_rows, self._state_width)


class MtpProposer(AutoregressiveHead):
    """Reads each token with the target's last hidden state before it (common/speculative.cpp, draft-mtp).

    If there are several prediction layers, the first one drafts every token.
    """

    name = "mtp"

    def __init__(self, own: MeasuredContext, target: Context, width: int) -> None:
        """Take over ``own``, which runs the target's prediction layers; states have ``width`` numbers."""
        super().__init__(own, target, lambda n_rows: (heads.hidden(target, n_rows, width),), 0, width)
        heads.export_hidden(target, of_outputs_only=False)


class Eagle3Proposer(AutoregressiveHead):
    """Reads each token with an encoding of the inputs of some of the target's layers before it.

    The token after position p is kept at p, beside the encoding of p (common/speculative.cpp, draft-eagle3).
    """

    name = "eagle3"

    def __init__(self, model: Model, own: MeasuredContext, target: Context, width: int) -> None:
        """Take over ``model`` and ``own``; ``width`` as for ``layer_inputs``."""
        self.model = model
        inputs = heads.layer_inputs(model, target, width)
        super().__init__(own, target, inputs, -1, heads.embedding_width(model))
        # The encoder's rows at a time, each of which is an output.
        self._n_encoded = min(own.context.n_outputs, own.context.n_ubatch)

    def _states(self, features: StateRows) -> StateRows:
        states = np.empty((len(features), self._state_width), np.float32)
        for start in range(0, len(features), self._n_encoded):
            chunk = features[start : start + self._n_encoded]
            # The encoder ignores positions, but they must follow the cache's.
            positions = self._context.last_position(0) + 1 + np.arange(len(chunk), dtype=np.int32)
            batch = EmbeddingBatch(chunk, positions, 0, are_outputs=True)
            if heads.encode(self._context, batch) is not DecodeStatus.OK:
                self.clear()
                raise DraftFailed
            states[start : start + len(chunk)] = heads.hidden(self._context, len(chunk), self._state_width)
        return states


class DFlashProposer(HiddenStateProposer):
    """Fills in a block of masks behind the last token in one decode.

    The inputs of some of the target's layers at a position are kept in the head's cache at that position. A block is
    the last token followed by masks, whose logits are those of the tokens in their places (common/speculative.cpp,
    draft-dflash). It is evaluated for the first token of a step; the others only have to be chosen.
    """

    name = "dflash"

    def __init__(self, model: Model, own: MeasuredContext, target: Context, width: int, n_block: int) -> None:
        """Take over ``model`` and ``own``; a block has ``n_block`` outputs; ``width`` as for ``layer_inputs``."""
        self.model = model
        super().__init__(own, target, heads.layer_inputs(model, target, width))
        self._n_block = n_block
        self._mask = heads.mask_token(model)
        self._batch = Batch(own.context.n_outputs)
        self._uses_mrope = heads.uses_mrope(model)
        # The logits of each slot's block in this step, and the slots whose logits are still in llama.cpp's buffer,
        # which the next decode overwrites.
        self._blocks: dict[int, StateRows] = {}
        self._in_place: set[int] = set()

    def observe(self, evaluated: Series[Evaluated]) -> None:
        """Keep the states of the rows that the target has just evaluated, and drop the blocks of the step before."""
        self._forget_blocks()
        super().observe(evaluated)

    # -- what it costs ------------------------------------------------------------------------------------------

    def round_seconds(self, n_chains: int) -> float:
        """Return 0: within a block, tokens only have to be chosen."""
        return 0.0

    def first_round_seconds(self, n_chains: int) -> float:
        """Return the expected seconds of the blocks of ``n_chains``."""
        return self.cost.time(n_chains * self._n_block) if n_chains else 0.0

    # -- drafting -----------------------------------------------------------------------------------------------

    def clear(self) -> None:
        """Drop the texts of all slots."""
        super().clear()
        self._forget_blocks()

    def extend(self, chains: list[DraftChain]) -> list[ProposedToken | None]:
        """Return the next token of each chain; None behind a block, or without states. Raises DraftFailed."""
        spans = []
        for chain in chains:
            self._use(chain.sequence)
            if not chain.tokens:
                self._blocks.pop(chain.sequence.slot.id, None)
                span = self._unread(chain.sequence)
                spans += [span] if span is not None else []
        most = self._batch.capacity // self._n_block
        for start in range(0, len(spans), most):
            self._fill_in(spans[start : start + most])
        return [self._next(chain) for chain in chains]

    def read_along(self, sequence: Sequence) -> None:
        """Read the new tokens, and note how far a block would have been right. Raises DraftFailed."""
        span = self._unread(sequence)
        if span is None or span.n_rows < 2:
            return
        self._use(sequence)
        self._keep_blocks()
        anchor = max(span.start + span.is_fresh, sequence.n_prompt - 1, span.end - self._n_block + 1)
        before, rest = span.split(anchor)
        self._read([before])
        if rest.n_rows:
            self._judge(sequence, anchor)
            self._read([rest])

    # -- helpers ------------------------------------------------------------------------------------------------

    def _read(self, spans: list[UnreadSpan]) -> None:
        """Put the target's features of spans into the cache."""
        for span in spans:
            self._make_way(span)
            self._held[span.slot].extend(span.sequence.tokens.view[span.start : span.end])
        spans = [span for span in spans if span.n_rows]
        if not spans:
            return
        features = np.concatenate([self._windows[span.slot].rows(span.start, span.end) for span in spans])
        positions = np.concatenate([np.arange(span.start, span.end, dtype=np.int32) for span in spans])
        positions = heads.mrope_positions(positions) if self._uses_mrope else positions
        slots = np.concatenate([np.full(span.n_rows, span.slot, np.int32) for span in spans])
        for start in range(0, len(features), self._context.n_batch):
            part = slice(start, start + self._context.n_batch)
            batch = EmbeddingBatch(features[part], positions[..., part], slots[part])
            self._decode(batch, [span.sequence for span in spans], None)

    def _fill_in(self, spans: list[UnreadSpan]) -> None:
        """Read spans, and evaluate a block behind each."""
        self._keep_blocks()
        began, n_read = self._clock(), sum([span.n_rows for span in spans])
        self._read(spans)
        logits = self._evaluate([span.sequence for span in spans], [span.end for span in spans])
        # Reading the tokens of one step is part of a block's cost; catching up with more is not.
        if n_read <= self._batch.n_tokens:
            self._observe(self._batch.n_tokens, 0, self._clock() - began)
        for span, rows in zip(spans, logits, strict=True):
            self._blocks[span.slot] = rows
            self._in_place.add(span.slot)

    def _evaluate(self, sequences: list[Sequence], anchors: list[int]) -> list[StateRows]:
        """Return the logits of the block behind each anchor (a position); the cache is left as it was."""
        batch, size = self._batch, self._n_block
        batch.clear()
        for sequence, anchor in zip(sequences, anchors, strict=True):
            slot = sequence.slot.id
            batch.add(int(sequence.tokens.view[anchor]), anchor, slot)
            for place in range(1, size):
                batch.add(self._mask, anchor + place, slot)
        self._decode(batch, sequences, sum(anchors) + batch.n_tokens)
        self._context.synchronize()
        for sequence, anchor in zip(sequences, anchors, strict=True):
            self._context.remove(sequence.slot.id, anchor)
        logits = self._context.logits(batch.n_tokens)
        return [logits[row + 1 : row + size] for row in range(0, batch.n_tokens, size)]

    def _next(self, chain: DraftChain) -> ProposedToken | None:
        rows, depth = self._blocks.get(chain.sequence.slot.id), len(chain.tokens)
        if rows is None or depth >= len(rows):
            return None
        guess = self._sampler.choose(chain.sequence, rows[depth], chain.position, chain.tokens)
        return self._deeper(guess) if depth else guess

    def _judge(self, sequence: Sequence, anchor: int) -> None:
        """Compare a block behind ``anchor`` with the text, up to the first difference."""
        (rows,) = self._evaluate([sequence], [anchor])
        tokens = sequence.tokens.view[anchor + 1 :].tolist()
        for depth in range(min(len(tokens), len(rows))):
            guess = self._sampler.choose(sequence, rows[depth], anchor + 1 + depth)
            guess = self._deeper(guess) if depth else guess
            if not self._compare(sequence, anchor + 1 + depth, guess):
                return

    def _keep_blocks(self) -> None:
        """Copy the logits of this step's blocks before the next decode overwrites them."""
        for slot in self._in_place & self._blocks.keys():
            self._blocks[slot] = self._blocks[slot].copy()
        self._in_place.clear()

    def _drop(self, slot: int) -> None:
        super()._drop(slot)
        self._blocks.pop(slot, None)

    def _forget_blocks(self) -> None:
        self._blocks.clear()
        self._in_place.clear()
