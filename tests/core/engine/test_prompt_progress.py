"""How much of a prompt was read, for requests that ask for it."""

from __future__ import annotations

from core.values.messages import Ended, PromptRead, RequestEvent, Started, Token
from tests.support.engines import open_engine, submit
from tests.support.prompts import GREEDY

PROMPT = tuple(range(300, 900))


def test_each_step_of_a_prompt_says_how_far_it_is_and_nobody_else_hears_of_it() -> None:
    with open_engine(n_slots=2, n_ctx=1024) as engine:
        submit(engine, "asked", PROMPT, max_tokens=3, sampling=GREEDY, reports_progress=True)
        submit(engine, "silent", PROMPT[::-1], max_tokens=3, sampling=GREEDY)
        events: list[RequestEvent] = []
        while not engine.is_idle:
            events += engine.step()
        read = [event for event in events if isinstance(event, PromptRead)]
        assert {event.request_id for event in read} == {"asked"}
        counts = [event.n_read for event in read]
        assert counts[0] == 0
        assert counts == sorted(counts)
        assert counts[-1] == read[-1].n_prompt == len(PROMPT)
        kinds = [type(event) for event in events if event.request_id == "asked"]
        assert kinds[: len(read) + 1] == [Started, *[PromptRead] * len(read)]
        assert set(kinds[len(read) + 1 :]) <= {Token, Ended}

        submit(engine, "again", PROMPT, max_tokens=1, sampling=GREEDY, reports_progress=True)
        again = [event for event in engine.step() if isinstance(event, PromptRead)]
        assert again[0].n_read == again[0].n_cached > 500
        while not engine.is_idle:
            engine.step()
