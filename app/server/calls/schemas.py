"""The bodies of requests as typed values: what all that generate have in common, and text completions.

A field that would change the answer and is not listed here is refused with its name, and so is a value that would not
be honoured. ``HINTS`` are fields that other servers know and that change nothing here: they are taken, whatever they
hold. So are known fields that change no answer, which are marked ``HINT``. Null means the default everywhere. A
``max_tokens`` of -1 is no limit.

A reply of no tokens is an empty text: the prompt is evaluated, which warms the prefix cache. A text completion without
``max_tokens`` generates 16 tokens, a chat as many as the model wants.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import fields
from typing import Annotated, Any, ClassVar, Literal, TypeGuard

from pydantic import AfterValidator, BeforeValidator, Field, field_validator, model_validator

from app.server.calls.speed import wanted_speed
from app.server.http.body import HINT, Body, LenientBody, WholeNumbers
from app.server.http.keys import cache_salt
from app.server.replies.constraints import JsonSchema, ResponseFormat, grammar_of, loose, with_structured, written
from core.values.errors import BadRequest
from core.values.messages import LoadedModel
from core.values.request import (
    MAX_LORA_SCALE,
    MAX_STOP_STRINGS,
    MAX_TOP_LOGPROBS,
    Constraint,
    ReplySpeed,
    SamplingParams,
)

MAX_CHOICES = 128
DEFAULT_COMPLETION_TOKENS = 16
_MAX_TOKEN_DIGITS = 10
_LARGEST_SEED, _SEEDS = 2**64 - 1, 2**64


def nth_seed(seed: int, n: int) -> int:
    """Return the seed of the ``n``-th of several texts: they count up, and behind the largest one begin anew."""
    return seed + n if seed + n <= _LARGEST_SEED else seed + n - _SEEDS


def checked_text(text: str) -> str:
    """Return the text; raises ValueError where it is none."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("it holds half of a surrogate pair, which is not text") from None
    return text


Text = Annotated[str, AfterValidator(checked_text)]
PromptInput = str | tuple[int, ...]
_SAMPLING = frozenset(rule.name for rule in fields(SamplingParams)) - {"logprobs", "top_logprobs", "logit_bias"}
_MOST_SAMPLERS, _MOST_ADAPTERS = 64, 1_024
# All of Qwen's vocabulary, 151,936 tokens, in whole numbers: all but a few can be forbidden. More keys, as for Gemma's
# 262,144, would be more values than a body may have: to read and check them takes half a second, in which no stream
# goes on.
_MOST_BIASES = 153_000
# The samplers in the order in which they run, by llama-server's names and letters, with the settings that switch each
# off.
_SAMPLERS: dict[str, tuple[str, dict[str, float]]] = {
    "penalties": ("e", {"repeat_penalty": 1.0, "frequency_penalty": 0.0, "presence_penalty": 0.0}),
    "dry": ("d", {"dry_multiplier": 0.0}),
    "top_n_sigma": ("s", {"top_n_sigma": -1.0}),
    "top_k": ("k", {"top_k": 0}),
    "typ_p": ("y", {"typical_p": 1.0}),
    "top_p": ("p", {"top_p": 1.0}),
    "min_p": ("m", {"min_p": 0.0}),
    "xtc": ("x", {"xtc_probability": 0.0}),
    "temperature": ("t", {"temperature": 1.0}),
}
# Those that clients name and that change nothing: one only joins tokens that begin alike, one needs
# ``adaptive_target``, and the last one is no longer in llama.cpp.
_NO_SAMPLERS = {"i": "infill", "a": "adaptive_p", "f": "tfs_z"}


class StreamOptions(LenientBody):
    """What a stream carries besides the text."""

    include_usage: Annotated[bool | None, HINT] = None
    continuous_usage_stats: Annotated[bool | None, HINT] = None


