"""A model on a device that computes while llama.cpp goes on, as a GPU does: here one that a worker lends."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from core.cost.threads import ThreadControl
from core.llama.context import Batch, Context, DecodeStatus
from core.llama.devices import can_use_rpc
from core.loading.load_engine import load_engine
from core.values.engine_options import EngineOptions
from tests.support.engines import complete
from tests.support.lending import TOKEN, TestWorker
from tools.model_factory import head_factory
from tools.model_factory.gguf_factory import EMBER

# In a process of its own: ggml never forgets a server.
LOADING = """
import json, sys, time
from core.cost.cost_model import CostModel
from core.loading.load_engine import load_engine
from core.values.engine_options import EngineOptions
from tests.support.engines import complete
model, worker, token = sys.argv[1:]
learnt = []
observe = CostModel.observe
def noted(cost, rows, kv, seconds):
    learnt.append((seconds, seconds / cost.time(rows, kv)))
    observe(cost, rows, kv, seconds)
CostModel.observe = noted
options = EngineOptions(
    model, n_ctx=512, n_ubatch=64, calibrates=False, devices=(worker,), worker_tokens=((worker, token),)
)
engine, loaded = load_engine(options, cache_folder=None)
found = {"n_gpu_layers": loaded.n_gpu_layers, "assumed": engine.cost.time(8) / engine.cost.time(1)}
learnt.clear()
began = time.perf_counter()
complete(engine, "Once upon a time there was a fox. " * 20, max_tokens=1)
print(json.dumps(found | {"learnt": learnt, "seconds": time.perf_counter() - began}))
"""


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    if not can_use_rpc():
        pytest.skip("this build of llama.cpp lacks RPC over sockets")
    worker = TestWorker()
    try:
        command = [sys.executable, "-c", LOADING, str(EMBER), worker.address, TOKEN]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    finally:
        worker.close()
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def test_rows_are_assumed_to_be_nearly_free(found: dict[str, Any]) -> None:
    assert found["n_gpu_layers"] == 7
    assert 1.0 <= found["assumed"] < 1.1


def test_a_part_of_a_prompt_counts_for_the_time_that_it_takes_and_not_until_it_is_sent(found: dict[str, Any]) -> None:
    seconds, ratios = zip(*found["learnt"], strict=True)
    assert len(ratios) == 3
    assert max(ratios) < 3 * min(ratios)
    assert 0.5 * found["seconds"] < sum(seconds) <= found["seconds"]


def test_a_step_whose_states_heads_read_counts_until_they_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    now, busy = 0.0, set[Context]()
    decode, synchronize = Context.decode, Context.synchronize

    def started(self: Context, batch: Batch, **how: Any) -> DecodeStatus:
        busy.add(self)
        return decode(self, batch, **how)

    def waited(self: Context) -> None:
        nonlocal now
        now += self in busy
        busy.discard(self)
        synchronize(self)

    monkeypatch.setattr(Context, "decode", started)
    monkeypatch.setattr(Context, "synchronize", waited)
    learnt: list[float] = []
    monkeypatch.setattr(ThreadControl, "observe", lambda self, rows, kv, seconds: learnt.append(seconds))
    options = EngineOptions(str(head_factory.cached_mtp_counter(16)), n_ctx=512, n_ubatch=64, calibrates=False)
    engine, _ = load_engine(options, cache_folder=None, clock=lambda: now)
    complete(engine, "Once upon a time there was a fox. " * 20, max_tokens=1)
    engine.close()
    assert learnt == [1.0] * 3
