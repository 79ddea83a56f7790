"""What the patch of ggml's RPC adds: devices over a connected socket, and no more memory than was lent."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from core.llama.devices import can_use_rpc
from tests.support.lending import TOKEN, TestWorker

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
