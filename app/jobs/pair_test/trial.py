"""Measures one pair, as a program of its own: plain decoding against drafting, prompt by prompt, on one engine.

A TrialTask comes through the pipe; TrialProgress goes back, and at last a TrialResult or a TrialProblem. It leaves when
the pipe is closed.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median_high
from typing import TYPE_CHECKING

from app.jobs.pair_test.pair_test import TrialProblem, TrialProgress, TrialResult, TrialTask
from core.process.child_process import Pipe, PipeClosed, die_with_parent, leave_signals_to_the_parent, own_streams
from models.formatting.sentence import Sentence

if TYPE_CHECKING:
    from app.jobs.verify.verification import Comparison, DecodedReply

N_CTX = 512  # tokens, enough for a prompt and its reply
# The kinds of prompts take turns, so that easy and hard ones both count even if the time is over early.
ORDER = (0, 3, 6, 9, 1, 4, 7, 10)
FEWEST = 3
HELD_UP = 0.5  # of the usual plain rate: neither a prompt nor drafts make a reply that slow, but other programs do


def measure(job: TrialTask, say: Callable[[str, float], None] = lambda stage, share: None) -> TrialResult:
    """Load the pair and measure it; ``say`` hears a stage and 0 to 1. Raises SlipstreamError."""
    from app.environment.paths import cache_folder
    from app.jobs.verify.prompt_file import BUILT_IN, read_prompts, render
    from app.jobs.verify.verification import Mode, load_verifier
    from core.values.engine_options import EngineOptions
    from core.values.errors import SlipstreamError
    from core.values.request import Request

    options = EngineOptions(job.target, n_ctx=N_CTX, draft_path=job.draft, speculation="draft")
    verifier, loaded = load_verifier(
        options,
        cache_folder=cache_folder(),
        progress=lambda share: say("loading", share),
        timed_seconds=0.0,  # the prompts count together: each of them once is enough
    )
    try:
        if loaded.notices:
            raise SlipstreamError(" ".join(loaded.notices))
        known = read_prompts(BUILT_IN)
        prompts = [known[place] for place in ORDER]
        texts = render(prompts, BUILT_IN, loaded)
        tokens = [verifier.engine.tokenize(Request("pair", text)) for text in texts]
        end = time.monotonic() + job.seconds
        found = verifier.run(
            tokens,
            [Mode()],
            job.n_tokens,
            lambda share: say("measuring", share),
            lambda n_compared: n_compared >= FEWEST and time.monotonic() > end,
        )
        timed = undisturbed([one for one in found.comparisons if one.speedup is not None])
        if not timed:
            raise SlipstreamError(Sentence("Its replies are too short to be timed."))
        plain, drafted = _rate([one.plain for one in timed]), _rate([one.drafted for one in timed])
        if not found.n_drafted:
            return TrialResult(1.0, plain, drafted, None)  # both were plain, whatever their rates
        return TrialResult(drafted / plain, plain, drafted, found.n_accepted / found.n_drafted)
    finally:
        verifier.close()


def main() -> None:
    """Do the job that comes through the pipe."""
    from core.values.errors import SlipstreamError

    leave_signals_to_the_parent()
    pipe = own_streams()
    die_with_parent()
    job: TrialTask = pipe.receive()
    threading.Thread(target=_leave_with, args=(pipe,), daemon=True).start()
    if not Path(job.target).is_file():
        pipe.send(TrialProblem(Sentence("{target} is no longer there.", target=job.target)))
        return
    try:
        pipe.send(measure(job, lambda stage, share: pipe.send(TrialProgress(stage, share))))
    except SlipstreamError as error:
        pipe.send(TrialProblem(error.message))


def undisturbed(timed: Sequence[Comparison]) -> Sequence[Comparison]:
    """Leave out the prompts during which the machine was held up; all stay where that was most of the time."""
    slowest = HELD_UP * median_high(one.plain.rate for one in timed) if timed else 0.0
    calm = [one for one in timed if min(one.plain.rate, one.drafted.rate) > slowest]
    return calm or timed


def _rate(replies: Sequence[DecodedReply]) -> float:
    """Tokens after the first of each reply by the seconds that they took."""
    seconds = sum((len(reply.tokens) - 1) / reply.rate for reply in replies)
    return sum(len(reply.tokens) - 1 for reply in replies) / seconds


def _leave_with(pipe: Pipe) -> None:
    """End this process where the other one has closed the pipe."""
    with suppress(PipeClosed):
        pipe.receive()
    os._exit(0)


if __name__ == "__main__":
    main()
