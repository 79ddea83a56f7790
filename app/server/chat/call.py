"""What every call that generates does: check its body, hold the model, make the engine's requests, and fill gaps.

What a request leaves open comes from the options of the server and the settings of the model that answers it.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from app.server.calls.generation import ChoiceUpdate, generate, new_id
from app.server.calls.model_host import ModelHost
from app.server.calls.model_pool import ModelPool
from app.server.calls.schemas import ChatCompletionBody, ChatMessage, GenerationBody
from app.server.calls.speed import answering
from core.values.errors import BadRequest
from core.values.messages import LoadedModel
from core.values.model_settings import ModelSettings
from core.values.request import Constraint, PromptImage, ReplySpeed, Request, ThinkingBudget

_Body = TypeVar("_Body", bound=GenerationBody)


class Begun(NamedTuple):
    """A call that holds its model: the model that answers, and the engine's requests, choices of a prompt together."""

    model: LoadedModel
    requests: list[Request]


class ReplyShape(NamedTuple):
    """What binds the form of a reply; fields as in Request."""

    constraint: Constraint | None
    markers: tuple[str, ...] = ()
    thinking: ThinkingBudget | None = None


class Call(ABC, Generic[_Body]):
    """One call. What kind it is says which prompts it has."""

    PROMPT_FIELD: ClassVar[str]  # the field of the body that prompts are made from
    ID_PREFIX: ClassVar[str]  # of the ids of the engine's requests

    host: ModelHost  # the engine of the model that answers, once it has begun
    begun_at: float  # when the model was there

    def __init__(self, body: _Body, pool: ModelPool) -> None:
        self.body = body
        self.pool = pool

    @property
    def name(self) -> str:
        """The name of the model that answers, once it has begun."""
        return self.host.name

    @abstractmethod
    def check(self) -> None:
        """Raise BadRequest for what cannot be answered, whatever the model is."""

    @abstractmethod
    async def prompts(self, model: LoadedModel) -> Sequence[str | tuple[int, ...]]:
        """Return the prompts, text or token ids; raises BadRequest for what this model does not have."""

    def updates(self, requests: Sequence[Request], *, streams: bool) -> AsyncGenerator[list[ChoiceUpdate], None]:
        """Run the requests; yield what is new of them, all at once where ``streams`` is False."""
        return generate(self.host.bridge, requests, streams=streams, prompt_field=self.PROMPT_FIELD)

    def shape(self, asked: Constraint | None, prompt: str | tuple[int, ...]) -> ReplyShape:
        """Return what the reply to a prompt must look like, given what the body asks for. Raises BadRequest."""
        return ReplyShape(asked)

    @property
    def scores_prompts(self) -> bool:
        """Whether the log probabilities of the prompts' tokens are wanted."""
        return False

    @property
    def reports_progress(self) -> bool:
        """Whether it is told how much of the prompts was read."""
        return bool(self.body.stream and self.body.return_progress)

    @property
    def speculates(self) -> bool:
        """Whether tokens may be drafted for the replies."""
        return True

    def images(self) -> tuple[PromptImage, ...]:
        """Return the images in the prompt; asked once there are prompts."""
        return ()

    @asynccontextmanager
    async def begun(self) -> AsyncIterator[Begun]:
        """Hold the model while the call runs. What is wrong with the body is told before a model is loaded."""
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
            model, by_draft = answering(loaded, speed), speed is ReplySpeed.SPARK
            body.check(model)
            prompts = await self.prompts(model)
            shapes = [self.shape(constraint, prompt) for prompt in prompts]
            yield Begun(
                model,
                [
                    Request(
                        new_id(self.ID_PREFIX),
                        prompt,
                        limit,
                        stop,
                        one,
                        constraint=shape.constraint,
                        lane=speed.lane,
                        by_draft=by_draft,
                        markers=shape.markers,
                        thinking=shape.thinking,
                        images=self.images(),
                        lora=lora,
                        speculates=self.speculates,
                        prompt_logprobs=self.scores_prompts,
                        reports_progress=self.reports_progress,
                    )
                    for prompt, shape in zip(prompts, shapes, strict=True)
                    for one in params
                ],
            )


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
