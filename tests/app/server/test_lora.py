"""`serve --lora`, /lora-adapters and the field ``lora``, over a real socket."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from core.values.errors import BadOption
from tests.app.server.conftest import MODEL, RunningServer
from tools.model_factory.embedder_factory import bert
from tools.model_factory.lora_factory import lora

STORY = {"prompt": "Once upon a time", "n_predict": 24, "temperature": 0, "ignore_eos": True}


@pytest.fixture(scope="module")
def adapted(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("lora")
    first, second = (lora(folder / f"{seed}.gguf", seed) for seed in (1, 2))
    with RunningServer("--lora", f"{first}:0.0", "--lora", str(second), "--no-draft") as running:
        yield running


def story(server: RunningServer, **fields) -> str:
    answer = server.http.post("/completion", json={**STORY, **fields})
    assert answer.status_code == 200, answer.text
    return answer.json()["content"]


def scales(server: RunningServer) -> list[float]:
    return [one["scale"] for one in server.http.get("/lora-adapters").json()]


def test_scales_of_a_request_and_of_all_requests_do_the_same(adapted, server):
    assert scales(adapted) == [0.0, 1.0]
    plain, second = story(server), story(adapted)
    assert story(adapted, lora=[]) == plain
    first = story(adapted, lora=[{"id": 0, "scale": 1.0}])
    assert len({plain, first, second}) == 3
    assert adapted.http.post("/lora-adapters", json=[{"id": 0, "scale": 1.0}]).json() == {"success": True}
    assert scales(adapted) == [1.0, 0.0]
    assert story(adapted) == first
    assert story(adapted, lora=[{"id": 1, "scale": 1.0}]) == second
    chat = adapted.client.chat.completions.create(
        model=MODEL, messages=[{"role": "user", "content": "Hello"}], max_tokens=4, extra_body={"lora": []}
    )
    assert chat.usage.completion_tokens > 0


@pytest.mark.parametrize(
    ("route", "body"),
    [
        ("/completion", {**STORY, "lora": [{"id": 2, "scale": 1.0}]}),
        ("/completion", {**STORY, "lora": [{"id": -1, "scale": 1.0}]}),
        ("/completion", {**STORY, "lora": [{"id": 0, "scale": 1e38}]}),
        ("/completion", {**STORY, "lora": 1}),
        ("/lora-adapters", [{"id": 9, "scale": 1.0}]),
        ("/lora-adapters", [{"id": 0, "scale": -1e300}]),
        ("/lora-adapters", [{"id": 0}]),
        ("/lora-adapters", {"id": 0}),
    ],
)
def test_an_adapter_that_is_not_there_is_refused(adapted, route, body):
    answer = adapted.http.post(route, json=body)
    assert answer.status_code == 400, answer.text


def test_a_server_without_adapters_has_none(server):
    assert server.http.get("/lora-adapters").json() == []
    answer = server.http.post("/completion", json={**STORY, "lora": [{"id": 0, "scale": 1.0}]})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "lora")
    assert story(server, lora=[])


@pytest.mark.parametrize("given", ["missing.gguf", "missing.gguf:0.5", "x:nan", "x:1e300"])
def test_a_file_that_is_not_there_is_named(given):
    from app.cli.commands.llama_server_options import LlamaServerChoice

    with pytest.raises(BadOption, match=r"missing\.gguf|number"):
        LlamaServerChoice(lora=[given]).adapters()


def test_a_model_for_vectors_keeps_the_scales_that_it_was_started_with(home: Path, tmp_path: Path) -> None:
    model = bert(tmp_path / "tiny-bert.gguf")
    adapter = lora(tmp_path / "adapter.gguf", source=model)
    with RunningServer("--model", str(model), "--lora", f"{adapter}:0.25") as server:
        refused = server.http.post("/lora-adapters", json=[{"id": 0, "scale": 0.5}])
        assert (refused.status_code, "--lora FILE:SCALE" in refused.text) == (400, True)
        assert scales(server) == [0.25]
