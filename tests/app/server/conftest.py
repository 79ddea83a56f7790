"""A real server process with the real engine and the bundled model, and real clients of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import httpx
import openai
import psutil
import pytest
from openai.types.chat import ChatCompletionChunk
from openai.types.chat.chat_completion_chunk import ChoiceDeltaToolCall

from app.client.server_process import ServerProcess
from tests.support import measured
from tests.support.fork_server import ForkedServer, stood_for
from tools.model_factory.embedder_factory import bert

MODEL = "ember-q8_0"


class RunningServer:
    """A server under test: its address, its key, and the processes behind it."""

    def __init__(self, process: ServerProcess) -> None:
        self.process = process
        self.url = process.wait_listening()
        self.http = httpx.Client(base_url=self.url, headers=self.headers, timeout=60)
        self.client = openai.OpenAI(base_url=f"{self.url}/v1", api_key=process.api_key, max_retries=0, timeout=60)
        self.wait_until(lambda state: state["phase"] == "ready")

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.process.api_key}"}

    @property
    def state(self) -> dict:
        return self.http.get("/slipstream/state").json()

    def wait_until(self, is_so, seconds: float = 60.0) -> dict:
        deadline = time.monotonic() + seconds
        while not is_so(state := self.state):
            assert time.monotonic() < deadline, state
            time.sleep(0.02)
        return state

    @property
    def engine(self) -> psutil.Process:
        return self.engines[0]

    @property
    def engines(self) -> list[psutil.Process]:
        """The engines' processes, the first model's first."""
        children = stood_for(psutil.Process(self.process.pid)).children(recursive=True)
        alive = [child for child in children if child.status() != psutil.STATUS_ZOMBIE]
        found = [stood_for(child) for child in alive if "core.process.worker" in " ".join(child.cmdline())]
        return sorted(found, key=psutil.Process.create_time)

    def chat(self, text: str = "Tell me a story about a fox.", **fields):
        fields = {"model": MODEL, "max_tokens": 24, "seed": 1, "temperature": 0} | fields
        return self.client.chat.completions.create(messages=[{"role": "user", "content": text}], **fields)

    def close(self) -> None:
        self.http.close()
        self.client.close()
        self.process.stop()


def tool_calls_of(chunks: Iterable[ChatCompletionChunk]) -> list[ChoiceDeltaToolCall]:
    """The calls of a streamed choice, put together: the first piece has id and name, the others more arguments."""
    calls: list[ChoiceDeltaToolCall] = []
    pieces = [piece for chunk in chunks if chunk.choices for piece in chunk.choices[0].delta.tool_calls or ()]
    for piece in pieces:
        if piece.index == len(calls):
            calls.append(piece)
        else:
            assert piece.index == len(calls) - 1
            assert piece.id is None
            calls[-1].function.arguments += piece.function.arguments
    return calls


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Folders of its own for every server of these tests."""
    folder = tmp_path_factory.mktemp("home")
    measured.give(folder / "cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLIPSTREAM_HOME", str(folder))
        yield folder


@pytest.fixture(scope="session")
def server(home: Path) -> Iterator[RunningServer]:
    """One server for all tests that leave it as it was."""
    running = RunningServer(ForkedServer(["--parallel", "4", "--no-draft"]))
    yield running
    running.close()


@pytest.fixture
def start_server() -> Callable[..., RunningServer]:
    """Starts a server in the folders that are set when it is called; whoever calls it closes it."""
    return lambda *arguments: RunningServer(ForkedServer(list(arguments)))


@pytest.fixture(scope="module")
def own_server(home: Path) -> Iterator[RunningServer]:
    """A server for tests that do harm."""
    running = RunningServer(ForkedServer(["--parallel", "4", "--no-draft", "--models-max", "1"]))
    yield running
    running.close()


@pytest.fixture(scope="module")
def paired(home: Path) -> Iterator[RunningServer]:
    """A server with a draft model, which can answer too."""
    running = RunningServer(ForkedServer(["--parallel", "2"]))
    yield running
    running.close()


@pytest.fixture(scope="module")
def reranker(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server of a model that scores documents."""
    path = bert(tmp_path_factory.mktemp("reranker") / "tiny-reranker.gguf", "rank")
    running = RunningServer(ForkedServer(["--model", str(path)]))
    yield running
    running.close()
