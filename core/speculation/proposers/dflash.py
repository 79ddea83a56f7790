"""Drafting with a DFlash head in a file of its own: a block of tokens from one decode."""

from __future__ import annotations

from collections.abc import Sequence as Series

from core.cost.calibration import MeasuredContext
from core.llama import heads
from core.llama.context import Batch, Context
from core.llama.heads import LayerInputs, StateRows, TargetBatch
from core.llama.model import Model
from core.scheduler.sequence import Sequence
from core.speculation.proposer import DraftChain, Evaluated, ProposedToken
from core.speculation.proposers.hidden_state import HiddenStateProposer, UnreadSpan


class DFlashProposer(HiddenStateProposer):
    """Fills in a block of masks behind the last token in one decode.

    The inputs of some of the target's layers at a position are kept in the head's cache at that position. A block is
    the last token followed by masks, whose logits are those of the tokens in their places (common/speculative.cpp,
    draft-dflash). It is evaluated for the first token of a step; the others only have to be chosen.
    """

    name = "dflash"

    def __init__(self, model: Model, own: MeasuredContext, target: Context, target_width: int, n_block: int) -> None:
        """Take over ``model`` and ``own``, whose context evaluates blocks of ``n_block`` rows, all of them outputs.

        The target must be able to export the inputs of its layers (``heads.why_unavailable``), or llama.cpp aborts.
        ``target_width`` is their width.
        """
        self._model = model
        self._inputs = LayerInputs(model, target, target_width)
        super().__init__(own, target, self._inputs.width, first_position=0)
        self._n_block = n_block
        self._mask = heads.mask_token(model)
        self._batch = Batch(own.context.n_outputs)
        self._features_batch = TargetBatch(own.context.n_batch, self._inputs.width, heads.n_axes(model))
        # The logits of each slot's block in this step, and the slots whose logits are still in llama.cpp's buffer,
        # which the next decode overwrites.
        self._blocks: dict[int, StateRows] = {}
        self._in_place: set[int] = set()

    def _features(self, n_rows: int) -> tuple[StateRows, ...]:
        return self._inputs.rows(n_rows)

    def observe(self, evaluated: Series[Evaluated]) -> None:
        """Keep the states of the rows that the target has just evaluated, and drop the blocks of the step before."""
        self._forget_blocks()
        super().observe(evaluated)

    # -- what it costs ------------------------------------------------------------------------------------------

    def n_unread(self, sequence: Sequence) -> int:
        """Return how many tokens are to be read before the next one can be drafted."""
        span = self._unread(sequence)
        return span.n_rows + 1 if span is not None else 1

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
        """Return the next token of each chain; None behind a block, or if the target's states were not kept.

        Raises DraftFailed.
        """
        spans = []
        for chain in chains:
            self._use(chain.sequence)
            if not chain.tokens:
                self._blocks.pop(self._slot(chain.sequence), None)
                span = self._unread(chain.sequence)
                spans += [span] if span is not None else []
        most = self._batch.capacity // self._n_block
        for start in range(0, len(spans), most):
            self._fill_in(spans[start : start + most])
        return [self._next(chain) for chain in chains]

    def read_along(self, sequence: Sequence) -> None:
        """Read the new tokens of a sequence, and note how far a block would have been right.

        Raises DraftFailed.
        """
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

    @staticmethod
    def _slot(sequence: Sequence) -> int:
        return sequence.slot.id

    def _unread(self, sequence: Sequence) -> UnreadSpan | None:
        """Return the unread tokens before the last one; None if states are missing."""
        features, tokens = self._slot_features(sequence), sequence.tokens.view
        end = len(tokens) - 1
        known = features.window.known(tokens[:-1])
        if known.stop < end or not known:
            return None
        held = min(features.read.common_prefix(tokens), end)
        is_fresh = held <= features.first or held < known.start
        return UnreadSpan(sequence, features, known.start if is_fresh else held, end, is_fresh)

    def _read(self, spans: list[UnreadSpan]) -> None:
        """Put the target's features of spans into the cache."""
        batch = self._features_batch
        batch.clear()
        for span in spans:
            self._make_way(span)
            rest = span
            while rest.n_rows:
                part, rest = rest.split(rest.start + batch.capacity - batch.n_tokens)
                batch.add_states(span.features.window.rows(part.start, part.end), part.start, self._slot(span.sequence))
                span.features.read.extend(span.sequence.tokens.view[part.start : part.end])
                if batch.n_tokens == batch.capacity:
                    self._put_in(spans)
        self._put_in(spans)

    def _put_in(self, spans: list[UnreadSpan]) -> None:
        batch = self._features_batch
        if batch.n_tokens:
            self._decode(batch, [span.sequence for span in spans], None)
        batch.clear()

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
            self._blocks[self._slot(span.sequence)] = rows
            self._in_place.add(self._slot(span.sequence))

    def _evaluate(self, sequences: list[Sequence], anchors: list[int]) -> list[StateRows]:
        """Return the logits of the block behind each anchor (a position); the cache is left as it was."""
        batch, size = self._batch, self._n_block
        batch.clear()
        for sequence, anchor in zip(sequences, anchors, strict=True):
            slot = self._slot(sequence)
            batch.add(int(sequence.tokens.view[anchor]), anchor, slot)
            for place in range(1, size):
                batch.add(self._mask, anchor + place, slot)
        self._decode(batch, sequences, sum(anchors) + batch.n_tokens)
        self._context.synchronize()
        for sequence, anchor in zip(sequences, anchors, strict=True):
            self._context.remove(self._slot(sequence), anchor)
        logits = self._context.logits(batch.n_tokens)
        return [logits[row + 1 : row + size] for row in range(0, batch.n_tokens, size)]

    def _next(self, chain: DraftChain) -> ProposedToken | None:
        rows, depth = self._blocks.get(self._slot(chain.sequence)), len(chain.tokens)
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

    def close(self) -> None:
        """Free context and model."""
        super().close()
        self._model.close()
