"""One exchange with a remote: a request is sent there, and what comes back is given on as it comes."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Protocol

from starlette.requests import Request as HttpRequest

from app.server.http.errors import SERVER, ApiError, ErrorAnswer, ModelNotFound
from app.server.remotes.figures import RemoteFigures, RemoteRequest
from app.server.remotes.listed import ListedModel, listed_models
from app.server.remotes.store import LONGEST_MODEL, Remote, RemoteModel, RemoteStore
from app.server.remotes.upstream import (
    RemoteUnreachable,
    Sent,
    Upstream,
    error_text,
    kept_headers,
    read_all,
    unreachable,
)
from models.formatting.program import PROGRAM, advice
from models.formatting.sentence import Sentence

if TYPE_CHECKING:
    import httpx

# A whole reply is held until it is complete, so that one that breaks can be answered by somebody else: vectors of
# 2,048 texts as JSON are about this large. A line of a stream is one token, or one image.
_MAX_REPLY, _MAX_LINE, _MAX_ERROR = 256 << 20, 32 << 20, 1 << 20
_LATEST = ":latest"
_TOO_LONG = "context_length_exceeded"
# How servers say it: by OpenAI's code, by llama-server's type, and in the sentences of vLLM, SGLang and LM Studio.
_TOO_LONG_WORDS = (_TOO_LONG, "exceed_context_size_error", "context length", "context window")
# In these sentences: "maximum context length is 4096 tokens", "(4,096 tokens)"; and what the prompt or the request has.
# A number with a letter, as 128k, is none of tokens.
_NUMBER = r"(?<![\w.,])(\d{1,3}(?:,\d{3})+|\d{1,9})(?![.,]?\w)"
_CONTEXT, _TOKENS = re.compile(rf"context[^.\d]*{_NUMBER}"), re.compile(rf"{_NUMBER}(?: \w+)? tokens")
# Where a sentence also counts the answer that is asked for, nobody knows what is too long.
_OF_AN_ANSWER = ("completion", "requested")
BAD_GATEWAY = ErrorAnswer(502, SERVER, "remote_unavailable", may_retry=True)


class Remotes:
    """The remotes of a server: what is set, their connections, their models and their figures."""

    def __init__(self, store: RemoteStore) -> None:
        self.store, self.upstream, self.figures = store, Upstream(store), RemoteFigures()

    async def models(self) -> list[ListedModel]:
        """Return the models that all remotes list."""
        return listed_models(await self.upstream.lists())

    async def find(self, name: Any) -> RemoteModel | None:
        """Return the remote's model that NAME/MODEL means, None for all other names. Raises ModelNotFound.

        A tag that Ollama's clients have added is left out.
        """
        known = self.store.all()
        first, slash, model = name.partition("/") if isinstance(name, str) else ("", "", "")
        if not slash or first not in known:
            return None
        remote = known[first]
        if model.endswith(_LATEST) and model not in (remote.models or await self._listed(remote)):
            model = model.removesuffix(_LATEST)
        # A longer name could go round between servers that have each other as remotes.
        is_too_long = len(model) > LONGEST_MODEL
        if not model or is_too_long or (remote.models and model not in remote.models):
            raise ModelNotFound(str(name), [f"{first}/{one}" for one in remote.models])
        return RemoteModel(remote, model)

    async def _listed(self, remote: Remote) -> list[str]:
        found = (await self.upstream.lists()).get(remote)
        return [one["id"] for one in found.listed] if found is not None else []


async def model_at_remote(http: HttpRequest, name: str | None) -> RemoteModel | None:
    """Return the remote's model of this name, as ``Remotes.find``."""
    remotes: Remotes = http.app.state.remotes
    return await remotes.find(name)


class Sink(Protocol):
    """What takes a remote's answer: whole lines of a stream and its end, or a whole body."""

    has_begun: bool  # a piece of the answer was given on

    async def begin(self, response: httpx.Response) -> None:
        """Take the head of a stream; may come again with each piece."""

    async def write(self, lines: bytes) -> None:
        """Take some lines of a stream."""

    async def end(self, response: httpx.Response) -> None:
        """Take the end of a stream that is complete."""

    async def send_whole(self, response: httpx.Response, body: bytes) -> None:
        """Take an answer that did not come in pieces."""


async def ask_remote(remotes: Remotes, request: RemoteRequest, sent: Sent, sink: Sink) -> str | None:
    """Let the remote answer. Return the model of this machine that shall answer where nothing of an answer came.

    Raises ApiError where there is none, for every other failure, and where the request was ended early.
    """
    work = asyncio.ensure_future(_exchange(remotes, request, sent, sink))
    request.work = work
    try:
        failure = await work
    except asyncio.CancelledError:
        if request.ended_by is None:
            raise
        raise request.ended_by from None
    finally:
        work.cancel()
    remote = request.to.remote
    if failure is not None and remote.fallback is None:
        raise failure
    if failure is not None:
        remotes.figures.n_fallbacks[remote.name] += 1
    return remote.fallback if failure is not None else None


async def _exchange(remotes: Remotes, request: RemoteRequest, sent: Sent, sink: Sink) -> ApiError | None:
    """Return the failure where nothing of an answer was given on. Raises ApiError for every other one."""
    import httpx

    upstream, remote = remotes.upstream, request.to.remote
    try:
        client = await upstream.client()
        body = request.encoded(request.to.id) if sent.method == "POST" else b""
        made = await upstream.request(remote, sent, body)
        response = await client.send(made, stream=True)
        try:
            return await _forward(remote, response, sink, request)
        finally:
            await response.aclose()
    except (httpx.HTTPError, httpx.StreamError, httpx.InvalidURL, ValueError, RemoteUnreachable) as error:
        told = error if isinstance(error, RemoteUnreachable) else unreachable(remote, error)
        failure = ApiError(BAD_GATEWAY, told.message)
        if sink.has_begun:
            raise failure from error
        return failure


