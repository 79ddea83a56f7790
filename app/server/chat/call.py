"""The one call behind every protocol: check its body, hold the model, make the engine's requests, and fill gaps.

Each protocol translates its bodies to those of a call, and writes what comes of it (``run.py``) in its own shapes.

What a request leaves open comes from the options of the server and the settings of the model that answers it.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, ClassVar, Generic, TypeVar

from app.server.calls.chat_body import ChatCompletionBody, ChatMessage
from app.server.calls.generation import new_id
from app.server.calls.model_host import ModelHost
from app.server.calls.model_pool import ModelPool
from app.server.calls.schemas import GenerationBody, PromptInput
from app.server.calls.speed import answering
from app.server.chat.run import Choice, EngineRun
from core.values.errors import BadRequest
from core.values.messages import LoadedModel
from core.values.model_settings import ModelSettings
from core.values.request import ReplySpeed, Request

_Body = TypeVar("_Body", bound=GenerationBody)


class Call(ABC, Generic[_Body]):
    """One call. What kind it is says which prompts it has."""

    PROMPT_FIELD: ClassVar[str] = "prompt"  # the field of the body that prompts are made from
    ID_PREFIX: ClassVar[str]  # of the ids of the engine's requests

    host: ModelHost  # the engine of the model that answers, once it has begun
    begun_at: float  # when the model was there

    def __init__(self, body: _Body, pool: ModelPool) -> None:
        self.body = body
        self.pool = pool

    def check(self) -> None:
        """Raise BadRequest for what cannot be answered, whatever the model is."""
        if self.body.wanted_speed is ReplySpeed.DEEP:
            raise BadRequest("speed deep is for chats: send messages to /v1/chat/completions.", param="speed")

    @abstractmethod
    async def prompts(self, model: LoadedModel) -> Sequence[PromptInput]:
        """Return the prompts, text or token ids; raises BadRequest for what this model does not have."""

    async def biases(self) -> dict[int, float]:
        """Return what is added to the logits of tokens that only the loaded model can name."""
        return {}

    def completed(self, request: Request) -> Request:
        """Return the request for one of the prompts with what is of this kind of call. Raises BadRequest."""
        return request

    def choice(self) -> Choice:
        """Return what keeps one choice; asked once there are prompts."""
        return Choice()

    def drop_oldest(self, share: float) -> bool:
        """Leave out the oldest turns of a prompt that is too long; False where nothing can be left out.

        They hold at most ``share`` of its text, but at least one goes.
        """
        return False

    @asynccontextmanager
    async def run(self, *, streams: bool) -> AsyncIterator[EngineRun]:
        """Hold the model while the call runs. What is wrong with the body is told before a model is loaded."""
        async with self.begun() as (model, requests):
            yield EngineRun(self, model, requests, streams=streams)

    @asynccontextmanager
    async def begun(self) -> AsyncIterator[tuple[LoadedModel, list[Request]]]:
        """Hold the model that answers, with the engine's requests: the choices of a prompt are together."""
        body = self.body
        self.check()
        limit = self.pool.settings.n_predict if body.token_limit is None else body.token_limit
        stop, constraint = body.stop_strings, body.constraint
        params, speed = list(body.sampling(body.n_top_logprobs)), body.wanted_speed
        async with self.pool.lease(body.model) as self.host:
            self.begun_at = time.monotonic()
            loaded = self.host.model
            assert loaded is not None
            lora = self.host.lora_of(body.lora) if speed is not ReplySpeed.SPARK else ()
            if not loaded.can_write:
                raise BadRequest(
                    "{name} turns texts into vectors and cannot write: name a model that generates text.",
                    name=self.host.name,
                    param="model",
                )
            filled = with_defaults(body, self.host.own, loaded, self.host.sampling)
            if filled is not body:
                body = self.body = filled
                params, speed = list(body.sampling(body.n_top_logprobs)), body.wanted_speed
            model, by_draft = answering(self.host, speed), speed is ReplySpeed.SPARK
            body.check(model)
            prompts = await self.prompts(model)
            if biases := await self.biases():
                params = [replace(one, logit_bias=tuple((dict(one.logit_bias) | biases).items())) for one in params]
            requests: list[Request] = []
            for prompt in prompts:
                request = self.completed(
                    Request(
                        "",
                        prompt,
                        limit,
                        stop,
                        constraint=constraint,
                        lane=speed.lane,
                        by_draft=by_draft,
                        lora=lora,
                        reports_progress=bool(body.stream and body.return_progress),
                        slot=body.wanted_slot,
                        salt=body.salt,
                    )
                )
                requests += [replace(request, id=new_id(self.ID_PREFIX), sampling=one) for one in params]
            yield model, requests


_RECOMMENDED = ModelSettings()


def with_defaults(
    body: _Body, own: ModelSettings, model: LoadedModel, sampling: Mapping[str, Any] | None = None
) -> _Body:
    """Return the body with sampling, speed and system message where it has none; itself where nothing is set.

    ``sampling`` are fields of bodies in place of those of ``own``, as in ``ModelHost.sampling``.
    """
    found = own.sampling if sampling is None else sampling
    if own == _RECOMMENDED and not found:
        return body
    changes: dict[str, Any] = {name: value for name, value in found.items() if getattr(body, name) is None}
    if own.speed is not None and body.speed is None and body.service_tier is None and _can(own.speed, body, model):
        changes["speed"] = own.speed
    if own.system is not None and isinstance(body, ChatCompletionBody) and not _has_system(body):
        changes["messages"] = [ChatMessage(role="system", content=own.system), *body.messages]
    return body.model_copy(update=changes) if changes else body


def _can(speed: str, body: GenerationBody, model: LoadedModel) -> bool:
    """Whether this request can have it: nobody asked for it here, so it must not be refused for it."""
    if speed == ReplySpeed.SPARK:
        return model.spark is not None
    if speed != ReplySpeed.DEEP:
        return True
    try:
        if isinstance(body, ChatCompletionBody):
            body.check_deep()
            return True
    except BadRequest:
        return False
    return False


def _has_system(body: ChatCompletionBody) -> bool:
    return any(message.role in ("system", "developer") for message in body.messages)