# Fields of other servers that change nothing here. How a model is loaded (Ollama's options, which Open WebUI sends to
# all servers) is said when the server starts; it changes the speed or the memory, and no answer. What is said of
# thoughts and tools changes nothing of a text that is no chat.
HINTS = frozenset(
    [
        "cache_control",
        "cache_prompt",
        "chat_id",
        "chat_template_kwargs",
        "draft_model",
        "draft_num_predict",
        "embedding_only",
        "enable_thinking",
        "f16_kv",
        "id_slot",
        "include_reasoning",
        "keep_alive",
        "logits_all",
        "low_vram",
        "main_gpu",
        "metadata",
        "models",
        "n_cache_reuse",
        "n_discard",
        "n_keep",
        "num_batch",
        "num_ctx",
        "num_gpu",
        "num_gqa",
        "num_keep",
        "num_thread",
        "numa",
        "options",
        "parallel_tool_calls",
        "prediction",
        "priority",
        "prompt_cache_key",
        "prompt_cache_options",
        "prompt_cache_retention",
        "provider",
        "reasoning",
        "reasoning_control",
        "reasoning_effort",
        "request_id",
        "return_progress",
        "return_token_ids",
        "route",
        "safety_identifier",
        "session_id",
        "slot_id",
        "snippy",
        "sse_ping_interval",
        "store",
        "t_max_prompt_ms",
        "think",
        "thinking",
        "timings_per_token",
        "transforms",
        "ttl",
        "usage",
        "use_mlock",
        "use_mmap",
        "user",
        "verbose",
        "verbosity",
        "vocab_only",
        "web_search_options",
    ]
)
# Fields of other servers with the values that ask for what happens anyway; other values are refused.
_AS_IT_IS: dict[str, Any] = {
    "add_special_tokens": False,
    "backend_sampling": False,
    "best_of": 1,
    "dynatemp_exponent": 1,
    "dynatemp_range": 0,
    "early_stopping": False,
    "echo": False,
    "grammar_lazy": False,
    "include_stop_str_in_output": False,
    "length_penalty": 1,
    "min_keep": 0,
    "min_tokens": 0,
    "num_beams": 1,
    "parse_tool_calls": True,
    "post_sampling_probs": False,
    "safe_prompt": False,
    "skip_special_tokens": True,
    "spaces_between_special_tokens": True,
    "tfs_z": 1,
    "top_a": 0,
    "use_beam_search": False,
}
OTHER_NAMES = {
    "ebnf": "grammar",  # SGLang's
    "logprobs": "n_probs",
    "max_completion_tokens": "max_tokens",
    "n_predict": "max_tokens",
    "random_seed": "seed",  # Mistral's
    "reasoning_budget_tokens": "reasoning_budget",
    "slot_id": "id_slot",
    "repetition_penalty": "repeat_penalty",
    "thinking_budget": "reasoning_budget",  # Qwen's and SGLang's
    "thinking_token_budget": "reasoning_budget",  # vLLM's
    "typ_p": "typical_p",
}
_RANDOM_SEEDS = (-1, 2**32 - 1)  # how llama-server, Ollama and LM Studio write a seed that is to be drawn
TokenLimit = Annotated[int | None, Field(ge=0), BeforeValidator(lambda limit: None if limit == -1 else limit)]
"""How many tokens a chat may generate, in every protocol; -1 is no limit."""


class LoraScale(WholeNumbers):
    """How much a LoRA adapter counts, by its number at /lora-adapters."""

    id: int = Field(ge=0)
    scale: float = Field(allow_inf_nan=False, ge=-MAX_LORA_SCALE, le=MAX_LORA_SCALE)


def is_token_ids(value: Any) -> TypeGuard[list[int] | tuple[int, ...]]:
    """Return whether a value lists token ids, without a step of Python for each: a body may hold millions."""
    return isinstance(value, list | tuple) and set(map(type, value)) == {int} and min(value) >= 0


def is_token_id(text: str) -> bool:
    """Return whether a key of ``logit_bias`` is the id of a token."""
    return text.isascii() and text.isdigit() and len(text) <= _MAX_TOKEN_DIGITS


