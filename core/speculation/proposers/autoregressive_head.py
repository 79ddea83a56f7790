"""Heads that draft token after token from the target's hidden states.

MTP: prediction layers in the target's own file (multi-token prediction, DeepSeek-V3, 2024). EAGLE-3: a head in a file
of its own (Li et al., 2025).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence as Series

import numpy as np

from core.cost.calibration import MeasuredContext
from core.llama import heads
from core.llama.context import Context, DecodeStatus
from core.llama.heads import FeatureBatch, LayerInputs, StateBatch, StateRows
from core.llama.model import Model
from core.scheduler.sequence import Sequence
from core.speculation.proposer import DraftChain, DraftFailed, ProposedToken
from core.speculation.proposers.hidden_state import HiddenStateProposer, UnreadSpan

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

    def __init__(
        self, own: MeasuredContext, target: Context, *, state_width: int, feature_width: int, first_position: int
    ) -> None:
        """Take over ``own``; ``target`` is lent.

        The target exports features of ``feature_width`` numbers, which become states of ``state_width`` numbers.
        ``first_position`` is the head's position of the token at position 0.
        """
        super().__init__(own, target, feature_width, first_position)
        self._state_width = state_width
        self._batch = StateBatch(own.context.n_batch, state_width)
        # The head's own hidden state after the last token of each slot.
        self._own_states: dict[int, StateRows] = {}
        heads.export_hidden(own.context, of_outputs_only=True)

    @abstractmethod
    def _states(self, features: StateRows) -> StateRows:
        """Return the head's states of features, shape (n, state_width)."""

    # -- what it costs ------------------------------------------------------------------------------------------

    def n_unread(self, sequence: Sequence) -> int:
        """Return how many tokens are to be read before the next one can be drafted."""
        span = self._unread(sequence)
        return span.n_rows if span is not None else 1

    # -- drafting -----------------------------------------------------------------------------------------------

    def extend(self, chains: list[DraftChain]) -> list[ProposedToken | None]:
        """Return the head's next token for each chain; None if the target's states were not kept.

        Raises DraftFailed.
        """
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
        """Read the new tokens of a sequence, and note how often the head would have been right.

        Raises DraftFailed.
        """
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

    def _unread(self, sequence: Sequence) -> UnreadSpan | None:
        """Return the tokens to read before the next can be drafted, with the last one; None if states are missing."""
        features, tokens = self._slot_features(sequence), sequence.tokens.view
        known = features.window.known(tokens[:-1])
        if known.stop < len(tokens) - 1 or not known:
            return None
        held = min(features.read.common_prefix(tokens), len(tokens) - 1)
        is_fresh = held <= features.first or held <= known.start
        return UnreadSpan(sequence, features, known.start + 1 if is_fresh else held, len(tokens), is_fresh)

    def _states_of(self, spans: list[UnreadSpan]) -> dict[str, StateRows]:
        """Return the states that go with the tokens of spans, by sequence."""
        if not spans:
            return {}
        features = [span.features.window.rows(span.start - 1, span.end - 1) for span in spans]
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
        slot = span.sequence.slot
        row = self._batch.n_tokens
        tokens = span.sequence.tokens.view[span.start : span.end]
        for offset, token in enumerate(tokens.tolist()):
            self._batch.add(token, span.start + offset + self._shift, slot.id)
        self._batch.states[row : row + span.n_rows] = states[span.sequence.id]
        span.features.read.extend(tokens)

    def _add_drafted(self, chain: DraftChain) -> None:
        """Add the row of the head's own drafted token."""
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
            slot = span.sequence.slot
            tokens = span.sequence.tokens.view[part.start : part.end]
            self._batch.clear()
            self._batch.add_run(tokens, part.start + self._shift, slot.id, n_wanted=0)
            self._batch.states[: part.n_rows] = states
            self._decode(self._batch, [span.sequence], part.end)
            span.features.read.extend(tokens)
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
        super().__init__(own, target, state_width=width, feature_width=width, first_position=0)
        heads.export_hidden(target, of_outputs_only=False)

    def _features(self, n_rows: int) -> tuple[StateRows, ...]:
        return (heads.hidden(self._target, n_rows, self._state_width),)

    def _states(self, features: StateRows) -> StateRows:
        return features


class Eagle3Proposer(AutoregressiveHead):
    """Reads each token with an encoding of the inputs of some of the target's layers before it.

    The token after position p is kept at p, beside the encoding of p (common/speculative.cpp, draft-eagle3).
    """

    name = "eagle3"

    def __init__(self, model: Model, own: MeasuredContext, target: Context, target_width: int) -> None:
        """Take over ``model`` and ``own``; ``target_width`` is the width of the target's layers.

        The target must be able to export the inputs of its layers (``heads.why_unavailable``), or llama.cpp aborts.
        """
        self._model = model
        self._inputs = LayerInputs(model, target, target_width)
        width, feature_width = heads.embedding_width(model), self._inputs.width
        super().__init__(own, target, state_width=width, feature_width=feature_width, first_position=-1)
        # The encoder makes an output of every row.
        self._encoder_batch = FeatureBatch(min(own.context.n_outputs, own.context.n_ubatch), self._inputs.width)

    def _features(self, n_rows: int) -> tuple[StateRows, ...]:
        return self._inputs.rows(n_rows)

    def _states(self, features: StateRows) -> StateRows:
        batch, states = self._encoder_batch, np.empty((len(features), self._state_width), np.float32)
        for start in range(0, len(features), batch.capacity):
            chunk = features[start : start + batch.capacity]
            batch.fill(chunk, self._context.last_position(0) + 1)
            if heads.encode(self._context, batch) is not DecodeStatus.OK:
                self.clear()
                raise DraftFailed
            states[start : start + len(chunk)] = heads.hidden(self._context, len(chunk), self._state_width)
        return states

    def close(self) -> None:
        """Free context and model."""
        super().close()
        self._model.close()
