"""Streams of events: when they begin, how they end, and what keeps them alive."""

from __future__ import annotations

import asyncio
import json

import pytest

from app.server.http.errors import ApiError, refuse
from app.server.http.sse import EventStream, LineStream, encode_text

pytestmark = pytest.mark.anyio


class Client:
    """The other side of an ASGI connection."""

    def __init__(self, stays_for: int | None) -> None:
        self.sent: list[dict] = []
        self.gone = asyncio.Event()
        self._stays_for = stays_for

    async def receive(self) -> dict:
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: dict) -> None:
        self.sent.append(message)
        if self._stays_for is not None and self.text.count("\n\n") >= self._stays_for:
            self.gone.set()

    @property
    def text(self) -> str:
        return b"".join(message.get("body", b"") for message in self.sent).decode()


async def stream(
    events, ping_seconds: float = 99.0, stays_for: int | None = None, client: Client | None = None
) -> Client:
    """Send ``events`` to a client that stays for so many of them, or to the end."""
    client = client or Client(stays_for)
    response = EventStream(events, ping_seconds)
    await asyncio.wait_for(response({"type": "http", "path": "/v1/chat/completions"}, client.receive, client.send), 60)
    return client


async def pinged(client: Client, times: int) -> None:
    while client.text.count(": ping\n\n") < times:
        await asyncio.sleep(0.01)


async def test_what_is_yielded_is_sent_but_no_details_of_an_unforeseen_error(caplog):
    async def events():
        yield b"data: 1\n\n"
        yield b"data: 2\n\n"

    client = await stream(events())
    assert client.text == "data: 1\n\ndata: 2\n\n"
    assert client.sent[0]["status"] == 200
    assert client.sent[-1]["more_body"] is False

    async def events():
        yield b"data: 1\n\n"
        raise ValueError("secret")

    assert "secret" not in (await stream(events())).text
    assert "secret" in caplog.text


@pytest.mark.parametrize("sent_before", ["nothing", "an event", "a comment"])
async def test_an_error_is_one_of_http_before_the_first_event_and_an_event_and_the_end_after_it(sent_before):
    client = Client(None)

    async def events():
        if sent_before == "an event":
            yield b"data: 1\n\n"
        elif sent_before == "a comment":
            await pinged(client, 1)
        raise refuse(503, "The engine died.", code="engine_died")

    if sent_before == "nothing":
        with pytest.raises(ApiError):
            await stream(events())
        return
    text = (await stream(events(), ping_seconds=0.02, client=client)).text
    *_, error, end = text.split("\n\n")
    assert (json.loads(error.removeprefix("data: "))["error"]["code"], end) == ("engine_died", "")


async def test_a_comment_keeps_a_silent_stream_alive():
    client = Client(None)

    async def events():
        await pinged(client, 2)
        yield b"data: 1\n\n"

    text = (await stream(events(), ping_seconds=0.02, client=client)).text
    assert text.startswith(": ping\n\n: ping\n\n")
    assert text.endswith("data: 1\n\n")


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("/v1/chat/completions", {}),
        ("/v1/messages", {"type": "error"}),
        ("/v1/responses", {"type": "error", "code": "queue_full", "message": "Full.", "sequence_number": 0}),
        ("/api/v1/chat", {"type": "error"}),
    ],
)
def test_an_error_event_has_the_form_of_its_protocol(path, fields):
    *names, data = refuse(503, "Full.", code="queue_full").event(path).decode().strip().splitlines()
    assert names == (["event: error"] if fields else [])
    found = json.loads(data.removeprefix("data: "))
    assert found["error"]["message"] == "Full."
    assert {name: found[name] for name in fields} == fields


async def test_a_client_that_leaves_closes_the_generator():
    is_closed = []

    async def events():
        try:
            yield b"data: 1\n\n"
            await asyncio.sleep(60)
        finally:
            is_closed.append(True)

    await stream(events(), stays_for=1)
    assert is_closed == [True]


@pytest.mark.parametrize("text", ['"\\\n\x00\u2028', "grüße 🦊", "</script>", ""])
def test_text_becomes_a_json_string(text):
    assert json.loads(encode_text(text)) == text


async def test_lines_keep_a_connection_alive_with_lines_and_end_with_an_error_as_one():
    client = Client(None)

    async def lines():
        while client.text.count('{"done":false}\n') < 2:
            await asyncio.sleep(0.01)
        yield b'{"done":true}\n'
        raise refuse(400, "No.")

    response = LineStream(lines(), ping=b'{"done":false}\n', ping_seconds=0.01)
    await asyncio.wait_for(response({"type": "http", "path": "/api/chat"}, client.receive, client.send), 60)
    assert client.text.endswith('{"done":true}\n{"error": "No."}\n')
    assert (b"content-type", b"application/x-ndjson") in client.sent[0]["headers"]
