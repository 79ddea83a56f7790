"""``slipstream verify``: that drafting changes no text, and what it gains."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.terminal.text import say_json
from app.environment.exit_codes import ExitCode
from core.process.child_process import WAITING
from core.values.engine_options import MAX_DRAFT_DEPTH, EngineOptions
from core.values.errors import BadRequest

if TYPE_CHECKING:
    from types import FrameType

    from app.cli.terminal.progress_line import LoadingLine
    from app.jobs.verify.prompt_file import VerifyPrompt
    from app.jobs.verify.verification import TokenIds, Verification
    from core.engine.engine import Engine
    from core.values.messages import LoadedModel

MAX_SEEDS = 100  # each takes as long as the greedy replies


def verify(
    model: Annotated[
        str | None,
        typer.Option(
            "--model", "-m", metavar="NAME", help="Name, title or path of a model; the bundled pair if left out."
        ),
    ] = None,
    draft: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Model or head that drafts for it; if left out, the one `models pair` names."
        ),
    ] = None,
    lookup_only: Annotated[bool, typer.Option("--lookup-only", help="Use no draft model.")] = False,
    prompts: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help='One prompt per line, continued as it is; or JSON lines with "prompt", or with "messages" for the '
            "chat template. A dozen of its own if left out.",
        ),
    ] = None,
    max_tokens: Annotated[int, typer.Option("--max-tokens", "-n", min=1, metavar="N", help="Longest reply.")] = 64,
    seeds: Annotated[
        int, typer.Option(min=0, max=MAX_SEEDS, metavar="N", help="Sample each prompt with so many seeds as well.")
    ] = 1,
    depth: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=MAX_DRAFT_DEPTH,
            metavar="N",
            help="Draft always N tokens, whether that pays or not: a sterner test.",
        ),
    ] = None,
    ctx: Annotated[int | None, typer.Option(metavar="N", min=16, help="Context of one request in tokens.")] = None,
    threads: Annotated[int | None, typer.Option(metavar="N", min=1, help="CPU threads.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Verify on this machine that drafting changes no text, and see what it gains.

    Each prompt is decoded plainly and with drafts, at temperature 0 and sampled. Where the replies part, the logits
    there tell rounding (two tokens nearly as good as each other) from a wrong answer.

    Ends with exit code 8 when a text changed by more than rounding, and with 10 when drafting made replies slower.
    """
    # Before llama.cpp is loaded: what the engine process uses.
    os.environ.update({name: value for name, value in WAITING.items() if name not in os.environ})
    from app.jobs.verify.prompt_file import BUILT_IN, read_prompts
    from app.jobs.verify.report import VerifyReport, choose_pair

    pair = choose_pair(model, draft, is_lookup_only=lookup_only)
    path = prompts if prompts is not None else BUILT_IN
    found = read_prompts(path)
    options = EngineOptions(
        str(pair.model.path),
        n_ctx=ctx,
        n_threads=threads,
        draft_path=str(pair.draft.path) if pair.draft is not None else None,
        uses_heads=pair.uses_heads,
        draft_depth=depth,
    )
    loaded, verification = _verified(pair.model.name, options, found, path, max_tokens, seeds)
    source = str(prompts) if prompts is not None else "built-in"
    report = VerifyReport(pair, loaded, found, source, max_tokens, seeds, depth, verification)
    if as_json:
        say_json(report.as_dict())
    else:
        report.show()
    if verification.n_wrong:
        raise typer.Exit(ExitCode.TEXT_CHANGED)
    if report.is_slower:
        raise typer.Exit(ExitCode.SLOWER)


def _verified(
    name: str, options: EngineOptions, prompts: tuple[VerifyPrompt, ...], path: Path, max_tokens: int, seeds: int
) -> tuple[LoadedModel, Verification]:
    """Load the model ``name`` with its draft, and verify it with prompts, which are from ``path``."""
    from app.cli.terminal.progress_line import LoadingLine
    from app.environment.paths import cache_folder
    from app.jobs.verify.prompt_file import render
    from app.jobs.verify.verification import Mode, load_verifier

    line = LoadingLine(sys.stderr)
    with _leaves_at_once(line):
        verifier, loaded = load_verifier(
            options, cache_folder=cache_folder(), progress=lambda share: line.show(f"Loading {name}:", share)
        )
    try:
        tokens = _tokenized(verifier.engine, prompts, render(prompts, path, loaded))
        modes = [Mode(), *(Mode(seed) for seed in range(1, seeds + 1))]
        return loaded, verifier.run(tokens, modes, max_tokens, lambda share: line.show("Verifying:", share))
    finally:
        line.clear()
        verifier.close()


def _tokenized(engine: Engine, prompts: tuple[VerifyPrompt, ...], texts: list[str]) -> list[TokenIds]:
    """Return the tokens of every prompt, so that one that is too long is refused before anything has run."""
    from core.values.request import Request

    tokens = []
    for prompt, text in zip(prompts, texts, strict=True):
        try:
            tokens.append(engine.tokenize(Request("verify", text)))
        except BadRequest as error:
            raise BadRequest(f"The prompt in line {prompt.line} cannot be used. {error.message}") from None
    return tokens


@contextmanager
def _leaves_at_once(line: LoadingLine) -> Iterator[None]:
    """Let Ctrl-C end the process while a model is loaded.

    llama.cpp reports progress through a callback, where an exception would be printed and forgotten; and nothing that
    must be put away is there yet.
    """

    def leave(_number: int, _frame: FrameType | None) -> None:
        line.clear()
        os._exit(ExitCode.INTERRUPTED)

    before = signal.signal(signal.SIGINT, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
