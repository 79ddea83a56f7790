"""One judgement of one model on one machine: does it fit, how is it best loaded, how fast is it. Pure.

Commands and the window's library page show the same: they call ``judge`` with the facts of a header and a machine.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from models.fit.plan import Plan, shortage
from models.fit.search import Wanted, best_plan, least_plan, seconds_of, usual_ctx
from models.machine import Machine
from models.model_facts import ModelFacts
from models.speed.drafting import DraftPrediction, with_draft
from models.speed.runs import Measured
from models.speed.work import Placement, work

LONGEST_CTX = 1 << 31
# Of its free memory, the fullest device must have so much left for a model to fit well.
_TIGHT = 0.85
_USUAL_ROW = {True: 0.4, False: 0.03}
UNKNOWN_SPEED = "not known yet: ./slipstream doctor measures this machine in a few seconds"


class Verdict(StrEnum):
    """Does it fit."""

    GREEN = "green"
    TIGHT = "tight"
    NO = "will not fit"
    UNUSABLE = "cannot be used"


@dataclass(frozen=True, slots=True)
class Prediction:
    """Tokens per second of one request without drafts at an empty context and at one of ``n_ctx`` tokens."""

    empty: float
    full: float
    n_ctx: int


@dataclass(frozen=True, slots=True)
class Judgement:
    """What to say of a model before it is loaded.

    ``sentence`` gives the verdict with its numbers, ``notes`` what else to know. ``plan`` is the best way to load it
    (where it does not fit, the one that lacks least), None for a model that cannot be used. ``speed`` is None where
    ``why_no_speed`` says why. ``with_draft`` is the speed at an empty context with the draft model that was given.
    """

    verdict: Verdict
    sentence: str
    plan: Plan | None = None
    speed: Prediction | None = None
    why_no_speed: str | None = None
    with_draft: DraftPrediction | None = None
    measured: Measured | None = None
    notes: tuple[str, ...] = ()

    @property
    def fits(self) -> bool:
        """Whether it can be loaded."""
        return self.verdict in (Verdict.GREEN, Verdict.TIGHT)


def judge(
    facts: ModelFacts,
    machine: Machine,
    *,
    n_ctx: int | None = None,
    wanted: Wanted | None = None,
    acceptance: float | None = None,
    measured: Measured | None = None,
) -> Judgement:
    """Judge a model; ``n_ctx`` None takes that of ``wanted``.

    ``wanted`` is what a load would ask for (None: the usual context, and all else as is best). Of the tokens that its
    draft drafts the share ``acceptance`` was accepted (None: not known yet).
    """
    problem = _problem(facts, n_ctx)
    if problem is not None:
        return Judgement(Verdict.UNUSABLE, problem)
    wanted = wanted or Wanted(usual_ctx(facts))
    if n_ctx is not None:
        wanted = replace(wanted, n_ctx=min(n_ctx, facts.n_ctx_train or n_ctx), may_shorten=True)
    plan = best_plan(facts, machine, wanted)
    notes = _notes(facts, n_ctx, wanted, plan)
    if plan is None:
        least = least_plan(facts, machine, wanted)
        return Judgement(Verdict.NO, _too_large(least), least, measured=measured, notes=notes)
    verdict = _verdict(plan, wanted)
    empty, full = (seconds_of(facts, machine, plan, n_past) for n_past in (0, plan.setting.n_ctx))
    speed = Prediction(1.0 / empty, 1.0 / full, plan.setting.n_ctx) if empty and full else None
    return Judgement(
        verdict,
        _told(verdict, plan, wanted),
        plan,
        speed,
        UNKNOWN_SPEED if speed is None else None,
        _drafted(machine, plan, empty, wanted.draft if plan.has_draft else None, acceptance),
        measured,
        notes,
    )


def _problem(facts: ModelFacts, n_ctx: int | None) -> str | None:
    if facts.problem is not None:
        return facts.problem
    if not facts.n_layers or not facts.weight_bytes:
        return "The file has no layers, so there is nothing to run. Get a complete file of this model."
    if n_ctx is not None and not 1 <= n_ctx < LONGEST_CTX:
        return f"A context of {n_ctx:,} tokens is not possible: choose between 1 and {LONGEST_CTX - 1:,}."
    return None


def _notes(facts: ModelFacts, n_ctx: int | None, wanted: Wanted, plan: Plan | None) -> tuple[str, ...]:
    notes = []
    if n_ctx is not None and n_ctx > wanted.n_ctx:
        notes.append(f"It was trained for {wanted.n_ctx:,} tokens, and is judged with these instead of {n_ctx:,}.")
    if plan is not None and plan.setting.n_ctx < wanted.n_ctx:
        notes.append(f"There is no room for {wanted.n_ctx:,} tokens of context: {plan.setting.n_ctx:,} fit.")
    if plan is not None and wanted.draft is not None and not plan.has_draft:
        notes.append("There is no room for its draft model, so it is loaded without.")
    return tuple(notes)


def _verdict(plan: Plan, wanted: Wanted) -> Verdict:
    is_as_wanted = plan.setting.n_ctx == wanted.n_ctx and plan.setting.kv_type == wanted.kv_types[0]
    use = plan.host_use if plan.is_split else plan.use()
    return Verdict.GREEN if is_as_wanted and use <= _TIGHT else Verdict.TIGHT


def _told(verdict: Verdict, plan: Plan, wanted: Wanted) -> str:
    numbers = ", ".join(f"{_size(need.total)} of {_size(need.free)} free on {need.device}" for need in plan.needs)
    context = f"with {plan.setting.n_ctx:,} tokens of context"
    if verdict is Verdict.GREEN:
        return f"It fits {context}: it takes {numbers}."
    if plan.setting.n_ctx == wanted.n_ctx and plan.setting.kv_type == wanted.kv_types[0]:
        return f"It just fits {context}: it takes {numbers}. Close other programs before loading it."
    return f"It fits only {context} and a {plan.setting.kv_type} cache: it takes {numbers}."


def _too_large(least: Plan) -> str:
    lacking = shortage(least) or [max(least.needs, key=lambda need: need.total / max(need.free, 1))]
    need = lacking[0]
    return (
        f"It needs {_size(need.total)} on {need.device} even with a context of {least.setting.n_ctx:,} tokens, and "
        f"{_size(need.free)} is free. Choose a smaller quantisation or model."
    )


def _drafted(
    machine: Machine, plan: Plan, target: float | None, draft: ModelFacts | None, acceptance: float | None
) -> DraftPrediction | None:
    if draft is None or target is None or not draft.n_layers:
        return None
    where = plan.placement.layers[-1]
    amounts = work(draft, Placement.all_on(where, draft.n_layers), machine.traits, n_past=0)
    alone = machine.efficiency.seconds(amounts)
    if alone is None:
        return None
    device = machine.devices[where]
    row = device.probe.row if device.probe is not None else _USUAL_ROW[device.is_cpu]
    return with_draft(target, alone, row, acceptance)


def rate_text(per_second: float) -> str:
    """Return tokens per second as they are shown everywhere: with a digit after the point below 10."""
    return f"{per_second:,.1f}" if per_second < 10 else f"{per_second:,.0f}"


def _size(n_bytes: int) -> str:
    return f"{n_bytes / 1e9:.1f} GB" if n_bytes >= 1e8 else f"{n_bytes / 1e6:.0f} MB"
