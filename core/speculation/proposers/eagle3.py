"""Drafting with an EAGLE-3 head in a file of its own (Li et al., 2025)."""

from __future__ import annotations

import numpy as np

from core.cost.calibration import MeasuredContext
from core.llama import heads
from core.llama.context import Context, DecodeStatus
from core.llama.heads import FeatureBatch, LayerInputs, StateRows
from core.llama.model import Model
from core.speculation.proposer import DraftFailed
from core.speculation.proposers.autoregressive_head import AutoregressiveHead


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
