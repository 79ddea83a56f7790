"""The checks of a build of llama.cpp, and what of its log is an error."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from core.llama import build, devices
from core.llama.model import Model
from core.values.engine_options import Device
from core.values.errors import llama_error_in
from tests.support.prompts import EMBER


@pytest.mark.parametrize(("free", "decodes"), [((4 << 30,), [0, -1]), ((1 << 20,), [0]), ((4 << 30, 1 << 20), [0])])
def test_a_decode_is_tried_on_the_processor_and_on_gpus_with_room(
    monkeypatch: pytest.MonkeyPatch, free: tuple[int, ...], decodes: list[int]
) -> None:
    tried: list[int] = []
    load = Model.__init__

    def noted(self: Model, path: str, options: Any = None, *, n_gpu_layers: int = 0, **others: Any) -> None:
        tried.append(n_gpu_layers)
        load(self, path, options, n_gpu_layers=n_gpu_layers, **others)

    monkeypatch.setattr(Model, "__init__", noted)
    gpus = [Device(f"CUDA{index}", "a GPU", "gpu", free=n_bytes) for index, n_bytes in enumerate(free)]
    monkeypatch.setattr(devices, "list_devices", lambda: gpus)
    build.check_decode(str(EMBER))
    assert tried == decodes


STEP_WITHOUT_ROWS = """
import sys
from core.llama.context import Batch, Context, ContextOptions
from core.llama.library import log_errors
from core.llama.model import Model
log_errors()
context = Context(Model(sys.argv[1]), ContextOptions(
    n_cells=256, n_sequences=1, n_outputs=1, n_batch=32, n_ubatch=32, n_threads=1
))
print(context.decode(Batch(32)).name)
"""


def test_an_error_is_the_only_thing_that_a_step_logs() -> None:
    command = [sys.executable, "-c", STEP_WITHOUT_ROWS, str(EMBER)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == "INVALID_BATCH\n", done.stderr
    assert [line.partition(": ")[0] for line in done.stderr.splitlines()] == ["llama.cpp error"] * 2
    assert llama_error_in(done.stderr) == "decode: n_tokens == 0"


def test_a_warning_of_python_is_no_error_of_llama_cpp() -> None:
    log = "ggml.c:1: GGML_ASSERT(n > 0) failed\n/x/sampler.py:301: RuntimeWarning: overflow encountered in divide\n"
    assert llama_error_in(log) == "GGML_ASSERT(n > 0) failed"
