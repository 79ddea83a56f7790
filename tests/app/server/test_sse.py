"""Streams of events: when they begin, how they end, and what keeps them alive."""

from __future__ import annotations

import asyncio
import json

import pytest

from app.server.errors import ApiError, refuse
from app.server.sse import EventStream, encode_text


class Client:
    """The other side of an ASGI connection."""

    def __init__(self) -> None:
        self.sent: list[dict] = []
        self.gone = asyncio.Event()

    async def receive(self) -> dict:
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: dict) -> None:
        self.sent.append(message)

    @property
    def text(self) -> str:
        return b"".join(message.get("body", b"") for message in self.sent).decode()


def stream(events, ping_seconds: float = 9.0, leave_after: float | None = None) -> Client:
    async def run() -> Client:
        client = Client()
        if leave_after is not None:
            asyncio.get_running_loop().call_later(leave_after, client.gone.set)
        response = EventStream(events, ping_seconds)
        await asyncio.wait_for(response({"type": "http"}, client.receive, client.send), 5)
        return client

    return asyncio.run(run())


def test_what_is_yielded_is_sent():
    async def events():
        yield b"data: 1\n\n"
        yield b"data: 2\n\n"

    client = stream(events())
    assert client.text == "data: 1\n\ndata: 2\n\n"
    assert client.sent[0]["status"] == 200
    assert client.sent[-1]["more_body"] is False


def test_an_error_before_the_first_event_is_an_error_of_http():
    async def events():
        raise refuse(400, "No.")
        yield b""

    with pytest.raises(ApiError):
        stream(events())


def test_an_error_after_the_first_event_is_an_event_and_the_end():
    async def events():
        yield b"data: 1\n\n"
        raise refuse(503, "The engine died.", code="engine_died")

    _, error, _ = stream(events()).text.split("\n\n")
    assert json.loads(error.removeprefix("data: "))["error"]["code"] == "engine_died"


def test_an_unforeseen_error_does_not_tell_its_details(caplog):
    async def events():
        yield b"data: 1\n\n"
        raise ValueError("secret")

    assert "secret" not in stream(events()).text
    assert "secret" in caplog.text


def test_a_comment_keeps_a_silent_stream_alive():
    async def events():
        await asyncio.sleep(0.3)
        yield b"data: 1\n\n"

    text = stream(events(), ping_seconds=0.05).text
    assert text.startswith(": ping\n\n: ping\n\n")
    assert text.endswith("data: 1\n\n")


def test_an_error_after_a_comment_is_an_event():
    async def events():
        await asyncio.sleep(0.1)
        raise refuse(400, "Too long.")
        yield b""

    assert json.loads(stream(events(), ping_seconds=0.03).text.split("data: ")[1])["error"]["message"] == "Too long."


def test_a_client_that_leaves_closes_the_generator():
    is_closed = []

    async def events():
        try:
            yield b"data: 1\n\n"
            await asyncio.sleep(60)
        finally:
            is_closed.append(True)

    stream(events(), leave_after=0.05)
    assert is_closed == [True]


@pytest.mark.parametrize("text", ['"\\\n\x00\u2028', "grüße 🦊", "</script>", ""])
def test_text_becomes_a_json_string(text):
    assert json.loads(encode_text(text)) == text
