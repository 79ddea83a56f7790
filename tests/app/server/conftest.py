"""A real server process with the real engine and the bundled model, and real clients of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import httpx
import openai
import psutil
import pytest
from openai.types.chat import ChatCompletionChunk
from openai.types.chat.chat_completion_chunk import ChoiceDeltaToolCall

from tests.support import measured
from tests.support.fork_server import ForkedServer, stood_for
from tests.support.waiting import until
from tools.model_factory.embedder_factory import bert

MODEL = "ember-q8_0"
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
GET_WEATHER = {"name": "get_weather", "description": "Get the weather in a city."}
WEATHER = {"type": "function", "function": GET_WEATHER | {"parameters": CITY}}


class RunningServer:
    """A server under test: its address, its key, and the processes behind it."""

    def __init__(self, *options: str) -> None:
        self.process = ForkedServer(options)
        self.url = self.process.wait_listening()
        self.http = httpx.Client(base_url=self.url, headers=self.headers, timeout=60)
        self.client = openai.OpenAI(base_url=f"{self.url}/v1", api_key=self.process.api_key, max_retries=0, timeout=60)
        self.wait_until(lambda state: state["phase"] == "ready")

    def __enter__(self) -> RunningServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.process.api_key}"}

    @property
    def state(self) -> dict:
        return self.http.get("/slipstream/state").json()

    def wait_until(self, is_so, seconds: float = 60.0) -> dict:
        return until(lambda: state if is_so(state := self.state) else None, seconds)

    @property
    def engine(self) -> psutil.Process:
        return self.engines[0]

    @property
    def engines(self) -> list[psutil.Process]:
        """The engines' processes, the first model's first."""
        return self._children("core.loading.worker")

    @property
    def library(self) -> psutil.Process:
        """The library's process."""
        return self._children("app.library_service")[-1]

    def _children(self, module: str) -> list[psutil.Process]:
        children = stood_for(psutil.Process(self.process.pid)).children(recursive=True)
        alive = [child for child in children if child.status() != psutil.STATUS_ZOMBIE]
        found = [stood_for(child) for child in alive if module in " ".join(child.cmdline())]
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


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """The loop of tests that are coroutines, as the server's."""
    return "asyncio"


@pytest.fixture(scope="session")
def server(home: Path) -> Iterator[RunningServer]:
    """One server for all tests that leave it as it was."""
    with RunningServer("--parallel", "4", "--no-draft") as running:
        yield running


@pytest.fixture(scope="module")
def own_server(home: Path) -> Iterator[RunningServer]:
    """A server for tests that do harm."""
    with RunningServer("--parallel", "4", "--no-draft", "--models-max", "1") as running:
        yield running


@pytest.fixture(scope="module")
def paired(home: Path) -> Iterator[RunningServer]:
    """A server with a draft model, which can answer too."""
    with RunningServer("--parallel", "2") as running:
        yield running


@pytest.fixture(scope="module")
def reranker(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server of a model that scores documents."""
    path = bert(tmp_path_factory.mktemp("reranker") / "tiny-reranker.gguf", "rank")
    with RunningServer("--model", str(path)) as running:
        yield running
