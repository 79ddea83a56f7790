"""Several models at once over a real socket: two that write, and one that turns texts into vectors beside them."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.app.server.conftest import MODEL, RunningServer
from tests.support.pair_files import decoder_for_vectors
from tools.model_factory.embedder_factory import bert
from tools.model_factory.gguf_factory import EMBER_DRAFT

SMALL = "ember-draft-q8_0"


@pytest.fixture(scope="module")
def both(home: Path) -> Iterator[RunningServer]:
    """A server with a model of its own and two others in the folder of models."""
    encoder = home / "data" / "models" / "tiny-bert.gguf"
    encoder.parent.mkdir(parents=True, exist_ok=True)
    bert(encoder)
    decoder = decoder_for_vectors(encoder.with_name("decoder-for-vectors.gguf"))
    options = ["--no-draft", "--alias", "gpt-4o,gpt-4.1", "--alias", f"small={SMALL.upper()}", "--models-max", "3"]
    with RunningServer(*options) as running:
        yield running
    encoder.unlink()
    decoder.unlink()


def engines(server: RunningServer) -> dict[str, str]:
    return {one["model"]: one["phase"] for one in server.state["models"]}


def test_each_answers_from_its_own_engine_while_the_other_writes(both: RunningServer) -> None:
    texts: dict[str, list[str]] = {MODEL: [], SMALL: []}
    switched = threading.Event()

    def write(model: str) -> None:
        stream = both.client.chat.completions.create(
            model=model,
            messages=[{"role": "user", "content": "Tell me a story."}],
            max_tokens=200,
            stream=True,
            extra_body={"ignore_eos": True},
        )
        for chunk in stream:
            assert chunk.model == model
            texts[model].append(chunk.choices[0].delta.content or "" if chunk.choices else "")
            if model == MODEL and len(texts[model]) == 3:
                switched.set()

    first = threading.Thread(target=write, args=(MODEL,))
    first.start()
    assert switched.wait(60)
    write(SMALL)
    first.join()
    assert all("".join(pieces) for pieces in texts.values())
    assert engines(both) == {MODEL: "ready", SMALL: "ready"}
    assert both.state["model"] == MODEL, "a request does not choose"


def test_an_embedder_stays_beside_a_chat_model_and_aliases_answer(both: RunningServer) -> None:
    found = both.client.embeddings.create(model="tiny-bert", input="The fox")
    assert (found.model, len(found.data[0].embedding)) == ("tiny-bert", 64)
    assert engines(both)[MODEL] == "ready", "nobody had to leave for it"
    assert both.chat(max_tokens=1).model == MODEL
    assert engines(both)["tiny-bert"] == engines(both)[MODEL] == "ready"
    listed = {one.id: one for one in both.client.models.list()}
    assert listed["tiny-bert"].loaded
    assert listed["tiny-bert"].capabilities == listed["decoder-for-vectors"].capabilities == ["embedding"]
    assert (listed["gpt-4o"].alias_of, listed["small"].alias_of) == (MODEL, SMALL)
    assert (listed[MODEL].aliases, listed["tiny-bert"].aliases) == (["gpt-4o", "gpt-4.1"], [])
    assert both.chat(model="gpt-4.1", max_tokens=1).model == MODEL
    assert both.chat(model="small", max_tokens=1).model == SMALL
    props = both.http.get("/props", params={"model": SMALL}).json()
    assert props["model_path"].endswith(f"{SMALL}.gguf")
    assert both.http.get("/props", params={"model": "nothing"}).status_code == 404


def test_a_model_beside_dies_and_comes_back_alone(both: RunningServer) -> None:
    both.chat(model=SMALL, max_tokens=1)
    first, *others = both.engines
    for child in others:
        child.kill()
    psutil.wait_procs(others)
    assert both.chat(max_tokens=1).model == MODEL
    both.wait_until(lambda state: {one["phase"] for one in state["models"]} == {"ready"})
    assert both.chat(model=SMALL, max_tokens=1).model == SMALL
    assert both.engine.pid == first.pid


def test_a_file_whose_name_is_not_utf8_is_listed_loaded_and_removed(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("SLIPSTREAM_HOME", str(tmp_path))
    file = tmp_path / "data" / "models" / os.fsdecode(b"\xff.gguf")
    file.parent.mkdir(parents=True)
    shutil.copyfile(EMBER_DRAFT, file)
    with RunningServer("--no-draft", "--no-calibration") as server:
        assert {one.id: one.quantization for one in server.client.models.list()}["%FF"] == "Q8_0"
        assert server.http.post("/slipstream/load", json={"model": "%FF"}).status_code == 202
        server.wait_until(lambda state: (state["model"], state["phase"]) == ("%FF", "ready"))
        assert server.chat(model="%FF", max_tokens=1).model == "%FF"
        assert server.http.get("/props").json()["model_path"].endswith("/%FF.gguf")
        assert server.http.get("/v1/models/%25FF").json()["id"] == "%FF"
        assert server.http.post("/api/show", json={"model": "%FF"}).status_code == 200
        for path in ("/api/tags", "/api/ps", "/api/v0/models", "/api/v1/models"):
            assert "%FF" in server.http.get(path).text
        set_to = {"name": "%FF", "changes": [{"name": "ctx", "text": "256"}]}
        assert server.http.post("/slipstream/library/models/settings", json=set_to).status_code == 200
        server.engine.kill()
        assert server.chat(model="%FF", max_tokens=1).model == "%FF"
        removing = {"name": "%FF", "for_good": True}
        assert server.http.post("/slipstream/library/models/remove", json=removing).status_code == 200
        assert not file.exists()
        log = server.http.get("/slipstream/log").text
    assert "%FF" in log
    assert "Traceback" not in log


def test_one_beside_is_unloaded_by_its_name(both: RunningServer) -> None:
    both.chat(model=SMALL, max_tokens=1)
    assert both.http.post("/models/unload", json={"model": "small"}).json() == {"success": True}
    both.wait_until(lambda state: {one["model"]: one["phase"] for one in state["models"]}[SMALL] == "empty")
    status = {one["id"]: one["status"]["value"] for one in both.http.get("/models").json()["data"]}
    assert (status[SMALL], status[MODEL]) == ("unloaded", "loaded")
    assert both.http.get("/props", params={"model": "small"}).json()["is_sleeping"]
    assert both.http.get("/slots", params={"model": "small"}).status_code == 200
    refused = both.http.post("/models/unload", json={"model": "nothing-of-this-name"})
    assert refused.status_code == 404
    assert refused.json()["error"]["type"] == "not_found_error"


def test_a_name_that_is_an_alias_twice_is_refused() -> None:
    from app.cli.commands.llama_server_options import LlamaServerChoice
    from core.values.errors import BadOption

    with pytest.raises(BadOption, match="'a' twice"):
        LlamaServerChoice(alias=["a,b", "a=other"]).aliases()
    with pytest.raises(BadOption, match="empty name"):
        LlamaServerChoice(alias=["a,,b"]).aliases()
