"""POST /completion: a prompt goes on, in llama-server's fields and shapes."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from fastapi import Request as HttpRequest
from fastapi.responses import JSONResponse, Response
from pydantic import Field, field_validator, model_validator

from app.server.calls.call import Begun, Call
from app.server.calls.generation import ChoiceUpdate, tokens_of
from app.server.calls.schemas import MAX_CHOICES, GenerationBody, PromptInput, checked_text
from app.server.http.sse import EventStream, encode_event, while_connected
from app.server.llama_cpp.properties import settings_of
from app.server.openai.timings import LOWEST, prompt_progress, timings, timings_so_far
from core.values.errors import BadRequest
from core.values.messages import Ended, FinishReason, LoadedModel, Logprob, Receipt, Started, TokenLogprob
from core.values.request import MAX_TOP_LOGPROBS, ReplySpeed

_NEVER = -100.0  # a logit bias that leaves a token no chance


class LlamaBody(GenerationBody):
    """The body of POST /completion. What llama-server does not know changes nothing, as there."""

    refused: ClassVar[frozenset[str] | None] = frozenset(["grammar_triggers", "preserved_tokens"])

    prompt: Any
    n_predict: int | None = Field(default=None, ge=-1)
    max_tokens: int | None = Field(default=None, ge=-1)
    n_probs: int | None = Field(default=None, ge=0, le=MAX_TOP_LOGPROBS)
    n_cmpl: int | None = Field(default=None, ge=1, le=MAX_CHOICES)
    t_max_predict_ms: float | None = None
    n_indent: int | None = None
    return_tokens: bool | None = None
    response_fields: list[str] | None = None
    timings_per_token: bool | None = None
    post_sampling_probs: Literal[False] | None = None
    dynatemp_range: float | None = Field(default=None, ge=0, le=0)
    dynatemp_exponent: float | None = None
    min_keep: int | None = Field(default=None, ge=0, le=0)
    adaptive_target: float | None = Field(default=None, lt=0)

    @model_validator(mode="before")
    @classmethod
    def _spelled_as_here(cls, value: Any) -> Any:
        """Take llama-server's spelling of no constraint: an empty text."""
        if not isinstance(value, dict):
            return value
        fields = dict(value)
        for empty in ("grammar", "json_schema"):
            if fields.get(empty) == "":
                fields[empty] = None
        return fields

    @field_validator("logit_bias", mode="before")
    @classmethod
    def _bias_by_token(cls, value: Any) -> Any:
        return _bias_of([list(pair) for pair in value.items()] if isinstance(value, dict) else value)

    @field_validator("prompt")
    @classmethod
    def _is_prompt(cls, value: Any) -> Any:
        listed = value if _is_several(value) else [value]
        return [_prompt_of(one) for one in listed] if _is_several(value) else _prompt_of(listed[0])

    @property
    def prompts(self) -> list[str | tuple[str | int, ...]]:
        """The prompts, each text, or token ids, between which texts may stand."""
        return self.prompt if isinstance(self.prompt, list) else [self.prompt]

    @property
    def token_limit(self) -> int | None:
        """How many tokens may be generated; None for as many as there is room for."""
        limits = {limit for limit in (self.n_predict, self.max_tokens) if limit is not None}
        if len(limits) > 1:
            raise BadRequest("n_predict and max_tokens differ: send one of them.", param="n_predict")
        return next((limit for limit in limits if limit >= 0), None)

    @property
    def n_choices(self) -> int:
        """How many texts are wanted of one prompt."""
        return self.n_cmpl or self.n or 1

    @property
    def n_top_logprobs(self) -> int | None:
        """How many alternatives are listed for each token; None without. Ids of tokens come with them."""
        if self.n_probs:
            return self.n_probs
        return 0 if self.return_tokens else None


def _bias_of(pairs: Any) -> Any:
    if not isinstance(pairs, list):
        return pairs
    found: dict[str, float] = {}
    for pair in pairs:
        if not (isinstance(pair, list) and len(pair) == 2 and type(pair[0]) in (int, str) and _is_bias(pair[1])):
            raise ValueError("logit_bias lists pairs of a token id and a number, or false for a token that never comes")
        found[str(pair[0])] = _NEVER if pair[1] is False else float(pair[1])
    return found


def _is_bias(value: Any) -> bool:
    return value is False or type(value) in (int, float)


def _is_several(value: Any) -> bool:
    if not isinstance(value, list):
        return False
    kinds = {type(one) for one in value}
    return not kinds <= {int} and kinds != {int, str}


