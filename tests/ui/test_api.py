"""The client over real HTTP: every reply ends exactly once."""

from __future__ import annotations

import pytest

from models.formatting.sentence import Sentence, as_object
from tools.stand_ins.fake_openai import FakeServer
from ui.client.api import Api
from ui.client.problems import sentence_of
from ui.client.reply_stream import ReplyEnd, ReplyStream

BODY = {"messages": [{"role": "user", "content": "hi \ud800"}]}


class Ear:
    """Everything a stream says."""

    def __init__(self, stream: ReplyStream) -> None:
        self.texts: list[str] = []
        self.n_tokens = 0
        self.ends: list[object] = []
        self.thoughts: list[str] = []
        stream.text.connect(self._hear)
        stream.thought.connect(lambda text, n_tokens: self.thoughts.append(text))
        stream.finished.connect(self.ends.append)
        stream.failed.connect(lambda problem, code: self.ends.append(problem))
        stream.cancelled.connect(lambda: self.ends.append("cancelled"))

    def _hear(self, text: str, n_tokens: int) -> None:
        self.texts.append(text)
        self.n_tokens += n_tokens


def ask(qtbot, api: Api) -> Ear:
    stream = api.chat(BODY)
    ear = Ear(stream)
    qtbot.waitUntil(lambda: ear.ends != [])
    qtbot.wait(30)
    assert len(ear.ends) == 1
    return ear


def test_a_reply_streams_and_ends_with_its_timings(qtbot, api: Api, server: FakeServer) -> None:
    server.pieces = ["Brü", "cke ", "🦊", "\n"]
    ear = ask(qtbot, api)
    assert "".join(ear.texts) == "Brücke 🦊\n"
    end = ear.ends[0]
    assert isinstance(end, ReplyEnd)
    assert end.finish_reason == "stop"
    assert end.timings is not None
    assert end.timings.decode_per_second == 412.0
    assert server.requests[0]["stream"] is True
    assert ear.n_tokens == 4, "of a server that does not count, a chunk is a token"


def test_a_reply_in_parts_is_told_as_text_and_thoughts(qtbot, api: Api, server: FakeServer) -> None:
    """So Mistral's models answer that think."""
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm, "}, {"type": "text", "text": "foxes."}]}
    server.pieces = [[thought], [{"type": "text", "text": "Red "}, {"type": "reference"}], "fox."]
    ear = ask(qtbot, api)
    assert ("".join(ear.texts), "".join(ear.thoughts)) == ("Red fox.", "Hm, foxes.")
    assert isinstance(ear.ends[0], ReplyEnd)


def test_of_drafts_that_come_many_at_a_time_the_tokens_are_counted(qtbot, api: Api, server: FakeServer) -> None:
    server.tokens_each = 11
    ear = ask(qtbot, api)
    assert ("".join(ear.texts), ear.n_tokens) == ("Hello there.", 33)
    end = ear.ends[0]
    assert isinstance(end, ReplyEnd)
    assert end.timings is not None
    assert end.timings.decode_tokens == 128


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (500, b"<html>oops", "HTTP status 500"),
        (503, {"detail": 1}, "HTTP status 503"),
        (200, {"a": 1}, "HTTP status 200"),
        (400, {"error": {"message": "The prompt has 9 tokens too many.", "type": "x"}}, "The prompt has 9 tokens too"),
    ],
)
def test_an_error_is_told_in_its_own_words_or_by_its_status(
    qtbot, api: Api, server: FakeServer, status: int, body: object, words: str
) -> None:
    server.error = (status, body)
    assert words in str(ask(qtbot, api).ends[0])


def test_a_stream_that_fails_or_breaks_or_reaches_nobody_is_an_error(qtbot, api: Api, server: FakeServer) -> None:
    server.error_in_stream = "The engine died."
    ear = ask(qtbot, api)
    assert ("".join(ear.texts), ear.ends) == ("Hello there.", ["The engine died."])
    server.error_in_stream, server.cut_after = None, 1
    ear = ask(qtbot, api)
    assert "".join(ear.texts) == "Hello"
    assert "broke in the middle" in str(ear.ends[0])
    api.connect_to("http://127.0.0.1:1", None)
    assert "not answering" in str(ask(qtbot, api).ends[0])


