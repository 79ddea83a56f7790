"""This machine as models are judged for it, and judgements of models here and on the Hub.

Commands and the window's library page call the same three functions: ``current_machine`` once (about half a second if
llama.cpp is made for GPUs: a process of its own asks it for them), then ``report_file`` or ``report_remote`` for each
model. None of them measures anything: ``doctor`` and the server do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.environment.paths import cache_folder
from core.values.errors import WorkerUnavailable
from models.formatting.program import PROGRAM
from models.formatting.sentence import Sentence

if TYPE_CHECKING:
    from core.values.engine_options import EngineOptions
    from core.values.model_settings import ModelSettings
    from models.estimate.fit.plan import PlacementPlan
    from models.estimate.fit.search import FitRequest
    from models.estimate.speed.machine import Machine
    from models.estimate.speed.runs import ModelRun
    from models.estimate.speed.speeds import DraftSpeed
    from models.facts.model_facts import ModelFacts
    from models.recommend.fit_report import FitReport


UNKNOWN_SPEED = f"not known yet: {PROGRAM} doctor measures it"


@dataclass(frozen=True, slots=True)
class CurrentMachine:
    """This machine now, and what models did on it."""

    machine: Machine
    runs: tuple[ModelRun, ...]
    # By worker: the machine with what that lends, and why it could not be asked ("" if it answered).
    _with_workers: dict[str, tuple[Machine, str]] = field(default_factory=dict, compare=False)

    def with_worker(self, worker: str) -> tuple[Machine, str]:
        """Return the machine with what a worker lends, and a sentence if it cannot be asked. It is asked once."""
        if any(device.lent is not None and device.lent.worker == worker for device in self.machine.devices):
            return self.machine, ""
        if worker not in self._with_workers:
            self._with_workers[worker] = self._asked(worker)
        return self._with_workers[worker]

    def _asked(self, worker: str) -> tuple[Machine, str]:
        from app.doctor.checks import check_workers
        from app.settings.worker_tokens import tokens_for
        from core.machine.known_machine import known_machine

        tokens = tokens_for((worker,))
        lent, lost = check_workers(tokens)
        if not lent:
            return self.machine, lost[0] if lost else Sentence(
                "The token of the worker {worker} is not known here.", worker=worker
            )
        host, *gpus = self.machine.devices
        return known_machine((*lent, *gpus), host.free, cache_folder(), self.runs), ""


def current_machine(workers: Sequence[tuple[str, str]] = (), n_mapped: int = 0) -> CurrentMachine:
    """Look at memory and devices, and read what was measured before.

    ``workers`` are pairs of a worker's name, as rpc://HOST:PORT, and its token; raises WorkerUnavailable where
    one of them cannot be used. ``n_mapped`` bytes are taken by files of loaded models, though the system calls that
    memory free.
    """
    from app.doctor.checks import check_llama, check_workers
    from core.llama.build import gpu_backends
    from core.machine.known_machine import known_machine, known_runs
    from models.estimate.fit.memory import free_memory

    folder = cache_folder()
    runs = known_runs(folder)
    lent, lost = check_workers(workers)
    if lost:
        raise WorkerUnavailable(lost[0])
    devices = (*lent, *(check_llama().devices if gpu_backends() else ()))
    return CurrentMachine(known_machine(devices, max(free_memory() - n_mapped, 0), folder, runs), runs)


def report_file(
    facts: ModelFacts,
    path: Path,
    here: CurrentMachine,
    *,
    n_ctx: int | None = None,
    draft: ModelFacts | None = None,
    must_draft: bool = False,
    uses_heads: bool = True,
    is_quick: bool = False,
) -> FitReport:
    """Judge a model of this machine as it would be loaded; what it reached before stands beside what is predicted.

    The devices of a worker that is set for it count, where it answers. Where it nearly fits or nearly does not,
    llama.cpp says what it would take (another half a second), unless ``is_quick``. ``must_draft``: it would not be
    loaded without ``draft``; ``uses_heads``: prediction heads in the file may draft.
    """
    from app.pairing.conditions import why_no_head
    from app.settings.model_settings_store import settings_of
    from core.loading.memory_need import compute_bytes, with_setting
    from models.estimate.fit.search import is_close
    from models.estimate.speed.runs import judged as judged_tokens
    from models.estimate.speed.runs import measured
    from models.pairing.forecast import draft_key
    from models.pairing.gain import AcceptanceCounts
    from models.recommend.fit_report import fit_report

    tokens = AcceptanceCounts(*judged_tokens(here.runs, path.stem, facts.weight_bytes, draft_key(draft)))
    reached = measured(here.runs, path.stem, facts.weight_bytes)
    own = settings_of(path)
    machine, alone = here.machine, ""
    if own.worker is not None:
        machine, alone = here.with_worker(own.worker)
        own = replace(own, worker=None) if alone else own
    options = replace(_options(path, draft, must_draft, own), uses_heads=uses_heads)
    wanted = _wanted(facts, options, draft)

    def judged(wanted: FitRequest) -> FitReport:
        found = fit_report(facts, machine, n_ctx=n_ctx, wanted=wanted, judged=tokens, why_no_head=why_no_head)
        notes = (Sentence("It is judged for this machine alone. {alone}", alone=alone),) if alone else ()
        return replace(found, measured=reached, notes=(*found.notes, *notes))

    judgement = judged(wanted)
    if is_quick or judgement.plan is None or not is_close(judgement.plan):
        return judgement
    exact = compute_bytes(with_setting(options, judgement.plan.setting))
    return judgement if exact is None else judged(replace(wanted, compute=exact))


def fits_beside(facts: ModelFacts, path: Path, n_mapped: int) -> bool:
    """Whether a model fits well into what memory is left beside loaded models; ``n_mapped`` as for the machine."""
    from models.estimate.fit.memory import USABLE_SHARE, free_memory
    from models.estimate.fit.summary import FitVerdict

    verdict = report_file(facts, path, current_machine(n_mapped=n_mapped), is_quick=True).verdict
    if verdict is FitVerdict.UNUSABLE:  # for chats; a model that gives vectors has no cache worth counting
        return 2 * facts.weight_bytes + n_mapped <= USABLE_SHARE * free_memory()
    return verdict is FitVerdict.GREEN


def report_remote(
    facts: ModelFacts, here: CurrentMachine, *, n_ctx: int | None = None, draft: ModelFacts | None = None
) -> FitReport:
    """Judge a model of the Hub by its header."""
    from app.pairing.conditions import why_no_head
    from models.recommend.fit_report import fit_report

    wanted = _wanted(facts, _options(Path(facts.architecture), draft), draft)
    return fit_report(facts, here.machine, n_ctx=n_ctx, wanted=wanted, why_no_head=why_no_head)


def with_gain(found: FitReport, gain: float) -> FitReport:
    """Let the gain of drafting that was measured take the place of the predicted one."""
    if found.with_draft is None or found.speed is None:
        return found
    return replace(found, with_draft=replace(found.with_draft, rate=gain * found.speed.empty, is_measured=True))


def _options(
    path: Path, draft: ModelFacts | None = None, must_draft: bool = True, own: ModelSettings | None = None
) -> EngineOptions:
    """Return the options of a server that was started without any: what is set for the model counts."""
    from app.settings.server_settings import ServerSettings
    from core.values.model_settings import ModelSettings

    draft_path = str(draft.files[0]) if draft is not None and draft.files else None
    options = ServerSettings().engine_options(str(path), own or ModelSettings())
    return replace(options, draft_path=draft_path, must_draft=must_draft)


def _wanted(facts: ModelFacts, options: EngineOptions, draft: ModelFacts | None) -> FitRequest:
    from app.pairing.conditions import why_no_head
    from core.loading.memory_need import fit_request_of
    from models.pairing.gain import ProposerKind
    from models.pairing.heads import why_no_mtp

    can_use_heads = why_no_mtp(facts) is None and why_no_head(ProposerKind.MTP) is None
    return fit_request_of(facts, options, draft, uses_heads=options.uses_heads and can_use_heads)


def as_fields(judgement: FitReport) -> dict[str, Any]:
    """The judgement as JSON has it; speeds in tokens per second, memory in bytes."""
    plan, speed, drafted, measured = judgement.plan, judgement.speed, judgement.with_draft, judgement.measured
    return {
        "verdict": judgement.verdict.value,
        "sentence": judgement.sentence,
        "notes": list(judgement.notes),
        "plan": _plan(plan) if plan is not None else None,
        "would_fit": _plan(judgement.fitting) if judgement.fitting is not None else None,
        "predicted": {"empty": round(speed.empty, 2), "full": round(speed.full, 2), "n_ctx": speed.n_ctx}
        if speed is not None
        else None,
        "why_no_prediction": UNKNOWN_SPEED if judgement.lacks_speed else None,
        "predicted_with_draft": {
            "empty": round(drafted.rate, 2),
            "depth": drafted.depth,
            "acceptance": round(drafted.acceptance, 3),
            "is_acceptance_measured": drafted.is_acceptance_measured,
            "is_measured": drafted.is_measured,
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


def as_lines(judgement: FitReport) -> list[list[str]]:
    """The judgement as rows of label and text."""
    from models.formatting.figures import expected_speed
    from models.formatting.figures import speed as pace

    rows = [["fit", f"{judgement.verdict.value}. {judgement.sentence}"], *(["", note] for note in judgement.notes)]
    plan, speed, drafted, measured = judgement.plan, judgement.speed, judgement.with_draft, judgement.measured
    if plan is not None and judgement.fits:
        rows.append(["plan", _plan_text(plan)])
    elif judgement.fitting is not None:
        rows.append(["would fit", _plan_text(judgement.fitting)])
    if speed is not None:
        behind = f"{expected_speed(speed.full)} after {speed.n_ctx:,} tokens"
        rows.append(["predicted", f"{expected_speed(speed.empty)} at an empty context, {behind}"])
    elif judgement.lacks_speed:
        rows.append(["predicted", UNKNOWN_SPEED])
    if drafted is not None:
        rows.append(["with draft", _draft_text(drafted, speed.empty if speed is not None else 0.0)])
    if measured is not None:
        is_drafted = measured.rate > 1.05 * measured.plain_rate
        plain = f", {pace(measured.plain_rate)} without drafts" if is_drafted else ""
        where = f"after {measured.n_past:,} tokens (replies: {measured.n_runs})"
        rows.append(["measured", f"{pace(measured.rate)}{plain}, {where}"])
    return rows


def _plan(plan: PlacementPlan) -> dict[str, Any]:
    return {
        **asdict(plan.setting),
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


def _draft_text(drafted: DraftSpeed, plain: float) -> str:
    from models.formatting.figures import expected_speed

    if drafted.is_measured:
        return f"{expected_speed(drafted.rate)}, {drafted.rate / plain:.2f}× as measured here"
    known = "measured" if drafted.is_acceptance_measured else "assumed"
    share = f"{100 * drafted.acceptance:.0f} % of drafted tokens accepted, {known}"
    return f"{expected_speed(drafted.rate)} ({share})" if drafted.depth else f"drafting does not pay ({share})"


def _plan_text(plan: PlacementPlan) -> str:
    from models.formatting.figures import size

    return ", ".join([*(f"{need.device} {size(need.total)}" for need in plan.needs), plan.setting.text])
