"""The expected cost and gain of a draft for a model here, for choosing drafts and for fit reports. Pure.

If the machine was measured, the cost is a share of seconds: bytes of each tensor type over their measured rate, and the
overhead of layers and steps, which matters for a small draft. Otherwise it is a share of bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from models.estimate.speed.machine import Machine
from models.estimate.speed.work import Amounts, Placement, head_work, reads_of_file, work
from models.facts.layer_weights import LayerWeights
from models.facts.model_facts import ModelFacts
from models.pairing.gain import AcceptanceCounts, GainPrediction, ProposerKind, expected_acceptance, learnt, predict
from models.pairing.heads import IN_FILES, USUAL_BLOCK

MTP = "mtp"
"""The name of the prediction heads in a model's own file."""
# The cost of one more row, as a share of a step of one row. On a CPU it is the time to compute it: 0.28, from the speed
# of a perfect draft at depth 12 in benchmarks/results/draft.json (two cores). On a GPU a few rows are nearly free
# beside reading the weights.
CPU_ROW, GPU_ROW = 0.28, 0.02


def proposer_kind(draft: ModelFacts | None) -> ProposerKind:
    """The kind of a draft; None is the prediction heads in the model's file."""
    if draft is None:
        return ProposerKind.MTP
    if draft.architecture in IN_FILES:
        return ProposerKind(draft.architecture)
    return ProposerKind.EAGLE3 if draft.is_head else ProposerKind.MODEL


def draft_key(draft: ModelFacts | None) -> str:
    """The name of a draft in runs."""
    return draft.files[0].stem if draft is not None and draft.files else MTP


def forecast(
    target: ModelFacts,
    draft: ModelFacts | None,
    pace: DraftingMachine | None,
    row_cost: float,
    judged: AcceptanceCounts,
) -> GainPrediction:
    """Predict the gain of a draft (None: the heads in the model's file); ``judged`` are its tokens so far."""
    n_params = draft.n_active_params if draft is not None else 0
    kind = proposer_kind(draft)
    expected = expected_acceptance(kind, n_params, target.n_active_params)
    share = cost_share(target, draft, pace)
    if kind is ProposerKind.DFLASH:
        # The rows of a block are computed whether they are used or not.
        share *= 1 + (USUAL_BLOCK - 1) * row_cost
    found = predict(
        target.active_weights, share, learnt(expected, judged), row_cost, is_block=kind is ProposerKind.DFLASH
    )
    return replace(found, is_measured=judged.n_tokens > 0)


@dataclass(frozen=True, slots=True)
class DraftingMachine:
    """A machine that was measured, the number of the device that drafts there, and the model's seconds for a token."""

    machine: Machine
    device: int
    seconds: float


def pace_of(target: ModelFacts, machine: Machine, device: int = 0) -> DraftingMachine | None:
    """The pace of a model on one device; None if too little of the machine was measured."""
    amounts = work(target, Placement.all_on(device, target.n_layers), machine.devices, n_past=0)
    seconds = machine.efficiency.seconds(amounts)
    return DraftingMachine(machine, device, seconds) if seconds else None


def row_cost(machine: Machine, device: int = 0) -> float:
    """The cost of one more row, as a share of a step of one row: measured, else the usual one."""
    found = machine.devices[device]
    if found.probe is not None:
        return found.probe.row
    return CPU_ROW if found.is_cpu else GPU_ROW


def draft_bytes(target: ModelFacts, draft: ModelFacts | None) -> int:
    """Bytes that a drafted token reads; ``draft`` None is the prediction head in the model's file."""
    model, reads = _head(target, draft)
    return model.used_of(reads).read_by(1) if reads is not None else model.active_bytes_per_token


def cost_share(target: ModelFacts, draft: ModelFacts | None, pace: DraftingMachine | None) -> float:
    """The cost of a drafted token as a share of one of the model; ``draft`` None: the head in the model's file."""
    seconds = pace.machine.efficiency.seconds(_amounts(target, draft, pace)) if pace is not None else None
    if pace is None or seconds is None:
        return draft_bytes(target, draft) / max(target.active_bytes_per_token, 1)
    return seconds / pace.seconds


def _amounts(target: ModelFacts, draft: ModelFacts | None, pace: DraftingMachine) -> Amounts:
    devices = pace.machine.devices
    model, reads = _head(target, draft)
    if reads is not None:
        return head_work(reads, model, devices[pace.device], draft.n_layers if draft is not None else 1)
    return work(model, Placement.all_on(pace.device, model.n_layers), devices, n_past=0)


def _head(target: ModelFacts, draft: ModelFacts | None) -> tuple[ModelFacts, LayerWeights | None]:
    """The model whose weights a drafted token reads, and which of them; None for a draft model, which reads all."""
    if draft is None:
        return target, target.mtp_head
    return draft, reads_of_file(draft, target) if draft.architecture in IN_FILES else None
