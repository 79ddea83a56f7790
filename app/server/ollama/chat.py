"""POST /api/chat and /api/generate: chats and texts in Ollama's objects, one in a line of a stream."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from typing import Any, Literal

from fastapi import Request as HttpRequest
from fastapi.responses import JSONResponse, Response

from app.server.calls.chat_body import ChatCompletionBody
from app.server.calls.generation import ChoiceUpdate, text_of, tokens_of
from app.server.calls.model_pool import ModelPool, pool_of
from app.server.chat.chat_call import ChatCall
from app.server.chat.run import AnyCall, Reply, Run, respond
from app.server.http.errors import ApiError, refuse
from app.server.http.keys import manages
from app.server.http.limits import check_manages
from app.server.http.sse import LineStream, while_connected
from app.server.llama_cpp.completion import LlamaCall
from app.server.llama_cpp.infill import InfillBody, InfillCall
from app.server.ollama.bodies import GenerateBody, OllamaChatBody, RunBody, WritingBody
from app.server.openai.timings import token_logprob
from app.server.remotes.chat import AtRemote, chat_at, where_it_runs
from app.server.remotes.exchange import model_at_remote
from app.server.replies.json_text import read_json
from app.server.replies.pieces import CallBegun, CallEnded, ContentText, ReasoningText
from app.server.templates.chat_template import TemplateRenderer, Turn
from core.values.errors import SlipstreamError
from core.values.messages import FinishReason, LoadedModel, TokenLogprob

Line = dict[str, Any]
Kind = Literal["chat", "generate"]


async def chat(body: OllamaChatBody, http: HttpRequest) -> Response:
    """Answer the messages, in lines or as one object; without messages, load or unload the model."""
    pool = pool_of(http)
    if not body.messages:
        return await _prepared(http, body, "chat")
    call = await where_it_runs(http, ChatCall(body.chat(), pool, http.app.state.renderer))
    return await _response(http, call, body, "chat")


async def generate(body: GenerateBody, http: HttpRequest) -> Response:
    """Answer the prompt, go on with it (``raw``) or fill in the middle (``suffix``)."""
    pool = pool_of(http)
    if not body.prompt and not body.suffix:
        return await _prepared(http, body, "generate")
    there = await model_at_remote(http, body.model)
    if there is not None and body.context:
        raise refuse(
            400, f"{there.name} is a remote's model, whose tokens are not known here: use /api/chat.", param="context"
        )
    if not body.is_text:
        prompt = PromptCall(body.chat(), pool, http.app.state.renderer, tuple(body.context or ()))
        at = prompt if there is None else chat_at(http.app.state.remotes, there, prompt)
        return await _response(http, at, body, "generate")
    text = body.text()
    call = InfillCall(text, pool) if isinstance(text, InfillBody) else LlamaCall(text, pool)
    if there is None:
        return await _response(http, call, body, "generate")
    made = body.openai_text()
    at_remote = AtRemote(http.app.state.remotes, there, call, "/v1/completions", lambda: made)
    return await _response(http, at_remote, body, "generate")


def shown_name(name: str) -> str:
    """Return a model's name with a tag, as Ollama's have: clients add ``:latest`` to one without and look it up."""
    return name if ":" in name.rpartition("/")[2] else f"{name}:latest"


def nanoseconds(seconds: float) -> int:
    """Return a duration; never 0, which clients would divide by."""
    return max(round(seconds * 1e9), 1)


@asynccontextmanager
async def resting(pool: ModelPool, body: RunBody) -> AsyncIterator[None]:
    """Unload the model behind a call that asks for it (``keep_alive: 0``), as soon as nobody else uses it.

    Clients send that along with any call: for a key that only uses models it changes nothing.
    """
    try:
        yield
    finally:
        if body.unloads and manages.get():
            with contextlib.suppress(ApiError, SlipstreamError):  # it has left meanwhile
                await pool.request_unload(body.model)


class PromptCall(ChatCall):
    """A chat of one message, which goes on from the tokens of an earlier answer (``context``)."""

    def __init__(
        self, body: ChatCompletionBody, pool: ModelPool, renderer: TemplateRenderer, context: tuple[int, ...]
    ) -> None:
        super().__init__(body, pool, renderer)
        self._context = context
        self._earlier = ""

    async def prompts(self, model: LoadedModel) -> Sequence[str]:
        """Return what was said earlier and then the message."""
        (prompt,) = await super().prompts(model)
        if self._context:
            self._earlier = await text_of(self.host.bridge, self._context)
        return [self._joined(prompt, model)]

    async def context_after(self, model: LoadedModel, answer: str) -> list[int]:
        """Return the tokens of all that was said, with the answer."""
        told = {"role": "assistant", "content": answer}
        variables = self.body.template_variables()
        text = await self.renderer.render(model, variables | {"messages": [*variables["messages"], told]}, Turn.NONE)
        return list(await tokens_of(self.host.bridge, self._joined(text, model)))

    def _joined(self, text: str, model: LoadedModel) -> str:
        return self._earlier + text.removeprefix(model.bos) if self._earlier else text


async def _prepared(http: HttpRequest, body: WritingBody, kind: Kind) -> Response:
    """Load the model, or unload it with ``keep_alive: 0``; either way it is over. A remote's is where it is."""
    pool = pool_of(http)
    name = body.model
    is_remote = await model_at_remote(http, body.model) is not None

    async def prepare() -> None:
        nonlocal name
        if is_remote:
            return
        if not body.unloads:
            async with pool.lease(body.model) as host:
                name = shown_name(host.name)
            return
        await check_manages(http)
        async with resting(pool, body):
            pass

    await while_connected(http.receive, prepare())
    return JSONResponse(_line(kind, name) | {"done": True, "done_reason": "unload" if body.unloads else "load"})