@pytest.mark.parametrize("is_told_first", [True, False])
def test_a_reply_that_reached_nobody_waits_for_the_next_server(
    qtbot, api: Api, server: FakeServer, is_told_first: bool
) -> None:
    api.connect_to("http://127.0.0.1:9", None)
    ear = Ear(stream := api.chat(BODY))
    if not is_told_first:
        with qtbot.waitSignal(stream.unreached):
            pass
    api.expect()
    qtbot.wait(100)
    assert ear.ends == []
    api.connect_to(server.url, None)
    qtbot.waitUntil(lambda: ear.ends != [])
    assert (isinstance(ear.ends[0], ReplyEnd), "".join(ear.texts)) == (True, "Hello there.")
    assert len(server.requests) == 1


def test_a_reply_waits_for_a_server_that_is_on_its_way(qtbot, api: Api, server: FakeServer) -> None:
    api.expect()
    ear, left = Ear(api.chat(BODY)), api.chat(BODY)
    left.cancel()
    qtbot.wait(30)
    assert ear.ends == []
    api.connect_to(server.url, None)
    qtbot.waitUntil(lambda: ear.ends != [])
    assert isinstance(ear.ends[0], ReplyEnd)
    assert len(server.requests) == 1


def test_without_hope_for_a_server_replies_fail_with_the_reason(qtbot, api: Api) -> None:
    api.expect()
    waiting = Ear(api.chat(BODY))
    api.give_up("It cannot start.")
    assert waiting.ends == ["It cannot start."]
    assert ask(qtbot, api).ends == ["It cannot start."]
    said: list[str] = []
    api.state(lambda state: None, said.append)
    qtbot.waitUntil(lambda: said != [])


def test_cancel_closes_the_connection_and_says_so_once(qtbot, api: Api, server: FakeServer) -> None:
    server.pieces, server.delay = ["word "] * 500, 0.01
    stream = api.chat(BODY)
    ear = Ear(stream)
    qtbot.waitUntil(lambda: len(ear.texts) > 3)
    stream.cancel()
    stream.cancel()
    assert ear.ends == ["cancelled"]
    qtbot.waitUntil(server.gone.is_set)
    seen = len(ear.texts)
    qtbot.wait(50)
    assert (len(ear.texts), len(ear.ends)) == (seen, 1)


def test_the_key_is_sent_and_a_wrong_one_is_told(qtbot, api: Api, server: FakeServer) -> None:
    server.api_key = "right"
    assert ask(qtbot, api).ends == ["The API key is wrong."]
    api.connect_to(server.url, "right")
    assert isinstance(ask(qtbot, api).ends[0], ReplyEnd)


def test_models_state_and_load(qtbot, api: Api, server: FakeServer) -> None:
    said: list[object] = []
    api.models(said.append, said.append)
    qtbot.waitUntil(lambda: len(said) == 1)
    assert [model["id"] for model in said[0]] == ["ember-q8_0", "ember-draft-q8_0"]
    api.state(said.append, said.append)
    qtbot.waitUntil(lambda: len(said) == 2)
    assert said[1].is_toy
    api.load("ember-draft-q8_0", lambda: said.append("loading"), said.append)
    qtbot.waitUntil(lambda: len(said) == 3)
    assert (said[2], server.loads) == ("loading", ["ember-draft-q8_0"])


def test_closing_ends_what_is_on_its_way(qtbot, api: Api, server: FakeServer) -> None:
    server.delay = 0.2
    ear, said = Ear(api.chat(BODY)), []
    api.state(said.append, said.append)
    api.close()
    qtbot.wait(50)
    assert ear.ends == ["cancelled"]
    assert said == []
    assert ask(qtbot, api).ends == ["The window is closing."]


def test_only_errors_have_a_sentence_in_the_windows_words_where_the_code_tells_enough() -> None:
    assert sentence_of({"error": {"message": "No."}}) == "No."
    assert sentence_of({"error": "Plain."}) == "Plain."
    assert [sentence_of(body) for body in ({}, [], None, {"error": {}}, {"error": {"message": 3}})] == [None] * 5
    too_long = {"message": "…", "code": "context_length_exceeded", "n_prompt_tokens": 5_000, "n_ctx": 4_096}
    words = "The messages have at least 5,000 tokens, and the context of the model has room for 4,096."
    assert sentence_of({"error": too_long}) == words
    assert sentence_of({"error": {"message": "…", "code": "queue_full"}}) == (
        "Too many requests wait already. Try again in a moment."
    )
    assert sentence_of({"error": {"message": "Said.", "code": "engine_unavailable"}}) == "Said."
    again = Sentence(
        "{problem} Try again in {seconds} s.", problem=Sentence("There is no file {path}.", path="a"), seconds=5
    )
    assert sentence_of({"error": {"message": again, "said": as_object(again)}}) == "There is no file a."