def _prompt_of(value: Any) -> str | tuple[str | int, ...]:
    if isinstance(value, dict) and set(value) <= {"prompt_string", "multimodal_data"}:
        if value.get("multimodal_data"):
            raise ValueError("prompt has multimodal_data, which is taken in messages of a chat only")
        value = value.get("prompt_string")
    if isinstance(value, str):
        return checked_text(value)
    if isinstance(value, list) and value and all(isinstance(part, str) or _is_token(part) for part in value):
        return tuple(checked_text(part) if isinstance(part, str) else part for part in value)
    raise ValueError("prompt must be text, a list of token ids and texts, or a list of such prompts")


def _is_token(value: Any) -> bool:
    return type(value) is int and value >= 0


async def completion(body: LlamaBody, http: HttpRequest) -> Response:
    """Continue the prompt, as one object or as a stream."""
    return await respond(LlamaCall(body, http.app.state.pool), http)


async def respond(call: LlamaCall, http: HttpRequest) -> Response:
    """Run the call and answer as one object, as a list of them for several texts, or as a stream."""
    if call.body.stream:
        return EventStream(_stream(call))
    return JSONResponse(await while_connected(http.receive, _answer(call)))


class LlamaCall(Call[LlamaBody]):
    """One call of the route."""

    PROMPT_FIELD = "prompt"
    ID_PREFIX = "llama"

    def check(self) -> None:
        """Raise BadRequest for what cannot be answered, whatever the model is."""
        if self.body.wanted_speed is ReplySpeed.DEEP:
            raise BadRequest("speed deep is for chats: send messages to /v1/chat/completions.", param="speed")
        n_requests = len(self.body.prompts) * self.body.n_choices
        if not 1 <= n_requests <= MAX_CHOICES:
            raise BadRequest(f"At most {MAX_CHOICES} texts are written at once, not {n_requests}.", param="prompt")

    async def prompts(self, model: LoadedModel) -> Sequence[PromptInput]:
        """Return the prompts."""
        return [await self._plain(prompt) for prompt in self.body.prompts]

    async def _plain(self, prompt: str | tuple[str | int, ...]) -> PromptInput:
        """Return a prompt as text or as token ids alone."""
        if isinstance(prompt, str):
            return prompt
        ids = tuple(part for part in prompt if isinstance(part, int))
        if len(ids) == len(prompt):
            return ids
        return await tokens_of(self.host.bridge, *prompt, add_special=True)


async def _answer(call: LlamaCall) -> Any:
    async with call.begun() as begun:
        reply = LlamaReply(call, begun)
        async with aclosing(call.updates(begun.requests, streams=reply.watches)) as batches:
            async for batch in batches:
                for news in batch:
                    reply.take(news)
        texts = [reply.whole(index) for index in range(len(begun.requests))]
        return texts[0] if len(texts) == 1 else texts


async def _stream(call: LlamaCall) -> AsyncGenerator[bytes, None]:
    async with call.begun() as begun:
        reply = LlamaReply(call, begun)
        async with aclosing(call.updates(begun.requests, streams=True)) as batches:
            async for batch in batches:
                if chunk := b"".join(reply.chunk(news) for news in batch):
                    yield chunk


@dataclass(slots=True)
class _LlamaText:
    """What has come of one text so far."""

    pieces: list[str] = field(default_factory=list)
    logprobs: list[TokenLogprob] = field(default_factory=list)
    n_tokens: int = 0
    started: Started | None = None
    first_at: float | None = None
    line: str = ""  # what has come of the last line
    has_new_line: bool = False
    is_enough: bool = False  # by its time or its indentation
    end: Ended | None = None


