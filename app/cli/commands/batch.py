"""``slipstream batch``: a file of requests."""

from __future__ import annotations

import sys
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.cli.chat.chat_server import ServerChoice
from app.cli.terminal.option_group import with_groups
from app.cli.terminal.text import say_json
from app.environment.exit_codes import ExitCode
from core.values.errors import BadRequest, SlipstreamError

if TYPE_CHECKING:
    from app.cli.chat.chat_server import ChatTarget
    from app.jobs.batch.batch_run import BatchWork
    from app.jobs.batch.progress import BatchRate
    from app.jobs.batch.result_file import ResultFile, Tally

MAX_PARALLEL = 1_024  # half of the requests that a server lets wait
# Slots of a server of our own: wide steps bring more tokens for the same reading of the weights.
_OWN_SLOTS = 8
# Lines under way for each slot: a slot that becomes free finds its next line waiting.
_LINES_PER_SLOT = 2


@with_groups
def batch(
    source: Annotated[str, typer.Argument(metavar="IN", help="JSON lines; - is standard input.", show_default=False)],
    output: Annotated[Path, typer.Argument(metavar="OUT", help="Takes the answers.", show_default=False)],
    *,
    server: ServerChoice,
    max_parallel: Annotated[
        int | None,
        typer.Option(
            "--max-parallel",
            min=1,
            max=MAX_PARALLEL,
            metavar="N",
            help="Lines under way at once; 2 per slot if left out.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as one JSON object.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no summary on stderr.")] = False,
) -> None:
    """Run a file of requests, one per line, in the batch lane.

    IN is in OpenAI's batch format, {"custom_id", "method": "POST", "url", "body"} per line, with the url
    /v1/chat/completions, /v1/completions, /v1/responses, /v1/embeddings, /v1/rerank or /v1/messages. OUT is in its
    output format, in the order in which lines are finished. A line that cannot be answered gets its error there, and
    the rest runs.
    --model answers every line with that model, whatever the line names. A line runs in the batch lane, where it lets
    others go first, unless it has a speed or service_tier of its own.

    To resume after any interruption, run the same command again: finished lines are not run twice. IN may have got
    more lines below by then; where others have changed, the command says so and leaves OUT alone. What is piped in is
    read to its end first, and resumes when the same is piped in again.

    Uses a server that runs already if it has the model; otherwise starts one for the call. Ends with exit code 9 when
    all lines are finished and some of them failed.
    """
    from app.jobs.batch.batch_run import look_through
    from app.jobs.batch.job_file import STDIN, JobFile
    from app.jobs.batch.result_file import ResultFile

    if str(output) == STDIN:
        raise BadRequest("OUT must be a file, because it is also the record of what is finished: name one.")
    ending: _Ending | None = None
    with closing(JobFile(source)) as jobs:
        if jobs.is_same_as(output):
            raise BadRequest(f"IN and OUT are the same file, {output}: choose another output file.")
        results = ResultFile(output)
        try:
            work = look_through(jobs, results)
            ending = _run(work, results, server, max_parallel, quiet=quiet)
        finally:
            if ending is None or ending.problem is not None:
                results.withdraw()
            results.close()
    ending.show(work, output, as_json=as_json, quiet=quiet)
    if ending.code:
        raise typer.Exit(ending.code)


