"""``slipstream models``: what models there are, here and on the Hub."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.cli.models import listing
from app.cli.terminal.text import say, say_json, table

if TYPE_CHECKING:
    from app.fit_reports.fit_reports import CurrentMachine
    from app.pairing.service import Pairing
    from models.catalog.catalog import Catalog, ModelEntry
    from models.pairing.partner import Partner
    from models.recommend.fit_report import FitReport

_Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


# Command -> the module that has it, and its function there.
_COMMANDS = {
    "list": ("commands", "_list"),
    "show": ("commands", "_show"),
    "search": ("search", "search"),
    "pull": ("pull", "pull"),
    "import": ("import_folder", "import_folder"),
    "quantize": ("quantise", "quantise"),
    "settings": ("settings", "settings"),
    "pair": ("pair", "pair"),
    "verify": ("verify", "verify"),
    "rm": ("remove", "remove"),
    "hub": ("hub", "hub"),
    "login": ("hub", "login"),
    "logout": ("hub", "logout"),
}


def build(typed: Sequence[str]) -> typer.Typer:
    """Return the commands below ``models``; only one where ``typed`` begins with it."""
    app = typer.Typer(help="Find, download, import and remove models.", no_args_is_help=True)
    for name in typed[:1] if typed and typed[0] in _COMMANDS else _COMMANDS:
        module, function = _COMMANDS[name]
        app.command(name=name)(getattr(import_module(f"app.cli.models.{module}"), function))
    return app


def _list(as_json: _Json = False) -> None:
    """List the models of this machine, the bundled ones first.

    SPEED is what a model reached here; with ≈, what is expected of it. Among more than 200, nothing is expected
    and --json leaves out who drafts for each (null): ask for it with show.
    """
    from app.environment.paths import folders_file, models_folder
    from app.library.find_model import catalog
    from app.library.model_rows import FileChanges, RowReader
    from app.pairing.service import MOST_PAIRED, ListedModels, pairing
    from models.catalog.imported_folders import read_folders

    models = catalog()
    entries = models.entries()
    is_short = len(entries) <= MOST_PAIRED
    rates = listing.Rates(expects=is_short)
    if as_json:
        FileChanges().look()
        known, listed = RowReader(), ListedModels(entries)
        found = [
            listing.facts(row)
            | listing.rate_fields(rates.expected(entry), row.measured_rate)
            | (_partners(pairing(entry, listed)) if is_short else _NOT_LOOKED_FOR)
            for entry in entries
            for row in [known.row(entry)]
        ]
        say_json(found)
        return
    say(listing.listing(entries, rates))
    for problem in models.folder_problems:
        say(f"{problem.folder}: {problem.sentence}")
    folders = [models_folder(), *(folder.path for folder in read_folders(folders_file()))]
    say(f"\nModels are looked for in {', '.join(map(str, folders))}.")


def _show(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME or REPO[:QUANT]",
            help="Name, title or path of a model here, or a repository of the Hub.",
            show_default=False,
        ),
    ],
    context: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Judge with a context of N tokens.", show_default=False)
    ] = None,
    draft: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Judge with this draft model or head (mtp: those in the file).", show_default=False
        ),
    ] = None,
    device: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WORKER", help="Count what the worker rpc://HOST:PORT lends; may be repeated.", show_default=False
        ),
    ] = None,
    worker_token_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File with the token of the workers.", show_default=False)
    ] = None,
    as_json: _Json = False,
) -> None:
    """Describe one model of this machine, or what a repository of the Hub has: will it run here, and how fast.

    REPO lists the quantisations, their sizes and which one to take; REPO:QUANT judges one by its header. Both read a
    few MB and download nothing.
    """
    from app.fit_reports.fit_reports import current_machine
    from app.library.find_model import UnknownModel, catalog, find_draft, find_model, may_be_repository
    from app.settings.worker_tokens import named_workers

    models = catalog()
    look = partial(current_machine, named_workers(device or (), worker_token_file))
    try:
        entry = find_model(name, models)
    except UnknownModel:
        if not may_be_repository(name):
            raise
        from app.cli.models import search as models_search

        beside = find_draft(draft, models).facts if draft is not None else None
        models_search.show_remote(name, as_json, look, context, beside)
        return
    _describe(entry, models, draft, context, look, as_json)


def _describe(
    entry: ModelEntry,
    models: Catalog,
    draft: str | None,
    context: int | None,
    look: Callable[[], CurrentMachine],
    as_json: bool,
) -> None:
    """Print what a model of this machine is, and its fit report with a draft: the one that is named, else its own."""
    from app.fit_reports.fit_reports import as_fields, as_lines, report_file, with_gain
    from app.pairing.service import pairing, uses_heads
    from models.pairing.gain import ProposerKind

    found = pairing(entry, models)
    used = found.used if draft is None else _named(entry, draft, models)
    drafting = models.find(str(used.path)) if used is not None and used.path is not None else None
    judgement = None
    if entry.facts:
        judgement = report_file(
            entry.facts,
            entry.path,
            look(),
            n_ctx=context,
            draft=drafting.facts if drafting is not None else None,
            must_draft=draft is not None,
            uses_heads=uses_heads(found) if draft is None else used is not None and used.kind is ProposerKind.MTP,
        )
        if used is not None and used.measured is not None:
            judgement = with_gain(judgement, used.measured.gain)
    facts = _facts(entry)
    if as_json:
        judged = {"judgement": as_fields(judgement) if judgement else None}
        say_json(facts | _rates(judgement) | _partners(found) | judged)
        return
    rows = listing.described(facts)
    if used is not None:
        rows.append(["drafts", used.name])
    print(table(rows + (as_lines(judgement) if judgement else [])))


def _named(entry: ModelEntry, draft: str, models: Catalog) -> Partner:
    """The draft to judge with; raises UnknownModel, and CannotPair for one that another model would need."""
    from app.pairing.service import CannotPair, partner_named

    partner = partner_named(entry, draft, models)
    if partner.problem is not None and not partner.has_vocabulary:
        raise CannotPair(f"{partner.name} cannot draft for {entry.name}. {partner.problem}")
    return partner


_NOT_LOOKED_FOR = {"draft": None, "partners": None}


def _partners(found: Pairing) -> dict[str, Any]:
    """Who drafts for a model, and all that could."""
    listed = [partner.as_dict() for partner in found.partners if partner.is_usable]
    kept = ("name", "kind", "predicted", "measured")
    return {
        "draft": found.used.name if found.used is not None else None,
        "partners": [{key: one[key] for key in kept} for one in listed],
    }


def _rates(judgement: FitReport | None) -> dict[str, float | None]:
    """Return the list's fields of a model's speed, as this judgement knows it."""
    speed, measured = (judgement.speed, judgement.measured) if judgement is not None else (None, None)
    return listing.rate_fields(
        speed.empty if speed is not None else None, measured.rate if measured is not None else None
    )


def _facts(entry: ModelEntry) -> dict[str, Any]:
    from app.library.model_rows import FileChanges, RowReader

    FileChanges().look()  # the record of a file that was moved goes with it
    return listing.facts(RowReader().row(entry))
