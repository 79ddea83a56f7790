"""``slipstream models pull``: downloads a model from the Hub."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from app.exit_codes import ExitCode
from app.progress_line import ProgressLine
from app.sizes import duration, size

if TYPE_CHECKING:
    from models.download.progress import Progress


def pull(
    name: Annotated[
        str,
        typer.Argument(metavar="REPO[:QUANT or FILE]", help="As in Qwen/Qwen3-8B-GGUF:Q4_K_M.", show_default=False),
    ],
    revision: Annotated[
        str | None,
        typer.Option(metavar="REVISION", help="Branch, tag or commit instead of the newest.", show_default=False),
    ] = None,
    connections: Annotated[int, typer.Option(metavar="N", help="Connections per file.", min=1, max=16)] = 4,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object at the end.")] = False,
) -> None:
    """Download a model from the Hugging Face Hub.

    Ctrl-C, a crash or a lost network lose nothing: the same command goes on where it was. What arrives is checked
    against the Hub's SHA-256 before it is listed as a model.
    """
    from app.library import hub, told
    from app.paths import models_folder
    from models.download.model_download import ModelDownload, Wish
    from models.download.options import DownloadOptions

    repo_id, _, wanted = name.partition(":")
    line, last = ProgressLine(), _Last()

    def show(progress: Progress) -> None:
        last.progress = progress
        line.show(_text(progress), progress.phase.value, is_last=progress.phase.value == "done")

    with told():
        wish = Wish(repo_id, wanted, revision)
        download = ModelDownload(hub(), wish, models_folder(), DownloadOptions(n_connections=connections))
        try:
            done = download.run(show)
        except KeyboardInterrupt:
            line.end()
            print(f"Stopped. {last.kept}The same command goes on from there.", file=sys.stderr)
            raise typer.Exit(ExitCode.INTERRUPTED) from None
        finally:
            line.end()
    if done.repository.was_renamed:
        print(f"{repo_id} has been renamed to {done.repository.repo_id}.", file=sys.stderr)
    if as_json:
        result = {
            "name": done.model.name,
            "repo_id": done.repository.repo_id,
            "commit": done.repository.commit,
            "n_bytes": done.model.n_bytes,
            "files": [str(path) for path in done.files],
            "was_there": done.was_there,
        }
        print(json.dumps(result, ensure_ascii=False))
        return
    state = "is there already" if done.was_there else "is there and verified"
    print(f"{done.model.name} ({size(done.model.n_bytes)}) {state}: {done.files[0]}")


@dataclass(slots=True)
class _Last:
    """What was heard last of a download."""

    progress: Progress | None = None

    @property
    def kept(self) -> str:
        """What has arrived, as a sentence."""
        last = self.progress
        return f"{size(last.n_done)} of {size(last.n_total)} are kept. " if last and last.n_done else ""


def _text(progress: Progress) -> str:
    share = progress.n_done / progress.n_total if progress.n_total else 1.0
    text = f"{progress.phase.value}: {share:4.0%}, {size(progress.n_done)} of {size(progress.n_total)}"
    if progress.bytes_per_second:
        text += f", {progress.bytes_per_second / 1e6:.1f} MB/s"
    return text + (f", {duration(progress.eta)} left" if progress.eta is not None else "")
