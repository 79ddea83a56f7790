"""What is counted of one request, and how far it is."""

from __future__ import annotations

import pytest

from core.scheduler.sequence import RequestCost
from tests.support.sequences import sequence


@pytest.mark.parametrize(
    ("cost", "speedup"),
    [
        (RequestCost(n_tokens=40, n_compared=40, n_steps=10, plain=2.0, spent=1.0), 2.0),
        (RequestCost(n_tokens=40, n_compared=40, n_steps=20, plain=9.0, spent=1.0), 2.0),  # two tokens a step
        (RequestCost(n_tokens=40, n_compared=40, n_steps=10, plain=2.0, spent=0.0), None),
        (RequestCost(n_tokens=40, n_compared=1, n_steps=1, plain=2.0, spent=1.0), None),
    ],
)
def test_a_speed_up_is_of_known_steps_and_no_more_than_the_tokens_of_one(
    cost: RequestCost, speedup: float | None
) -> None:
    assert cost.speedup == speedup
    assert (cost.plain_seconds is None) is (cost.n_compared == 1)


def test_progress_is_what_the_cache_holds_of_the_prompt_since_the_request_began() -> None:
    reading = sequence(7, 300, n_past=200)
    reading.started_at = 10.0
    found = reading.progress(12.5)
    assert (found.request_id, found.n_prompt, found.n_read, found.seconds) == ("7", 500, 200, 2.5)
