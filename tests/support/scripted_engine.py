"""A supervisor whose every word a test chooses; the real one is tested in tests/core."""

from __future__ import annotations

from dataclasses import replace

from core.values.engine_options import EngineOptions
from core.values.errors import EngineUnavailable
from core.values.messages import Ended, EnginePhase, EngineState, Event, FinishReason, LoadedModel
from core.values.request import Request


class ScriptedEngine:
    """Remembers what it was asked; ``listener`` hears what the test tells."""

    def __init__(self) -> None:
        self.listener = lambda _events: None
        self.loads: list[str] = []
        self.options: list[EngineOptions] = []
        self.requests: list[Request] = []
        self.cancelled: list[str] = []
        self.is_available = True
        self.number = 0
        self.again: list[bool] = []
        self.n_unloads = 0

    def prepare(self) -> None:
        pass

    def load(self, options: EngineOptions, number: int = 0, *, again: bool = False) -> None:
        self.options.append(options)
        self.loads.append(options.model_path)
        self.again.append(again)
        self.number = number

    def unload(self, number: int = 0) -> None:
        self.number = number
        self.n_unloads += 1
        self.tell(EngineState(EnginePhase.EMPTY))

    def submit(self, request: Request) -> None:
        if not self.is_available:
            raise EngineUnavailable("No model is loaded.")
        self.requests.append(request)

    def cancel(self, request_id: str) -> None:
        self.cancelled.append(request_id)

    def end_thoughts(self, request_id: str) -> None: ...

    def close(self) -> None:
        self.is_available = False

    def tell(self, *events: Event, load: int | None = None) -> None:
        """Say something; states are of the last load, or of the one with the number ``load``."""
        number = self.number if load is None else load
        self.listener(tuple(replace(one, load=number) if isinstance(one, EngineState) else one for one in events))

    def end_all(self) -> None:
        self.tell(*(Ended(request.id, FinishReason.STOP) for request in self.requests))


def loaded(path: str, chat_template: str | None = None) -> LoadedModel:
    """Return a model as the engine describes it."""
    return LoadedModel(
        path=path, description="scripted", architecture="llama", n_params=1, n_bytes=1, n_vocab=8, n_ctx_train=64,
        n_ctx=64, n_cells=64, n_slots=4, n_threads=1, n_gpu_layers=0, kv_type="f16", devices=("CPU",),
        chat_template=chat_template, bos="<s>", eos="</s>", fim=None, load_seconds=0.0,
    )  # fmt: skip
