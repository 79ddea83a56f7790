"""The server that answers a chat: one that was named, one that runs already, or one of our own for this call."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.terminal.progress_line import LoadingLine
from app.client.discovery import RunningServer, running_servers
from app.client.server_process import ServerProcess
from app.library.find_model import find_model
from core.values.errors import EngineUnavailable, LoadFailed, SlipstreamError

if TYPE_CHECKING:
    from app.client.http_client import Client, ServerStatus


@dataclass(frozen=True, slots=True)
class ServerChoice:
    """A model, or the address of a server, or neither: then whatever runs, else the bundled model."""

    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            "-m",
            metavar="NAME",
            help="Name, title or path of a model, or REMOTE/ID; the bundled one if left out.",
        ),
    ] = None
    url: Annotated[str | None, typer.Option(help="Use the server at this address.", metavar="URL")] = None
    api_key: Annotated[
        str | None, typer.Option(help="The key of that server.", metavar="KEY", envvar="SLIPSTREAM_API_KEY")
    ] = field(default=None, repr=False)
    devices: Annotated[
        list[str] | None,
        typer.Option(
            "--device", metavar="NAME", help="Start a server with this device, as `serve` does; may be repeated."
        ),
    ] = None
    worker_token_file: Annotated[
        Path | None, typer.Option("--worker-token-file", metavar="FILE", help="File with the token of the workers.")
    ] = None


_POLL_SECONDS = 0.02  # not noticed beside a load, which takes a second
_ANSWER_SECONDS = 2.0  # a server that hangs must not hold up the chat
_LIVE_PHASES = frozenset({"ready", "loading", "restarting", "empty"})


@dataclass(frozen=True, slots=True)
class ChatTarget:
    """A server that is ready. ``model`` is the name to put into requests, None for whatever it has loaded.

    ``state`` is None for a server of another kind. ``is_own`` says that it was started for this call.
    """

    client: Client
    model: str | None = None
    greeting: str = ""
    state: ServerStatus | None = None
    is_own: bool = False


@contextmanager
def chat_server(choice: ServerChoice, line: LoadingLine, *, n_slots: int) -> Iterator[ChatTarget]:
    """Hand out a server whose model is ready; one of our own, with ``n_slots``, ends with the block.

    Raises LoadFailed, UnknownModel, ServerUnreachable or ServerStartFailed.
    """
    if choice.url is not None:
        yield _named_server(choice.url, choice, line)
    elif choice.model is not None and _is_remote(choice.model):
        with _server_for_remotes(line) as door:
            yield ChatTarget(door, choice.model, f"{choice.model} answers. /help lists the commands.")
    elif not choice.devices and (client := _usable_server(choice.model)) is not None:
        state = wait_ready(client, line)
        yield ChatTarget(client, state.model if choice.model else None, _greeting(state, client.url), state)
    else:
        with ServerProcess(_own_options(choice, n_slots)) as process:
            yield _own_server(process, line)


def wait_ready(client: Client, line: LoadingLine, check: Callable[[], None] = lambda: None) -> ServerStatus:
    """Wait until the model is loaded and return the state; ``check`` is called meanwhile and may raise.

    Raises LoadFailed with the server's sentence when it cannot be loaded.
    """
    try:
        if (state := client.state()).phase == "empty" and state.model:
            client.load(state.model)  # it was unloaded
        while True:
            state = client.state()
            if state.phase not in ("loading", "restarting"):
                break
            line.show(f"Loading {state.model or 'the model'}", state.progress)
            check()
            time.sleep(_POLL_SECONDS)
    finally:
        line.clear()
    if state.phase == "failed":
        raise LoadFailed(state.problem or "The model could not be loaded, and the server does not say why.")
    if state.phase != "ready":
        raise EngineUnavailable("The server has no model loaded. Name one with --model.")
    return state


def _named_server(url: str, choice: ServerChoice, line: LoadingLine) -> ChatTarget:
    from app.client.http_client import Client, ServerRefused

    client = Client(url, choice.api_key)
    try:
        if (state := client.state()).phase == "failed" and state.model:
            client.load(state.model)  # the load that failed may work now
        state = wait_ready(client, line)
    except ServerRefused as refusal:
        if refusal.status == 401:
            asked = "needs a key. Give it" if choice.api_key is None else "refuses the key. Give one that it knows"
            message = f"The server at {client.url} {asked} with --api-key, or in SLIPSTREAM_API_KEY."
            raise ServerRefused(message, refusal.status, refusal.code) from refusal
        if refusal.status != 404:  # an OpenAI-style server of another kind has no such state
            raise
        return ChatTarget(client, choice.model, f"Connected to {client.url}. /help lists the commands.")
    return ChatTarget(client, choice.model, _greeting(state, client.url), state)


def _is_remote(model: str) -> bool:
    """Return whether a name means a remote's model, and not a file."""
    name, slash, _ = model.partition("/")
    if not slash or os.path.isfile(model):
        return False
    from app.server.remotes.store import RemoteStore

    return name in RemoteStore().all()


@contextmanager
def _server_for_remotes(line: LoadingLine) -> Iterator[Client]:
    """Hand out a server through which remotes are reached: a running one, else our own, which loads no model."""
    from app.client.http_client import Client

    running = next((server for server in running_servers() if _state_of(server) is not None), None)
    if running is not None:
        yield Client(running.url, running.api_key)
        return
    line.show("Starting")
    with ServerProcess(["--on-demand"]) as process:
        url = process.wait_listening()
        line.clear()
        yield Client(url, process.api_key)


def _usable_server(model: str | None) -> Client | None:
    servers = running_servers()
    if not servers:
        return None
    from app.client.http_client import Client

    for server in servers:
        state = _state_of(server)
        if state is not None and _serves(state, model):
            return Client(server.url, server.api_key)
    return None


def _state_of(server: RunningServer) -> ServerStatus | None:
    from app.client.http_client import Client

    try:
        return Client(server.url, server.api_key, timeout=_ANSWER_SECONDS).state()
    except SlipstreamError:
        return None


def _serves(state: ServerStatus, model: str | None) -> bool:
    if state.phase not in _LIVE_PHASES:
        return False
    # It may have loaded a file outside of the folders, which is not found by name.
    return model is None or state.model == model or state.model == _name(model)


def _name(model: str) -> str:
    return find_model(model).name


def _own_options(choice: ServerChoice, n_slots: int) -> list[str]:
    chosen = [] if choice.model is None else ["--model", str(find_model(choice.model).path.absolute())]
    chosen += [part for name in choice.devices or () for part in ("--device", name)]
    if choice.worker_token_file is not None:
        chosen += ["--worker-token-file", str(choice.worker_token_file.resolve())]
    return ["--parallel", str(n_slots), *chosen]


def _own_server(process: ServerProcess, line: LoadingLine) -> ChatTarget:
    from app.client.http_client import Client  # while the server starts: importing it takes as long as a short reply

    line.show("Starting")
    client = Client(process.wait_listening(), process.api_key)

    def check() -> None:
        if process.exit_code is not None:
            raise process.failure()

    state = wait_ready(client, line, check)
    return ChatTarget(client, None, _greeting(state, None), state, is_own=True)


def _greeting(state: ServerStatus, url: str | None) -> str:
    where = f" at {url}" if url else ""
    toy = " It is a toy to try everything with: do not expect sense from it." if state.is_toy else ""
    return f"{state.model}{where} answers.{toy} /help lists the commands."
