"""Drafting with an EAGLE-3 head in a file of its own (Li et al., 2025)."""

from __future__ import annotations

import numpy as np

from core.cost.cost_model import CostModel
from core.cost.read_cost import ReadCost
from core.cost.threads import ThreadControl
from core.llama import heads
from core.llama.context import Context, DecodeStatus
from core.llama.heads import FeatureBatch, LayerInputs, StateRows
from core.llama.model import Model
from core.speculation.proposer import DraftFailed
from core.speculation.proposers.autoregressive_head import AutoregressiveHead


class Eagle3Proposer(AutoregressiveHead):
    """Reads each token with an encoding of what went into some of the target's layers before it.

    The token after position p is kept at p, beside the encoding of p (common/speculative.cpp, draft-eagle3).
    """

    name = "eagle3"

    def __init__(
        self,
        model: Model,
        context: Context,
        target: Context,
        cost: CostModel,
        *,
        n_slots: int,
        target_width: int,
        reads: ReadCost | None = None,
        threads: ThreadControl | None = None,
    ) -> None:
        """Take over ``model`` and ``context``; ``target_width`` is the width of the target's layers.

        The target must be able to hand out the inputs of the head's layers (``HAND_OUT_LAYERS``), or llama.cpp aborts.
        """
        self._model = model
        self._inputs = LayerInputs(model, target, target_width)
        width = heads.embedding_width(model)
        super().__init__(
            context,
            target,
            cost,
            n_slots=n_slots,
            state_width=width,
            feature_width=self._inputs.width,
            first_position=-1,
            reads=reads,
            threads=threads,
        )
        # The encoder makes an output of every row.
        self._encoder_batch = FeatureBatch(min(context.n_outputs, context.n_ubatch), self._inputs.width)

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
