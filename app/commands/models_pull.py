"""``slipstream models pull``: downloads a model from the Hub."""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING, Annotated

import typer

from app.exit_codes import ExitCode
from app.sizes import duration, size

if TYPE_CHECKING:
    from models.download.progress import Progress


def pull(
    name: Annotated[
        str,
        typer.Argument(metavar="REPO[:QUANT or FILE]", help="As in Qwen/Qwen3-8B-GGUF:Q4_K_M.", show_default=False),
    ],
    revision: Annotated[
        str | None, typer.Option(help="Branch, tag or commit instead of the newest.", show_default=False)
    ] = None,
    connections: Annotated[int, typer.Option(help="Connections per file.", min=1, max=16)] = 4,
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
    line = _ProgressLine()
    with told():
        wish = Wish(repo_id, wanted, revision)
        download = ModelDownload(hub(), wish, models_folder(), DownloadOptions(n_connections=connections))
        try:
            done = download.run(line.show)
        except KeyboardInterrupt:
            line.end()
            print(f"Stopped. {line.kept}The same command goes on from there.", file=sys.stderr)
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


class _ProgressLine:
    """Progress on stderr: one line that changes in a terminal, else a line now and then."""

    def __init__(self) -> None:
        self._is_terminal = sys.stderr.isatty()
        self._shown_at = 0.0
        self._is_open = False
        self._last: Progress | None = None

    @property
    def kept(self) -> str:
        """What has arrived, as a sentence."""
        last = self._last
        return f"{size(last.n_done)} of {size(last.n_total)} are kept. " if last and last.n_done else ""

    def show(self, progress: Progress) -> None:
        """Show how it goes, not too often."""
        is_new = self._last is None or self._last.phase is not progress.phase
        self._last = progress
        now = time.monotonic()
        if not is_new and now - self._shown_at < (0.2 if self._is_terminal else 10.0):
            return
        self._shown_at = now
        if self._is_terminal:
            print(f"\r\x1b[K{_text(progress)}", end="", file=sys.stderr, flush=True)
            self._is_open = True
        elif progress.phase.value != "done":
            print(_text(progress), file=sys.stderr, flush=True)

    def end(self) -> None:
        """Leave the line."""
        if self._is_open:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
            self._is_open = False


def _text(progress: Progress) -> str:
    share = progress.n_done / progress.n_total if progress.n_total else 1.0
    text = f"{progress.phase.value}: {share:4.0%}, {size(progress.n_done)} of {size(progress.n_total)}"
    if progress.bytes_per_second:
        text += f", {progress.bytes_per_second / 1e6:.1f} MB/s"
    return text + (f", {duration(progress.eta)} left" if progress.eta is not None else "")
