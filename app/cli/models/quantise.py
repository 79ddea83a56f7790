"""``slipstream models quantize``: makes a smaller model of one that is here."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.terminal.progress_line import ProgressLine
from app.cli.terminal.text import say
from models.formatting.figures import duration, size

if TYPE_CHECKING:
    from models.quantise.plan import QuantisePlan
    from models.quantise.progress import QuantiseProgress


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
    from app.environment.paths import models_folder
    from app.jobs.quantise.job import QuantiseJob
    from app.library.trouble import as_library_errors
    from models.quantise.errors import QuantiseCancelled

    line = ProgressLine()

    def show(progress: QuantiseProgress) -> None:
        line.show(_text(progress), progress.phase.value, is_last=progress.phase.value == "done")

    with as_library_errors():
        plan = _plan(name, type_name, output, allow_requantize)
        try:
            done = QuantiseJob(plan, models_folder(), n_threads=threads).run(show)
        except KeyboardInterrupt:
            raise QuantiseCancelled from None
        finally:
            line.end()
    if as_json:
        print(
            json.dumps(
                {
                    "name": done.name,
                    "path": str(done.path),
                    "type": plan.type.name,
                    "source": plan.source_name,
                    "n_bytes": done.n_bytes,
                    "n_fallback": done.n_fallback,
                    "seconds": round(done.seconds, 3),
                },
                ensure_ascii=False,
            )
        )
        return
    say(f"{done.name} ({size(done.n_bytes)}) was made in {duration(done.seconds)} and loads: {done.path}")
    if done.notice:
        say(done.notice)


def _plan(name: str, type_name: str, output: str | None, may_requantise: bool) -> QuantisePlan:
    from app.environment.paths import models_folder
    from app.library.find_model import UnusableModel, find_entry
    from models.quantise.plan import make_plan

    entry = find_entry(name)
    if entry.facts is None:
        raise UnusableModel(f"{entry.name} cannot be quantised: {entry.problem}")
    return make_plan(
        entry.facts,
        name=entry.name,
        type_name=type_name,
        folder=models_folder(),
        output=output,
        may_requantise=may_requantise,
    )


def _text(progress: QuantiseProgress) -> str:
    if progress.phase.value != "quantising":
        return progress.phase.value
    share = progress.n_done / progress.n_total if progress.n_total else 1.0
    text = f"{progress.phase.value}: {share:4.0%} of {size(progress.n_total)}"
    return text + (f", {duration(progress.eta)} left" if progress.eta is not None else "")
