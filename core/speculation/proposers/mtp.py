"""Drafting with the prediction layers in the target's own file (multi-token prediction, DeepSeek-V3, 2024)."""

from __future__ import annotations

from core.cost.calibration import MeasuredContext
from core.llama import heads
from core.llama.context import Context
from core.llama.heads import StateRows
from core.speculation.proposers.autoregressive_head import AutoregressiveHead


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
