"""What both kinds of generation calls do: hold the model, run the requests, and send what comes of them."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

from fastapi.responses import JSONResponse, Response
from starlette.types import Receive

from app.server.calls.generation import ChoiceUpdate, generate, new_id, receipts_in_order
from app.server.calls.model_host import ModelHost
from app.server.http.sse import DONE, EventStream, encode_event, while_connected
from app.server.openai.model_defaults import with_defaults
from app.server.openai.schemas import GenerationBody
from app.server.openai.speed import ReplySpeed, answering, marks
from app.server.openai.timings import Identity, fingerprint, timings, usage
from core.values.messages import Ended, FinishReason, LoadedModel
from core.values.receipt import Receipt
from core.values.request import Request

_Body = TypeVar("_Body", bound=GenerationBody)


class Begun(NamedTuple):
    """A call that holds its model: the model that answers, and the engine's requests, choices of a prompt together."""

    model: LoadedModel
    requests: list[Request]


class Call(ABC, Generic[_Body]):
    """One call of an endpoint. What kind it is says which prompts it has and what its reply looks like."""

    PROMPT_FIELD: ClassVar[str]  # the field of the body that prompts are made from
    ID_PREFIX: ClassVar[str]  # of the ids of the engine's requests

    def __init__(self, body: _Body, host: ModelHost) -> None:
        self.body = body
        self.host = host

    async def respond(self, receive: Receive) -> Response:
        """Return the answer, as one object or as a stream."""
        if self.body.stream:
            return EventStream(self.stream())
        return JSONResponse(await while_connected(receive, self.answer()))

    async def answer(self) -> dict[str, Any]:
        """Return the answer as one object."""
        async with self._begun() as begun:
            reply = self.reply(begun)
            async with aclosing(reply.prepare()) as preparing:
                async for _ in preparing:
                    pass
            async with aclosing(self._updates(reply, streams=False)) as batches:
                async for batch in batches:
                    for news in batch:
                        reply.add(news)
            return reply.whole()

    async def stream(self) -> AsyncGenerator[bytes, None]:
        """Yield the chunks as server-sent events."""
        async with self._begun() as begun:
            reply = self.reply(begun)
            async with aclosing(reply.prepare()) as preparing:
                async for progress in preparing:
                    yield progress
            chunks = reply.opening()
            async with aclosing(self._updates(reply, streams=True)) as batches:
                async for batch in batches:
                    for news in batch:
                        chunks += reply.chunks(news)
                        if reply.has_enough(news.index):
                            self.host.bridge.cancel(reply.requests[news.index].id)
                    if chunks:
                        yield chunks
                    chunks = b""
            yield reply.closing()

    @abstractmethod
    def check(self) -> None:
        """Raise BadRequest for what cannot be answered, whatever the model is."""

    @abstractmethod
    async def prompts(self, model: LoadedModel) -> Sequence[str | tuple[int, ...]]:
        """Return the prompts, text or token ids; raises BadRequest for what this model does not have."""

    @abstractmethod
    def reply(self, begun: Begun) -> Reply[Any]:
        """Return what puts the answer into OpenAI's shape."""

    def identity(self, id_prefix: str, kind: str, model: LoadedModel) -> Identity:
        """Return what every object of the answer repeats."""
        served = marks(model, self.body.wanted_speed, self.body.service_tier)
        return Identity(new_id(id_prefix), kind, self.host.name, fingerprint(model), served)

    def _updates(self, reply: Reply[Any], *, streams: bool) -> AsyncGenerator[list[ChoiceUpdate], None]:
        return generate(self.host.bridge, reply.requests, streams=streams, prompt_field=self.PROMPT_FIELD)

    @asynccontextmanager
    async def _begun(self) -> AsyncIterator[Begun]:
        """Hold the model while the call runs. What is wrong with the body is told before a model is loaded."""
        body = self.body
        self.check()
        limit, stop, constraint = body.token_limit, body.stop_strings, body.constraint
        params, speed = list(body.sampling(body.n_top_logprobs)), body.wanted_speed
        async with self.host.lease(body.model) as loaded:
            filled = with_defaults(body, self.host.own, loaded)
            if filled is not body:
                body = self.body = filled
                params, speed = list(body.sampling(body.n_top_logprobs)), body.wanted_speed
            model, by_draft = answering(loaded, speed), speed is ReplySpeed.SPARK
            body.check(model)
            prompts = await self.prompts(model)
            yield Begun(
                model,
                [
                    Request(
                        new_id(self.ID_PREFIX),
                        prompt,
                        limit,
                        stop,
                        one,
                        constraint=constraint,
                        lane=speed.lane,
                        by_draft=by_draft,
                    )
                    for prompt in prompts
                    for one in params
                ],
            )


