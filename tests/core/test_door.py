"""The door: whatever is put in comes out once, as admitted or with its end."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pytest

from core.door import Admitted, Door
from core.errors import BadRequest, PromptTooLong
from core.events import Ended, FailureKind, FinishReason
from core.request import Request


class SlowTokenizer:
    """Tokenises when it is told to; a prompt can name what goes wrong."""

    def __init__(self) -> None:
        self.may_go_on = threading.Event()
        self.may_go_on.set()

    def tokenize(self, request: Request) -> npt.NDArray[np.int32]:
        assert self.may_go_on.wait(10)
        if request.prompt == "long":
            raise PromptTooLong(9, 8)
        if request.prompt == "bad":
            raise BadRequest("no", param="prompt")
        if request.prompt == "bug":
            raise ZeroDivisionError
        return np.array([1, 2], np.int32)


class Hall:
    """A door with all that came out of it."""

    def __init__(self) -> None:
        self.tokenizer = SlowTokenizer()
        self.out: queue.SimpleQueue[Admitted | Ended] = queue.SimpleQueue()
        self.door = Door(self.tokenizer, self.out.put, self.out.put)  # type: ignore[arg-type]

    def take(self) -> Admitted | Ended:
        return self.out.get(timeout=10)


@pytest.fixture
def hall() -> Iterator[Hall]:
    made = Hall()
    yield made
    made.tokenizer.may_go_on.set()
    made.door.close()
    assert made.out.empty(), "something came out twice"


def test_a_request_is_admitted_with_its_tokens(hall: Hall) -> None:
    hall.door.enter(Request("a", "good"))
    admitted = hall.take()
    assert isinstance(admitted, tuple)
    assert admitted[0].id == "a"
    assert admitted[1].tolist() == [1, 2]


@pytest.mark.parametrize(
    ("prompt", "kind"),
    [("long", FailureKind.CONTEXT_LENGTH), ("bad", FailureKind.BAD_REQUEST), ("bug", FailureKind.INTERNAL)],
)
def test_what_cannot_be_tokenised_ends_with_its_reason_and_the_next_comes_in(
    hall: Hall, prompt: str, kind: FailureKind
) -> None:
    hall.door.enter(Request("a", prompt))
    hall.door.enter(Request("b", "good"))
    ended = hall.take()
    assert isinstance(ended, Ended)
    assert ended.failure is not None
    assert (ended.request_id, ended.failure.kind) == ("a", kind)
    assert isinstance(hall.take(), tuple)


def test_what_is_cancelled_inside_is_not_admitted(hall: Hall) -> None:
    hall.tokenizer.may_go_on.clear()
    for name, prompt in (("a", "good"), ("b", "bad"), ("c", "good")):
        hall.door.enter(Request(name, prompt))
    assert all(hall.door.cancel(name) for name in "abb")
    assert not hall.door.cancel("nobody")
    hall.tokenizer.may_go_on.set()
    ends = [hall.take(), hall.take()]
    assert [(end.request_id, end.reason) for end in ends if isinstance(end, Ended)] == [
        ("a", FinishReason.CANCELLED),
        ("b", FinishReason.CANCELLED),
    ]
    assert isinstance(hall.take(), tuple)
    assert not hall.door.cancel("c"), "it has left"
