"""Sends requests to an engine in this process, alone or together, and keeps the tokens, to compare texts."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from app.jobs.verify.verification import DecodedReply, Difference, Mode, ReplyComparer
from core.engine.engine import Engine
from core.llama.library import silence_log
from core.loading.load_engine import load_engine
from core.scheduler.sequence import Sequence as Running
from core.values.engine_options import EngineOptions
from core.values.messages import Ended, FinishReason, Receipt
from core.values.request import Lane, Request, SamplingParams

# The number of tokens after which other requests take a reply's slot, and the tokens of each of these requests, which
# end long before the reply does.
_SPOKEN_BEFORE, _INTERRUPTER_TOKENS = 12, 8


@dataclass(frozen=True)
class Question:
    """A prompt and how its reply is sampled."""

    prompt: str
    mode: Mode


@dataclass(frozen=True)
class AskedReply:
    """A reply and its receipt. ``was_preempted``: other requests took its slot meanwhile."""

    reply: DecodedReply
    receipt: Receipt
    was_preempted: bool = False


class EngineClient:
    """A loaded engine, and its texts on disk in ``cache_folder`` where one is given."""

    def __init__(self, options: EngineOptions, n_tokens: int, cache_folder: Path | None = None) -> None:
        """Replies have at most ``n_tokens``."""
        silence_log()
        self.engine: Engine = load_engine(options, cache_folder=cache_folder)[0]
        self._n_slots = options.n_slots
        self._n_tokens = n_tokens
        self._ids = itertools.count()

    def ask(self, question: Question) -> AskedReply:
        """Return the reply to one question, with no other request running."""
        return self.ask_together([question])[0]

    def ask_together(self, questions: Sequence[Question], n_tokens: int | None = None) -> list[AskedReply]:
        """Return the replies; as many run at once as there are slots, and the next starts when one ends."""
        waiting = iter(questions)
        running = [self._submit(question, n_tokens=n_tokens) for question in itertools.islice(waiting, self._n_slots)]
        ended: dict[str, Ended] = {}
        while not self.engine.is_idle:
            for event in self._step():
                ended[event.request_id] = event
                running += [self._submit(question, n_tokens=n_tokens) for question in itertools.islice(waiting, 1)]
        return [_answer(sequence, ended[sequence.id]) for sequence in running]

    def ask_preempted(self, questions: Sequence[Question], interrupters: Sequence[str]) -> list[AskedReply]:
        """Return the replies; the interrupters take their slots half-way. Takes at most as many questions as slots."""
        running = [self._submit(question, Lane.BATCH) for question in questions]
        ended: dict[str, Ended] = {}
        while any(one.n_generated < _SPOKEN_BEFORE and one.id not in ended for one in running):
            ended |= {event.request_id: event for event in self._step()}
        for prompt in interrupters:
            self._submit(Question(prompt, Mode()), n_tokens=_INTERRUPTER_TOKENS)
        while not self.engine.is_idle:
            ended |= {event.request_id: event for event in self._step()}
        return [_answer(sequence, ended[sequence.id]) for sequence in running]

    def compare(self, question: Question, first: DecodedReply, second: DecodedReply) -> Difference | None:
        """Return where two replies to a question differ, and the logit gap there; drops all cached texts."""
        engine = self.engine
        request = Request("compare", question.prompt, 1, sampling=SamplingParams(temperature=0))
        tokens = np.array(engine.tokenize(request), np.int32)
        judge = ReplyComparer(engine.next_logits, engine.vocab.end_tokens)
        return judge.compare(tokens, question.mode, first, second, engine.vocab.text)

    def settle(self) -> None:
        """Let the engine write all cached texts to disk, as it does while idle."""
        while (pause := self.engine.write_back()) is not None:
            time.sleep(pause)

    def close(self) -> None:
        self.engine.close()

    def _submit(self, question: Question, lane: Lane = Lane.STANDARD, n_tokens: int | None = None) -> Running:
        request = Request(
            str(next(self._ids)),
            question.prompt,
            n_tokens or self._n_tokens,
            sampling=question.mode.sampling,
            lane=lane,
        )
        return self.engine.submit(self.engine.prepare(request))

    def _step(self) -> list[Ended]:
        ended = [event for event in self.engine.step() if isinstance(event, Ended)]
        for event in ended:
            assert event.reason is not FinishReason.FAILED, event.failure
        return ended


def _answer(sequence: Running, ended: Ended) -> AskedReply:
    tokens = tuple(sequence.tokens.view[sequence.n_prompt :].tolist())
    reply = DecodedReply(tokens, ended.reason is FinishReason.STOP)
    return AskedReply(reply, ended.receipt, was_preempted=sequence.term > 0)
