"""Downloads that LM Studio's and llama-server's routes begin, and the events in which llama-server's router tells."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest

from app.server.http.errors import ModelNotFound
from app.server.ollama.bodies import PullBody
from app.server.ollama.models import pull
from models.catalog.catalog import STARTER_FOLDER
from tests.app.server.conftest import MODEL, RunningServer
from tests.support.quantised import split_ember
from tests.support.waiting import until
from tools.stand_ins.hub_server import Fault, HubServer

FOX, SLOW = "acme/fox-GGUF:Q8_0", "acme/slow-GGUF:Q8_0"


class Events:
    """What a client of GET /models/sse hears."""

    def __init__(self, server: RunningServer) -> None:
        self.heard: list[dict] = []
        self._connected = threading.Event()
        threading.Thread(target=self._listen, args=(server,), daemon=True).start()
        assert self._connected.wait(60)

    def _listen(self, server: RunningServer) -> None:
        with httpx.stream("GET", f"{server.url}/models/sse", headers=server.headers, timeout=60) as answer:
            assert answer.headers["content-type"].startswith("text/event-stream")
            for line in answer.iter_lines():
                self._connected.set()
                if line.startswith("data: "):
                    self.heard.append(json.loads(line[6:]))

    def until(self, is_so: Callable[[dict], bool]) -> dict:
        return until(lambda: next(filter(is_so, tuple(self.heard)), None))


@pytest.fixture(scope="module")
def downloading(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server in folders of its own, with a Hub that has two models."""
    folder: Path = tmp_path_factory.mktemp("downloading")
    hub = HubServer()
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("HF_HUB_OFFLINE", raising=False)
        patch.setenv("HF_ENDPOINT", hub.address)
        patch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring")
        for name in ("SLIPSTREAM_HOME", "XDG_DATA_HOME", "HF_HOME"):
            patch.setenv(name, str(folder / name))
        ember = (STARTER_FOLDER / "ember-draft-q8_0.gguf").read_bytes()
        hub.add("acme/fox-GGUF", {"fox-Q8_0.gguf": ember})
        hub.add("acme/words", {"README.md": b"None here."})
        hub.add("acme/parts-GGUF", {path.name: path.read_bytes() for path in split_ember(folder)})
        hub.add("acme/slow-GGUF", {"slow-Q8_0.gguf": ember})
        hub.add("acme/medium-GGUF", {"medium-Q8_0.gguf": ember})
        hub.fault("slow-Q8_0.gguf", Fault(bytes_per_second=1e5))
        hub.fault("medium-Q8_0.gguf", Fault(bytes_per_second=1e6))
        with RunningServer("--no-draft", "--no-calibration") as running:
            yield running
    hub.stop()


