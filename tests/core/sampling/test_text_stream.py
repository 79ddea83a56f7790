"""Streaming text: whole characters only, nothing of a stop string, the same cost at any length."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.sampling.text_stream import TextStream


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
