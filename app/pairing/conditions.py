"""What this machine has for a pair: memory beside the model, the cost of drafting, heads that llama.cpp can run."""

from __future__ import annotations

from functools import lru_cache, partial
from pathlib import Path

from app.environment.paths import cache_folder
from app.settings.server_settings import ServerSettings
from core.llama.build import gpu_backends
from core.loading.memory_need import fit_request_of
from core.machine import bandwidth
from core.machine.host import this_machine
from core.machine.known_machine import CPU, PROBE_FILE, known_machine, known_runs, remembered_probe
from core.values.engine_options import Device
from models.estimate.fit.memory import USABLE_SHARE, free_memory
from models.estimate.fit.search import best_plan, least_plan
from models.estimate.speed import runs
from models.estimate.speed.machine import DeviceKind, Machine, MachineDevice, machine_of
from models.estimate.speed.runs import ModelRun
from models.facts.model_facts import ModelFacts
from models.pairing.forecast import GPU_ROW, pace_of, row_cost
from models.pairing.gain import AcceptanceCounts, ProposerKind
from models.pairing.heads import why_no_mtp
from models.pairing.partner import PairingConditions

USUAL = ServerSettings()
_MEASURED = (bandwidth.FILE_NAME, PROBE_FILE, runs.FILE_NAME)


def conditions_of(facts: ModelFacts, settings: ServerSettings = USUAL) -> PairingConditions:
    """Return the conditions beside a model that a server loads with these settings.

    Where llama.cpp has a GPU, only the engine knows what is free: the room is unknown.
    """
    has_gpu = settings.engine.n_gpu_layers != 0 and bool(gpu_backends())
    free = free_memory()
    machine = machine_of([MachineDevice("CPU", DeviceKind.CPU, free, free)])
    wanted = fit_request_of(facts, settings.engine_options("any"), None, uses_heads=why_no_mtp(facts) is None)
    plan = best_plan(facts, machine, wanted) or least_plan(facts, machine, wanted)
    measured, known = _measured(cache_folder(), tuple(_stamp(cache_folder() / name) for name in _MEASURED))
    # The first GPU that was measured stands for all.
    device = next(iter(measured.gpus), None) if has_gpu else 0
    return PairingConditions(
        n_cells=plan.setting.n_ctx,
        n_slots=settings.engine.n_slots,
        room=None if has_gpu else int(free * USABLE_SHARE) - plan.total,
        row_cost=row_cost(measured, device) if device is not None else GPU_ROW,
        pace=pace_of(facts, measured, device) if device is not None else None,
        why_no_head=why_no_head,
        judged=partial(_judged, known, facts),
    )


def _stamp(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


@lru_cache(maxsize=2)
def _measured(folder: Path, _stamps: object) -> tuple[Machine, tuple[ModelRun, ...]]:
    """This machine by what was measured here before, and what models did on it."""
    probe = remembered_probe(folder, this_machine())
    names = probe.devices if probe is not None else {}
    known = known_runs(folder)
    gpus = [Device(name, "", "gpu") for name in names if name != CPU]
    return known_machine(gpus, 0, folder, known), known


def _judged(known: tuple[ModelRun, ...], facts: ModelFacts, draft: str) -> AcceptanceCounts:
    """How many of a draft's tokens were right for the model in this file."""
    return (
        AcceptanceCounts(*runs.judged(known, facts.files[0].stem, facts.weight_bytes, draft))
        if facts.files
        else AcceptanceCounts(0, 0)
    )


def machine_key() -> str:
    """Return the name under which this machine's measurements of pairs are kept."""
    from core.machine.known_machine import measurement_key

    return measurement_key("pair", *gpu_backends())


def why_no_head(kind: ProposerKind) -> str | None:
    """Return why the llama.cpp here cannot run heads of a kind, as a sentence, or None."""
    # Loads llama.cpp, so it is asked only where there is a head that fits otherwise.
    from core.llama.heads import why_unavailable

    return why_unavailable(kind)