def job(server: RunningServer, **body: str) -> dict:
    answer = server.http.post("/api/v1/models/download", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def status(server: RunningServer, job_id: str) -> dict:
    answer = server.http.get(f"/api/v1/models/download/status/{job_id}")
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_download_is_followed_until_the_model_comes_and_goes(downloading):
    server = downloading
    events = Events(server)
    begun = job(server, model="https://huggingface.co/acme/fox-GGUF", quantization="Q8_0")
    assert begun["job_id"].startswith("job_")
    until(lambda: status(server, begun["job_id"])["status"] != "downloading")
    told = status(server, begun["job_id"])
    assert told["status"] == "completed"
    assert told["downloaded_bytes"] == told["total_size_bytes"] > 0
    assert told["completed_at"].endswith("Z")
    events.until(lambda one: one == {"model": FOX, "event": "download_finished", "data": {}})
    events.until(lambda one: one == {"model": "*", "event": "models_reload"})
    assert job(server, model="acme/fox-GGUF", quantization="Q8_0") == {"status": "already_downloaded"}

    assert server.http.post("/models/load", json={"model": "fox-Q8_0"}).json() == {"success": True}
    events.until(lambda one: one["model"] == "fox-Q8_0" and one.get("data", {}).get("status") == "loaded")
    begins = next(one for one in events.heard if one["model"] == "fox-Q8_0")
    assert (begins["event"], begins["data"]["status"]) == ("model_status", "loading")
    assert begins["data"]["progress"]["current"] in begins["data"]["progress"]["stages"]
    assert server.http.post("/models/unload", json={"model": "fox-Q8_0"}).json() == {"success": True}
    gone = {"model": "fox-Q8_0", "event": "status_change", "data": {"status": "unloaded", "exit_code": 0}}
    events.until(lambda one: one == gone)

    answer = server.http.delete("/models", params={"model": "fox-Q8_0"})
    assert answer.json() == {"success": True}, answer.text
    events.until(lambda one: one == {"model": "fox-Q8_0", "event": "model_remove"})
    assert "fox-Q8_0" not in [one["id"] for one in server.http.get("/models").json()["data"]]


def test_a_job_that_is_off_the_list_is_still_told_of(downloading):
    wanted = {"fox-Q8_0": FOX, "ember-f16": "acme/parts-GGUF:F16"}
    begun, slow = [job(downloading, model=name) for name in wanted.values()], job(downloading, model=SLOW)
    until(lambda: all(status(downloading, one["job_id"])["status"] == "completed" for one in begun))
    told = [status(downloading, one["job_id"]) for one in begun]
    assert downloading.http.post("/models/unload", json={"model": SLOW}).json() == {"success": True}
    until(lambda: status(downloading, slow["job_id"])["status"] == "failed")
    assert downloading.http.post("/slipstream/library/downloads/clear", json={}).status_code == 200
    until(lambda: not downloading.http.get("/slipstream/library/downloads").json())
    assert [status(downloading, one["job_id"]) for one in begun] == told
    assert status(downloading, slow["job_id"])["status"] == "failed"
    for name in wanted:
        assert downloading.http.delete("/models", params={"model": name}).json() == {"success": True}
    assert {status(downloading, one["job_id"])["status"] for one in begun} == {"failed"}, "they are gone"


def test_a_pull_that_is_done_is_a_success_though_somebody_clears_the_list(downloading):
    is_over = threading.Event()

    def clear() -> None:
        while not is_over.wait(0.01):
            httpx.post(f"{downloading.url}/slipstream/library/downloads/clear", headers=downloading.headers, json={})

    clearing = threading.Thread(target=clear)
    clearing.start()
    pulled = downloading.http.post("/api/pull", json={"model": f"hf.co/{FOX}", "stream": False})
    is_over.set()
    clearing.join()
    assert (pulled.status_code, pulled.json()) == (200, {"status": "success"})
    assert downloading.http.delete("/models", params={"model": "fox-Q8_0"}).json() == {"success": True}


def test_a_pulled_model_answers_at_once_though_it_was_asked_for_before(downloading):
    server, name = downloading, f"hf.co/{FOX}"
    asked = {"model": name, "messages": [{"role": "user", "content": "Hi"}], "options": {"num_predict": 1}}
    asked["stream"] = False
    assert server.http.post("/slipstream/load", json={"model": MODEL}).status_code == 202
    assert server.http.post("/api/chat", json=asked).json()["model"] == f"{MODEL}:latest", "any name is answered"
    assert server.http.post("/api/pull", json={"model": name, "stream": False}).json() == {"status": "success"}
    assert server.http.post("/api/chat", json=asked).json()["model"] == "fox-Q8_0:latest"
    assert server.http.delete("/models", params={"model": "fox-Q8_0"}).json() == {"success": True}


@pytest.mark.parametrize("tag", ["", ":Q8_0"])
def test_a_repository_without_models_is_said_to_have_none(downloading, tag):
    refused = downloading.http.post("/api/pull", json={"model": f"hf.co/acme/words{tag}"})
    assert not refused.json()["error"].startswith("model"), "Ollama's errors are sentences"
    assert (refused.status_code, "acme/words has no GGUF files" in refused.json()["error"]) == (404, True)


def test_a_pull_to_which_nothing_comes_says_so():
    def job(phase: str, n_done: int, silence: float) -> dict:
        progress = {"phase": phase, "n_done": n_done, "n_total": 9, "bytes_per_second": 0.0, "eta": None}
        listed = {"number": 1, "repo_id": "acme/fox", "wanted": "Q8_0", "trouble": None, "done": None}
        return listed | {"progress": progress | {"silence": silence}}

    jobs = iter([job("downloading", 3, 0.1), job("downloading", 3, 29.0), job("done", 9, 0.0)])

    async def ask(request: str, fields: dict):
        answers = {"Recommend": {"name": "Q8_0"}, "StartDownload": None}
        yield answers[request] if request in answers else [next(jobs)]

    def find(name: str):
        raise ModelNotFound(name, ())

    async def find_remote(name: str) -> None:
        return None

    pool = SimpleNamespace(find=find, look_again=lambda: None)
    state = SimpleNamespace(library=SimpleNamespace(ask=ask), pool=pool, remotes=SimpleNamespace(find=find_remote))
    told: list[dict] = []

    async def send(message: dict) -> None:
        told.extend(map(json.loads, message.get("body", b"").splitlines()))

    async def play() -> None:
        answer = await pull(PullBody(model="hf.co/acme/fox"), SimpleNamespace(app=SimpleNamespace(state=state)))
        await answer({"type": "http", "path": "/api/pull"}, asyncio.Event().wait, send)

    asyncio.run(play())
    assert told[1] == {"status": "still trying: nothing has arrived for 20 s"}
    assert told[-1] == {"status": "success"}


def test_a_pull_is_followed_though_the_library_dies(downloading):
    server, is_killed, last = downloading, False, {}
    with server.http.stream("POST", "/api/pull", json={"model": "hf.co/acme/medium-GGUF:Q8_0"}) as answer:
        for line in answer.iter_lines():
            last = json.loads(line)
            if last.get("completed") and not is_killed:
                library = server.library
                library.suspend()
                with pytest.raises(httpx.ReadTimeout):  # by then it was asked for the pull, too
                    server.http.get("/slipstream/library/downloads", timeout=1)
                library.kill()
                is_killed = True
    assert is_killed
    assert last == {"status": "success"}
    assert server.http.delete("/models", params={"model": "medium-Q8_0"}).json() == {"success": True}


def test_a_download_of_the_router_can_be_cancelled(downloading):
    server, slow = downloading, SLOW
    events = Events(server)
    assert server.http.post("/models", json={"model": slow}).json() == {"success": True}
    (done,) = events.until(lambda one: one["event"] == "download_progress")["data"]["progress"].values()
    assert done["done"] <= done["total"]
    assert job(server, model=slow)["status"] == "downloading", "the same download"
    assert server.http.post("/models/unload", json={"model": slow}).json() == {"success": True}
    events.until(lambda one: one == {"model": slow, "event": "download_failed", "data": {}})


def test_a_stream_without_an_end_is_asked_for_its_head_alone(downloading):
    for path in ("/models/sse", "/slipstream/events"):
        assert downloading.http.head(path).status_code == 200
        assert downloading.http.get("/health").status_code == 200, "on the same connection"


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "param"),
    [
        ("POST", "/models", {"model": MODEL}, 400, "model"),
        ("POST", "/models", {"model": ""}, 400, "model"),
        ("POST", "/models", {"model": "no-such-model"}, 404, "model"),
        ("POST", "/models", {"model": "acme/none"}, 404, "model"),
        ("POST", "/models", {"model": "acme/none:Q8_0"}, 404, "model"),
        ("POST", "/models", {"model": "acme/fox-GGUF:Q2_K"}, 404, "model"),
        ("POST", "/models/unload", {"model": "acme/none:Q8_0"}, 404, "model"),
        ("DELETE", "/models", None, 400, "model"),
        ("DELETE", "/models?model=nobody", None, 404, "model"),
        ("DELETE", f"/models?model={MODEL}", None, 400, None),
        ("POST", "/api/v1/models/download", {}, 400, "model"),
        ("POST", "/api/v1/models/download", {"model": "acme/fox-GGUF", "quantization": 4}, 400, "quantization"),
        ("POST", "/api/v1/models/download", {"model": "acme/none", "quantization": "Q8_0"}, 404, "model"),
        ("POST", "/api/v1/models/download", {"model": "acme/fox-GGUF", "quantization": "Q2_K"}, 404, "model"),
        ("GET", "/api/v1/models/download/status/job_0", None, 404, "job_id"),
    ],
)
def test_what_cannot_be_downloaded_is_refused(downloading, method, path, body, status, param):
    answer = downloading.http.request(method, path, json=body)
    assert answer.status_code == status, answer.text
    error = answer.json()["error"]
    assert error["param"] == param or param is None
    assert error["message"]
    if path.endswith("job_0"):
        assert error["type"] == "job_not_found"
