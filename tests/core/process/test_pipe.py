"""The pipe: values arrive whole and in order, and a lost other side is told."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator

import pytest

from core.process.child_process import Pipe, PipeClosed

Ends = tuple[Pipe, Pipe]


@pytest.fixture
def ends() -> Iterator[Ends]:
    to_right, to_left = os.pipe(), os.pipe()
    left, right = Pipe(to_left[0], to_right[1]), Pipe(to_right[0], to_left[1])
    yield left, right
    left.close()
    right.close()


def test_values_come_in_order_in_both_directions(ends: Ends) -> None:
    left, right = ends
    for value in (1, "zwei", ("3", b"\x00" * 10)):
        left.send(value)
    right.send("back")
    assert [right.receive() for _ in range(3)] == [1, "zwei", ("3", b"\x00" * 10)]
    assert left.receive() == "back"


def test_values_of_several_threads_do_not_mix(ends: Ends) -> None:
    left, right = ends
    large = ["x" * 300_000, "y" * 300_000, "z" * 300_000]
    threads = [threading.Thread(target=left.send, args=(value,)) for value in large]
    for thread in threads:
        thread.start()
    assert sorted(right.receive() for _ in large) == large
    for thread in threads:
        thread.join()


def test_the_end_of_the_other_side_is_told_to_both_reader_and_writer(ends: Ends) -> None:
    left, right = ends
    right.close()
    with pytest.raises(PipeClosed):
        left.receive()
    with pytest.raises(PipeClosed):
        left.send("nobody hears this")


def test_a_value_that_was_cut_short_is_not_taken_for_one() -> None:
    (reading, writing), (_, back) = os.pipe(), os.pipe()
    os.write(writing, b"\x10\x00\x00\x00\x00\x00\x00\x00only half")
    os.close(writing)
    right = Pipe(reading, back)
    with pytest.raises(PipeClosed):
        right.receive()
    right.close()