async def _response(http: HttpRequest, call: AnyCall[Any], body: WritingBody, kind: Kind) -> Response:
    """Run the call; of a chat that is too long the oldest turns are left out, as there."""
    if isinstance(call, ChatCall) and body.think not in (None, False):
        call.must_think = "think"
    return await respond(
        http,
        call,
        partial(OllamaReply, kind, time.monotonic(), call),
        streams=body.streams,
        truncates=body.truncate is not False,
        names=body.sent_fields,
        around=resting(pool_of(http), body),
        stream=partial(LineStream, ping=_encoded(_line(kind, shown_name(body.model)))),
    )


def _encoded(line: Line) -> bytes:
    return json.dumps(line, separators=(",", ":")).encode() + b"\n"


def _line(
    kind: Kind,
    name: str,
    content: str = "",
    thinking: str = "",
    calls: Sequence[Line] = (),
    logprobs: Sequence[TokenLogprob] = (),
) -> Line:
    """Return a line with what is told in it."""
    said: Line = {"role": "assistant", "content": content} if kind == "chat" else {"response": content}
    if thinking:
        said["thinking"] = thinking
    if calls:
        said["tool_calls"] = list(calls)
    created = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    line: Line = {"model": name, "created_at": created}
    line |= {"message": said} if kind == "chat" else said
    if logprobs:
        line["logprobs"] = [token_logprob(one) for one in logprobs]
    return line | {"done": False}


class OllamaReply(Reply):
    """Writes a reply in lines."""

    def __init__(self, kind: Kind, asked_at: float, call: AnyCall[Any], run: Run) -> None:
        """``asked_at`` is on ``time.monotonic``."""
        self._kind, self._asked_at, self._call, self._run = kind, asked_at, call, run
        self._choice = run.choices[0]
        self._n_begun = 0  # calls
        self._calls: list[Line] = []  # that are whole

    def take(self, update: ChoiceUpdate) -> None:
        """Keep the calls that are whole now. One that was cut is left out: its arguments are no object."""
        for piece in update.pieces:
            self._n_begun += isinstance(piece, CallBegun)
            if isinstance(piece, CallEnded):
                call = self._choice.calls[self._n_begun - 1]
                with contextlib.suppress(ValueError, RecursionError):
                    arguments = read_json(call.arguments or "{}")
                    function = {"index": len(self._calls), "name": call.name, "arguments": arguments}
                    self._calls.append({"id": call.id, "function": function})

    def chunk(self, update: ChoiceUpdate) -> bytes:
        """Return the line that tells what is new."""
        n_before = len(self._calls)
        self.take(update)
        content = "".join(piece.text for piece in update.pieces if isinstance(piece, ContentText))
        thinking = "".join(piece.text for piece in update.pieces if isinstance(piece, ReasoningText))
        calls = self._calls[n_before:]
        if not (content or thinking or calls or update.logprobs):
            return b""
        return _encoded(self._line(content, thinking, calls, update.logprobs))

    async def closing(self) -> bytes:
        """Return the line that ends the reply."""
        return _encoded(self._line() | await self._cost())

    async def whole(self) -> Line:
        """Return the whole reply as one object."""
        choice = self._choice
        line = self._line(choice.text, "".join(choice.reasoning), self._calls, choice.logprobs)
        return line | await self._cost()

    def _line(self, *told: Any) -> Line:
        return _line(self._kind, shown_name(self._run.name), *told)

    async def _cost(self) -> Line:
        assert self._choice.end is not None
        receipt, now = self._choice.end.receipt, time.monotonic()
        return {
            "done": True,
            "done_reason": "length" if self._choice.end.reason is FinishReason.LENGTH else "stop",
            "total_duration": nanoseconds(now - self._asked_at),
            "load_duration": nanoseconds(self._run.begun_at - self._asked_at),
            "prompt_eval_count": receipt.n_prompt,
            "prompt_eval_duration": nanoseconds(receipt.prefill),
            "eval_count": receipt.n_generated,
            "eval_duration": nanoseconds(receipt.decode or receipt.prefill),  # a single token comes with the prompt
            **await self._context(),
        }

    async def _context(self) -> Line:
        """Return the tokens with which a prompt's conversation goes on; nothing for chats, plain texts and images."""
        call = self._call
        if not isinstance(call, PromptCall) or call.host.model is None or call.body.images:
            return {}
        try:
            return {"context": await call.context_after(call.host.model, self._choice.text)}
        except (ApiError, SlipstreamError):  # a template that takes no answers; this one is whole
            return {}