class LlamaReply:
    """Puts what comes of one call into llama-server's shapes, and ends texts that have enough."""

    def __init__(self, call: LlamaCall, begun: Begun) -> None:
        self._call, self._requests, self._model = call, begun.requests, begun.model
        self._body = call.body
        self._texts = [_LlamaText() for _ in begun.requests]

    @property
    def watches(self) -> bool:
        """True where a text may end by its time or its indentation: it is looked at as it comes."""
        return bool(self._body.t_max_predict_ms or self._body.n_indent)

    def take(self, news: ChoiceUpdate) -> str:
        """Keep what is new of a text; return what may be shown of it."""
        text = self._texts[news.index]
        if news.started is not None:
            text.started = news.started
        text.n_tokens += news.n_tokens
        text.logprobs += news.logprobs
        if text.n_tokens and text.first_at is None:
            text.first_at = time.monotonic()
        shown = "" if text.is_enough else self._until_enough(text, news.text)
        text.pieces.append(shown)
        text.end = news.end
        if text.is_enough and news.end is None:
            self._call.host.bridge.cancel(self._requests[news.index].id)
        return shown

    def chunk(self, news: ChoiceUpdate) -> bytes:
        """Return the event for what is new of a text."""
        shown, text = self.take(news), self._texts[news.index]
        event: dict[str, Any] = {
            "index": news.index,
            "content": "",
            "tokens": [],
            "stop": False,
            "id_slot": -1,
            "tokens_predicted": text.n_tokens,
            "tokens_evaluated": text.started.n_prompt if text.started is not None else 0,
        }
        if news.read is not None:
            event["prompt_progress"] = prompt_progress(news.read)
        if news.end is not None:
            # Where all of it comes at once, what was read is still told.
            told = b"" if news.read is None else encode_event(event)
            return told + encode_event(self.whole(news.index) | {"content": shown, "tokens": self._ids(news.logprobs)})
        if not shown and not news.logprobs and news.read is None:
            return b""
        event |= {"content": shown, "tokens": self._ids(news.logprobs)}
        if self._body.n_probs and news.logprobs:
            event["completion_probabilities"] = [_probability(one) for one in news.logprobs]
        if self._body.timings_per_token and text.first_at is not None:
            event["timings"] = timings_so_far(text.n_tokens, text.started, text.first_at)
        return encode_event(event)

    def whole(self, index: int) -> dict[str, Any]:
        """Return the object of a text that has ended."""
        text, request = self._texts[index], self._requests[index]
        end = text.end or Ended(request.id, FinishReason.CANCELLED)
        receipt: Receipt = end.receipt
        content = "".join(text.pieces)
        stop_type = _stop_type(text, end)
        found: dict[str, Any] = {
            "index": index,
            "content": content,
            "tokens": self._ids(text.logprobs),
            "id_slot": -1,
            "stop": True,
            "model": self._call.host.name,
            "tokens_predicted": receipt.n_generated,
            "tokens_evaluated": receipt.n_prompt,
            "generation_settings": settings_of(request.sampling, request),
            "prompt": request.prompt if isinstance(request.prompt, str) else list(request.prompt),
            "has_new_line": "\n" in content,
            "truncated": False,
            "stop_type": stop_type,
            "stopping_word": end.stop or "",
            "tokens_cached": _n_kept(receipt, stop_type),
            "timings": timings([receipt]),
        }
        if self._body.n_probs:
            found["completion_probabilities"] = [_probability(one) for one in text.logprobs]
        return _only(found, self._body.response_fields)

    def _until_enough(self, text: _LlamaText, news: str) -> str:
        """Return what may still be shown. A text may end at a line with less indentation, or when its time is over."""
        if not self.watches:
            return news
        shown = []
        for line in news.splitlines(keepends=True):
            text.line += line
            wanted = self._body.n_indent or 0
            indent = len(text.line) - len(text.line.lstrip(" \t"))
            if text.has_new_line and indent < wanted and text.line.strip():
                text.is_enough = True
                break
            shown.append(line)
            if line.endswith("\n"):
                text.line, text.has_new_line = "", True
        limit = self._body.t_max_predict_ms
        if limit and text.has_new_line and text.first_at is not None:
            text.is_enough |= (time.monotonic() - text.first_at) * 1_000 > limit
        return "".join(shown)

    def _ids(self, logprobs: Sequence[TokenLogprob]) -> list[int]:
        return [one.chosen.token for one in logprobs] if self._body.return_tokens else []


def _stop_type(text: _LlamaText, end: Ended) -> str:
    if text.is_enough or end.reason is FinishReason.LENGTH:
        return "limit"
    return "word" if end.stop else "eos"


def _n_kept(receipt: Receipt, stop_type: str) -> int:
    """Return how many tokens the slot keeps. The last one is chosen and not evaluated; an end is no token here."""
    is_last_open = stop_type != "eos" and receipt.n_generated > 0
    return receipt.n_prompt + receipt.n_generated - is_last_open


def _probability(one: TokenLogprob) -> dict[str, Any]:
    return _wire(one.chosen) | {"top_logprobs": [_wire(other) for other in one.top]}


def _wire(one: Logprob) -> dict[str, Any]:
    text = one.piece.decode("utf-8", "replace")
    return {"id": one.token, "token": text, "bytes": list(one.piece), "logprob": max(one.logprob, LOWEST)}


def _only(found: dict[str, Any], wanted: list[str] | None) -> dict[str, Any]:
    """Return the wanted fields by their paths; ``a/b`` is the field b of a. Those that are not there are left out."""
    if not wanted:
        return found
    chosen: dict[str, Any] = {}
    for path in wanted:
        value: Any = found
        for part in path.split("/"):
            value = value.get(part) if isinstance(value, dict) else None
        if value is not None:
            chosen[path] = value
    return chosen
