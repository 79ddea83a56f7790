"""POST /v1/completions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from fastapi import Request as HttpRequest
from fastapi.responses import Response

from app.server.calls.generation import ChoiceUpdate, text_of
from app.server.calls.model_pool import pool_of
from app.server.calls.schemas import MAX_CHOICES, CompletionBody, PromptInput
from app.server.chat.call import Call
from app.server.chat.run import Choice, EngineRun, respond
from app.server.http.sse import encode_text
from app.server.openai.timings import OpenAiReply, text_logprobs
from core.values.errors import BadRequest
from core.values.messages import LoadedModel
from core.values.request import Request


async def completions(body: CompletionBody, http: HttpRequest) -> Response:
    """Continue the prompts, as one object or as a stream."""
    return await reply_with(TextReply, body, http)


async def reply_with(kind: type[TextReply], body: CompletionBody, http: HttpRequest) -> Response:
    """Continue the prompts with a reply of this kind."""
    call = CompletionCall(body, pool_of(http))
    return await respond(http, call, partial(kind, call), streams=body.stream)


class CompletionCall(Call[CompletionBody]):
    """One call of the endpoint."""

    ID_PREFIX = "text"

    echoes: Sequence[str] = ()
    """The text before each choice, where it is wanted; known once there are prompts."""

    def check(self) -> None:
        """Raise BadRequest for what cannot be answered, whatever the model is."""
        super().check()
        body = self.body
        n_requests = len(body.prompts) * body.n_choices
        if not 1 <= n_requests <= MAX_CHOICES:
            raise BadRequest(f"prompts times n must be between 1 and {MAX_CHOICES}, not {n_requests}.", param="prompt")
        has_tokens = any(not isinstance(prompt, str) for prompt in body.prompts)
        if body.echo and body.suffix is not None:
            raise BadRequest("echo and suffix do not go together: leave one of them out.", param="echo")
        if body.suffix is not None and has_tokens:
            raise BadRequest("suffix works with text prompts, not with token ids.", param="suffix")

    def completed(self, request: Request) -> Request:
        """Return the request with whether the log probabilities of its prompt's tokens are wanted."""
        return replace(request, prompt_logprobs=bool(self.body.echo) and self.body.logprobs is not None)

    async def prompts(self, model: LoadedModel) -> Sequence[PromptInput]:
        """Return the prompts, with what fill-in-the-middle needs around them."""
        if self.body.echo:
            self.echoes = [await self._text(prompt) for prompt in self.body.prompts for _ in range(self.body.n_choices)]
        return [self._around(prompt, model) for prompt in self.body.prompts]

    async def _text(self, prompt: PromptInput) -> str:
        return prompt if isinstance(prompt, str) else await text_of(self.host.bridge, prompt)

    def _around(self, prompt: PromptInput, model: LoadedModel) -> PromptInput:
        """Return the prompt, with the suffix by the model's fill-in-the-middle tokens where one is given."""
        if self.body.suffix is None or isinstance(prompt, tuple):
            return prompt
        if model.fim is None:
            raise BadRequest("This model cannot fill in the middle: leave suffix out.", param="suffix")
        prefix, suffix, middle, *_ = model.fim
        return f"{prefix}{prompt}{suffix}{self.body.suffix}{middle}"


class TextReply(OpenAiReply):
    """Puts the choices of one call into OpenAI's shapes."""

    def __init__(self, call: CompletionCall, run: EngineRun) -> None:
        super().__init__(call, run, "cmpl", "text_completion")
        self._echoes = call.echoes or [""] * len(run.choices)
        self._has_logprobs = call.body.logprobs is not None
        self._heads = [f'{self._head},"choices":[{{"index":{i},"text":' for i in range(len(self._choices))]
        self._n_chars = [0] * len(self._choices)  # of the tokens whose log probabilities were sent

    def _wire(self, index: int, choice: Choice) -> dict[str, Any]:
        return {
            "index": index,
            "text": f"{self._echoes[index]}{choice.text}",
            "logprobs": text_logprobs(choice.logprobs, 0) if self._has_logprobs else None,
            "finish_reason": choice.finish_reason,
        }

    def opening(self) -> bytes:
        """Return the chunks with the prompts, where they are wanted."""
        return b"".join(self._chunk(index, {"text": str(echo)}) for index, echo in enumerate(self._echoes) if echo)

    def chunk(self, update: ChoiceUpdate) -> bytes:
        """Return the chunks for what is new of a choice."""
        return self._progress(update.index, {"text": ""}, update.read) + self._said(update)

    def _said(self, update: ChoiceUpdate) -> bytes:
        index, found = update.index, update.prompt_logprobs + update.logprobs
        so_far = self._so_far(index)
        if update.end is None and not found:
            # The common case is put together by hand: it runs for every token of every stream.
            text = encode_text(update.text)
            count = f",{json.dumps(so_far)[1:-1]}" if so_far else ""
            return f"{self._heads[index]}{text}{self._tail}{count}}}\n\n".encode() if update.text else b""
        logprobs = None
        if self._has_logprobs and found:
            logprobs = text_logprobs(found, self._n_chars[index])
            self._n_chars[index] += sum(len(text) for text in logprobs["tokens"])
        content = {"text": update.text}
        if update.end is None:
            return self._chunk(index, content, logprobs, **so_far)
        why, cost = self._choices[index].finish_reason, self._timings([update.end.receipt])
        return self._chunk(index, content, logprobs, finish_reason=why, **so_far | {"timings": cost})
