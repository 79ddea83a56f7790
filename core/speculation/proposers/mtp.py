"""Drafting with the prediction layers in the target's own file (multi-token prediction, DeepSeek-V3, 2024)."""

from __future__ import annotations

from core.cost.cost_model import CostModel
from core.cost.read_cost import ReadCost
from core.cost.threads import ThreadControl
from core.llama import heads
from core.llama.context import Context
from core.llama.heads import StateRows
from core.speculation.proposers.autoregressive_head import AutoregressiveHead


class MtpProposer(AutoregressiveHead):
    """Reads each token with the target's last hidden state before it (common/speculative.cpp, draft-mtp).

    Of several prediction layers the first one is used for every token.
    """

    name = "mtp"

    def __init__(
        self,
        context: Context,
        target: Context,
        cost: CostModel,
        *,
        n_slots: int,
        width: int,
        reads: ReadCost | None = None,
        threads: ThreadControl | None = None,
    ) -> None:
        """Take over ``context``, which runs the target's prediction layers; states have ``width`` numbers."""
        super().__init__(
            context,
            target,
            cost,
            n_slots=n_slots,
            state_width=width,
            feature_width=width,
            first_position=0,
            reads=reads,
            threads=threads,
        )
        heads.export_hidden(target, of_outputs_only=False)

    def _features(self, n_rows: int) -> tuple[StateRows, ...]:
        return (heads.hidden(self._target, n_rows, self._state_width),)

    def _states(self, features: StateRows) -> StateRows:
        return features
