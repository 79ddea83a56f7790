"""POST /completion: a prompt goes on, in llama-server's fields and shapes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

from fastapi import Request as HttpRequest
from fastapi.responses import Response
from pydantic import Field, field_validator, model_validator

from app.server.calls.generation import ChoiceUpdate, tokens_of
from app.server.calls.model_pool import pool_of
from app.server.calls.schemas import MAX_CHOICES, GenerationBody, PromptInput, checked_text, is_token_id, is_token_ids
from app.server.chat.call import Call
from app.server.chat.run import Choice, EngineRun, Reply, respond
from app.server.http.body import HINT
from app.server.http.sse import encode_event
from app.server.llama_cpp.properties import sampling_settings
from app.server.openai.timings import prompt_progress, timings, timings_so_far, token_logprob
from app.server.replies.pieces import ContentText, Piece
from core.values.errors import BadRequest
from core.values.messages import Ended, FinishReason, LoadedModel, Receipt, TokenLogprob
from core.values.request import MAX_TOP_LOGPROBS

_NEVER = -100.0  # a logit bias that leaves a token no chance
_LONGEST_BIASED, _MOST_BIASED = 200, 256  # characters of a text in logit_bias, and texts: words and names


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
    timings_per_token: Annotated[bool | None, HINT] = None
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

    @field_validator("logit_bias")
    @classmethod
    def _bias_is_usable(cls, bias: dict[str, float] | None) -> dict[str, float] | None:
        """Take texts too: the bias is that of each of their tokens."""
        if sum(not is_token_id(text) for text in bias or ()) > _MOST_BIASED:
            raise ValueError(f"logit_bias takes at most {_MOST_BIASED} texts")
        for text, value in (bias or {}).items():
            if not (0 < len(text) <= _LONGEST_BIASED and -100.0 <= value <= 100.0):
                raise ValueError(f"logit_bias gives tokens and short texts numbers from -100 to 100, not {value}")
        return bias

    @field_validator("prompt")
    @classmethod
    def _is_prompt(cls, value: Any) -> Any:
        return [_prompt_of(one) for one in value] if _is_several(value) else _prompt_of(value)

    @property
    def prompts(self) -> list[str | tuple[str | int, ...]]:
        """The prompts, each text, or token ids, between which texts may stand."""
        return self.prompt if isinstance(self.prompt, list) else [self.prompt]

    @property
    def token_limit(self) -> int | None:
        """How many tokens may be generated; None for as many as there is room for."""
        limit: int | None = self.agreed("n_predict", "max_tokens")
        return limit if limit is not None and limit >= 0 else None

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
            raise ValueError(
                "logit_bias lists pairs of a token id or a text and a number, or false for a token that never comes"
            )
        found[checked_text(str(pair[0]))] = _NEVER if pair[1] is False else float(pair[1])
    return found


def _is_bias(value: Any) -> bool:
    return value is False or type(value) in (int, float)


def _is_several(value: Any) -> bool:
    if not isinstance(value, list):
        return False
    kinds = set(map(type, value))
    return not kinds <= {int} and kinds != {int, str}


def _prompt_of(value: Any) -> str | tuple[str | int, ...]:
    if isinstance(value, dict) and set(value) <= {"prompt_string", "multimodal_data"}:
        if value.get("multimodal_data"):
            raise ValueError("prompt has multimodal_data, which is taken in messages of a chat only")
        value = value.get("prompt_string")
    if isinstance(value, str):
        return checked_text(value)
    if is_token_ids(value):
        return tuple(value)
    if isinstance(value, list) and value and all(isinstance(part, str) or _is_token(part) for part in value):
        return tuple(checked_text(part) if isinstance(part, str) else part for part in value)
    raise ValueError("prompt must be text, a list of token ids and texts, or a list of such prompts")


def _is_token(value: Any) -> bool:
    return type(value) is int and value >= 0


async def completion(body: LlamaBody, http: HttpRequest) -> Response:
    """Continue the prompt, as one object or as a stream."""
    return await reply_to(LlamaCall(body, pool_of(http)), http)


async def reply_to(call: LlamaCall, http: HttpRequest) -> Response:
    """Run the call and answer as one object, as a list of them for several texts, or as a stream."""
    return await respond(http, call, partial(LlamaReply, call.body), streams=call.body.stream)


class LlamaCall(Call[LlamaBody]):
    """One call of the route."""

    ID_PREFIX = "llama"

    def check(self) -> None:
        """Raise BadRequest for what cannot be answered, whatever the model is."""
        super().check()
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
        if is_token_ids(prompt):
            return tuple(prompt)
        return await tokens_of(self.host.bridge, *prompt, add_special=True)

    async def biases(self) -> dict[int, float]:
        """Return the biases of the tokens of texts."""
        found: dict[int, float] = {}
        for text, bias in (self.body.logit_bias or {}).items():
            if not is_token_id(text):
                found |= dict.fromkeys(await tokens_of(self.host.bridge, text, parse_special=False), bias)
        return found

    def choice(self) -> LlamaChoice:
        """Return what keeps one text."""
        return LlamaChoice(n_indent=self.body.n_indent or 0, most_ms=self.body.t_max_predict_ms or 0.0)


@dataclass(slots=True)
class LlamaChoice(Choice):
    """A text that may end at a line with less indentation than ``n_indent``, or when its time is over."""

    n_indent: int = 0
    most_ms: float = 0.0
    line: str = ""  # what has come of the last line
    has_new_line: bool = False
    is_enough: bool = False

    @property
    def is_followed(self) -> bool:
        """Whether it must be looked at as it comes."""
        return bool(self.n_indent or self.most_ms)

    @property
    def has_enough(self) -> bool:
        """True where it is to end."""
        return self.is_enough

    def _parsed(self, news: ChoiceUpdate) -> list[Piece]:
        shown = "" if self.is_enough else self._until_enough(news.text)
        return [ContentText(shown)] if shown else []

    def _until_enough(self, news: str) -> str:
        if not self.is_followed:
            return news
        shown = []
        for line in news.splitlines(keepends=True):
            self.line += line
            indent = len(self.line) - len(self.line.lstrip(" \t"))
            if self.has_new_line and indent < self.n_indent and self.line.strip():
                self.is_enough = True
                break
            shown.append(line)
            if line.endswith("\n"):
                self.line, self.has_new_line = "", True
        if self.most_ms and self.has_new_line and self.first_at is not None:
            self.is_enough |= (time.monotonic() - self.first_at) * 1_000 > self.most_ms
        return "".join(shown)


class LlamaReply(Reply):
    """Puts what comes of one call into llama-server's shapes."""

    def __init__(self, body: LlamaBody, run: EngineRun) -> None:
        self._body, self._run = body, run

    def chunk(self, update: ChoiceUpdate) -> bytes:
        """Return the event for what is new of a text."""
        choice = self._run.choices[update.index]
        shown = "".join(piece.text for piece in update.pieces if isinstance(piece, ContentText))
        event: dict[str, Any] = {
            "index": update.index,
            "content": "",
            "tokens": [],
            "stop": False,
            "id_slot": _slot_of(choice),
            "tokens_predicted": choice.n_tokens,
            "tokens_evaluated": choice.started.n_prompt if choice.started is not None else 0,
        }
        if update.read is not None:
            event["prompt_progress"] = prompt_progress(update.read)
        new = {"content": shown, "tokens": self._ids(update.logprobs)}
        if update.end is not None:
            # If all of it comes at once, the progress of reading is still told.
            told = b"" if update.read is None else encode_event(event)
            return told + encode_event(self._text(update.index) | new)
        if not shown and not update.logprobs and update.read is None:
            return b""
        event |= new
        if self._body.n_probs and update.logprobs:
            event["completion_probabilities"] = [token_logprob(one, with_ids=True) for one in update.logprobs]
        if self._body.timings_per_token and choice.first_at is not None:
            event["timings"] = timings_so_far(choice)
        return encode_event(event)

    async def closing(self) -> bytes:
        """Return nothing: each text has said that it is over."""
        return b""

    async def whole(self) -> Any:
        """Return the object of the text, or a list of several."""
        texts = [self._text(index) for index in range(len(self._run.choices))]
        return texts[0] if len(texts) == 1 else texts

    def _text(self, index: int) -> dict[str, Any]:
        """Return the object of a text that has ended."""
        choice, request = self._run.choices[index], self._run.requests[index]
        end = choice.end or Ended(request.id, FinishReason.CANCELLED)
        receipt: Receipt = end.receipt
        content = choice.text
        is_limited = end.reason is FinishReason.LENGTH or (isinstance(choice, LlamaChoice) and choice.is_enough)
        stop_type = "limit" if is_limited else "word" if end.stop else "eos"
        found: dict[str, Any] = {
            "index": index,
            "content": content,
            "tokens": self._ids(choice.logprobs),
            "id_slot": _slot_of(choice),
            "stop": True,
            "model": self._run.name,
            "tokens_predicted": receipt.n_generated,
            "tokens_evaluated": receipt.n_prompt,
            "generation_settings": sampling_settings(request.sampling, request),
            "prompt": request.prompt if isinstance(request.prompt, str) else list(request.prompt),
            "has_new_line": "\n" in content,
            "truncated": False,
            "stop_type": stop_type,
            "stopping_word": end.stop or "",
            "tokens_cached": _n_kept(receipt, stop_type),
            "timings": timings([receipt]),
        }
        if self._body.n_probs:
            found["completion_probabilities"] = [token_logprob(one, with_ids=True) for one in choice.logprobs]
        return _only(found, self._body.response_fields)

    def _ids(self, logprobs: Sequence[TokenLogprob]) -> list[int]:
        return [one.chosen.token for one in logprobs] if self._body.return_tokens else []


def _slot_of(choice: Choice) -> int:
    """Return the number of the slot that a text began in, -1 where it has none."""
    return choice.started.slot if choice.started is not None else -1


def _n_kept(receipt: Receipt, stop_type: str) -> int:
    """Return how many tokens the slot keeps. The last one is chosen and not evaluated; an end is no token here."""
    is_last_open = stop_type != "eos" and receipt.n_generated > 0
    return receipt.n_prompt + receipt.n_generated - is_last_open


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
