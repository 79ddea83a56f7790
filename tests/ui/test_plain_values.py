"""Parsing of streams, the live rate, ids, sizes and plain words: no Qt needed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ui.chat.conversation import TokenRate
from ui.chat.storage.ids import Ids
from ui.client.reply_stream import SseParser
from ui.theme.text_size import PERCENTS, USUAL, read_percent, step
from ui.theme.tokens import sized
from ui.widgets.elided_label import in_tip, on_button


@given(st.lists(st.text(alphabet="aé語🦊 \t:{}", max_size=12), max_size=6), st.lists(st.integers(1, 9), max_size=40))
def test_events_come_out_the_same_however_the_bytes_are_cut(texts: list[str], cuts: list[int]) -> None:
    raw = b"".join(b": ping\r\n\r\ndata: " + text.encode() + b"\n\n" for text in texts)
    parser, got, at = SseParser(), [], 0
    for cut in [*cuts, len(raw)]:
        got += parser.feed(raw[at : at + cut])
        at += cut
    assert got == texts
    assert SseParser().feed(b"event: x\ndata: a\ndata:b\n\n") == ["a\nb"], "data over several lines"


def test_the_rate_is_that_of_the_last_second() -> None:
    rate = TokenRate()
    assert rate.per_second(0.0) == 0.0
    for number in range(300):
        rate.add(1, number * 0.01)
    assert rate.per_second(2.99) == pytest.approx(100, rel=0.03)
    assert rate.per_second(60.0) == 0.0


def test_ids_grow_even_when_the_clock_was_set_back() -> None:
    ids = Ids()
    ids.saw(2**61)
    numbers = [ids.next() for _ in range(3)]
    assert numbers == sorted(set(numbers))
    assert numbers[0] > 2**61


def test_text_grows_and_shrinks_by_steps_and_stops_at_the_ends() -> None:
    assert [step(USUAL, by) for by in (-9, -1, 0, 1, 9)] == [80, 90, 100, 110, 150]
    assert step(104, 1) == 110
    assert [read_percent(kept) for kept in ("125", 90, None, "", "x", "1000", "²")] == [125, 90, *[USUAL] * 5]
    assert [sized(15, percent) for percent in PERCENTS] == [12, 14, 15, 16, 19, 22]


def test_text_that_is_shown_on_buttons_and_in_tips_is_text() -> None:
    assert on_button("R&D 7B\u202e") == "R&&D 7B\N{REPLACEMENT CHARACTER}"
    assert in_tip("plain\nwords") == "plain\nwords"
    assert in_tip("<b>fox</b>\nR&D") == "<qt>&lt;b&gt;fox&lt;/b&gt;<br>R&amp;D</qt>"
