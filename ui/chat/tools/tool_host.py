"""Speaks to MCP servers, in a process of its own: ``python -m ui.chat.tools.tool_host``. No Qt.

It reads a line of JSON for each wish: ``{"open": name, "at": command or address, "extra":
{environment or headers}}``, ``{"close": name}``,
``{"call": 1, "server": name, "tool": …, "arguments": {…}}``, ``{"cancel": 1}``; and prints one for each event:
``{"server": name, "tools": [{"name": …, "description": …, "schema": {…}}]}``, ``{"server": name, "problem": …}``,
``{"call": 1, "result": text, "is_error": false, "images": [as ``attachments`` keeps them]}``. It ends when its input
does.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import shlex
import sys
from dataclasses import asdict
from typing import Any, TextIO

from ui.chat.attachments.read_file import Unreadable, image_of
from ui.client.attachments import Attachment
from ui.language import tr

CONNECT_SECONDS = 60.0  # a server may have to be downloaded first, as with uvx and npx
CALL_SECONDS = 300.0
MOST_LETTERS = 40_000  # of a result: about 10,000 tokens
MOST_IMAGES = 20  # of a result, as a message has files


class ToolHost:
    """The servers that are open, each with a task, and the calls on their way."""

    def __init__(self) -> None:
        self._servers: dict[str, asyncio.Task[None]] = {}
        self._clients: dict[str, Any] = {}
        self._calls: dict[int, asyncio.Task[None]] = {}

    def take(self, wish: dict[str, Any]) -> None:
        """Do one thing."""
        if "open" in wish:
            self._close(wish["open"])
            self._servers[wish["open"]] = asyncio.create_task(self._serve(wish["open"], wish["at"], wish["extra"]))
        elif "close" in wish:
            self._close(wish["close"])
        elif "call" in wish:
            self._calls[wish["call"]] = asyncio.create_task(self._call(wish))
        elif (call := self._calls.pop(wish.get("cancel", 0), None)) is not None:
            call.cancel()

    async def end(self) -> None:
        """Close all servers."""
        tasks = [*self._servers.values(), *self._calls.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _close(self, name: str) -> None:
        task = self._servers.pop(name, None)
        if task is not None:
            task.cancel()

    async def _serve(self, name: str, at: str, extra: dict[str, str]) -> None:
        from mcp.client import Client

        try:
            # What a server writes about itself is not for us, and must not end up between our lines.
            with open(os.devnull, "w") as unread:
                async with (
                    asyncio.timeout(CONNECT_SECONDS) as limit,
                    _http_client(extra) as http,
                    Client(_target(at, extra, http, unread)) as client,
                ):
                    tools = await _tools_of(client)
                    limit.reschedule(None)
                    self._clients[name] = client
                    say(server=name, tools=tools)
                    await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # a group of errors, of which each library has its own
            say(server=name, problem=_sentence(at, error))
        finally:
            self._clients.pop(name, None)

    async def _call(self, wish: dict[str, Any]) -> None:
        number, name = wish["call"], wish["server"]
        client = self._clients.get(name)
        try:
            if client is None:
                raise ConnectionError(tr("it is not connected"))
            async with asyncio.timeout(CALL_SECONDS):
                result = await client.call_tool(wish["tool"], wish["arguments"])
            text, images = await asyncio.to_thread(_content_of, result)
            say(call=number, result=text, is_error=bool(result.is_error), images=[asdict(one) for one in images])
        except asyncio.CancelledError:
            raise
        except TimeoutError:
            say(
                call=number,
                result=tr("The tool did not answer within {CALL_SECONDS:.0f} seconds.", CALL_SECONDS=CALL_SECONDS),
                is_error=True,
            )
        except Exception as error:
            say(
                call=number, result=tr("The tool could not be called: {problem}.", problem=_first(error)), is_error=True
            )
            if "closed" in str(error).lower() or isinstance(error, ConnectionError):
                say(server=name, problem=tr("The server ended: {problem}.", problem=_first(error)))
        finally:
            self._calls.pop(number, None)


def _http_client(headers: dict[str, str]) -> Any:
    from mcp.shared._httpx_utils import create_mcp_http_client

    return create_mcp_http_client(headers)


def _target(at: str, extra: dict[str, str], http: Any, unread: TextIO) -> Any:
    from mcp.client.stdio import StdioServerParameters, stdio_client
    from mcp.client.streamable_http import streamable_http_client

    if at.startswith(("http://", "https://")):
        return streamable_http_client(at, http_client=http)
    parts = shlex.split(at)
    parameters = StdioServerParameters(command=parts[0], args=parts[1:], env=extra)
    return stdio_client(parameters, errlog=unread)


async def _tools_of(client: Any) -> list[dict[str, Any]]:
    tools, cursor = [], None
    while True:
        page = await client.list_tools(cursor=cursor)
        tools += [
            {"name": tool.name, "description": tool.description or "", "schema": tool.input_schema}
            for tool in page.tools
        ]
        cursor = page.next_cursor
        if not cursor:
            return tools


def _content_of(result: Any) -> tuple[str, list[Attachment]]:
    """Return the text of a result, which says where an image was, and the images."""
    parts: list[str] = []
    images: list[Attachment] = []
    n_images = 0
    for block in result.content:
        n_images += block.type == "image"
        if block.type == "image" and n_images <= MOST_IMAGES:
            parts.append(_taken(tr("Image {number}", number=n_images), block.data, images))
        else:
            parts.append(getattr(block, "text", None) or f"[{block.type}]")
    text = "\n".join(parts) or json.dumps(result.structured_content or {}, ensure_ascii=False)
    if len(text) > MOST_LETTERS:
        text = tr("{value}\n… (cut: {n_text:,} characters)", value=text[:MOST_LETTERS], n_text=len(text))
    return text, images


def _taken(name: str, data: str, images: list[Attachment]) -> str:
    """Add an image to ``images``; return what is said of it."""
    try:
        images.append(image_of(name, base64.b64decode(data)))
    except Unreadable as problem:
        return str(problem)
    except ValueError:
        return tr("{name} is damaged.", name=name)
    return tr("[{name} is shown to the user]", name=name)


def _sentence(at: str, error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return tr("It did not answer within {CONNECT_SECONDS:.0f} seconds.", CONNECT_SECONDS=CONNECT_SECONDS)
    found = _innermost(error)
    if isinstance(found, FileNotFoundError):
        return tr(
            "There is no program {split!r} on this machine: check the command, or install it.", split=shlex.split(at)[0]
        )
    return tr("It cannot be used: {problem}.", problem=_first(found))


def _innermost(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _first(error: BaseException) -> str:
    lines = str(_innermost(error)).strip().splitlines()
    return (lines[0] if lines else type(error).__name__).rstrip(".")


def say(**what: object) -> None:
    """Print one event."""
    print(json.dumps(what), flush=True)


async def _main() -> None:
    host, loop = ToolHost(), asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        host.take(json.loads(line))
    await host.end()


if __name__ == "__main__":
    asyncio.run(_main())