class GenerationBody(WholeNumbers):
    """The fields of both kinds of completion."""

    refused: ClassVar[frozenset[str] | None] = None
    """Fields that are refused besides, where others that are not known change nothing; None refuses all of them."""

    model: str | None = None
    stream: bool | None = None
    stream_options: Annotated[StreamOptions | None, HINT] = None
    return_progress: Annotated[bool | None, HINT] = None
    n: int | None = Field(default=None, ge=1, le=MAX_CHOICES)
    stop: Text | Annotated[list[Text], Field(max_length=MAX_STOP_STRINGS)] | None = None
    seed: int | None = None

    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    typical_p: float | None = None
    top_n_sigma: float | None = None
    xtc_probability: float | None = None
    xtc_threshold: float | None = None
    dry_multiplier: float | None = None
    dry_base: float | None = None
    dry_allowed_length: int | None = None
    dry_penalty_last_n: int | None = None
    dry_sequence_breakers: list[str] | None = None
    repeat_penalty: float | None = None
    repeat_last_n: int | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    mirostat: int | None = None
    mirostat_tau: float | None = None
    mirostat_eta: float | None = None
    ignore_eos: bool | None = None
    logit_bias: dict[str, float] | None = Field(default=None, max_length=_MOST_BIASES)
    samplers: list[str] | None = None

    response_format: ResponseFormat | None = None
    json_schema: JsonSchema | None = None
    regex: Text | None = None
    grammar: Text | None = None

    lora: list[LoraScale] | None = Field(default=None, max_length=_MOST_ADAPTERS)
    id_slot: Annotated[int | None, Field(ge=-1), HINT] = None
    cache_salt: Text | None = None
    speed: str | None = None
    service_tier: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _as_here(cls, value: Any) -> Any:
        """Leave out hints, nulls and what asks for nothing, and take other spellings of what is known."""
        if not isinstance(value, dict):
            return value
        value = with_structured(value)
        sent = {name: one for name, one in value.items() if one is not None and cls._counts(name, one)}
        if sent.get("seed") in _RANDOM_SEEDS:
            del sent["seed"]
        if sent.get("ignore_eos") is True and not sent.get("stop"):
            sent.pop("min_tokens", None)  # such a reply has as many as it may: benchmarks send both
        for name, ours in OTHER_NAMES.items():
            if name in sent and ours in cls.model_fields and name not in cls.model_fields:
                sent.setdefault(ours, sent.pop(name))
        return sent

    @classmethod
    def _counts(cls, name: str, value: Any) -> bool:
        """Return whether a field is known here, or would have to be."""
        if name in cls.model_fields or name in OTHER_NAMES:
            return True
        is_hint = name in HINTS if cls.refused is None else name not in cls.refused
        return not is_hint and not (name in _AS_IT_IS and value == _AS_IT_IS[name])

    @field_validator("samplers", mode="before")
    @classmethod
    def _by_letters(cls, samplers: Any) -> Any:
        if isinstance(samplers, str | list) and len(samplers) > _MOST_SAMPLERS:
            raise ValueError(f"samplers names {_MOST_SAMPLERS} or fewer")
        letters = {letter: name for name, (letter, _) in _SAMPLERS.items()} | _NO_SAMPLERS
        return [letters.get(letter, letter) for letter in samplers] if isinstance(samplers, str) else samplers

    @field_validator("samplers")
    @classmethod
    def _in_order(cls, samplers: list[str] | None) -> list[str] | None:
        known = list(_SAMPLERS)
        if samplers:
            named = ("typ_p" if name == "typical_p" else name for name in samplers)
            samplers = [name for name in named if name not in _NO_SAMPLERS.values()]
        places = [known.index(name) if name in known else -1 for name in samplers or ()]
        if -1 in places or places != sorted(set(places)):
            raise ValueError(f"samplers can leave out some of {', '.join(known)}, which run in this order")
        return samplers

    @field_validator("logit_bias")
    @classmethod
    def _bias_is_usable(cls, bias: dict[str, float] | None) -> dict[str, float] | None:
        for token, value in (bias or {}).items():
            if not (is_token_id(token) and -100.0 <= value <= 100.0):
                raise ValueError(
                    f"logit_bias maps token ids to numbers from -100 to 100, not {token[:20]!r} to {value}"
                )
        return bias

    @property
    @abstractmethod
    def token_limit(self) -> int | None:
        """How many tokens may be generated, or None; raises BadRequest when two limits differ."""

    @property
    @abstractmethod
    def n_top_logprobs(self) -> int | None:
        """How many alternatives are listed for each token; None without logprobs. Raises BadRequest."""

    def agreed(self, *names: str) -> Any:
        """Return what fields that mean the same hold, None where none is sent; raises BadRequest where they differ."""
        sent = {getattr(self, name) for name in names} - {None}
        if len(sent) > 1:
            raise BadRequest(f"{' and '.join(names)} differ: send one of them.", param=names[0])
        return sent.pop() if sent else None

    @property
    def n_choices(self) -> int:
        """How many answers are wanted of one prompt."""
        return self.n or 1

    @property
    def stop_strings(self) -> tuple[str, ...]:
        """The strings before which the text ends; empty ones say nothing, as at llama-server."""
        return tuple(one for one in ([self.stop] if isinstance(self.stop, str) else self.stop or ()) if one)

    @property
    def wanted_slot(self) -> int | None:
        """The number of the slot to run in where it is free; None for any."""
        return self.id_slot if self.id_slot is not None and self.id_slot >= 0 else None

    @property
    def salt(self) -> str:
        """The salt of its cached texts: each key has one, and one more for each salt that the client names."""
        return cache_salt(self.cache_salt or "")

    @property
    def includes_usage(self) -> bool:
        """True where a stream ends with a chunk that has the usage."""
        return self.stream_options is not None and bool(self.stream_options.include_usage)

    @property
    def counts_usage(self) -> bool:
        """Whether each chunk of a stream is to have the usage so far, as at vLLM."""
        return self.includes_usage and bool(self.stream_options and self.stream_options.continuous_usage_stats)

    @property
    def wanted_speed(self) -> ReplySpeed:
        """How soon the reply is wanted. Raises BadRequest."""
        return wanted_speed(self.speed, self.service_tier)

    @property
    def constraint(self) -> Constraint | None:
        """What the reply must look like, None where it is free. Raises BadRequest where that is said twice."""
        found = list(self._constraints())
        if len(found) > 1:
            fields = " and ".join(constraint.field for constraint in found)
            raise BadRequest(f"{fields} cannot be followed both: send one of them.", param=found[1].field)
        return found[0] if found else None

    def _constraints(self) -> Iterator[Constraint]:
        if self.response_format is not None and self.response_format.constraint is not None:
            yield self.response_format.constraint
        if self.json_schema is not None:
            yield Constraint("json_schema", written(loose(self.json_schema), "json_schema"), field="json_schema")
        if self.regex is not None:
            yield Constraint("regex", self.regex, field="regex")
        if self.grammar is not None:
            yield grammar_of(self.grammar)

    @property
    def token_biases(self) -> tuple[tuple[int, float], ...]:
        """What is added to the logits of tokens."""
        return tuple((int(token), bias) for token, bias in (self.logit_bias or {}).items() if is_token_id(token))

    def check(self, model: LoadedModel) -> None:
        """Raise BadRequest for what this model does not have."""
        for token, _ in self.token_biases:
            if token >= model.n_vocab:
                message = f"logit_bias names token {token}, but this model has tokens 0 to {model.n_vocab - 1}."
                raise BadRequest(message, param="logit_bias")

    def sampling(self, top_logprobs: int | None) -> Iterator[SamplingParams]:
        """Yield the sampling of each choice, with seeds that count up; raises BadRequest.

        Of the samplers, those that are left out are off.
        """
        values: dict[str, Any] = {name: value for name in _SAMPLING if (value := getattr(self, name, None)) is not None}
        if self.samplers is not None:
            left_out = (off for name, (_, off) in _SAMPLERS.items() if name not in self.samplers)
            values |= {name: value for off in left_out for name, value in off.items()}
        if self.dry_sequence_breakers is not None:
            values["dry_sequence_breakers"] = tuple(self.dry_sequence_breakers)
        if biases := self.token_biases:
            values["logit_bias"] = biases
        if top_logprobs is not None:
            values |= {"logprobs": True, "top_logprobs": top_logprobs}
        for i in range(self.n_choices):
            if self.seed is not None:
                values["seed"] = nth_seed(self.seed, i)
            yield SamplingParams(**values)


