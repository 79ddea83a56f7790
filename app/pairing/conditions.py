"""What a pair would find on this machine: memory beside the model, the cost of a row, heads that llama.cpp can run."""

from __future__ import annotations

from app.server.settings import ServerSettings
from core.llama.backends import gpu_backends
from core.wanted import wanted_of
from models.fit.search import best_plan, least_plan
from models.machine import DeviceKind, MachineDevice, machine_of
from models.memory import USABLE_SHARE, free_memory
from models.model_facts import ModelFacts
from models.pairing.gain import CPU_ROW, GPU_ROW, Kind
from models.pairing.heads import why_no_mtp
from models.pairing.partner import Conditions

USUAL = ServerSettings()


def conditions_of(facts: ModelFacts, settings: ServerSettings = USUAL) -> Conditions:
    """Return the conditions beside a model that a server loads with these settings.

    Where llama.cpp has a GPU, only the engine knows what is free: the room is unknown.
    """
    has_gpu = settings.n_gpu_layers != 0 and bool(gpu_backends())
    free = free_memory()
    machine = machine_of([MachineDevice("CPU", DeviceKind.CPU, free, free)])
    wanted = wanted_of(facts, settings.engine_options("any"), None, uses_heads=why_no_mtp(facts) is None)
    plan = best_plan(facts, machine, wanted) or least_plan(facts, machine, wanted)
    return Conditions(
        n_cells=plan.setting.n_ctx,
        n_slots=settings.n_slots,
        room=None if has_gpu else int(free * USABLE_SHARE) - plan.total,
        row_cost=GPU_ROW if has_gpu else CPU_ROW,
        why_no_head=why_no_head,
    )


def machine_key() -> str:
    """Return the name under which this machine's measurements of pairs are kept."""
    from core.measurements import measurement_key

    return measurement_key("pair", *gpu_backends())


def why_no_head(kind: Kind) -> str | None:
    """Return why the llama.cpp here cannot run heads of a kind, as a sentence, or None."""
    # Loads llama.cpp, so it is asked only where there is a head that fits otherwise.
    from core.llama.heads import HeadKind, why_unavailable

    return why_unavailable(HeadKind.MTP if kind is Kind.MTP else HeadKind.EAGLE3)
