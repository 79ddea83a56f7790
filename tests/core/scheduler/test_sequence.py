"""What is counted of one request, and how far it is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from core.images.prompt_images import ImageRows
from core.scheduler.sequence import RequestCost
from tests.support.sequences import sequence


@pytest.mark.parametrize(
    ("cost", "speedup"),
    [
        (RequestCost(n_tokens=40, n_compared=40, n_steps=10, plain=2.0, spent=1.0), 2.0),
        (RequestCost(n_tokens=40, n_compared=40, n_steps=20, plain=9.0, spent=1.0), 2.0),  # two tokens a step
        (RequestCost(n_tokens=40, n_compared=40, n_steps=10, plain=2.0, spent=0.0), None),
        (RequestCost(n_tokens=40, n_compared=20, n_steps=5, plain=2.0, spent=1.0), None),  # no more than half are known
        (RequestCost(n_tokens=40, n_compared=40, n_steps=10, plain=0.0, spent=1.0), None),
    ],
)
def test_a_speed_up_is_of_known_steps_and_no_more_than_the_tokens_of_one(
    cost: RequestCost, speedup: float | None
) -> None:
    assert cost.speedup == speedup
    assert (cost.plain_seconds is None) is (cost.n_compared == 20 or cost.plain == 0.0)


def test_progress_is_what_the_cache_holds_of_the_prompt_since_the_request_began() -> None:
    reading = sequence(7, 300, n_past=200)
    reading.started_at = 10.0
    found = reading.progress(12.5)
    assert (found.request_id, found.n_prompt, found.n_read, found.seconds) == ("7", 500, 200, 2.5)


@pytest.mark.parametrize(("max_tokens", "n_left"), [(None, 990), (5, 3), (5_000, 990)])
def test_what_is_left_is_what_the_request_and_the_context_both_allow(max_tokens: int | None, n_left: int) -> None:
    writing = sequence(1, 1, 9)
    writing.request = replace(writing.request, max_tokens=max_tokens)
    writing.n_generated = 2
    assert writing.n_left(1_000) == n_left
    assert not writing.is_exhausted


def test_an_image_is_at_hand_once_the_text_before_it_is_read() -> None:
    reading = sequence(1, 9)
    reading.images = (ImageRows(3, 6, np.zeros(3, np.int32), b"fox", 0, b""),)
    seen = []
    for reading.n_past in range(7):
        seen.append((reading.next_image is not None, reading.image is not None))
    assert seen == [*[(True, False)] * 3, *[(True, True)] * 3, (False, False)]


def test_of_a_new_request_nothing_is_counted() -> None:
    new = sequence(1, 5)
    counts = (new.n_past, new.n_replay, new.n_cached, new.n_generated)
    assert (*counts, new.n_drafted, new.n_accepted, new.n_judged, new.n_right) == (0,) * 8