async def _forward(remote: Remote, response: httpx.Response, sink: Sink, request: RemoteRequest) -> ApiError | None:
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if response.status_code >= 400:
        failure = RemoteError(remote, response, await _beginning(response))
        if response.status_code >= 500 or response.status_code == 429:
            return failure
        raise failure
    if response.status_code >= 300:
        raise RemoteUnreachable(
            "The remote {name} sends to another address ({status}): requests are not sent there. {how}",
            name=remote.name,
            status=response.status_code,
            how=advice(
                f"Add it under its own one with `{PROGRAM} remotes add`.",
                Sentence("Add it under its own one on the page Server."),
            ),
        )
    request.has_slot = True
    if kind == "text/event-stream":
        async for lines in _whole_lines(response):
            for line in lines.split(b"\n"):
                request.see_line(line)
            await sink.begin(response)
            await sink.write(lines)
        if not request.is_complete:  # a proxy between us may close a connection that broke as if all had come
            raise unreachable(remote, EOFError())
        await sink.end(response)
        return None
    if kind not in ("application/json", "application/problem+json"):
        raise RemoteUnreachable(
            "The remote {name} answers with {kind} instead of JSON: is its address right? It usually ends with /v1.",
            name=remote.name,
            kind=kind or Sentence("a body of no type"),
        )
    body = await read_all(response, _MAX_REPLY)
    if not request.see_json(body):
        raise RemoteUnreachable("The remote {name} answers with a body that is no JSON.", name=remote.name)
    await sink.send_whole(response, body)
    return None


class RemoteError(ApiError):
    """A remote's refusal: its own status, and its own body where that has the form of the path."""

    def __init__(self, remote: Remote, response: httpx.Response, body: bytes) -> None:
        status = response.status_code
        is_locked = status == 401  # a 403 can be about what was asked
        is_too_long = status in (400, 413) and any(word in str(body) for word in _TOO_LONG_WORDS)
        answer = ErrorAnswer(status, SERVER, _TOO_LONG if is_too_long else "remote_error")
        message = Sentence(
            "The remote {name} answers {status}: {words}", name=remote.name, status=status, words=error_text(body)
        )
        if is_locked:
            answer = ErrorAnswer(status, "authentication_error", "remote_key_refused")
            what = Sentence("refuses its key") if remote.sends_key else Sentence("wants a key")
            message = Sentence(
                "The remote {name} {what} ({status}: {words}). {how}",
                name=remote.name,
                what=what,
                status=status,
                words=error_text(body),
                how=advice(
                    f"Add it again with the right one: `{PROGRAM} remotes add {remote.name} {remote.url}`.",
                    Sentence("Add it again with the right one on the page Server."),
                ),
            )
        super().__init__(answer, message)
        self.sizes = _sizes(body) if is_too_long else None
        self.guessed_sizes = _guessed_sizes(body) if is_too_long else None
        self._own = b"" if is_locked else body  # the client has another key than we
        self._headers = {name.decode(): value.decode("latin-1") for name, value in kept_headers(response.headers)}
        self._headers.pop("content-type", None)

    def encoded(self, path: str = "") -> bytes:
        """Return the remote's own words where clients of this path understand them."""
        try:
            found = json.loads(self._own)
        except (ValueError, RecursionError):
            return super().encoded(path)
        translated = json.loads(super().encoded(path))
        is_alike = isinstance(found, dict) and isinstance(found.get("error"), type(translated["error"]))
        if not is_alike or not found.keys() >= translated.keys():
            return super().encoded(path)
        return json.dumps(found, ensure_ascii=False).encode("utf-8", "replace")

    def headers(self) -> dict[str, str]:
        """Return what the remote said of trying again."""
        return self._headers


def _sizes(body: bytes) -> tuple[int, int] | None:
    """Return the tokens of a prompt that is too long and of the context, where a remote says both as llama-server."""
    try:
        error = json.loads(body)["error"]
        n_prompt, n_ctx = error["n_prompt_tokens"], error["n_ctx"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return (n_prompt, n_ctx) if type(n_prompt) is type(n_ctx) is int and n_prompt > n_ctx > 0 else None


def _guessed_sizes(body: bytes) -> tuple[int, int] | None:
    """Return the same from a remote's words, where these speak of the prompt alone."""
    text = error_text(body)
    found = _CONTEXT.search(text)
    if found is None or any(word in text for word in _OF_AN_ANSWER):
        return None
    n_ctx, n_prompt = _tokens(found[1]), max(map(_tokens, _TOKENS.findall(text)), default=0)
    return (n_prompt, n_ctx) if n_prompt > n_ctx > 0 else None


def _tokens(number: str) -> int:
    return int(number.replace(",", ""))


async def _beginning(response: httpx.Response) -> bytes:
    """Return what an error says, as far as it can be of use."""
    try:
        return await read_all(response, _MAX_ERROR)
    except ValueError:
        return b""


async def _whole_lines(response: httpx.Response) -> AsyncIterator[bytes]:
    """Yield what comes, up to the last end of a line: half a line would spoil what is sent behind it."""
    held = bytearray()
    async for part in response.aiter_bytes():
        end = part.rfind(b"\n") + 1
        if end:
            yield bytes(held) + part[:end]
            held.clear()
        held += part[end:]
        if len(held) > _MAX_LINE:
            raise ValueError(f"a line of its stream is longer than {_MAX_LINE:,} bytes")
    if held:
        yield bytes(held)
