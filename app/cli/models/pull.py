"""``slipstream models pull``: downloads a model from the Hub."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from app.cli.models.library import asked_there, followed
from app.cli.terminal.progress_line import ProgressLine
from app.cli.terminal.text import say, say_json, say_on_stderr
from app.environment.exit_codes import ExitCode
from models.formatting.figures import duration, size
from models.formatting.json_values import plain
from models.formatting.program import command

if TYPE_CHECKING:
    from collections.abc import Callable

    from app.client.library_client import LibraryClient
    from models.download.model_download import DownloadRequest
    from models.download.progress import Downloaded, DownloadProgress

    _Show = Callable[[DownloadProgress], None]

N_CONNECTIONS = 4  # per file


def pull(
    name: Annotated[
        str,
        typer.Argument(metavar="REPO[:QUANT or FILE]", help="As in Qwen/Qwen3-8B-GGUF:Q4_K_M.", show_default=False),
    ],
    revision: Annotated[
        str | None,
        typer.Option(metavar="REVISION", help="Branch, tag or commit instead of the newest.", show_default=False),
    ] = None,
    connections: Annotated[int, typer.Option(metavar="N", help="Connections per file.", min=1, max=16)] = N_CONNECTIONS,
    with_draft: Annotated[
        bool, typer.Option("--with-draft", help="Then download what would draft best for it, where nothing here does.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object at the end.")] = False,
) -> None:
    """Download a model from the Hugging Face Hub.

    Ctrl-C, a crash or a lost network lose nothing: the same command goes on where it was. What arrives is checked
    against the Hub's SHA-256 before it is listed as a model.
    """
    from models.download.model_download import DownloadRequest
    from models.hub.repository import parsed_name

    repo_id, wanted, of_address = parsed_name(name)
    done = download(DownloadRequest(repo_id, wanted, revision or of_address), connections)
    if not as_json:
        _say(done)
    beside, sentence = _pull_draft(done, connections) if with_draft else (None, "")
    if as_json:
        result = _facts(done) | ({"draft": _facts(beside) if beside is not None else None} if with_draft else {})
        say_json(result)
        return
    if beside is not None:
        _say(beside)
    elif sentence:
        say(sentence)


def _pull_draft(done: Downloaded, connections: int) -> tuple[Downloaded | None, str]:
    """Download what would draft best for a model that is there now; where nothing is, a sentence says why."""
    from app.library.find_model import catalog
    from app.pairing.offers import offers
    from app.pairing.service import pairing
    from models.download.model_download import DownloadRequest

    models = catalog()
    entry = models.find(str(done.files[0]))
    if entry is None:
        return None, ""
    found = pairing(entry, models)
    if any(partner.is_worth_it for partner in found.partners):
        return None, found.decision.why
    extra = offers(entry)
    if not extra.offers:
        return None, " ".join(extra.notes)
    return download(DownloadRequest(extra.offers[0].repo_id, extra.offers[0].wanted), connections), ""


def download(request: DownloadRequest, connections: int = N_CONNECTIONS) -> Downloaded:
    """Download with a line that says how far it is; raises LibraryError, and Exit after Ctrl-C.

    A running server downloads it where it can, so that its windows show that too.
    """
    from app.library.trouble import as_library_errors

    line, last = ProgressLine(), _Last()

    def show(progress: DownloadProgress) -> None:
        last.progress = progress
        phase = "silent" if progress.is_silent else progress.phase.value
        line.show(_text(progress), phase, is_last=phase == "done")

    try:
        with as_library_errors():
            done = _download_there(request, show) if connections == N_CONNECTIONS else None
            done = done or _download_here(request, connections, show)
    except KeyboardInterrupt:
        line.end()
        print(f"Stopped. {last.kept}The same command goes on from there.", file=sys.stderr)
        raise typer.Exit(ExitCode.INTERRUPTED) from None
    finally:
        line.end()
    if done.repo_id != request.repo_id:
        say_on_stderr(f"{request.repo_id} has been renamed to {done.repo_id}.")
    return done


def _download_there(request: DownloadRequest, show: _Show) -> Downloaded | None:
    """Let a server that asks the same Hub download it; None where none can begin with it at once."""
    from app.library.errors import LibraryError
    from models.library.requests import ListDownloads, PauseDownload, StartDownload

    sentence = f"{request.repo_id} was stopped in the window. The same command goes on from there."

    def ask(library: LibraryClient) -> Downloaded | None:
        others = [one for one in library.answer(ListDownloads()) if not one.is_at_rest]
        is_there = any((one.repo_id, one.wanted) == (request.repo_id, request.wanted) for one in others)
        if others and not is_there:
            return None
        begun = library.answer(StartDownload(request.repo_id, request.wanted, request.revision))
        undo = None if is_there else PauseDownload(begun.number)
        last = followed(library, begun, show, undo=undo, stopped=LibraryError(sentence, ExitCode.INTERRUPTED))
        return last.done if last is not None else None

    return asked_there(ask, same_hub=True)


def _download_here(request: DownloadRequest, connections: int, show: _Show) -> Downloaded:
    from app.environment.paths import models_folder
    from app.library.hub_access import hub
    from models.download.model_download import ModelDownload
    from models.download.progress import DownloadOptions

    return ModelDownload(hub(), request, models_folder(), DownloadOptions(n_connections=connections)).run(show)


def _facts(done: Downloaded) -> dict[str, Any]:
    return cast("dict[str, Any]", plain(done))


def _say(done: Downloaded) -> None:
    state = "is there already" if done.was_there else "is there and verified"
    say(f"{done.name} ({size(done.n_bytes)}) {state}: {done.files[0]}")
    from app.library.find_model import catalog

    entry = catalog().find(str(done.files[0]))
    if entry is not None and entry.facts is None:
        say_on_stderr(
            f"It cannot be used as a model. {entry.problem}\nThe Hub has it like this, so another download would not "
            f"help: `{command('models rm', entry.name)}` removes it."
        )


@dataclass(slots=True)
class _Last:
    """The last news of a download."""

    progress: DownloadProgress | None = None

    @property
    def kept(self) -> str:
        """The bytes that are kept, as a sentence."""
        last = self.progress
        return f"{size(last.n_done)} of {size(last.n_total)} are kept. " if last and last.n_done else ""


def _text(progress: DownloadProgress) -> str:
    if not progress.n_total:
        return progress.phase.value
    share = progress.n_done / progress.n_total
    there = f"{share:4.0%}, {size(progress.n_done)} of {size(progress.n_total)}"
    if progress.is_silent:
        return f"nothing has arrived for {duration(progress.silence)}, still trying (Ctrl-C stops): {there}"
    text = f"{progress.phase.value}: {there}"
    if progress.bytes_per_second:
        text += f", {size(progress.bytes_per_second)}/s"
    return text + (f", {duration(progress.eta)} left" if progress.eta is not None else "")
