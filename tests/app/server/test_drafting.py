"""A server with a draft model: the same text, drafts that are counted, and refusals that say why."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from app.library.find_model import find_model
from app.pairing.service import choose, pairing
from app.server.replies.pieces import DraftedText
from core.machine.known_machine import runs_key
from models.estimate.speed.runs import read_runs
from tests.app.server.conftest import RunningServer
from tests.support import measured
from tools.model_factory import gguf_factory, head_factory

BODY = {"messages": [{"role": "user", "content": "What is speculative decoding?"}], "max_tokens": 60, "temperature": 0}


def ask(server: RunningServer) -> tuple[str, dict[str, Any]]:
    reply = server.http.post("/v1/chat/completions", json=BODY).json()
    return str(reply["choices"][0]["message"]["content"]), reply["timings"]


def refusal_of_spark(server: RunningServer) -> str:
    answer = server.http.post("/v1/chat/completions", json=BODY | {"speed": "spark"})
    assert answer.status_code == 400
    return str(answer.json()["error"]["message"])


def test_a_draft_model_changes_no_text(paired: RunningServer) -> None:
    plain = paired.http.post("/v1/chat/completions", json=BODY | {"speculation": False}).json()
    assert (plain["timings"]["drafted_tokens"], plain["timings"]["accepted_tokens"]) == (0, 0)
    text, timings = ask(paired)
    snapshot = paired.wait_until(lambda now: now["snapshot"] is not None)["snapshot"]
    assert text == plain["choices"][0]["message"]["content"], "an answer without near-ties"
    assert 0 <= timings["accepted_tokens"] <= timings["drafted_tokens"]
    assert timings["speedup"] is None or timings["speedup"] > 0
    assert (snapshot["n_active"], snapshot["is_in_cache"]) in ((0, True), (1, True))
    assert sum(snapshot["drafted_at"]) <= timings["drafted_tokens"]
    assert snapshot["n_cells"] > 0


def test_a_stream_says_which_characters_were_drafted_to_who_asks(paired: RunningServer) -> None:
    def streamed(**fields: object) -> list[dict[str, Any]]:
        asked = BODY | {"stream": True} | fields
        with paired.http.stream("POST", "/v1/chat/completions", json=asked) as answer:
            lines = [line.removeprefix("data: ") for line in answer.iter_lines() if line.startswith("data: {")]
        return [json.loads(line) for line in lines]

    plain, marked = streamed(), streamed(drafted_spans=True)
    texts = [[chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks] for chunks in (plain, marked)]
    assert "".join(texts[0]) == "".join(texts[1])
    assert not any("drafted" in chunk for chunk in plain)
    drafted = [
        text[begin:end] for chunk, text in zip(marked, texts[1], strict=True) for begin, end in chunk.get("drafted", ())
    ]
    assert all(drafted)
    assert bool(drafted) == bool(marked[-1]["timings"]["accepted_tokens"])


def test_drafted_characters_are_found_in_what_the_parser_gives() -> None:
    text = DraftedText()
    text.feed("<think>hm</think>\n\nThe fox", [(7, 9), (19, 23), (23, 25)])
    assert text.take("hm") == [(0, 2)]
    assert text.take("The fox") == [(0, 6)]
    text.feed(" runs", [])
    assert (text.take("x"), text.take(" runs")) == ([], [])


def test_a_partner_is_found_and_loaded_unless_none_is_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, paired: RunningServer, server: RunningServer
) -> None:
    monkeypatch.setenv("SLIPSTREAM_HOME", str(tmp_path))
    deep = gguf_factory.cached(gguf_factory.Recipe(n_layers=30))
    with RunningServer("--model", str(deep), "--no-calibration") as started:
        found = started.state
        assert found["draft"]["name"] == found["spark"] == "ember-draft-q8_0"
        assert "× expected" in found["draft"]["why"]
    assert paired.state["spark"] == "ember-draft-q8_0"
    assert (server.state["draft"]["name"], server.state["spark"]) == (None, None)


def test_a_chosen_draft_that_llama_cpp_cannot_load_does_not_cost_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLIPSTREAM_HOME", str(tmp_path))
    head = head_factory.eagle_head(tmp_path / "head.gguf", left_out="fc.weight")
    choose(find_model("ember-q8_0"), str(head))
    with RunningServer("--no-calibration") as server:
        found = server.state
        assert found["draft"]["name"] is None
        assert any("could not load" in notice and "head.gguf" in notice for notice in found["notices"])
        assert "models pair" in refusal_of_spark(server)


def test_where_nothing_may_draft_spark_does_not_advise_to_pair_a_model(server: RunningServer) -> None:
    said = refusal_of_spark(server)
    assert "None is loaded, since drafting is switched off." in said
    assert "without --no-draft" in said
    assert "models pair" not in said


def test_after_two_deaths_the_state_and_a_refusal_say_why_nothing_drafts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLIPSTREAM_HOME", str(tmp_path))
    with RunningServer("--no-calibration") as server:
        for n_deaths in (1, 2):
            server.engine.kill()
            server.wait_until(lambda _, n=n_deaths: server.http.get("/health").json()["deaths"] == n)
            server.wait_until(lambda state: state["phase"] == "ready")
        found = server.state
        why = "Since the engine died twice, nothing drafts until the model is loaded again."
        assert (found["draft"]["name"], found["spark"]) == (None, None)
        assert (found["draft"]["why"], found["why_no_spark"]) == (why, why)
        said = refusal_of_spark(server)
        assert why in said
        assert "models pair" not in said
        assert server.http.post("/slipstream/load", json={"model": found["model"]}).status_code == 202
        again = server.wait_until(lambda state: state["phase"] == "ready" and state["spark"])
        assert again["draft"]["name"] == again["spark"]


@pytest.mark.slow
def test_heads_draft_unless_none_is_chosen_and_what_they_reach_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLIPSTREAM_HOME", str(tmp_path))
    path = head_factory.cached_mtp_counter(16)
    # Whatever else runs here, its drafts are worth it: rows are measured as cheap.
    measured.give(tmp_path / "cache", path, None, rows_are_cheap=True)
    counter = find_model(str(path))
    choose(counter, "mtp")
    with RunningServer("--model", str(path), "--speculation", "draft") as server:
        counted, timings = ask(server)
        assert (server.state["draft"]["name"], timings["drafted_tokens"] > 0) == ("mtp", True)
        # What a plain step takes is known after some control steps. On a busy machine a reply may also try one draft,
        # and see it fail.
        while timings["speedup"] is None or not timings["accepted_tokens"]:
            _, timings = ask(server)
    run = next(run for run in read_runs(tmp_path / "cache", runs_key()) if run.n_accepted)
    assert run.draft == "mtp"
    assert run.n_drafted >= run.n_accepted
    heads = next(one for one in pairing(counter).partners if one.name == "mtp")
    assert heads.prediction is not None
    assert heads.prediction.is_measured
    choose(counter, None)
    with RunningServer("--model", str(path)) as server:
        text, timings = ask(server)
        assert (server.state["draft"]["name"], timings["drafted_tokens"]) == (None, 0)
    assert text == counted
