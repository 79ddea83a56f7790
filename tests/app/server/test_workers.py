"""A server whose model lies on a worker: the same text, and what happens when the worker dies."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from app.settings.worker_tokens import VARIABLE
from core.llama.build import features
from core.llama.devices import can_use_rpc
from core.remote_devices import lending
from tests.app.server.conftest import MODEL, RunningServer
from tests.support.lending import TOKEN, TestWorker
from tests.support.waiting import until

pytestmark = pytest.mark.skipif(not can_use_rpc(), reason="this build of llama.cpp lacks RPC over sockets")
LONG = {"model": MODEL, "prompt": "Once", "max_tokens": 900, "ignore_eos": True, "stream": True, "temperature": 0}
SHORT = LONG | {"max_tokens": 8, "stream": False}
START = ("--parallel", "1", "--no-draft", "--no-calibration", "--gpu-layers", "99", "--device")


# A worker computes without AMX, which rounds differently: texts part at a near-tie.
LENGTH_ALIKE = len("Once upon a time") if "AMX_INT8" in features() else None


def beginning_of_a_chat(server: RunningServer) -> str:
    """As much of a reply as is the same with and without a worker."""
    text = server.chat().choices[0].message.content
    assert text
    return text[:LENGTH_ALIKE]


def said_healthy(server: RunningServer, status: str) -> dict[str, Any]:
    health = until(lambda: found if (found := server.http.get("/health")).status_code == 200 else None)
    assert health.json()["status"] == status
    return health.json()


@pytest.fixture
def worker(home) -> Iterator[TestWorker]:
    made = TestWorker()
    yield made
    made.close()


@pytest.fixture
def other(home) -> Iterator[TestWorker]:
    """A second worker, which stays."""
    made = TestWorker()
    yield made
    made.close()


def test_a_model_on_a_worker_says_the_same_and_a_dead_worker_ends_requests_with_a_sentence(
    server: RunningServer, worker: TestWorker, other: TestWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, TOKEN)
    with RunningServer(*START, worker.address, "--device", other.address) as remote:
        assert remote.state["devices"] == [f"{worker.address}/CPU", f"{other.address}/CPU"]
        assert beginning_of_a_chat(remote) == beginning_of_a_chat(server)

        asked = {"model": MODEL, "prompt": "Once", "max_tokens": 900, "ignore_eos": True, "stream": True}
        with remote.http.stream("POST", "/v1/completions", json=asked) as reply:
            events = (json.loads(line[6:]) for line in reply.iter_lines() if line.startswith("data: {"))
            assert "choices" in next(events)
            worker.close()
            (error,) = [event["error"] for event in events if "error" in event]
        assert error["code"] == "engine_died"
        # Where llama.cpp ends the engine before our watch has looked, nobody knows which of them it was.
        told = (f"The worker {worker.address} ", f"One of the workers {worker.address}, {other.address} ")
        assert error["message"].startswith(told)
        assert " stopped answering" in error["message"]
        # Who asks for its health first must not stay away: only a request connects again.
        said_healthy(remote, "unloaded")

        refused = remote.http.post("/v1/completions", json={"model": MODEL, "prompt": "Once", "max_tokens": 4})
        assert refused.status_code == 503
        assert "cannot be reached" in refused.json()["error"]["message"]
        said_healthy(remote, "unloaded")

        again = TestWorker(worker.port)
        try:
            assert beginning_of_a_chat(remote) == beginning_of_a_chat(server)
            assert said_healthy(remote, "ok")["deaths"] == 0
        finally:
            again.close()


def test_requests_that_have_not_begun_when_a_worker_is_lost_wait_for_the_next_engine(
    server: RunningServer, worker: TestWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, TOKEN)
    monkeypatch.setattr(lending, "_LOOK_SECONDS", 0.1)
    with RunningServer(*START, worker.address) as remote, ThreadPoolExecutor(1) as pool:
        for is_back in (True, False):
            with remote.http.stream("POST", "/v1/completions", json=LONG) as reply:
                events = (json.loads(line[6:]) for line in reply.iter_lines() if line.startswith("data: {"))
                assert "choices" in next(events)
                waiting = pool.submit(remote.http.post, "/v1/completions", json=SHORT)
                remote.wait_until(lambda state: state["queued"] == 1)
                if is_back:
                    worker.lender.suspend()  # as one that hangs
                else:
                    worker.close()
                (error,) = [event["error"] for event in events if "error" in event]
            assert error["message"].startswith(f"The worker {worker.address} stopped answering")
            answer = waiting.result(60)
            if is_back:
                assert answer.json()["choices"] == server.http.post("/v1/completions", json=SHORT).json()["choices"]
                assert worker.said.count("The process that lends to 127.0.0.1 hung and was ended.") == 1
                assert not any("cut off" in one for one in worker.said), "it says so once"
            else:
                assert (answer.status_code, "cannot be reached" in answer.text) == (503, True)


@pytest.fixture
def keyring_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "tests.support.file_keyring.FileKeyring")
    monkeypatch.setenv("KEYRING_FILE", str(tmp_path / "keys.json"))
    monkeypatch.setenv("SLIPSTREAM_HOME", str(tmp_path / "home"))
    return tmp_path


def test_a_worker_that_was_added_lends_to_the_models_whose_settings_name_it(
    server: RunningServer, worker: TestWorker, keyring_in_a_file: Path
) -> None:
    place = worker.address.removeprefix("rpc://")
    with RunningServer("--parallel", "1", "--no-draft", "--no-calibration", "--gpu-layers", "99") as ours:
        wrong = ours.http.post("/slipstream/workers", json={"address": place, "token": "a token that is wrong"})
        assert (wrong.status_code, "does not know this token" in wrong.text) == (400, True)
        nobody = ours.http.post("/slipstream/workers", json={"address": "rpc://127.0.0.1:9", "token": TOKEN})
        assert (nobody.status_code, "cannot be reached" in nobody.text) == (400, True)
        odd = ours.http.post("/slipstream/workers", json={"address": "http://there", "token": TOKEN})
        assert (odd.status_code, "rpc://192.168.1.20:8643" in odd.text) == (400, True)
        assert ours.http.get("/slipstream/workers").json()["data"] == []

        added = ours.http.post("/slipstream/workers", json={"address": place, "token": TOKEN})
        assert added.status_code == 201, added.text
        assert (added.json()["address"], added.json()["problem"]) == (worker.address, None)
        assert [one["name"] for one in added.json()["devices"]] == ["CPU"]
        (listed,) = ours.http.get("/slipstream/workers").json()["data"]
        assert (listed["address"], listed["problem"]) == (worker.address, None)
        settings = keyring_in_a_file / "home" / "config"
        assert TOKEN not in "".join(file.read_text() for file in settings.rglob("*.json"))

        found = ours.http.get("/slipstream/library/models/settings", params={"name": MODEL})
        assert found.json()["workers"] == [worker.address]
        change = {"name": MODEL, "changes": [{"name": "worker", "text": worker.address}]}
        assert ours.http.post("/slipstream/library/models/settings", json=change).status_code == 200
        ours.http.post("/slipstream/load", json={"model": MODEL})
        ours.wait_until(lambda state: state["phase"] == "ready" and state["devices"] == [f"{worker.address}/CPU"])
        assert beginning_of_a_chat(ours) == beginning_of_a_chat(server)

        unknown = ours.http.delete("/slipstream/workers/127.0.0.1:1")
        assert (unknown.status_code, "no worker rpc://127.0.0.1:1" in unknown.text) == (400, True)
        removed = ours.http.delete(f"/slipstream/workers/{place}")
        assert removed.status_code == 200
        assert ours.http.get("/slipstream/workers").json()["data"] == []
        assert TOKEN not in (keyring_in_a_file / "keys.json").read_text()
