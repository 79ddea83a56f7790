"""A real process downloads and is killed at random moments; the next goes on, and in the end the file is right."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from models.catalog.catalog import Catalog
from models.download.model_download import DownloadRequest, ModelDownload
from tests.support.downloader import OPTIONS
from tests.support.fork_server import forked
from tools.stand_ins.hub_server import Fault

CONTENT = random.Random(2).randbytes(3_000_001)
REPO, FILE = "acme/fox-GGUF", "fox-Q4_0.gguf"
ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def start(server, tmp_path):
    server.add(REPO, {FILE: CONTENT})
    started = []

    def run() -> subprocess.Popen[str]:
        words = ("tests.support.downloader", server.address, REPO, str(tmp_path / "models"))
        command = forked([sys.executable, "-m", *words])
        started.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT))
        return started[-1]

    yield run
    for process in started:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def read_until(process: subprocess.Popen[str], n_bytes: int) -> int:
    assert process.stdout is not None
    for line in process.stdout:
        if not line.strip().isdigit() or int(line) >= n_bytes:
            return int(line) if line.strip().isdigit() else -1
    return -1


@pytest.mark.parametrize("seed", [1, 2])
def test_killed_again_and_again_it_ends_with_the_right_file(seed, start, server, hub, tmp_path):
    chance = random.Random(seed)
    server.fault(FILE, Fault(bytes_per_second=1.5e6))
    folder, reached = tmp_path / "models", 0
    for _ in range(2):
        process = start()
        reached = read_until(process, reached + chance.randint(50_000, 700_000))
        time.sleep(chance.random() * 0.05)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert Catalog([folder], starter=None).entries() == ()
        assert not (folder / REPO / FILE).exists()
    server.heal()
    seen = []
    ModelDownload(hub, DownloadRequest(REPO), folder, OPTIONS).run(lambda progress: seen.append(progress.n_done))
    assert (folder / REPO / FILE).read_bytes() == CONTENT
    assert max(seen[:2]) > 0
    # What was on its way to four connections when each process died, at most.
    assert server.n_content_bytes < len(CONTENT) + 2 * 4 * 200_000


def test_two_processes_download_a_file_once(start, server):
    server.fault(FILE, Fault(bytes_per_second=2e6))
    first = start()
    read_until(first, 100_000)
    second = start()
    outputs = [process.communicate(timeout=60)[0].splitlines() for process in (first, second)]
    assert (outputs[0][-1], outputs[1][-1]) == ("done", "was there")
    assert server.n_content_bytes < 1.1 * len(CONTENT)


def test_the_lock_goes_with_its_process(start, server):
    server.fault(FILE, Fault(bytes_per_second=2e5))
    first = start()
    read_until(first, 100_000)
    second = start()
    assert second.stdout is not None
    assert second.stdout.readline(), "it says that it waits"
    first.send_signal(signal.SIGKILL)
    server.heal()
    assert second.communicate(timeout=60)[0].splitlines()[-1] == "done"
    assert server.n_content_bytes < 1.3 * len(CONTENT)


def test_the_token_is_in_no_file(server, hub_with, tmp_path):
    server.add(REPO, {FILE: CONTENT}, gated="auto")
    server.fault(FILE, Fault(skip=2, status=503))
    options = replace(OPTIONS, patience=0.2)
    with pytest.raises(Exception, match="Nothing has arrived"):
        ModelDownload(hub_with("hf_good"), DownloadRequest(REPO), tmp_path / "models", options).run()
    server.heal()
    ModelDownload(hub_with("hf_good"), DownloadRequest(REPO), tmp_path / "models", options).run()
    files = [path for path in (tmp_path / "models").rglob("*") if path.is_file()]
    assert all(b"hf_good" not in path.read_bytes() for path in files)
    (record,) = [json.loads(path.read_text()) for path in files if path.suffix == ".json"]
    assert record["repo_id"] == REPO
