"""What patches of llama.cpp change: attention on the processor, devices over a socket, outputs in cache lines."""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.llama.build import HUGE_PAGES, OWN_ATTENTION, features
from core.llama.context import Context, ContextOptions
from core.llama.devices import can_use_rpc
from core.llama.library import declare, ggml
from core.llama.model import Model
from core.machine.host import gives_huge_pages
from core.values.engine_options import whole_lines
from tests.support.attention_op import Case, Numbers, by_ggml, by_numpy
from tests.support.lending import TOKEN, TestWorker
from tools.model_factory.gguf_factory import EMBER

# Cells and scores are kept in 16 bits, and some processors compute with as many.
CLOSE = 0.02
LENGTHS = (32, 64, 80, 128)


def numbers(seed: int, *shape: int) -> Numbers:
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


def case(
    length: int, n_rows: int, n_cells: int, visible: list[slice], seed: int = 1, *, has_sinks: bool = False
) -> Case:
    """Rows of 4 heads, of which two share keys; each sees the same cells, but for the last of them."""
    is_visible = np.zeros((n_rows, n_cells), np.bool_)
    for cells in visible:
        is_visible[:, cells] = True
    seen = np.flatnonzero(is_visible[0])
    for row in range(n_rows - 1):
        is_visible[row, seen[max(1, len(seen) - n_rows + 1 + row) :]] = False
    query, keys, values = (
        numbers(seed, 4, n_rows, length),
        numbers(seed + 1, 2, n_cells, length),
        numbers(seed + 2, 2, n_cells, length),
    )
    return Case(query, keys, values, is_visible, numbers(seed + 3, 4) if has_sinks else None)


def asks_for_huge_pages(address: int) -> bool:
    """Return whether huge pages were asked for the memory at an address of this process (proc_pid_smaps, "hg")."""
    lines = iter(Path("/proc/self/smaps").read_text(encoding="utf-8").splitlines())
    for line in lines:
        start, _, end = line.split()[0].partition("-")
        if end and int(start, 16) <= address < int(end, 16):
            return "hg" in next(line for line in lines if line.startswith("VmFlags:")).split()
    raise AssertionError(f"{address:#x} is in no part of memory")


def test_the_build_passes_over_the_cells_of_other_texts_in_runs() -> None:
    assert OWN_ATTENTION in features()


@pytest.mark.skipif(not gives_huge_pages(), reason="the system gives no huge pages")
def test_large_buffers_ask_for_huge_pages() -> None:
    assert HUGE_PAGES in features()
    allocate = declare(ggml, "ggml_aligned_malloc", ctypes.c_void_p, ctypes.c_size_t)
    free = declare(ggml, "ggml_aligned_free", None, ctypes.c_void_p, ctypes.c_size_t)
    size = 16 << 20
    address = allocate(size)
    assert address % (2 << 20) == 0
    assert asks_for_huge_pages(address)
    assert asks_for_huge_pages(address + size - 1)
    free(address, size)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize(("n_rows", "n_threads"), [(2, 3), (1, 3), (5, 3)])
@pytest.mark.parametrize(
    ("n_cells", "visible"),
    [
        (256, [slice(0, 256)]),
        (256, [slice(7, 8)]),
        (1024, [slice(0, 1)]),  # one row of 512 cells or more is shared out among the threads
        (1024, [slice(1000, 1024)]),
        (1024, [slice(1023, 1024)]),
        (1024, [slice(300, 517)]),
        (1024, [slice(3, 40), slice(41, 42), slice(700, 900)]),
        (1024, [slice(5, 1024, 16)]),  # the cells of sixteen texts that came together
        (768, [slice(0, 768)]),
    ],
)
def test_a_text_among_others_is_attended_to_as_if_it_was_alone(
    length: int, n_rows: int, n_threads: int, n_cells: int, visible: list[slice]
) -> None:
    one = case(length, n_rows, n_cells, visible)
    np.testing.assert_allclose(by_ggml(one, n_threads), by_numpy(one), atol=CLOSE)


@pytest.mark.parametrize("visible", [[slice(0, 9)], [slice(600, 640)], [slice(0, 768)]])
@pytest.mark.parametrize("n_rows", [1, 3])
@pytest.mark.parametrize("n_threads", [1, 4])
def test_sinks_count_once_wherever_the_text_lies(visible: list[slice], n_rows: int, n_threads: int) -> None:
    one = case(64, n_rows, 768, visible, has_sinks=True)
    np.testing.assert_allclose(by_ggml(one, n_threads), by_numpy(one), atol=CLOSE)


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(LENGTHS),
    st.integers(1, 4),
    st.integers(1, 4),
    st.sampled_from((256, 512, 600, 1280)),
    st.floats(0.002, 0.9),
    st.integers(0, 1_000),
)
def test_any_cells_may_be_seen(length: int, n_rows: int, n_threads: int, n_cells: int, share: float, seed: int) -> None:
    one = case(length, n_rows, n_cells, [slice(0, 1)], seed)
    one.is_visible[:] |= np.random.default_rng(seed).random(one.is_visible.shape) < share
    np.testing.assert_allclose(by_ggml(one, n_threads), by_numpy(one), atol=CLOSE)


# In a process of its own: ggml never forgets a server.
CLIENT = """
import ctypes, json, sys
from core.llama.devices import add_rpc_server, list_devices
from core.llama.library import declare, ggml
from core.remote_devices.borrowing import borrow
add_rpc_server(borrow(sys.argv[1], sys.argv[2])[1])
device = list_devices()[-1]
handle = declare(ggml, "ggml_backend_dev_by_name", ctypes.c_void_p, ctypes.c_char_p)(device.name.encode())
memory = declare(ggml, "ggml_backend_dev_buffer_type", ctypes.c_void_p, ctypes.c_void_p)(handle)
allocate = declare(ggml, "ggml_backend_buft_alloc_buffer", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
done = [bool(allocate(memory, n << 20)) for n in (5, 2, 4, 1)]
print(json.dumps([device.name, device.total >> 20, done, list_devices()[-1].free >> 20]))
"""


@pytest.mark.skipif(not can_use_rpc(), reason="this build of llama.cpp lacks RPC over sockets")
def test_a_client_gets_the_memory_that_is_lent_and_not_more() -> None:
    worker = TestWorker(memory=8 << 20)
    try:
        command = [sys.executable, "-c", CLIENT, worker.address, TOKEN]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    finally:
        worker.close()
    name, total, allocated, left = json.loads(done.stdout)
    assert (name, total) == ("RPC0", 8)
    assert allocated == [True, True, False, True]
    assert left == 0


@pytest.mark.parametrize(("wanted", "taken"), [(1, 16), (16, 16), (17, 32), (52, 64), (64, 64), (129, 144)])
def test_indices_of_outputs_fill_lines(wanted, taken):
    assert whole_lines(wanted) == taken


@pytest.mark.parametrize(("n_outputs", "n_batch", "taken"), [(17, 512, 32), (32, 512, 32), (5, 8, 8), (1, 1, 1)])
def test_a_context_has_as_many_but_no_more_than_a_batch_has_rows(n_outputs, n_batch, taken):
    model = Model(str(EMBER))
    context = Context(
        model,
        ContextOptions(n_cells=256, n_sequences=1, n_outputs=n_outputs, n_batch=n_batch, n_ubatch=n_batch, n_threads=1),
    )
    assert context.n_outputs == taken
    context.close()
    model.close()
