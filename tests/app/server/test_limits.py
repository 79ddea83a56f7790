"""What is turned away at the door is answered, however its body comes."""

from __future__ import annotations

import asyncio

import pytest
from starlette.exceptions import HTTPException

from app.server.http.limits import BodyLimit


async def read_all(_scope, receive, _send):
    while (await receive()).get("more_body"):
        pass


def client_that_sends(parts: list):
    """Return a ``receive`` of these messages, and then of nothing for as long as the client keeps the connection."""
    left = list(parts)

    async def receive():
        if not left:
            await asyncio.Event().wait()
        return left.pop(0)

    receive.left = left
    return receive


@pytest.mark.parametrize("n_parts", [1, 2, 5])
def test_a_body_of_unknown_length_is_refused_when_it_is_too_long(n_parts):
    parts = [{"type": "http.request", "body": b"x" * 20, "more_body": i < n_parts - 1} for i in range(n_parts)]

    receive = client_that_sends(parts)

    async def run():
        await asyncio.wait_for(BodyLimit(read_all, limit=10)({"type": "http", "headers": []}, receive, None), 5)

    with pytest.raises(HTTPException) as caught:
        asyncio.run(run())
    assert caught.value.status_code == 413
    assert receive.left == []


@pytest.mark.parametrize("n_parts", [0, 1])
def test_a_body_that_does_not_end_is_given_up(n_parts):
    parts = [{"type": "http.request", "body": b"x", "more_body": True}] * n_parts

    async def run():
        limit = BodyLimit(read_all, patience=0.01)
        await asyncio.wait_for(limit({"type": "http", "headers": []}, client_that_sends(parts), None), 5)

    with pytest.raises(HTTPException) as caught:
        asyncio.run(run())
    assert caught.value.status_code == 408
    assert "Nothing more of the body came" in caught.value.detail


def test_a_client_may_take_its_time_once_its_body_is_here():
    async def wait_for_the_end(_scope, receive, _send):
        assert not (await receive())["more_body"]
        await receive()

    async def run():
        limit = BodyLimit(wait_for_the_end, patience=0.01)
        whole = [{"type": "http.request", "body": b"x", "more_body": False}]
        calling = asyncio.ensure_future(limit({"type": "http", "headers": []}, client_that_sends(whole), None))
        done, _ = await asyncio.wait([calling], timeout=0.1)
        calling.cancel()
        return done

    assert not asyncio.run(run())


def test_a_body_that_says_it_is_too_long_and_does_not_come_is_refused():
    sent = []

    async def send(message):
        sent.append(message)

    async def run():
        limit = BodyLimit(read_all, limit=10, patience=0.01)
        scope = {"type": "http", "headers": [(b"content-length", b"11")]}
        await asyncio.wait_for(limit(scope, client_that_sends([]), send), 5)

    asyncio.run(run())
    assert sent[0]["status"] == 413
