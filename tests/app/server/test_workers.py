"""A server whose model lies on a worker: the same text, and what happens when the worker dies."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator

import pytest

from app.settings.worker_tokens import VARIABLE
from core.llama import rpc
from tests.app.server.conftest import MODEL, RunningServer
from tests.support.lending import TOKEN, TestWorker

pytestmark = pytest.mark.skipif(not rpc.is_available(), reason="this build of llama.cpp lacks RPC over sockets")
START = ("--parallel", "1", "--no-draft", "--no-calibration", "--gpu-layers", "99", "--device")


@pytest.fixture
def worker(home) -> Iterator[TestWorker]:
    made = TestWorker()
    yield made
    made.close()


def test_a_model_on_a_worker_says_the_same_and_a_dead_worker_ends_requests_with_a_sentence(
    server: RunningServer,
    worker: TestWorker,
    start_server: Callable[..., RunningServer],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(VARIABLE, TOKEN)
    remote = start_server(*START, worker.address)
    try:
        assert remote.state["devices"] == [f"{worker.address}/CPU"]
        assert remote.chat().choices[0].message == server.chat().choices[0].message

        asked = {"model": MODEL, "prompt": "Once", "max_tokens": 900, "ignore_eos": True, "stream": True}
        with remote.http.stream("POST", "/v1/completions", json=asked) as reply:
            events = (json.loads(line[6:]) for line in reply.iter_lines() if line.startswith("data: {"))
            assert "choices" in next(events)
            worker.close()
            (error,) = [event["error"] for event in events if "error" in event]
        assert error["code"] == "engine_died"
        assert error["message"].startswith(f"The worker {worker.address} stopped answering")

        refused = remote.http.post("/v1/completions", json={"model": MODEL, "prompt": "Once", "max_tokens": 4})
        assert refused.status_code == 503
        assert "cannot be reached" in refused.json()["error"]["message"]

        again = TestWorker(worker.port)
        try:
            while remote.http.get("/health").json()["retry_in"]:
                time.sleep(0.05)
            assert remote.chat().choices[0].message == server.chat().choices[0].message
            assert remote.http.get("/health").json()["deaths"] == 0
        finally:
            again.close()
    finally:
        remote.close()