class Choice(Protocol):
    """What has come of one choice so far."""

    end: Ended | None


_Choice = TypeVar("_Choice", bound=Choice)


class Reply(ABC, Generic[_Choice]):
    """Puts the choices of one call into OpenAI's shapes."""

    def __init__(
        self, body: GenerationBody, identity: Identity, requests: list[Request], choices: list[_Choice]
    ) -> None:
        self.requests = requests
        self._identity = identity
        self._choices = choices
        self._n_prompts = len(requests) // body.n_choices
        self._includes_usage = body.includes_usage
        # Most chunks are put together by hand: that runs for every token of every stream.
        self._head = "data: " + json.dumps(identity.head(), separators=(",", ":"))[:-1]
        rest = ',"usage":null' if body.includes_usage else ""
        self._tail = f',"logprobs":null,"finish_reason":null}}]{rest}'

    async def prepare(self) -> AsyncGenerator[bytes, None]:
        """Do what comes before the requests, which it may replace; yield chunks that say how far that is."""
        none: tuple[bytes, ...] = ()
        for chunk in none:
            yield chunk

    @abstractmethod
    def add(self, news: ChoiceUpdate) -> None:
        """Keep what is new of a choice for the whole object."""

    def has_enough(self, index: int) -> bool:
        """Whether a choice that still runs has all that may be in it."""
        return False

    def whole(self) -> dict[str, Any]:
        """Return the object of a call that does not stream."""
        choices = [self._wire(index, choice) for index, choice in enumerate(self._choices)]
        return self._identity.head() | {"choices": choices, **self._cost()}

    @abstractmethod
    def opening(self) -> bytes:
        """Return the chunks that come first, where ``prepare`` has not sent them."""

    @abstractmethod
    def chunks(self, news: ChoiceUpdate) -> bytes:
        """Return the chunks for what is new of a choice."""

    def closing(self) -> bytes:
        """Return the end of the stream."""
        if not self._includes_usage:
            return DONE
        return encode_event(self._identity.head() | {"choices": [], **self._cost()}) + DONE

    @abstractmethod
    def _wire(self, index: int, choice: _Choice) -> dict[str, Any]: ...

    def _cost(self) -> dict[str, Any]:
        ends = {index: choice.end for index, choice in enumerate(self._choices) if choice.end is not None}
        receipts = receipts_in_order(ends)
        return {"usage": self._usage(receipts), "timings": self._timings(receipts)}

    def _usage(self, receipts: list[Receipt]) -> dict[str, Any]:
        return usage(receipts, self._n_prompts)

    def _timings(self, receipts: list[Receipt]) -> dict[str, Any]:
        return timings(receipts)

    def _chunk(
        self,
        index: int,
        content: dict[str, Any],
        logprobs: dict[str, Any] | None = None,
        finish_reason: str | None = None,
        **more: Any,
    ) -> bytes:
        choice = {"index": index, **content, "logprobs": logprobs, "finish_reason": finish_reason}
        null_usage = {"usage": None} if self._includes_usage else {}
        return encode_event(self._identity.head() | {"choices": [choice]} | null_usage | more)


def finish_reason(end: Ended | None) -> str:
    """Return why a choice ended, in OpenAI's words."""
    return "length" if end is not None and end.reason is FinishReason.LENGTH else "stop"