@dataclass(frozen=True, slots=True)
class _Ending:
    """How a run ended. ``problem`` says why it did not get to the end."""

    code: ExitCode
    seconds: float = 0.0
    tokens_per_second: float = 0.0
    problem: str | None = None

    def show(self, work: BatchWork, output: Path, *, as_json: bool, quiet: bool) -> None:
        tally = work.history.tally
        if as_json:
            say_json(self._facts(work, output))
        if self.problem is not None:
            print(f"Error: {self.problem}" if self.code != ExitCode.INTERRUPTED else self.problem, file=sys.stderr)
        has_begun = bool(tally.n_lines or self.seconds) or self.problem is None
        if not quiet and has_begun:
            print(self._sentence(tally, work, output), file=sys.stderr)
        if work.n_left and (self.seconds or self.code == ExitCode.INTERRUPTED):  # else it would only fail again
            print("Run the same command again to go on with the rest.", file=sys.stderr)

    def _facts(self, work: BatchWork, output: Path) -> dict[str, Any]:
        tally = work.history.tally
        return {
            "lines": work.n_lines,
            "done": tally.n_done,
            "failed": tally.n_failed,
            "left": work.n_left,
            "errors": dict(tally.errors),
            "prompt_tokens": tally.n_prompt_tokens,
            "completion_tokens": tally.n_completion_tokens,
            "seconds": round(self.seconds, 3),
            "tokens_per_second": round(self.tokens_per_second, 2),
            "output": str(output),
            "problem": self.problem,
        }

    def _sentence(self, tally: Tally, work: BatchWork, output: Path) -> str:
        from app.jobs.batch.progress import clock
        from models.formatting.figures import how_many, speed

        parts = [f"{tally.n_done:,} of {how_many(work.n_lines, 'line')} done"]
        if tally.n_failed:
            codes = ", ".join(f"{code} {count:,}" for code, count in tally.errors.most_common(5))
            parts.append(f"{tally.n_failed:,} failed ({codes})")
        if work.n_left:
            parts.append(f"{work.n_left:,} left")
        if self.seconds:
            parts.append(f"{speed(self.tokens_per_second)} in {clock(self.seconds)}")
        hint = ""
        if tally.errors["model_not_found"]:
            hint = "\nThe server has no model of the name that lines have: --model NAME answers them with another one."
        return f"{' · '.join(parts)} · {output}{hint}"


def _run(
    work: BatchWork, results: ResultFile, choice: ServerChoice, max_parallel: int | None, *, quiet: bool
) -> _Ending:
    """Run what is left and return how that ended."""
    from app.cli.chat.chat_server import chat_server
    from app.cli.terminal.errors import exit_code, told
    from app.cli.terminal.progress_line import LoadingLine
    from app.jobs.batch.progress import BatchProgress

    results.begin(work.history)
    if not work.n_left:
        return _Ending(_code(work))
    pace: BatchRate | None = None
    code, problem = ExitCode.ERROR, None
    try:
        n_slots = min(max_parallel or _OWN_SLOTS, _OWN_SLOTS)
        with chat_server(choice, LoadingLine(sys.stderr), n_slots=n_slots) as target:
            with BatchProgress(sys.stderr, work.history.tally, work.n_lines, quiet=quiet) as progress:
                pace = progress.pace
                _answer_all(work, results, target, choice, max_parallel, progress.show)
            code = _code(work)
    except KeyboardInterrupt:
        code, problem = ExitCode.INTERRUPTED, "Stopped."
    except SlipstreamError as error:
        code, problem = exit_code(error), told(error)
    if pace is None:
        return _Ending(code, problem=problem)
    now = time.monotonic()
    return _Ending(code, pace.seconds(now), pace.tokens_per_second(work.history.tally, now), problem)


def _answer_all(
    work: BatchWork, results: ResultFile, target: ChatTarget, choice: ServerChoice, max_parallel: int | None, show: Any
) -> None:
    import asyncio

    from app.jobs.batch.batch_run import BatchRun, BatchSettings
    from app.jobs.batch.endpoint import BatchEndpoint

    fields = target.state.fields if target.state is not None else {}
    n_parallel = max_parallel or min(_LINES_PER_SLOT * int(fields.get("n_slots") or _OWN_SLOTS), MAX_PARALLEL)
    model = None if choice.model is None else target.state.model if target.state is not None else choice.model
    settings = BatchSettings(
        n_parallel,
        model=model,
        # A server of another kind would refuse the field.
        speed="batch" if target.state is not None else None,
        **({"return_seconds": 2.0} if target.is_own else {}),
    )

    async def run() -> None:
        endpoint = BatchEndpoint(target.client.url, target.client.headers, n_parallel)
        await BatchRun(work, results, endpoint, settings, show).run()

    asyncio.run(run())


def _code(work: BatchWork) -> ExitCode:
    return ExitCode.LINES_FAILED if work.history.tally.n_failed else ExitCode.OK
