"""One request while the engine works on it: its figures, and its text."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.scheduler.images import ImageRows
from core.scheduler.sequence import RequestCost, TextStream
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
    assert new.account == RequestCost(0, 0, 0, 0.0, 0.0, 0.0, 0.0, 0.0)


def run(pieces: list[bytes], stops: tuple[str, ...] = ()) -> tuple[str, str | None]:
    stream = TextStream(stops)
    shown = ""
    for piece in pieces:
        shown += stream.feed(piece)
        if stream.stop is not None:
            break
    return shown + stream.flush(), stream.stop


def test_a_character_split_over_tokens_is_shown_once_it_is_whole() -> None:
    stream = TextStream()
    euro = "€".encode()
    assert [stream.feed(euro[:1]), stream.feed(euro[1:2]), stream.feed(euro[2:])] == ["", "", "€"]


def test_an_unfinished_character_at_the_end_becomes_a_replacement_character() -> None:
    stream = TextStream()
    assert stream.feed(b"a\xe2\x82") == "a"
    assert stream.flush() == "�"


def test_a_stop_string_across_token_borders_ends_the_text_before_it() -> None:
    assert run([b"one ST", b"O", b"P two"], ("STOP",)) == ("one ", "STOP")


def test_text_that_only_began_like_a_stop_string_is_shown_in_the_end() -> None:
    assert run([b"one ST", b"AR"], ("STOP",)) == ("one STAR", None)
    assert run([b"one STO"], ("STOP",)) == ("one STO", None)


def test_what_may_begin_a_stop_string_is_held_back() -> None:
    stream = TextStream(("</end>",))
    assert stream.feed(b"text </e") == "text "
    assert stream.feed(b"x") == "</ex"


def test_the_earliest_of_several_stop_strings_counts() -> None:
    assert run([b"a b c"], ("c", "b")) == ("a ", "b")


def test_a_stop_string_may_end_inside_the_flush() -> None:
    stream = TextStream(("�",))
    assert stream.feed(b"a\xe2") == "a"
    assert stream.flush() == ""
    assert stream.stop == "�"


@given(text=st.text(max_size=60), cuts=st.lists(st.integers(0, 240), max_size=12), stop=st.text(min_size=1, max_size=3))
def test_any_split_of_the_bytes_gives_the_same_text(text: str, cuts: list[int], stop: str) -> None:
    data = text.encode("utf-8", "surrogatepass").decode("utf-8", "replace").encode()
    borders = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    pieces = [data[a:b] for a, b in itertools.pairwise(borders)]
    expected = data.decode()
    at = expected.find(stop)
    assert run(pieces, (stop,)) == (expected[:at] if at >= 0 else expected, stop if at >= 0 else None)
    assert run(pieces) == (expected, None)


@pytest.mark.parametrize("n_before", [30, 30_000])
def test_the_work_per_token_does_not_grow_with_the_text(n_before: int) -> None:
    stream = TextStream(("never",))
    for _ in range(n_before):
        stream.feed(b" token")
    # What is kept is bounded by the longest stop string, not by what came before.
    stream.feed(b" neve")
    assert stream.flush() == "neve"
