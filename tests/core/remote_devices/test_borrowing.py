"""A worker over real sockets: who gets in, what is said of the devices, and what is refused in a sentence."""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from core.remote_devices import borrowing, lending
from core.remote_devices.borrowing import MessageSocket, borrow, connect_workers, look
from core.values.addresses import LOST_WORKER, worker_address
from core.values.engine_options import EngineOptions
from core.values.errors import BadOption, WorkerUnavailable
from tests.support.lending import TOKEN, TestWorker
from tests.support.waiting import until


@pytest.fixture(scope="module")
def worker() -> Iterator[TestWorker]:
    made = TestWorker()
    yield made
    made.close()


def test_a_worker_says_what_it_lends_and_the_link_is_measured(worker: TestWorker) -> None:
    found = look(worker.address, TOKEN)
    (device,) = found.devices
    assert (device.name, device.kind, device.free, device.bandwidth) == ("CPU", "cpu", 1 << 29, 5e9)
    assert 0 < found.link.latency < 1
    assert found.link.bandwidth > 1e6
    assert not found.is_busy


def test_a_wrong_token_is_refused_on_both_sides(worker: TestWorker) -> None:
    with pytest.raises(WorkerUnavailable, match="does not know this token"):
        look(worker.address, "another token")
    while worker.said[-1:] != ["127.0.0.1 came with a wrong token and was refused."]:
        time.sleep(0.01)  # it says so after it has answered


def test_nothing_is_answered_without_the_token(worker: TestWorker) -> None:
    with socket.create_connection(("127.0.0.1", worker.port)) as connection:
        channel = MessageSocket(connection)
        assert len(channel.receive()["challenge"]) == 32
        channel.send(do="look")
        assert channel.receive() == {"problem": "token"}
        assert connection.recv(1) == b""


def test_the_devices_are_lent_to_one_at_a_time(worker: TestWorker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(borrowing, "_BUSY_SECONDS", 0.0)
    _, fd = borrow(worker.address, TOKEN)
    assert look(worker.address, TOKEN).is_busy
    with pytest.raises(WorkerUnavailable, match="lends its devices to another program"):
        borrow(worker.address, TOKEN)
    monkeypatch.undo()
    os.close(fd)
    _, fd = borrow(worker.address, TOKEN)  # the first one's process ends with its client
    os.close(fd)


def test_both_versions_are_named_where_they_differ(worker: TestWorker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lending, "version", lambda name: "0.0.1")
    with pytest.raises(WorkerUnavailable, match=r"has llama-cpp-python 0\.0\.1, and this machine 0\.3"):
        look(worker.address, TOKEN)


HALF_A_PAIR = b'\x00\x00\x00/{"slipstream_worker": 1, "challenge": "\\ud800"}'


@pytest.mark.parametrize("says", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\x00\x00\x00\x02{}", b"", HALF_A_PAIR])
def test_what_is_no_worker_is_called_so(says: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            connection, _ = listening.accept()
            connection.sendall(says)
            connection.close()

        threading.Thread(target=answer).start()
        with pytest.raises(WorkerUnavailable, match="is no worker of this version"):
            look(f"rpc://127.0.0.1:{listening.getsockname()[1]}", TOKEN)


def test_a_connection_that_cannot_be_taken_ends_no_worker(worker: TestWorker) -> None:
    resource = pytest.importorskip("resource")
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    with socket.socket() as client:
        n_free = os.dup(client.fileno())  # the next free descriptor, and so the first that is too many
        os.close(n_free)
        resource.setrlimit(resource.RLIMIT_NOFILE, (n_free, limits[1]))
        try:
            client.connect(("127.0.0.1", worker.port))
            time.sleep(0.2)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        assert len(MessageSocket(client).receive()["challenge"]) == 32
    assert look(worker.address, TOKEN).devices


def test_a_worker_that_is_not_there_is_named_with_what_to_look_at() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = f"rpc://127.0.0.1:{listening.getsockname()[1]}"
    with pytest.raises(WorkerUnavailable, match=r"cannot be reached .* Check the address"):
        look(address, TOKEN)


def test_a_worker_that_says_nothing_is_waited_for_shortly_and_then_lost(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(borrowing, "_GREETING_SECONDS", 0.05)
    monkeypatch.setattr(borrowing, "_GREET_SECONDS", 0.05)
    monkeypatch.setattr(os, "_exit", sys.exit)  # the engine's process would end
    with socket.create_server(("127.0.0.1", 0)) as listening:  # as one that is stopped: the system still connects
        address = f"rpc://127.0.0.1:{listening.getsockname()[1]}"
        began = time.monotonic()
        with pytest.raises(
            WorkerUnavailable, match=r"^The worker rpc://\S+ says nothing: it may hang\. Start it again there\.$"
        ):
            look(address, TOKEN)
        with socket.create_connection(listening.getsockname()) as lent, pytest.raises(SystemExit):
            borrowing._watch(address, lent.fileno())
        assert time.monotonic() - began < 5
    assert f"{LOST_WORKER}: {address} says nothing any more" in capfd.readouterr().err


def test_a_worker_that_answers_or_has_closed_its_door_is_not_lost(worker: TestWorker) -> None:
    assert not borrowing._is_silent(worker.address)
    assert not borrowing._is_silent("rpc://127.0.0.1:1")


def test_of_a_client_that_left_a_lender_that_hangs_only_the_leaving_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lending, "_LOOK_SECONDS", 0.3)
    worker = TestWorker()
    _, fd = borrow(worker.address, TOKEN)
    until(lambda: worker.said)
    worker.lender.suspend()
    os.close(fd)
    until(lambda: len(worker.said) > 1)
    assert worker.said == ["127.0.0.1 uses the devices.", "127.0.0.1 has left."]
    worker.close()


@pytest.mark.parametrize("name", ["rpc://", "rpc://host:port", "rpc://a/b", "rpc://user@host:1"])
def test_a_name_that_is_no_workers_is_an_option_that_cannot_be_used(name: str) -> None:
    with pytest.raises(BadOption, match="rpc://HOST:PORT"):
        EngineOptions("model.gguf", devices=(name,))


def test_tokens_are_not_in_the_text_of_options() -> None:
    beside = EngineOptions("m.gguf", also_worker="rpc://b:2")
    assert (beside.devices, beside.workers) == ((), ("rpc://b:2",))
    with pytest.raises(BadOption, match="rpc://HOST:PORT"):
        EngineOptions("m.gguf", also_worker="http://b")
    options = EngineOptions("m.gguf", devices=("CUDA0", "rpc://a:1"), worker_tokens=(("rpc://a:1", TOKEN),))
    assert TOKEN not in repr(options)
    assert options.workers == ("rpc://a:1",)
    assert worker_address("rpc://[::1]") == ("::1", 8643)


def test_a_name_that_no_machine_can_have_is_said_to_be_out_of_reach() -> None:
    with pytest.raises(WorkerUnavailable, match=r"cannot be reached .* Check the address"):
        look(f"rpc://{'x' * 200}:1", "token")


def test_a_worker_without_a_token_is_refused_before_anything_is_loaded() -> None:
    with pytest.raises(WorkerUnavailable, match="wants a token"):
        connect_workers(EngineOptions("model.gguf", devices=("rpc://10.0.0.2:8643",)))
