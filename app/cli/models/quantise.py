"""``slipstream models quantize``: makes a smaller model of one that is here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.models.library import asked_there, followed
from app.cli.terminal.progress_line import ProgressLine
from app.cli.terminal.text import say, say_json
from models.formatting.figures import duration, size

if TYPE_CHECKING:
    from collections.abc import Callable

    from app.client.library_client import LibraryClient
    from models.catalog.catalog import ModelEntry
    from models.library.requests import Quantise
    from models.library.values import Quantising
    from models.quantise.progress import QuantiseProgress

    _Show = Callable[[QuantiseProgress], None]


def quantise(
    name: Annotated[str, typer.Argument(help="Name, title or path of a model, best in F16 or BF16.", metavar="NAME")],
    type_name: Annotated[str, typer.Argument(help="As in Q4_K_M; an unknown one lists all.", metavar="TYPE")],
    output: Annotated[
        str | None, typer.Option(metavar="NAME", help="The result's name, else that of the model with the type.")
    ] = None,
    allow_requantize: Annotated[
        bool, typer.Option("--allow-requantize", help="Also from a quantised model, which loses more.")
    ] = False,
    threads: Annotated[int | None, typer.Option(metavar="N", min=1, max=512, help="CPU threads.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object at the end.")] = False,
) -> None:
    """Quantise a model on this machine; the model itself is not changed.

    The result is loaded before it is listed as a model. Ctrl-C, a crash or a full disk leave nothing behind.
    """
    from app.cli.models.library import asked_as
    from app.library.find_model import catalog, find_entry
    from app.library.trouble import as_library_errors
    from models.library.requests import Quantise
    from models.quantise.plan import QuantiseCancelled

    line = ProgressLine()

    def show(progress: QuantiseProgress) -> None:
        line.show(_text(progress), progress.phase.value, is_last=progress.phase.value == "done")

    models = catalog()
    entry = find_entry(name, models)
    wish = Quantise(asked_as(entry, models), type_name, output or "", allow_requantize, threads)
    with as_library_errors():
        try:
            made = _made_there(wish, show) or _made_here(entry, wish, show)
        except KeyboardInterrupt:
            raise QuantiseCancelled from None
        finally:
            line.end()
    done = made.done
    assert done is not None
    if as_json:
        say_json(
            {
                "name": done.name,
                "path": str(done.path),
                "type": made.type,
                "source": made.source,
                "n_bytes": done.n_bytes,
                "n_fallback": done.n_fallback,
                "seconds": round(done.seconds, 3),
            }
        )
        return
    say(f"{done.name} ({size(done.n_bytes)}) was made in {duration(done.seconds)} and loads: {done.path}")
    if done.notice:
        say(done.notice)


def _made_there(wish: Quantise, show: _Show) -> Quantising | None:
    """Let a server make it, so that its windows show that too; None where none can."""
    from models.library.requests import CancelQuantise
    from models.quantise.plan import QuantiseCancelled

    def ask(library: LibraryClient) -> Quantising | None:
        begun = library.answer(wish)
        return followed(library, begun, show, undo=CancelQuantise(begun.number), stopped=QuantiseCancelled())

    return asked_there(ask)


def _made_here(entry: ModelEntry, wish: Quantise, show: _Show) -> Quantising:
    from app.environment.paths import models_folder
    from app.jobs.quantise.job import QuantiseJob
    from app.library.find_model import UnusableModel
    from models.library.values import Quantising
    from models.quantise.plan import make_plan

    if entry.facts is None:
        raise UnusableModel(f"{entry.name} cannot be quantised: {entry.problem}")
    plan = make_plan(
        entry.facts,
        name=entry.name,
        type_name=wish.type,
        folder=models_folder(),
        output=wish.output or None,
        may_requantise=wish.may_requantise,
    )
    done = QuantiseJob(plan, models_folder(), n_threads=wish.threads).run(show)
    return Quantising(0, plan.source_name, plan.name, plan.type.name, done=done)


def _text(progress: QuantiseProgress) -> str:
    if progress.phase.value != "quantising":
        return progress.phase.value
    share = progress.n_done / progress.n_total if progress.n_total else 1.0
    text = f"{progress.phase.value}: {share:4.0%} of {size(progress.n_total)}"
    return text + (f", {duration(progress.eta)} left" if progress.eta is not None else "")
