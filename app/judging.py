"""This machine as models are judged for it, and judgements of models here and on the Hub.

Commands and the window's library page call the same three functions: ``machine_now`` once (about half a second: a
process of its own asks llama.cpp for its devices), then ``judge_file`` or ``judge_remote`` for each model, and
``recommended`` for a repository. None of them measures anything: ``doctor`` and the server do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from app.paths import cache_folder, starter_folder

if TYPE_CHECKING:
    from core.machine_probe import MachineProbe
    from core.options import KvType
    from models.fit.plan import Plan
    from models.hub.client import Hub
    from models.hub.repository import RemoteModel, Repository
    from models.judge import Judgement
    from models.machine import Machine, MachineDevice
    from models.model_facts import ModelFacts
    from models.recommend import Recommendation
    from models.speed.efficiency import Observation
    from models.speed.runs import Run

# A plan that takes such a share of the free memory is tried by llama.cpp: an estimate may decide wrongly.
_CLOSE = (0.7, 1.3)
PAIR = ("ember-q8_0.gguf", "ember-draft-q8_0.gguf")


@dataclass(frozen=True, slots=True)
class Here:
    """This machine now, and what models did on it."""

    machine: Machine
    runs: tuple[Run, ...]


def identity() -> str:
    """What runs are kept for: they say nothing about another processor, or another build of llama.cpp."""
    from core.machine import this_machine

    machine = this_machine()
    parts = (machine.cpu, f"{machine.n_threads} threads", f"{machine.ram} bytes")
    return ", ".join((*parts, f"llama-cpp-python {version('llama-cpp-python')}"))


def machine_now() -> Here:
    """Look at memory and devices, and read what was measured before."""
    from core import machine_probe
    from core.machine import this_machine
    from models.machine import machine_of
    from models.speed.runs import observations, read_runs

    folder = cache_folder()
    probe = machine_probe.remembered(folder, this_machine())
    runs = read_runs(folder, identity())
    devices = tuple(_devices(probe))
    untaught = machine_of(devices)
    known = [*_pair_runs(probe, untaught), *observations(runs)] if probe is not None else observations(runs)
    return Here(machine_of(devices, known), runs)


def judge_file(
    facts: ModelFacts,
    path: Path,
    here: Here,
    *,
    n_ctx: int | None = None,
    draft: ModelFacts | None = None,
    is_quick: bool = False,
) -> Judgement:
    """Judge a model of this machine; what it reached before stands beside what is predicted.

    Where it nearly fits or nearly does not, llama.cpp says what it would take (another half a second), unless
    ``is_quick``.
    """
    from models.judge import judge
    from models.speed.runs import acceptance, measured

    accepted = acceptance(here.runs, path.stem, draft.files[0].stem) if draft is not None and draft.files else None
    reached = measured(here.runs, path.stem, facts.weight_bytes)

    def judged(compute: int | None) -> Judgement:
        return judge(
            facts, here.machine, n_ctx=n_ctx, draft=draft, acceptance=accepted, measured=reached, compute=compute
        )

    judgement = judged(None)
    if is_quick or judgement.plan is None or not _CLOSE[0] <= judgement.plan.use() <= _CLOSE[1]:
        return judgement
    exact = _compute_bytes(path, judgement.plan)
    return judgement if exact is None else judged(exact)


def _compute_bytes(path: Path, plan: Plan) -> int | None:
    """The compute buffers of a plan by a dry run; None where llama.cpp cannot say."""
    from core.dry_run import dry_run
    from core.errors import SlipstreamError
    from core.options import EngineOptions

    setting = plan.setting
    try:
        options = EngineOptions(
            str(path),
            n_ctx=setting.n_ctx,
            n_cells=setting.n_ctx,
            n_slots=1,
            n_gpu_layers=setting.n_gpu_layers,
            n_cpu_moe=setting.n_cpu_moe,
            kv_type=cast("KvType", setting.kv_type),
        )
        return dry_run(options).compute
    except SlipstreamError:
        return None


def judge_remote(
    facts: ModelFacts, here: Here, *, n_ctx: int | None = None, draft: ModelFacts | None = None
) -> Judgement:
    """Judge a model of the Hub by its header."""
    from models.judge import judge

    return judge(facts, here.machine, n_ctx=n_ctx, draft=draft)


def recommended(hub: Hub, repository: Repository, here: Here, n_ctx: int | None = None) -> Recommendation | None:
    """Judge all quantisations of a repository by the header of one, a few MB; None where it has no models.

    Raises HubError and GgufError where that header cannot be read.
    """
    from models.hub.remote_source import remote_facts
    from models.hub.repository import Role
    from models.judge import judge
    from models.recommend import Candidate, recommend, resized

    models = [model for model in repository.with_role(Role.MODEL) if not model.missing and model.quantisation]
    if not models:
        return None
    read = _middle(models)
    facts = remote_facts(hub, repository, read)
    candidates = []
    for model in models:
        own = facts if model is read else resized(facts, model.quantisation, model.n_bytes)
        judgement = judge(own, here.machine, n_ctx=n_ctx)
        candidates.append(Candidate(model.name, model.quantisation, model.n_bytes, judgement))
    return recommend(candidates)


def _middle(models: list[RemoteModel]) -> RemoteModel:
    """The model in the middle by size: the nearest to most of the others."""
    return sorted(models, key=lambda model: model.n_bytes)[len(models) // 2]


def as_fields(judgement: Judgement) -> dict[str, Any]:
    """The judgement as JSON has it; speeds in tokens per second, memory in bytes."""
    plan, speed, drafted, measured = judgement.plan, judgement.speed, judgement.with_draft, judgement.measured
    return {
        "verdict": judgement.verdict.value,
        "sentence": judgement.sentence,
        "notes": list(judgement.notes),
        "plan": _plan(plan) if plan is not None else None,
        "predicted": {"empty": round(speed.empty, 2), "full": round(speed.full, 2), "n_ctx": speed.n_ctx}
        if speed is not None
        else None,
        "why_no_prediction": judgement.why_no_speed,
        "predicted_with_draft": {
            "empty": round(drafted.rate, 2),
            "depth": drafted.depth,
            "acceptance": round(drafted.acceptance, 3),
            "is_acceptance_measured": drafted.is_acceptance_measured,
        }
        if drafted is not None
        else None,
        "measured": {
            "rate": round(measured.rate, 2),
            "plain_rate": round(measured.plain_rate, 2),
            "n_past": measured.n_past,
            "n_runs": measured.n_runs,
        }
        if measured is not None
        else None,
    }


def as_lines(judgement: Judgement) -> list[list[str]]:
    """The judgement as rows of label and text."""
    rows = [["fit", f"{judgement.verdict.value}. {judgement.sentence}"], *(["", note] for note in judgement.notes)]
    plan, speed, drafted, measured = judgement.plan, judgement.speed, judgement.with_draft, judgement.measured
    if plan is not None and judgement.fits:
        rows += [["plan", _plan_text(judgement)]]
    if speed is not None:
        text = f"{_rate(speed.empty)} tokens/s at an empty context, {_rate(speed.full)} behind {speed.n_ctx:,} tokens"
        rows.append(["predicted", text])
    elif judgement.why_no_speed is not None:
        rows.append(["predicted", judgement.why_no_speed])
    if drafted is not None:
        known = "measured" if drafted.is_acceptance_measured else "assumed"
        share = f"{100 * drafted.acceptance:.0f} % of drafted tokens accepted, {known}"
        gain = f"{_rate(drafted.rate)} tokens/s ({share})" if drafted.depth else f"drafting does not pay ({share})"
        rows.append(["with draft", gain])
    if measured is not None:
        plain = "" if measured.rate <= 1.05 * measured.plain_rate else f", {_rate(measured.plain_rate)} without drafts"
        where = f"behind {measured.n_past:,} tokens (replies: {measured.n_runs})"
        rows.append(["measured", f"{_rate(measured.rate)} tokens/s{plain}, {where}"])
    return rows


def _plan(plan: Any) -> dict[str, Any]:
    setting = plan.setting
    return {
        "n_gpu_layers": setting.n_gpu_layers,
        "n_cpu_moe": setting.n_cpu_moe,
        "kv_type": setting.kv_type,
        "n_ctx": setting.n_ctx,
        "devices": [
            {
                "device": need.device,
                "weights": need.weights,
                "kv_cache": need.kv_cache,
                "compute": need.compute,
                "draft": need.draft,
                "total": need.total,
                "free": need.free,
            }
            for need in plan.needs
        ],
    }


def _plan_text(judgement: Judgement) -> str:
    from app.sizes import size

    plan = judgement.plan
    assert plan is not None
    setting = plan.setting
    parts = [f"{need.device} {size(need.total)}" for need in plan.needs]
    if setting.n_gpu_layers:
        parts.append(f"{setting.n_gpu_layers} layers on GPUs")
    if setting.n_cpu_moe:
        parts.append(f"experts of {setting.n_cpu_moe} layers on the processor")
    return ", ".join([*parts, f"{setting.kv_type} cache for {setting.n_ctx:,} tokens"])


def _rate(rate: float) -> str:
    return f"{rate:.0f}" if rate >= 10 else f"{rate:.1f}"


def _devices(probe: MachineProbe | None) -> Iterator[MachineDevice]:
    """The processor, and the GPUs that llama.cpp can use; those of kinds that are not known are left out."""
    from app.doctor.checks import check_llama
    from core import bandwidth
    from core.machine import this_machine
    from core.machine_probe import CPU
    from models.machine import DeviceKind, MachineDevice
    from models.memory import free_memory

    machine = this_machine()
    known = bandwidth.remembered(cache_folder(), machine)
    probes = probe.devices if probe is not None else {}
    rate = known.bytes_per_second if known is not None else None
    yield MachineDevice(CPU, DeviceKind.CPU, machine.ram, free_memory(), rate, probes.get(CPU))
    for device in check_llama().devices:
        if device.kind in (DeviceKind.GPU, DeviceKind.IGPU):
            kind = DeviceKind(device.kind)
            yield MachineDevice(device.name, kind, device.total, device.free, None, probes.get(device.name))


def _pair_runs(probe: MachineProbe, machine: Machine) -> Iterable[Observation]:
    """Runs of the bundled pair, which the probe has timed on each device."""
    from models.model_facts import read_model
    from models.speed.efficiency import Observation
    from models.speed.work import Placement, work

    numbers = {device.name: number for number, device in enumerate(machine.devices)}
    facts = {name: read_model(starter_folder() / name) for name in PAIR}
    for run in probe.timed:
        if run.device in numbers and run.path in facts:
            model = facts[run.path]
            placement = Placement.all_on(numbers[run.device], model.n_layers)
            yield Observation(work(model, placement, machine.traits, n_past=run.n_past), run.seconds)
