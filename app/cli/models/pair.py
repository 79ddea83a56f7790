"""``slipstream models pair``: which small models and heads draft for a model, and which one is used."""

from __future__ import annotations

import sys
from contextlib import closing
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.cli.terminal.text import say, say_json, table
from app.environment.exit_codes import ExitCode
from models.formatting.figures import rounded, size
from models.formatting.program import command

if TYPE_CHECKING:
    from app.pairing.service import Pairing
    from models.catalog.catalog import Catalog, ModelEntry
    from models.library.requests import TestPair
    from models.library.values import PairStep
    from models.pairing.offers import DownloadOffer, FoundOffers
    from models.pairing.partner import Partner

_MOST_REFUSED = 12  # lines, half of a terminal


def pair(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Name, title or path of a model here.", show_default=False)
    ],
    draft: Annotated[
        str | None, typer.Argument(metavar="[DRAFT]", help="With --test: only this one.", show_default=False)
    ] = None,
    test: Annotated[bool, typer.Option("--test", help="Measure the most promising here and keep the winner.")] = False,
    now: Annotated[
        bool, typer.Option("--now", help="With --test: begin although a running server is at work.")
    ] = False,
    use: Annotated[
        str | None, typer.Option(metavar="DRAFT", help="Let this one draft (mtp: the heads in the file).")
    ] = None,
    none: Annotated[bool, typer.Option("--none", help="Let none draft, not even heads in the file.")] = False,
    auto: Annotated[bool, typer.Option("--auto", help="Choose automatically again.")] = False,
    ask_hub: Annotated[
        bool, typer.Option("--hub", help="Look for small siblings on the Hub even where there is one here.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List what can draft for a model, the best first, with what it gains here or why it cannot.

    A small model of the same vocabulary, or a head made for the model, guesses tokens that the model then checks
    several at a time. The texts stay the same. The best one that fits into memory is used without being asked for,
    unless the model's own settings name one; --use, --none and --auto replace that.
    """
    from app.cli.models.library import asked_as
    from app.library.find_model import catalog, find_model
    from core.values.errors import BadOption
    from models.library.requests import TestPair

    wishes = [word for word, is_given in (("--test", test), ("--use", use is not None), ("--none", none)) if is_given]
    wishes += ["--auto"] if auto else []
    if len(wishes) > 1:
        raise BadOption(f"{' and '.join(wishes)} contradict each other: give one of them.")
    if draft is not None and not test:
        raise BadOption(f"{draft!r} is one name too many. To test it: --test {draft}; to use it: --use {draft}.")
    if now and not test:
        raise BadOption("--now says when to begin a test: give --test with it.")
    models = catalog()
    entry = find_model(name, models)
    if test:
        wanted = _asked_draft(entry, draft, models) if draft is not None else ""
        _print_results(entry.name, _test(TestPair(asked_as(entry, models), wanted, now)), as_json)
        return
    said = _changed(entry, models, use, none, auto)
    _show(entry, models, ask_hub, as_json, said)


def _changed(entry: ModelEntry, models: Catalog, use: str | None, none: bool, auto: bool) -> str:
    """Change who drafts, where that is asked for; return what was done."""
    from app.cli.models.library import answer, asked_as
    from app.pairing.decision import gain_words, own_draft
    from app.pairing.service import pairing, partner_named
    from models.library.requests import ChoosePartner
    from models.library.values import Choosing

    name = asked_as(entry, models)
    # A draft in the settings would override the choice, so it is reset.
    reset = " The draft in the model's settings is reset." if own_draft(entry.path) is not None else ""
    if use is not None:
        partner = partner_named(entry, use, models)
        answer(ChoosePartner(name, Choosing.NAMED, _asked_draft(entry, use, models)))
        return f"{partner.name} drafts for {entry.name} from now on ({gain_words(partner)}).{reset}"
    if none:
        answer(ChoosePartner(name, Choosing.NONE))
        return f"Nothing drafts for {entry.name} from now on, neither a small model nor heads.{reset}"
    if auto:
        was_chosen = bool(reset) or pairing(entry, models).choice is not None
        answer(ChoosePartner(name, Choosing.AUTOMATIC))
        return f"Chosen automatically again.{reset}" if was_chosen else "It was chosen automatically already."
    return ""


def _asked_draft(entry: ModelEntry, draft: str, models: Catalog) -> str:
    """Return what names a draft in a request to the library; raises UnknownModel and CannotPair."""
    from app.pairing.service import partner_named

    partner = partner_named(entry, draft, models)
    # A file outside of the folders is not found by its name, nor by its path from another folder.
    is_file = partner.path is not None and draft.lower().endswith(".gguf")
    return str(partner.path.absolute()) if partner.path is not None and is_file else partner.name


def _show(entry: ModelEntry, models: Catalog, ask_hub: bool, as_json: bool, said: str) -> None:
    from app.pairing.offers import offers
    from app.pairing.service import pairing

    found = pairing(entry, models)
    has_partner = any(partner.is_worth_it for partner in found.partners)
    extra = offers(entry, asks_hub=ask_hub or not has_partner)
    if as_json:
        say_json(_as_dict(entry, found, extra))
        return
    if said:
        say(said + "\n")
    for line in _lines(entry, found, extra, has_partner):
        say(line)


def _lines(entry: ModelEntry, found: Pairing, extra: FoundOffers, has_partner: bool) -> list[str]:
    usable = [partner for partner in found.partners if partner.is_usable]
    refused = [partner for partner in found.partners if not partner.is_usable]
    lines = [*found.problems, *found.decision.notices, f"{entry.name}: {found.decision.why}"]
    if usable:
        lines += ["", table([_row(partner, found) for partner in usable])]
    if refused:
        lines += ["", "These cannot draft for it:"]
        lines += [f"  {partner.name}: {partner.problem}" for partner in refused[:_MOST_REFUSED]]
        n_more = len(refused) - _MOST_REFUSED
        lines += [f"  and {n_more} more; --json lists them all."] if n_more > 0 else []
    if extra.offers:
        lines += ["", *map(_offer_text, extra.offers)]
    notes = [note for note in extra.notes if note not in found.decision.why]
    if not has_partner and notes:
        lines += ["", *notes]
    if any(partner.measured is None for partner in usable):
        lines += ["", f"`{command('models pair', entry.name, '--test')}` measures here and keeps the winner."]
    return lines


def _row(partner: Partner, found: Pairing) -> list[str]:
    from models.pairing.heads import KINDS

    gain = f"{partner.gain:.2f}× {'measured' if partner.measured is not None else 'expected'}"
    gain = "drafted nothing" if partner.drafted_nothing else gain
    forecast = f"({partner.prediction.gain:.2f}× was expected)" if partner.prediction and partner.measured else ""
    return [
        "*" if found.used is not None and found.used.name == partner.name else " ",
        partner.name,
        KINDS[partner.kind],
        size(partner.n_bytes) if partner.n_bytes else "",
        gain,
        f"{size(partner.memory)} of memory" if partner.memory else "",
        forecast,
    ]


def _offer_text(offer: DownloadOffer) -> str:
    """Return the command of an offer, what it is, and what it would bring."""
    from models.pairing.heads import IN_FILES

    doubt = "" if offer.is_checked else "; its vocabulary is compared once it is here"
    head = IN_FILES.get(offer.kind)
    what = f"would draft ({head} made for this model)" if head is not None else "would draft"
    pull = command("models pull", offer.name)
    return f"`{pull}` ({size(offer.n_bytes)}) {what}: {offer.gain:.1f}× predicted{doubt}."


def _as_dict(entry: ModelEntry, found: Pairing, extra: FoundOffers) -> dict[str, Any]:
    choice = found.choice
    return {
        "model": entry.name,
        "used": found.used.name if found.used is not None else None,
        "why": found.decision.why,
        "chosen_by": "settings" if found.decision.by_settings else choice.by if choice is not None else None,
        "partners": [partner.as_dict() for partner in found.partners],
        "offers": [
            {
                "name": offer.name,
                "kind": offer.kind.value,
                "n_bytes": offer.n_bytes,
                "predicted": round(offer.gain, 3),
                "is_checked": offer.is_checked,
                "sentence": _offer_text(offer),
            }
            for offer in extra.offers
        ],
        "notes": list(extra.notes),
        "notices": [*found.problems, *found.decision.notices],
    }


_WAITING = {"replies": "A running server is writing replies", "a load": "A running server is loading a model"}


class _TestLine:
    """Says how far a test is; what is waited for is said once, for good, also where there is no terminal."""

    def __init__(self) -> None:
        from app.cli.terminal.progress_line import LoadingLine

        self.line = LoadingLine(sys.stderr)
        self._waits = False

    def show(self, step: PairStep) -> None:
        words = {"loading": "Loading {}:", "measuring": "Measuring {}:"}.get(step.stage)
        if words is not None:
            self.line.show(words.format(step.partner), step.share)
        elif step.stage in _WAITING and not self._waits:
            self.line.clear()
            print(f"{_WAITING[step.stage]}. The test waits until it is idle; --now tests at once.", file=sys.stderr)
        self._waits = step.stage in _WAITING


def _test(wish: TestPair) -> PairStep:
    """Measure, saying how far it is, and return the last step."""
    from app.cli.models.library import answer_parts
    from models.library.requests import StopPairTest

    shown = _TestLine()
    step: PairStep | None = None
    try:
        with closing(answer_parts(wish, stop=StopPairTest())) as steps:
            for step in steps:
                shown.show(step)
    except KeyboardInterrupt:
        shown.line.clear()
        print("Stopped. What had been measured is kept; who drafts is as before.", file=sys.stderr)
        raise typer.Exit(ExitCode.INTERRUPTED) from None
    finally:
        shown.line.clear()
    assert step is not None  # a test that says nothing has raised
    return step


def _print_results(name: str, done: PairStep, as_json: bool) -> None:
    if not as_json:
        say("\n".join(done.results))
        return
    trials = [
        {
            "name": trial.name,
            "gain": rounded(trial.gain, 3),
            "plain_tokens_per_s": rounded(trial.plain_rate, 2),
            "drafted_tokens_per_s": rounded(trial.drafted_rate, 2),
            "acceptance": trial.acceptance,
            "predicted": rounded(trial.predicted, 3),
            "was_disturbed": trial.was_disturbed,
            "problem": trial.problem,
        }
        for trial in done.trials
    ]
    say_json({"model": name, "trials": trials, "used": done.used, "why": done.results[-1]})
