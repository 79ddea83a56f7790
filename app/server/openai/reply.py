"""What replies to chats and to text prompts have in common on OpenAI's wire."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Generic, Protocol, TypeVar

from app.server.calls.call import Call
from app.server.calls.schemas import GenerationBody
from app.server.calls.speed import marks
from app.server.http.sse import DONE, encode_event
from app.server.openai.timings import Identity, fingerprint, prompt_progress, timings, usage
from core.values.messages import Ended, LoadedModel, PromptRead, Receipt


class ReplyChoice(Protocol):
    """What has come of one choice so far."""

    end: Ended | None


_Choice = TypeVar("_Choice", bound=ReplyChoice)


def identity(call: Call[Any], id_prefix: str, kind: str, model: LoadedModel, request_id: str) -> Identity:
    """Return what every object of the answer repeats; its id is that of the first request, with another beginning."""
    served = marks(model, call.body.wanted_speed, call.body.service_tier)
    return Identity(f"{id_prefix}-{request_id.partition('-')[2]}", kind, call.host.name, fingerprint(model), served)


class Reply(ABC, Generic[_Choice]):
    """Puts the choices of one call into OpenAI's shapes."""

    def __init__(self, body: GenerationBody, who: Identity, choices: Sequence[_Choice]) -> None:
        self._identity = who
        self._choices = choices
        self._n_prompts = len(choices) // body.n_choices
        self._includes_usage = body.includes_usage
        # Most chunks are put together by hand: that runs for every token of every stream.
        self._head = "data: " + json.dumps(who.head(), separators=(",", ":"))[:-1]
        rest = ',"usage":null' if body.includes_usage else ""
        self._tail = f',"logprobs":null,"finish_reason":null}}]{rest}'

    def whole(self) -> dict[str, Any]:
        """Return the object of a call that does not stream."""
        choices = [self._wire(index, choice) for index, choice in enumerate(self._choices)]
        return self._identity.head() | {"choices": choices, **self._cost()}

    def closing(self) -> bytes:
        """Return the end of the stream."""
        if not self._includes_usage:
            return DONE
        return encode_event(self._identity.head() | {"choices": [], **self._cost()}) + DONE

    def _progress(self, index: int, content: dict[str, Any], read: PromptRead | None) -> bytes:
        """Return a chunk with how much of the prompt was read; nothing where that is not new."""
        return b"" if read is None else self._chunk(index, content, prompt_progress=prompt_progress(read))

    @abstractmethod
    def _wire(self, index: int, choice: _Choice) -> dict[str, Any]: ...

    def _cost(self) -> dict[str, Any]:
        receipts = [choice.end.receipt for choice in self._choices if choice.end is not None]
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
