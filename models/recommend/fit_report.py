"""The fit report of a model on a machine: whether it fits, how to load it, and its speed. Pure.

Commands and the window show the same report: both call ``fit_report`` with the facts of a header and a machine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from models.estimate.fit.plan import DeviceNeed, PlacementPlan, shortage
from models.estimate.fit.search import FitRequest, best_plan, least_plan, longest_plan, seconds_of, usual_ctx
from models.estimate.fit.summary import FitSummary, FitVerdict
from models.estimate.speed.machine import Machine
from models.estimate.speed.speeds import DraftSpeed, SpeedPrediction
from models.facts.model_facts import ModelFacts
from models.formatting.sentence import Sentence, joined
from models.pairing import heads
from models.pairing.forecast import DraftingMachine, forecast, proposer_kind, row_cost
from models.pairing.gain import NOTHING_JUDGED, AcceptanceCounts, ProposerKind

# llama.cpp counts positions in 32 bits.
LONGEST_CTX = 1 << 31
# A model fits well if it takes at most this share of the free memory of every device.
_TIGHT = 0.85


@dataclass(frozen=True, slots=True)
class FitReport(FitSummary):
    """The verdict, and ``plan``, the best plan for loading the model.

    For a model that does not fit, ``plan`` is the one that lacks the least memory, and ``fitting`` the one with the
    longest context that fits. For a model that cannot be used, ``plan`` is None.
    """

    plan: PlacementPlan | None = None
    fitting: PlacementPlan | None = None


def fit_report(
    facts: ModelFacts,
    machine: Machine,
    *,
    n_ctx: int | None = None,
    wanted: FitRequest | None = None,
    judged: AcceptanceCounts = NOTHING_JUDGED,
    why_no_head: Callable[[ProposerKind], str | None] = lambda kind: None,
) -> FitReport:
    """Judge a model. ``n_ctx`` (tokens), if given, replaces the context of ``wanted`` and is never shortened.

    ``wanted`` is the fit request of a load (None: the default). ``judged`` is the acceptance of its draft here.
    ``why_no_head`` returns why this build of llama.cpp cannot run a kind of head, or None.
    """
    problem = _problem(facts, n_ctx)
    if problem is not None:
        return FitReport(FitVerdict.UNUSABLE, problem)
    wanted = wanted or FitRequest(usual_ctx(facts))
    if n_ctx is not None:
        wanted = replace(wanted, n_ctx=min(n_ctx, facts.n_ctx_train or n_ctx), may_shorten=False)
    plan = best_plan(facts, machine, wanted)
    notes = (*_notes(facts, n_ctx, wanted, plan), *_head_notes(facts, wanted, why_no_head))
    if plan is None:
        least = least_plan(facts, machine, wanted)
        fitting = None if wanted.may_shorten else longest_plan(facts, machine, wanted)
        sentence = _too_large(least) if wanted.may_shorten else _too_long(least, fitting)
        return FitReport(FitVerdict.NO, sentence, notes=notes, plan=least, fitting=fitting)
    verdict = _verdict(plan, wanted)
    empty, full = (seconds_of(facts, machine, plan, n_past) for n_past in (0, plan.setting.n_ctx))
    speed = SpeedPrediction(1.0 / empty, 1.0 / full, plan.setting.n_ctx) if empty and full else None
    pace = DraftingMachine(machine, plan.placement.layers[-1], empty) if empty else None
    return FitReport(
        verdict,
        _told(verdict, plan, wanted),
        speed,
        _drafted(facts, plan, pace, wanted, judged, why_no_head),
        notes=notes,
        plan=plan,
    )


def _problem(facts: ModelFacts, n_ctx: int | None) -> str | None:
    if facts.problem is not None:
        return facts.problem
    if facts.is_embedder:
        return Sentence("This model turns texts into vectors (/v1/embeddings) and cannot write.")
    if not facts.n_layers or not facts.weight_bytes:
        return Sentence("The file has no layers, so there is nothing to run. Get a complete file of this model.")
    if n_ctx is not None and not 1 <= n_ctx < LONGEST_CTX:
        return Sentence(
            "A context of {n_ctx:,} tokens is not possible: choose between 1 and {most:,}.",
            n_ctx=n_ctx,
            most=LONGEST_CTX - 1,
        )
    return None


def _notes(facts: ModelFacts, n_ctx: int | None, wanted: FitRequest, plan: PlacementPlan | None) -> tuple[str, ...]:
    notes = []
    if n_ctx is not None and n_ctx > wanted.n_ctx:
        notes.append(
            Sentence(
                "It was trained for {n_ctx:,} tokens of context, so it is judged with that instead of {asked:,}.",
                n_ctx=wanted.n_ctx,
                asked=n_ctx,
            )
        )
    if plan is not None and plan.setting.n_ctx < wanted.n_ctx:
        notes.append(
            Sentence(
                "There is no room for {n_ctx:,} tokens of context: {n_fitting:,} fit.",
                n_ctx=wanted.n_ctx,
                n_fitting=plan.setting.n_ctx,
            )
        )
    if plan is not None and wanted.draft is not None and not plan.has_draft:
        notes.append(Sentence("There is no room for its draft model, so it is loaded without."))
    return tuple(notes)


def _head_notes(
    facts: ModelFacts, wanted: FitRequest, why_no_head: Callable[[ProposerKind], str | None]
) -> tuple[str, ...]:
    """Why heads of the model cannot draft: because of the file, or the build of llama.cpp."""
    notes = []
    if facts.n_mtp_layers and (reason := heads.why_no_mtp(facts) or why_no_head(ProposerKind.MTP)):
        notes.append(Sentence("Its prediction heads cannot draft here. {reason}", reason=reason))
    if wanted.draft is not None and wanted.draft.is_head:
        kind = proposer_kind(wanted.draft)
        if reason := why_no_head(kind):
            notes.append(Sentence("Its {head} cannot draft here. {reason}", head=heads.IN_FILES[kind], reason=reason))
    return tuple(notes)


def _verdict(plan: PlacementPlan, wanted: FitRequest) -> FitVerdict:
    use = plan.host_use if plan.is_split else plan.use()
    return FitVerdict.GREEN if _is_as_wanted(plan, wanted) and use <= _TIGHT else FitVerdict.TIGHT


def _is_as_wanted(plan: PlacementPlan, wanted: FitRequest) -> bool:
    return plan.setting.n_ctx == wanted.n_ctx and plan.setting.kv_type == wanted.kv_types[0]


def _of_device(need: DeviceNeed) -> Sentence:
    return Sentence(
        "{total:size} of {free:size} free on {device}", total=need.total, free=need.free, device=need.device
    )


def _told(verdict: FitVerdict, plan: PlacementPlan, wanted: FitRequest) -> str:
    taken = joined((_of_device(need) for need in plan.needs), ", ")
    n_ctx = plan.setting.n_ctx
    if verdict is FitVerdict.GREEN:
        return Sentence("It fits with {n_ctx:,} tokens of context: it takes {taken}.", n_ctx=n_ctx, taken=taken)
    if _is_as_wanted(plan, wanted):
        return Sentence(
            "It just fits with {n_ctx:,} tokens of context: it takes {taken}. Close other programs before loading it.",
            n_ctx=n_ctx,
            taken=taken,
        )
    return Sentence(
        "It fits only with {n_ctx:,} tokens of context and a {kv_type} cache: it takes {taken}.",
        n_ctx=n_ctx,
        kv_type=plan.setting.kv_type,
        taken=taken,
    )


def _most_lacking(plan: PlacementPlan) -> DeviceNeed:
    """Return the first device that lacks memory, else the fullest one."""
    return (shortage(plan) or [max(plan.needs, key=lambda need: need.total / max(need.free, 1))])[0]


def _too_large(least: PlacementPlan) -> str:
    need = _most_lacking(least)
    return Sentence(
        "It needs {total:size} on {device} even with a context of {n_ctx:,} tokens, and {free:size} "
        "is free. Choose a smaller quantisation or model.",
        total=need.total,
        device=need.device,
        n_ctx=least.setting.n_ctx,
        free=need.free,
    )


def _too_long(least: PlacementPlan, fitting: PlacementPlan | None) -> str:
    """The sentence that the wanted context does not fit, with the context that would."""
    need = _most_lacking(least)
    n_ctx, kv_type = least.setting.n_ctx, least.setting.kv_type
    if fitting is None:
        return Sentence(
            "It does not fit with {n_ctx:,} tokens of context, nor with fewer: it needs {total:size} on {device} even "
            "with a {kv_type} cache, and {free:size} is free. Choose a smaller model.",
            n_ctx=n_ctx,
            total=need.total,
            device=need.device,
            kv_type=kv_type,
            free=need.free,
        )
    return Sentence(
        "It does not fit with {n_ctx:,} tokens of context: it needs {total:size} on {device} even with a {kv_type} "
        "cache, and {free:size} is free. {n_fitting:,} tokens fit, with a {kv_fitting} cache.",
        n_ctx=n_ctx,
        total=need.total,
        device=need.device,
        kv_type=kv_type,
        free=need.free,
        n_fitting=fitting.setting.n_ctx,
        kv_fitting=fitting.setting.kv_type,
    )


def _drafted(
    facts: ModelFacts,
    plan: PlacementPlan,
    pace: DraftingMachine | None,
    wanted: FitRequest,
    judged: AcceptanceCounts,
    why_no_head: Callable[[ProposerKind], str | None],
) -> DraftSpeed | None:
    """The speed with the given draft, else with the heads in the file; None if neither can draft."""
    draft = wanted.draft if plan.has_draft else None
    uses_heads = wanted.shape.uses_heads and facts.n_mtp_layers > 0 and heads.why_no_mtp(facts) is None
    if pace is None or (draft is None and not uses_heads) or (draft is not None and not draft.n_layers):
        return None
    kind = proposer_kind(draft)
    if kind is not ProposerKind.MODEL and why_no_head(kind) is not None:
        return None
    found = forecast(facts, draft, pace, row_cost(pace.machine, pace.device), judged)
    return DraftSpeed(found.gain / pace.seconds, found.depth, found.acceptance, found.is_measured)
