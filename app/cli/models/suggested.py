"""``slipstream models search`` without words: models to begin with, judged for this machine."""

from __future__ import annotations

from itertools import groupby
from shutil import get_terminal_size
from textwrap import TextWrapper

from app.cli.terminal.text import say_json, table
from app.fit_reports.fit_reports import UNKNOWN_SPEED, current_machine
from app.fit_reports.suggestions import Suggestion, suggestions
from models.catalog.curated import curated
from models.estimate.fit.summary import FitVerdict
from models.formatting.figures import expected_speed, parameters, size
from models.formatting.program import PROGRAM

_FITS = {
    FitVerdict.GREEN: "fits",
    FitVerdict.TIGHT: "tight",
    FitVerdict.NO: "does not fit",
    FitVerdict.UNUSABLE: "cannot be used",
}


def print_suggestions(as_json: bool) -> None:
    """Print the list, those that fit this machine best first within each use."""
    known, found = curated(), suggestions(current_machine())
    if as_json:
        listed = [one.as_fields() for one in found]
        say_json({"date": known.date, "source": known.source, "models": listed})
        return
    columns = get_terminal_size().columns
    heads = iter(table([_figures(one) for one in found]).splitlines())
    for use, models in groupby(found, key=lambda one: one.model.use):
        print(use.capitalize())
        for one in models:
            print(f"  {next(heads)}\n    {one.name}\n{_wrapped(_about(one), columns, '    ')}")
        print()
    speeds = "predicted for this machine" if any(one.rate is not None for one in found) else UNKNOWN_SPEED
    print(_wrapped(f"Speeds are {speeds}. {known.source} As of {known.date}.", columns))
    print(
        _wrapped(f"`{PROGRAM} models pull NAME` downloads one, `{PROGRAM} models search WORDS` asks the Hub.", columns)
    )


def _figures(one: Suggestion) -> list[str]:
    n_bytes = f"{'≈ ' if one.file.is_estimate else ''}{size(one.file.n_bytes)}"
    return [one.model.title, n_bytes, _FITS[one.judgement.verdict], expected_speed(one.rate) if one.rate else ""]


def _about(one: Suggestion) -> str:
    facts = one.model.facts
    active = f", {parameters(facts.n_active_params)} active" if facts.n_experts else ""
    told = (
        one.model.good_for,
        f"{parameters(facts.n_params)} parameters{active}",
        one.model.licence,
        one.model.drafting,
        one.model.unusable_draft,
    )
    return "; ".join(part for part in told if part)


def _wrapped(text: str, columns: int, indent: str = "") -> str:
    """Return lines of whole words: names are copied."""
    wrapper = TextWrapper(columns, initial_indent=indent, subsequent_indent=indent)
    wrapper.break_long_words = wrapper.break_on_hyphens = False
    return wrapper.fill(text)
