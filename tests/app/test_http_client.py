from __future__ import annotations

import socket
import threading

import pytest

from app.cli.chat.reply import CollectedReply
from app.client.http_client import (
    AnsweringModel,
    Client,
    Finished,
    ReplyProgress,
    ServerRefused,
    ServerUnreachable,
    StreamBroken,
    TextDelta,
    Usage,
)
from app.client.http_client import _chunk_events as chunk_events
from app.environment.exit_codes import ExitCode
from tools.stand_ins.fake_openai import TIMINGS, FakeServer

BODY = {"messages": [{"role": "user", "content": "hi"}]}


def test_a_stream_is_typed_events_in_order(fake: FakeServer) -> None:
    events = list(Client(fake.url).stream_chat(BODY))
    assert events == [
        AnsweringModel("ember-q8_0"),
        TextDelta("Hello"),
        TextDelta(" there"),
        TextDelta("."),
        Finished("stop", TIMINGS),
    ]
    assert fake.requests == [{**BODY, "stream": True, "stream_options": {"include_usage": True}}]
    assert list(chunk_events({"choices": [], "usage": {"prompt_tokens": 3}})) == [Usage({"prompt_tokens": 3})]
    fake.thoughts = ["Hm", "."]
    events = list(Client(fake.url).stream_chat(BODY))
    thought = [event.fields for event in events if isinstance(event, ReplyProgress)]
    assert [(fields["stage"], fields["tokens"]) for fields in thought] == [("thinking", 1), ("thinking", 2)]
    assert [event.text for event in events if isinstance(event, TextDelta)] == fake.pieces
    fake.pieces = ["Grüße ", "🦊", " 狐"]
    reply = CollectedReply()
    reply.collect(Client(fake.url).stream_chat(BODY), lambda _: None)
    assert reply.text == "Grüße 🦊 狐"


def test_what_no_address_and_no_key_can_have_is_said_and_no_key_shown(fake: FakeServer) -> None:
    for url, key in (("http://a\udcffb", None), (fake.url, "se\ncret"), (fake.url, "se€cret")):
        with pytest.raises(ServerUnreachable, match="cannot be asked: the address or the key has characters") as caught:
            Client(url, key).state()
        assert "cret" not in str(caught.value)


def test_closing_a_stream_closes_the_connection(fake: FakeServer) -> None:
    fake.pieces, fake.delay = ["x"] * 500, 0.01
    events = Client(fake.url).stream_chat(BODY)
    assert TextDelta("x") in (next(events), next(events))
    events.close()
    assert fake.gone.wait(60)


def test_an_error_before_the_stream_has_status_and_code(fake: FakeServer) -> None:
    fake.error = (
        400,
        {"error": {"message": "Too long.", "type": "x", "param": None, "code": "context_length_exceeded"}},
    )
    with pytest.raises(ServerRefused, match="Too long") as caught:
        list(Client(fake.url).stream_chat(BODY))
    assert (caught.value.status, caught.value.code) == (400, "context_length_exceeded")
    fake.error = (502, b"<html>")
    with pytest.raises(ServerRefused, match="502"):
        list(Client(fake.url).stream_chat(BODY))


@pytest.mark.parametrize(
    ("status", "code", "exit_code"),
    [
        (400, "context_length_exceeded", ExitCode.USAGE),
        (404, "model_not_found", ExitCode.MODEL),
        (503, "model_load_failed", ExitCode.MODEL),
        (401, "invalid_api_key", ExitCode.UNREACHABLE),
        (502, "remote_unavailable", ExitCode.UNREACHABLE),
        (404, "not_found", ExitCode.ERROR),
        (503, "engine_died", ExitCode.ERROR),
    ],
)
def test_a_refusal_has_the_exit_code_of_its_cause(status: int, code: str, exit_code: ExitCode) -> None:
    assert ServerRefused("No.", status, code).exit_code is exit_code


def test_a_stream_that_fails_is_told_after_its_text(fake: FakeServer) -> None:
    fake.error_in_stream = "The engine died."
    reply = CollectedReply()
    with pytest.raises(ServerRefused, match="The engine died"):
        reply.collect(Client(fake.url).stream_chat(BODY), lambda _: None)
    assert reply.text == "Hello there."
    fake.error_in_stream, fake.cut_after = None, 1
    with pytest.raises(StreamBroken):
        list(Client(fake.url).stream_chat(BODY))


def test_nobody_at_the_address() -> None:
    with socket.socket() as held:  # bound, so that nobody else takes it, and never listening
        held.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{held.getsockname()[1]}"
        with pytest.raises(ServerUnreachable, match=url) as caught:
            Client(url).state()
    assert "Errno" not in caught.value.message


@pytest.mark.parametrize("url", ["ftp://x", "http://", "http://localhost:notaport", "http://localhost:99999999"])
def test_an_address_that_is_none(url: str) -> None:
    with pytest.raises(ServerUnreachable, match="is not an address"):
        Client(url)


def test_state_models_and_load_with_a_key(fake: FakeServer) -> None:
    client = Client(fake.url.removeprefix("http://"))
    assert client.models() == ("ember-q8_0", "ember-draft-q8_0")
    client.load("ember-draft-q8_0")
    assert client.state().model == "ember-draft-q8_0"
    assert client.state().is_toy
    fake.api_key = "secret"
    assert Client(fake.url, "secret").state().phase == "ready"
    with pytest.raises(ServerRefused, match="key is wrong"):
        Client(fake.url).state()


def test_somebody_else_listens_there(fake: FakeServer) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        other.settimeout(60)

        def answer() -> None:
            connection, _ = other.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(b"HTTP/1.0 200 OK\r\n\r\nI am a printer")

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(ServerUnreachable, match="not a Slipstream server"):
            Client(f"http://127.0.0.1:{other.getsockname()[1]}").state()
        thread.join()