class CompletionBody(GenerationBody):
    """The body of POST /v1/completions."""

    prompt: Any
    suffix: Text | None = None
    echo: bool | None = None
    max_tokens: int | None = Field(default=None, ge=-1)
    logprobs: int | None = Field(default=None, ge=0, le=MAX_TOP_LOGPROBS)
    best_of: Literal[1] | None = None

    @field_validator("prompt")
    @classmethod
    def _is_prompt(cls, value: Any) -> Any:
        if not all(_is_prompt(prompt) for prompt in _prompts(value)):
            raise ValueError(
                "prompt must be text, a list of texts, a list of token ids, or a list of such lists, none of them empty"
            )
        return value

    @property
    def prompts(self) -> list[PromptInput]:
        """The prompts, each text or token ids."""
        return [prompt if isinstance(prompt, str) else tuple(prompt) for prompt in _prompts(self.prompt)]

    @property
    def token_limit(self) -> int | None:
        """How many tokens may be generated; None for as many as there is room for."""
        limit = DEFAULT_COMPLETION_TOKENS if self.max_tokens is None else self.max_tokens
        return limit if limit >= 0 else None

    @property
    def n_top_logprobs(self) -> int | None:
        """How many alternatives are listed for each token; None without logprobs."""
        return self.logprobs


def _prompts(value: Any) -> list[Any]:
    is_several = isinstance(value, list) and value and not isinstance(value[0], int)
    return value if is_several else [value]


def _is_prompt(value: Any) -> bool:
    if isinstance(value, str):
        return bool(checked_text(value))
    return isinstance(value, list) and is_token_ids(value)


class LoadBody(Body):
    """The body of routes that take a model's name and nothing else."""

    model: str = Field(min_length=1)


class UnloadBody(Body):
    """The body of POST /slipstream/unload; without a name, whichever model is loaded."""

    model: str | None = Field(None, min_length=1)
