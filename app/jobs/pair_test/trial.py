"""Measures one pair, as a program of its own: plain decoding against drafting, prompt by prompt, on one engine.

The first line on standard input is the job as JSON; lines of JSON on standard output say how far it is, and at last
``{"result": {...}}`` or ``{"problem": "..."}``. It leaves when standard input ends.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from app.jobs.pair_test.pair_test import TrialResult, TrialTask
from core.ipc.child_process import WAITING

if TYPE_CHECKING:
    from app.jobs.verify.verification import DecodedReply

# Before llama.cpp is loaded: what the engine process uses.
os.environ.update({name: value for name, value in WAITING.items() if name not in os.environ})

N_CTX = 512
# Kinds in turns: what is easy to guess and what is not both count, however early the time is over.
ORDER = (0, 3, 6, 9, 1, 4, 7, 10)
FEWEST = 3


def measure(job: TrialTask) -> TrialResult:
    """Load the pair and measure it; raises SlipstreamError."""
    from app.environment.paths import cache_folder
    from app.jobs.verify.prompt_file import BUILT_IN, read_prompts
    from app.jobs.verify.rendering import render
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
        timed = [one for one in found.comparisons if one.speedup is not None]
        if not timed:
            raise SlipstreamError("Its replies are too short to be timed.")
        plain, drafted = _rate([one.plain for one in timed]), _rate([one.drafted for one in timed])
        acceptance = found.n_accepted / found.n_drafted if found.n_drafted else None
        return TrialResult(drafted / plain, plain, drafted, acceptance, len(timed))
    finally:
        verifier.close()


def say(stage: str, share: float) -> None:
    """Tell the parent how far it is."""
    _send({"stage": stage, "share": round(share, 3)})


def main() -> None:
    """Do the job on standard input."""
    from core.values.errors import SlipstreamError

    job = TrialTask(**json.loads(sys.stdin.readline()))
    threading.Thread(target=_leave_with_stdin, daemon=True).start()
    if not Path(job.target).is_file():
        _send({"problem": f"{job.target} is no longer there."})
        return
    try:
        _send({"result": asdict(measure(job))})
    except SlipstreamError as error:
        _send({"problem": error.message})


def _rate(replies: Sequence[DecodedReply]) -> float:
    """Tokens after the first of each reply by the seconds that they took."""
    seconds = sum((len(reply.tokens) - 1) / reply.rate for reply in replies)
    return sum(len(reply.tokens) - 1 for reply in replies) / seconds


def _send(message: dict[str, object]) -> None:
    print(json.dumps(message), flush=True)


def _leave_with_stdin() -> None:
    while sys.stdin.read(4096):
        pass
    os._exit(0)


if __name__ == "__main__":
    main()
