"""What is turned away at the door is answered, however its body comes."""

from __future__ import annotations

import asyncio

import pytest
from starlette.exceptions import HTTPException

from app.server.limits import BodyLimit


@pytest.mark.parametrize("n_parts", [1, 2, 5])
def test_a_body_of_unknown_length_is_refused_when_it_is_too_long(n_parts):
    async def read_all(_scope, receive, _send):
        while (await receive()).get("more_body"):
            pass

    parts = [{"type": "http.request", "body": b"x" * 20, "more_body": i < n_parts - 1} for i in range(n_parts)]

    async def receive():
        if parts:
            return parts.pop(0)
        await asyncio.Event().wait()  # as long as the client keeps the connection

    async def run():
        await asyncio.wait_for(BodyLimit(read_all, limit=10)({"type": "http", "headers": []}, receive, None), 5)

    with pytest.raises(HTTPException) as caught:
        asyncio.run(run())
    assert caught.value.status_code == 413
    assert parts == []
