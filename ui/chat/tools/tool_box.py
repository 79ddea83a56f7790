"""The MCP servers of the window: which there are, what they offer, and what they may do without being asked for."""

from __future__ import annotations

import contextlib
import json
import re
import shlex
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, Signal

from models.files.disk import read_value, write_whole
from models.formatting.safe_text import one_line
from ui.client.attachments import Attachment, from_object
from ui.client.server_watch import ServerWatch
from ui.language import tr
from ui.platform.helper_process import HelperProcess

MODULE = "ui.chat.tools.tool_host"
LONGEST_NAME = 64  # letters of a function, as OpenAI's clients allow
GONE = tr("The program that speaks to tools has ended. Try again.")
Done = Callable[[str, bool, tuple[Attachment, ...]], object]  # the result, whether it is an error, images in it


@dataclass(frozen=True, slots=True)
class ToolServer:
    """A server as it is kept: ``at`` is a command or an address, ``allowed`` names tools that need no question.

    ``extra`` are names and values: environment variables of a command, headers of an address.
    """

    name: str
    at: str
    is_on: bool = True
    allowed: tuple[str, ...] = ()
    extra: tuple[tuple[str, str], ...] = ()

    @property
    def is_address(self) -> bool:
        """Whether it is reached over HTTP."""
        return self.at.startswith(("http://", "https://"))


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool, by the name under which models call it."""

    function: str
    server: str
    name: str
    description: str
    schema: dict[str, Any]


class ToolBox(QObject):
    """Keeps the servers in a file and speaks to them through one process, which starts when there is a server."""

    changed = Signal()

    def __init__(self, path: Path, watch: ServerWatch, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._path, self._watch = path, watch
        self.servers: tuple[ToolServer, ...] = read_value(tuple[ToolServer, ...], path) or ()
        self.problems: dict[str, str] = {}  # by server
        self._tools: dict[str, tuple[Tool, ...]] = {}
        self._host: HelperProcess | None = None
        self._calls: dict[int, Done] = {}
        self._last_call = 0

    def start(self) -> None:
        """Open the servers that are on."""
        for server in self.servers:
            if server.is_on:
                self.open(server)

    def stop(self) -> None:
        """Close all of them."""
        if self._host is not None:
            self._host.stop()
            self._host = None
        self._tools.clear()

    def tools_of(self, server: str) -> tuple[Tool, ...] | None:
        """Return the tools of a server, None while it is not connected."""
        return self._tools.get(server)

    def offered_to(self, model: str | None) -> list[dict[str, Any]]:
        """Return the tools for a model, None for the one that is loaded; none where it cannot call any."""
        return self.functions if self._watch.calls_tools(model) else []

    @property
    def why_unused(self) -> str:
        """Why the loaded model gets no tools; "" where it may call them."""
        return "" if self._watch.calls_tools(None) else cannot_call(self._watch.state.model or "")

    @property
    def functions(self) -> list[dict[str, Any]]:
        """All tools as a chat request names them."""
        return [
            {"type": "function", "function": {
                "name": tool.function, "description": tool.description, "parameters": tool.schema}}
            for tools in self._tools.values() for tool in tools
        ]  # fmt: skip

    def find(self, function: str) -> Tool | None:
        """Return the tool that a model calls by this name."""
        return next((tool for tools in self._tools.values() for tool in tools if tool.function == function), None)

    def is_allowed(self, tool: Tool) -> bool:
        """Return whether it may be called without a question."""
        return any(server.name == tool.server and tool.name in server.allowed for server in self.servers)

    def allow(self, tool: Tool) -> None:
        """Call it without a question from now on."""
        found = next((server for server in self.servers if server.name == tool.server), None)
        if found is not None and tool.name not in found.allowed:
            self._keep(replace(found, allowed=(*found.allowed, tool.name)))

    def save(self, server: ToolServer) -> None:
        """Keep a server and open it, or close it where it is off."""
        self._keep(server)
        self._close(server.name)
        if server.is_on:
            self.open(server)
        self.changed.emit()

    def remove(self, name: str) -> None:
        """Forget a server."""
        self._close(name)
        self._write(tuple(server for server in self.servers if server.name != name))
        self.changed.emit()

    def open(self, server: ToolServer) -> None:
        """Connect to a server, once more where that failed."""
        self.problems.pop(server.name, None)
        self._tools.pop(server.name, None)
        self._say(open=server.name, at=server.at, extra=dict(server.extra))
        self.changed.emit()

    def call(self, tool: Tool, arguments: dict[str, Any], done: Done) -> int:
        """Call a tool; ``done`` follows once, unless the call is cancelled. Return the number of the call."""
        self._last_call += 1
        self._calls[self._last_call] = done
        self._say(call=self._last_call, server=tool.server, tool=tool.name, arguments=arguments)
        return self._last_call

    def cancel(self, call: int) -> None:
        """Give up a call."""
        if self._calls.pop(call, None) is not None:
            self._say(cancel=call)

    def _close(self, name: str) -> None:
        self.problems.pop(name, None)
        if self._tools.pop(name, None) is not None or self._host is not None:
            self._say(close=name)

    def _say(self, **wish: object) -> None:
        if self._host is None:
            host = self._host = HelperProcess(MODULE, [], self)
            host.said.connect(lambda line: self._on_line(bytes(line)))
            host.ended.connect(self._on_ended)
            host.start()
        self._host.write(json.dumps(wish).encode() + b"\n")

    def _on_line(self, line: bytes) -> None:
        said = json.loads(line)
        if "call" in said:
            done = self._calls.pop(said["call"], None)
            if done is not None:
                found = (from_object(one) for one in said.get("images", ()))
                done(str(said["result"]), said["is_error"] is True, tuple(one for one in found if one is not None))
            return
        name = said["server"]
        if "problem" in said:
            self._tools.pop(name, None)
            self.problems[name] = str(said["problem"])
        else:
            self._tools[name] = tuple(
                Tool(_function(name, one["name"]), name, one["name"], one["description"], one["schema"])
                for one in said["tools"]
            )
        self.changed.emit()

    def _on_ended(self) -> None:
        self._host = None
        self._tools.clear()
        self.problems = {server.name: GONE for server in self.servers if server.is_on}
        calls, self._calls = self._calls, {}
        for done in calls.values():
            done(GONE, True, ())
        self.changed.emit()

    def _keep(self, server: ToolServer) -> None:
        known = [one.name for one in self.servers]
        others = tuple(server if one.name == server.name else one for one in self.servers)
        self._write(others if server.name in known else (*self.servers, server))

    def _write(self, servers: tuple[ToolServer, ...]) -> None:
        self.servers = servers
        # They are there until the window closes; a full disk is told of by the chats. Values may be keys.
        with contextlib.suppress(OSError):
            write_whole(self._path, json.dumps([asdict(server) for server in servers], indent=1), is_private=True)


def cannot_call(model: str) -> str:
    """Say that a model gets no tools."""
    return tr("{model} cannot call tools: its chat template has no place for them.", model=one_line(model))


def has_all_quotes(at: str) -> bool:
    """Return whether a command can be taken apart; an address can always be used as it is."""
    try:
        return ToolServer("", at).is_address or bool(shlex.split(at))
    except ValueError:
        return False


def extra_of(text: str, at: str) -> tuple[tuple[str, str], ...]:
    """Return the names and values in lines of text, as ``NAME=value``, for an address as ``Name: value``.

    Raises ValueError with a sentence.
    """
    sign, example = (":", "Authorization: Bearer abc") if ToolServer("", at).is_address else ("=", "TOKEN=abc")
    found = []
    for line in filter(None, map(str.strip, text.splitlines())):
        name, there, value = line.partition(sign)
        if not there or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]*", name.strip()):
            raise ValueError(tr("Each line needs a name and a value, as {example}.", example=example))
        found.append((name.strip(), value.strip()))
    return tuple(found)


def extra_text(server: ToolServer) -> str:
    """Return a server's names and values as ``extra_of`` reads them."""
    sign = ": " if server.is_address else "="
    return "\n".join(f"{name}{sign}{value}" for name, value in server.extra)


def _function(server: str, tool: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "_", f"{server}_{tool}")[:LONGEST_NAME]
