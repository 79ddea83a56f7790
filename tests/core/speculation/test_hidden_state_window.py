"""The window keeps the latest states of a text, and knows to which tokens they belong."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from core.kv_cache.slot import TokenBuffer
from core.speculation.proposers.context_proposer import HiddenStateWindow


def tokens(*values: int) -> npt.NDArray[np.int32]:
    return np.array(values, np.int32)


def states(*values: float) -> npt.NDArray[np.float32]:
    return np.array([[value, -value] for value in values], np.float32)


def test_states_belong_to_the_tokens_that_led_to_them() -> None:
    window = HiddenStateWindow(2)
    window.take(tokens(), tokens(5, 6, 7), (states(0, 1, 2),))
    window.take(tokens(5, 6, 7), tokens(8), (states(3),))
    assert window.known(tokens(5, 6, 7, 8, 9)) == range(4)
    assert window.known(tokens(5, 6, 1)) == range(2)
    assert (window.rows(1, 4) == states(1, 2, 3)).all()


def test_rejected_tokens_take_their_states_with_them() -> None:
    window = HiddenStateWindow(2)
    window.take(tokens(), tokens(5, 6, 7, 8), (states(0, 1, 2, 3),))
    window.take(tokens(5, 6), tokens(9), (states(20),))
    assert window.known(tokens(5, 6, 9)) == range(3)
    assert (window.rows(0, 3) == states(0, 1, 20)).all()


def test_a_gap_or_another_text_begins_anew() -> None:
    window = HiddenStateWindow(2)
    window.take(tokens(), tokens(5, 6), (states(0, 1),))
    window.take(tokens(5, 6, 7), tokens(8), (states(3),))
    assert window.known(tokens(5, 6, 7, 8)) == range(3, 4)
    assert (window.rows(3, 4) == states(3)).all()
    window.take(tokens(1, 6, 7), tokens(8), (states(30),))
    assert window.known(tokens(5, 6, 7, 8)) == range(3, 3)
    assert (window.rows(3, 4) == states(30)).all()


def test_parts_lie_side_by_side() -> None:
    window = HiddenStateWindow(4)
    window.take(tokens(), tokens(5, 6), (states(1, 2), states(3, 4)))
    assert window.rows(1, 2).tolist() == [[2, -2, 4, -4]]


@pytest.mark.parametrize("chunk", [1, 3, 7, 40])
def test_only_the_latest_are_kept(chunk: int) -> None:
    window, text = HiddenStateWindow(2, size=8), np.arange(100, 220, dtype=np.int32)
    for start in range(0, 120, chunk):
        end = min(start + chunk, 120)
        window.take(text[:start], text[start:end], (states(*range(start, end)),))
        known = window.known(text[:end])
        assert known.stop == end
        assert len(known) >= min(8, end)
        assert len(known) <= 16
        assert (window.rows(known.start, end) == states(*known)).all()


def test_tokens_that_come_one_by_one_have_the_same_states() -> None:
    text, other = TokenBuffer(tokens(5, 6)), TokenBuffer(tokens(5, 6, 3))
    window = HiddenStateWindow(2)
    window.take(tokens(), tokens(5, 6), (states(0, 1),))
    for position in range(2, 40):
        text.append(position)
        window.append(text, position, (states(position),))
    assert window.known(text.view) == range(40)
    assert (window.rows(0, 40) == states(*range(40))).all()
    window.append(other, 2, (states(-1),))
    assert window.known(other.view) == range(3)
    assert (window.rows(0, 3) == states(0, 1, -1)).all()
