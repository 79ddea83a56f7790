"""The cost of reading a long prompt beside other texts, idle or decoding: the part "beside" of the bench ``peers``.

It runs in the engine's own process, because the result is a few per cent of a second and HTTP would disturb it. Three
engines with the same slots, one with no other text, one with 4 and one with 16, read each prompt in turns. Beside
decoding texts, the cost is the time of all steps until the prompt is read, less what as many steps of the others alone
take, measured just before and after.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks import prompts
from benchmarks.report import ReportRow, median, say
from core.engine.engine import Engine
from core.llama.library import silence_log
from core.loading.load_engine import load_engine
from core.scheduler.sequence import Sequence as Submitted
from core.values.engine_options import EngineOptions
from core.values.messages import Ended
from core.values.request import Request, SamplingParams

OTHERS = (0, 4, 16)
# Words of one token each. With their generated tokens they stay below the 1,024 that Ember was trained for.
N_OTHER_WORDS = 800
_N_CTX = 1024
# Steps of the others alone, before and after the prompt.
_N_ALONE = 12
# More tokens than the steps of one measurement generate; a prompt takes about ten steps.
_AT_WORK_TOKENS = 180


class Company:
    """An engine with ``n_others`` other sequences, in which prompts are read."""

    def __init__(self, model: Path, n_others: int, n_slots: int, n_threads: int) -> None:
        # No RAM cache: it would hold idle texts that have left the KV cache.
        options = EngineOptions(
            str(model), n_slots=n_slots, n_ctx=_N_CTX, n_threads=n_threads, speculation="off", cache_ram=0
        )
        self.n_others = n_others
        self._engine: Engine = load_engine(options, cache_folder=None)[0]
        # Places that no measured prompt has.
        self._others = prompts.long_texts(n_others, 1_000_000, N_OTHER_WORDS)
        self._ids = itertools.count()

    def read_at_rest(self, text: str) -> float:
        """Return the seconds that a prompt takes while the other sequences are idle."""
        self._submit(self._others, 1)
        self._finish()
        return self._time_prompt(text)[0]

    def read_at_work(self, text: str) -> float:
        """Return the seconds that a prompt adds to the steps of the other, decoding sequences."""
        others = self._submit(self._others, _AT_WORK_TOKENS)
        while (
            any(sequence.is_prefilling for sequence in self._engine.scheduler.running)
            or self._engine.scheduler.waiting.size
        ):
            self._engine.step()
        alone = self._time_steps()
        seconds, n_steps = self._time_prompt(text)
        alone += self._time_steps()
        for other in others:
            self._engine.cancel(other.id)
        self._finish()
        return seconds - n_steps * median(alone)

    def close(self) -> None:
        self._engine.close()

    def _submit(self, texts: Sequence[str], n_tokens: int) -> list[Submitted]:
        sampling = SamplingParams(temperature=0, ignore_eos=True)
        requests = [Request(str(next(self._ids)), text, n_tokens, sampling=sampling) for text in texts]
        return [self._engine.submit(self._engine.prepare(request)) for request in requests]

    def _finish(self) -> None:
        while not self._engine.is_idle:
            self._engine.step()

    def _time_prompt(self, text: str) -> tuple[float, int]:
        """Return the seconds and the steps until a prompt is read. The engine forgets it then: others read it too."""
        began = time.perf_counter()
        (read,) = self._submit([text], 1)
        n_steps, has_ended = 0, False
        while not has_ended:
            events = self._engine.step()
            n_steps += 1
            has_ended = any(isinstance(event, Ended) and event.request_id == read.id for event in events)
        seconds = time.perf_counter() - began
        assert read.n_cached <= 1, "only the token that begins every text may be known"
        slots, n_read = self._engine.slots, read.n_prompt - 1
        for slot in slots.slots:
            if slot.is_free and np.array_equal(slot.text[:n_read], read.tokens.view[:n_read]):
                slots._drop(slot)
        return seconds, n_steps

    def _time_steps(self) -> list[float]:
        seconds = []
        for _ in range(_N_ALONE):
            began = time.perf_counter()
            self._engine.step()
            seconds.append(time.perf_counter() - began)
        return seconds


def measure_beside(model: Path, n_threads: int, n_rounds: int, others: Sequence[int] = OTHERS) -> list[ReportRow]:
    """Return a row for each number of others and what they do: medians, and ratios to none of the same round."""
    silence_log()
    companies = [Company(model, n_others, max(others) + 1, n_threads) for n_others in others]
    arms = [
        (company, state) for company in companies for state in ("rest", "work") if company.n_others or state == "rest"
    ]
    seconds: dict[tuple[int, str], list[float]] = {(company.n_others, state): [] for company, state in arms}
    # The first round warms up.
    for round_ in range(n_rounds + 1):
        (text,) = prompts.long_texts(1, round_)
        first = round_ % len(arms)
        for company, state in [*arms[first:], *arms[:first]]:
            taken = company.read_at_rest(text) if state == "rest" else company.read_at_work(text)
            if round_:
                seconds[company.n_others, state].append(taken)
        if round_:
            say(f"beside: round {round_} of {n_rounds}")
    for company in companies:
        company.close()
    return rows_of(seconds)


def rows_of(seconds: dict[tuple[int, str], list[float]]) -> list[ReportRow]:
    """Return the rows for the seconds of each round, by number of others and what they do."""
    none = seconds[0, "rest"]
    return [
        {
            "mode": "beside",
            "side": "slipstream",
            "others": n_others,
            "state": state if n_others else "none",
            "runs": len(found),
            "prompt_ms_p50": round(median(found) * 1e3, 1),
            "vs_none": round(median([one / alone for one, alone in zip(found, none, strict=True)]), 4),
        }
        for (n_others, state), found in seconds.items()
    ]
