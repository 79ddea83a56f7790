"""``slipstream models pair``: which small models and heads draft for a model, and which one is used."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.cli.terminal.text import say, table
from app.environment.exit_codes import ExitCode
from models.formatting.figures import rate, size, speed
from models.formatting.program import command

if TYPE_CHECKING:
    from app.jobs.pair_test.pair_test import PairTestResult
    from app.pairing.service import Pairing
    from models.catalog.catalog import Catalog, ModelEntry
    from models.pairing.offers import DownloadOffer, FoundOffers
    from models.pairing.partner import Partner

_MOST_REFUSED = 12


def pair(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Name, title or path of a model here.", show_default=False)
    ],
    draft: Annotated[
        str | None,
        typer.Argument(metavar="[DRAFT]", help="With --test: only this one.", show_default=False),
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
    from app.library.find_model import catalog, find_entry
    from core.values.errors import BadOption

    wishes = [word for word, is_given in (("--test", test), ("--use", use is not None), ("--none", none)) if is_given]
    wishes += ["--auto"] if auto else []
    if len(wishes) > 1:
        raise BadOption(f"{' and '.join(wishes)} contradict each other: give one of them.")
    if draft is not None and not test:
        raise BadOption(f"{draft!r} is one name too many. To test it: --test {draft}; to use it: --use {draft}.")
    if now and not test:
        raise BadOption("--now says when to begin a test: give --test with it.")
    models = catalog()
    entry = find_entry(name, models)
    if test:
        _test(entry, draft, models, as_json, now)
        return
    said = _changed(entry, models, use, none, auto)
    _show(entry, models, ask_hub, as_json, said)


def _changed(entry: ModelEntry, models: Catalog, use: str | None, none: bool, auto: bool) -> str:
    """Change who drafts, where that is asked for; return what was done."""
    from app.pairing.decision import gain_words, own_draft
    from app.pairing.service import choose, choose_automatically

    # A choice goes last: what the settings name would go before it.
    reset = " The draft in the model's settings is reset." if own_draft(entry.path) is not None else ""
    if use is not None:
        partner = choose(entry, use, models)
        assert partner is not None
        return f"{partner.name} drafts for {entry.name} from now on ({gain_words(partner)}).{reset}"
    if none:
        choose(entry, None, models)
        return f"Nothing drafts for {entry.name} from now on, neither a small model nor heads.{reset}"
    if auto:
        was_chosen = choose_automatically(entry)
        return f"Chosen automatically again.{reset}" if was_chosen else "It was chosen automatically already."
    return ""


def _show(entry: ModelEntry, models: Catalog, ask_hub: bool, as_json: bool, said: str) -> None:
    from app.pairing.offers import offers
    from app.pairing.service import pairing

    found = pairing(entry, models)
    has_partner = any(partner.is_worth_it for partner in found.partners)
    extra = offers(entry, asks_hub=ask_hub or not has_partner)
    if as_json:
        print(json.dumps(_as_dict(entry, found, extra), ensure_ascii=False))
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
    """What to type, what it is, and what it would bring."""
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


_WAITING = {
    "replies": "A running server is writing replies",
    "a load": "A running server is loading a model",
}


class _TestLine:
    """Says how far a test is; what is waited for is said once, for good, also where there is no terminal."""

    def __init__(self) -> None:
        from app.cli.terminal.progress_line import LoadingLine

        self.line = LoadingLine(sys.stderr)
        self._waits = False

    def show(self, name: str, stage: str, share: float) -> None:
        words = {"loading": "Loading {}:", "measuring": "Measuring {}:"}.get(stage)
        if words is not None:
            self.line.show(words.format(name), share)
        elif not self._waits:
            self.line.clear()
            print(f"{_WAITING[stage]}. The test waits until it is idle; --now tests at once.", file=sys.stderr)
        self._waits = words is None


def _test(entry: ModelEntry, draft: str | None, models: Catalog, as_json: bool, now: bool) -> None:
    from app.jobs.pair_test.pair_test import PairTest

    shown = _TestLine()
    line = shown.line
    test = PairTest(entry, draft, models)
    if now:
        test.begin()
    try:
        result = test.run(shown.show)
    except KeyboardInterrupt:
        test.cancel()
        line.clear()
        print("Stopped. What had been measured is kept; who drafts is as before.", file=sys.stderr)
        raise typer.Exit(ExitCode.INTERRUPTED) from None
    finally:
        line.clear()
    _print_result(entry, result, as_json)


def _print_result(entry: ModelEntry, result: PairTestResult, as_json: bool) -> None:
    decision = result.decision
    if as_json:
        trials = [
            {
                "name": trial.partner.name,
                "gain": round(trial.measured.gain, 3) if trial.measured else None,
                "plain_tokens_per_s": round(trial.measured.plain_rate, 2) if trial.measured else None,
                "drafted_tokens_per_s": round(trial.measured.drafted_rate, 2) if trial.measured else None,
                "acceptance": trial.measured.acceptance if trial.measured else None,
                "predicted": round(trial.partner.prediction.gain, 3) if trial.partner.prediction else None,
                "was_disturbed": trial.was_disturbed,
                "problem": trial.problem,
            }
            for trial in result.trials
        ]
        used = decision.used.name if decision.used is not None else None
        print(json.dumps({"model": entry.name, "trials": trials, "used": used, "why": decision.why}))
        return
    for trial in result.trials:
        measured = trial.measured
        if measured is None:
            say(f"{trial.partner.name}: not measured. {trial.problem}")
            continue
        accepted = f", {measured.acceptance:.0%} of drafts accepted" if measured.acceptance is not None else ""
        rates = f"{speed(measured.plain_rate)} plain, {rate(measured.drafted_rate)} with it"
        disturbed = "; a server was at work meanwhile, so test again for a better figure" if trial.was_disturbed else ""
        say(f"{trial.partner.name}: {measured.gain:.2f}× ({rates}{accepted}{disturbed})")
    say(decision.why)
