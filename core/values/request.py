"""Requests to the engine, and the answers of those that generate nothing. Frozen values that cross the pipe.

A ``Request`` continues a prompt. An ``EmbedRequest`` turns texts into vectors or scores. A ``SlotRequest`` moves the
text of a slot to a file and back. Texts become tokens and back while steps run.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Literal, get_args

from core.values.errors import BadRequest
from models.formatting.sentence import Sentence

# OpenAI's limit.
MAX_TOP_LOGPROBS = 20
# Each breaker costs a pass over the vocabulary when the request begins.
MAX_BREAKERS = 32


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """Sampling settings of one request.

    Defaults are those of llama-server (``common_params_sampling`` in llama.cpp's ``common/common.h``).
    ``temperature`` 0 means greedy. ``seed`` None lets the engine draw one, which the receipt then reports.
    """

    temperature: float = 0.8
    top_k: int = 40
    top_p: float = 0.95
    min_p: float = 0.05
    typical_p: float = 1.0
    top_n_sigma: float = -1.0
    xtc_probability: float = 0.0
    xtc_threshold: float = 0.1
    dry_multiplier: float = 0.0
    dry_base: float = 1.75
    dry_allowed_length: int = 2
    dry_penalty_last_n: int = 64
    dry_sequence_breakers: tuple[str, ...] = ("\n", ":", '"', "*")
    repeat_penalty: float = 1.0
    repeat_last_n: int = 64
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    mirostat: int = 0
    mirostat_tau: float = 5.0
    mirostat_eta: float = 0.1
    logit_bias: tuple[tuple[int, float], ...] = ()
    seed: int | None = None
    ignore_eos: bool = False
    logprobs: bool = False
    top_logprobs: int = 0

    def __post_init__(self) -> None:
        for rule in fields(self):
            value = getattr(self, rule.name)
            if isinstance(value, float) and not math.isfinite(value):
                raise BadRequest(f"{rule.name} must be a finite number, not {value}.", param=rule.name)
        _between(self, "temperature", 0.0, 100.0)
        _between(self, "top_k", -(2**31), 2**31 - 1)
        _between(self, "top_p", 0.0, 1.0)
        _between(self, "min_p", 0.0, 1.0)
        _between(self, "typical_p", 0.0, 1.0)
        _between(self, "xtc_probability", 0.0, 1.0)
        _between(self, "xtc_threshold", 0.0, 1.0)
        _between(self, "dry_multiplier", 0.0, 100.0)
        _between(self, "dry_base", 0.0, 100.0)
        _between(self, "dry_allowed_length", 0, 1_000_000)
        _between(self, "dry_penalty_last_n", -1, 1_000_000)
        _between(self, "repeat_penalty", 0.01, 100.0)
        _between(self, "repeat_last_n", -1, 1_000_000)
        _between(self, "frequency_penalty", -2.0, 2.0)
        _between(self, "presence_penalty", -2.0, 2.0)
        _between(self, "mirostat_tau", 0.0, 100.0)
        _between(self, "mirostat_eta", 0.0, 1.0)
        _between(self, "top_logprobs", 0, MAX_TOP_LOGPROBS)
        if self.mirostat not in (0, 2):
            raise BadRequest(f"mirostat must be 0 (off) or 2, not {self.mirostat}.", param="mirostat")
        if self.seed is not None:
            _between(self, "seed", -(2**63), 2**64 - 1)
        if self.top_logprobs and not self.logprobs:
            raise BadRequest("top_logprobs needs logprobs to be true.", param="top_logprobs")
        _check_breakers(self.dry_sequence_breakers)
        for token, bias in self.logit_bias:
            if token < 0 or math.isnan(bias):
                raise BadRequest(
                    f"logit_bias maps token ids (0 or more) to numbers, not {token} to {bias}.", param="logit_bias"
                )

    @property
    def is_greedy(self) -> bool:
        """True where the most likely token is always taken."""
        return self.temperature == 0.0


def _between(params: SamplingParams, name: str, low: float, high: float) -> None:
    value = getattr(params, name)
    if not low <= value <= high:
        raise BadRequest(f"{name} must be between {low} and {high}, not {value}.", param=name)


def _check_breakers(breakers: tuple[str, ...]) -> None:
    field = "dry_sequence_breakers"
    if len(breakers) > MAX_BREAKERS:
        raise BadRequest(f"{field} takes at most {MAX_BREAKERS} texts, not {len(breakers)}.", param=field)
    if any("\0" in text or text != text.encode(errors="replace").decode() for text in breakers):
        raise BadRequest(f"{field} must be texts without NUL characters and halves of surrogate pairs.", param=field)


ConstraintKind = Literal["json_schema", "regex", "lark", "gbnf"]
# Characters of a grammar: far above any real one.
MAX_CHARACTERS = 1 << 17
ANY_OBJECT = '{"type": "object"}'


@dataclass(frozen=True, slots=True)
class Constraint:
    """A grammar by its source.

    ``kind`` is json_schema (the text is a JSON document), regex (the whole reply matches it), lark (llguidance's
    dialect) or gbnf (llama.cpp's). ``field`` is the request field that it came from, for error messages.

    If special tokens are part of a form, a lark grammar names them: the rule ``marker_I`` matches the I-th of the
    ``markers``, and ``until_I`` any text up to and with it. ``thought`` are the markers around thoughts before the
    answer; the grammar applies after them. The first is empty if the prompt has it already.
    """

    kind: ConstraintKind
    text: str
    field: str = "grammar"
    markers: tuple[str, ...] = ()
    thought: tuple[str, str] | None = None

    def __post_init__(self) -> None:
        if self.kind not in get_args(ConstraintKind):
            raise BadRequest(f"A grammar must be one of {', '.join(get_args(ConstraintKind))}, not {self.kind!r}.")
        # A regex of white space is valid.
        if not (self.text if self.kind == "regex" else self.text.strip()):
            raise BadRequest(f"The {self.name} is empty: leave the field out for a free reply.", param=self.field)
        if len(self.text) > MAX_CHARACTERS:
            raise BadRequest(
                "The {name} has {n:,} characters, at most {most:,} are allowed.",
                name=self.name,
                n=len(self.text),
                most=MAX_CHARACTERS,
                param=self.field,
            )

    @property
    def name(self) -> str:
        """Its name in error messages."""
        if self.kind == "lark" and not self.is_as_sent:
            return f"form of the {self.field}"
        return {"json_schema": "JSON schema", "regex": "regular expression"}.get(self.kind, "grammar")

    @property
    def is_as_sent(self) -> bool:
        """True if the text is as the client sent it."""
        return self.field != "tools"


# Where thoughts are returned: apart from the answer, or as part of its text.
ReasoningFormat = Literal["auto", "deepseek", "none"]


@dataclass(frozen=True, slots=True)
class ThinkingBudget:
    """How many tokens a model may think before it answers; 0 for none.

    ``open`` and ``close`` are the markers of thoughts. ``then`` begins the message after them; it is "" if thoughts and
    answer are one message. ``begins_inside`` means that the prompt has opened the thoughts.
    """

    n_tokens: int
    open: str
    close: str
    then: str = ""
    begins_inside: bool = False


class Lane(StrEnum):
    """``FAST`` is as fast as it would be alone; ``BATCH`` uses the capacity that is left, and may wait.

    The lanes are listed by priority, highest first.
    """

    FAST = "fast"
    STANDARD = "standard"
    BATCH = "batch"

    @property
    def rank(self) -> int:
        """0 for the lane of the highest priority."""
        return _RANKS[self]


_RANKS = {lane: rank for rank, lane in enumerate(Lane)}


class ReplySpeed(StrEnum):
    """How soon a reply is wanted, or how well: the field ``speed`` of requests and of a model's settings.

    ``SPARK`` is answered by the draft model alone, ``DEEP`` by several drafts that are distilled into one answer.
    """

    STANDARD = "standard"
    FAST = "fast"
    SPARK = "spark"
    DEEP = "deep"
    BATCH = "batch"

    @property
    def lane(self) -> Lane:
        """The engine's lane."""
        return Lane.STANDARD if self in (ReplySpeed.SPARK, ReplySpeed.DEEP) else Lane(self.value)


@dataclass(frozen=True, slots=True)
class PromptImage:
    """An image file (PNG, JPEG, WebP, GIF or BMP) that stands before character ``offset`` of a prompt."""

    offset: int
    data: bytes = field(repr=False)


# Limits far above real requests; each stop string is searched in each new text.
MAX_STOP_STRINGS = 64
MAX_STOP_LENGTH = 1_024
MAX_IMAGES = 64
# Far above any that is of use; with larger ones a model computes values that are no numbers.
MAX_LORA_SCALE = 1e6


@dataclass(frozen=True, slots=True)
class Request:
    """A prompt and how to continue it.

    ``prompt`` is text (tokenised in the engine, special tokens in it are parsed) or token ids. ``images`` stand at
    their places in a text; nothing is drafted for a prompt with images. ``max_tokens`` None
    means until the model stops or the context is full; 0 evaluates the prompt only. ``stop`` strings end the text
    before their first occurrence. ``speculates`` False decodes without drafts: nothing is drafted for this request, and
    the proposers learn nothing from it. ``constraint`` restricts the reply; None leaves it free. ``lane`` is the
    priority. ``by_draft`` lets the draft model answer instead. Special tokens that are in one of the ``markers`` are
    part of the reply's text; the text leaves out all others. ``thinking`` bounds the thoughts before the answer.
    ``lora`` are the scales of the engine's LoRA adapters; empty for the usual ones. ``prompt_logprobs`` also gives the
    log probabilities of the prompt's tokens, all of which are evaluated then. ``reports_progress`` also says how much
    of the prompt was read, after each step. ``slot`` is the slot to run in if it is free; None takes the best one.
    Requests with different salts share no cached texts, and nothing is drafted for one from a text of another.
    """

    id: str
    prompt: str | tuple[int, ...]
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    sampling: SamplingParams = field(default_factory=SamplingParams)
    speculates: bool = True
    constraint: Constraint | None = None
    lane: Lane = Lane.STANDARD
    by_draft: bool = False
    lora: tuple[float, ...] = ()
    markers: tuple[str, ...] = ()
    thinking: ThinkingBudget | None = None
    images: tuple[PromptImage, ...] = ()
    prompt_logprobs: bool = False
    reports_progress: bool = False
    slot: int | None = None
    salt: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        if self.max_tokens is not None and self.max_tokens < 0:
            raise BadRequest(f"max_tokens must be 0 or more, not {self.max_tokens}.", param="max_tokens")
        if len(self.stop) > MAX_STOP_STRINGS:
            raise BadRequest(f"stop takes at most {MAX_STOP_STRINGS} strings, not {len(self.stop)}.", param="stop")
        if any(not text or len(text) > MAX_STOP_LENGTH for text in self.stop):
            raise BadRequest(f"Each stop string must have 1 to {MAX_STOP_LENGTH} characters.", param="stop")
        if not self.prompt:
            raise BadRequest(Sentence("The prompt is empty: send at least one token of text."), param="prompt")
        if self.images:
            self._check_images(self.images)

    def _check_images(self, images: tuple[PromptImage, ...]) -> None:
        if len(images) > MAX_IMAGES:
            message = Sentence("A prompt takes at most {most} images, not {n}.", most=MAX_IMAGES, n=len(images))
            raise BadRequest(message, param="messages")
        if not isinstance(self.prompt, str):
            raise BadRequest("Images need a prompt of text, not of token ids.", param="prompt")
        offsets = [image.offset for image in images]
        if offsets != sorted(offsets) or offsets[0] < 0 or offsets[-1] > len(self.prompt):
            raise BadRequest("The images are not in the order of their places in the prompt.", param="prompt")

    @property
    def may_draft(self) -> bool:
        """True if tokens may be drafted: proposers cannot read images."""
        return self.speculates and not self.images


EUCLIDEAN = 2  # the p of the norm


@dataclass(frozen=True, slots=True)
class EmbedRequest:
    """Asks for the vectors of ``inputs``, each text or token ids, or for their scores as answers to ``query``.

    ``dimensions`` keeps only the first values of each vector. Vectors are divided by their ``norm`` as in llama.cpp's
    ``common_embd_normalize``: 2 is Euclidean, 1 the sum of absolute values, any other p the p-norm; with 0 the largest
    value becomes 32760, and -1 does not normalise.
    """

    id: str
    inputs: tuple[str | tuple[int, ...], ...]
    query: str | None = None
    dimensions: int | None = None
    norm: int = EUCLIDEAN
    lane: Lane = Lane.STANDARD

    def __post_init__(self) -> None:
        if not self.inputs:
            raise BadRequest("The input is empty: send at least one text.", param="input")


@dataclass(frozen=True, slots=True)
class Embedded:
    """The answer: for each input its vectors, float32 in bytes, and the number of its tokens.

    An input has one vector; with pooling "none" one for each token; for a query a vector of one value, the score.
    """

    request_id: str
    vectors: tuple[tuple[bytes, ...], ...]
    n_tokens: tuple[int, ...]


SlotAction = Literal["save", "restore", "erase"]


@dataclass(frozen=True, slots=True)
class SlotRequest:
    """Asks to save the text of a free slot to the file ``path``, to restore it from there, or to erase it.

    Requests with this ``salt`` find the text that is restored.
    """

    id: str
    slot: int
    action: SlotAction
    path: str = ""
    salt: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class SlotDone:
    """The answer: the tokens that were saved, restored or erased, the bytes of the file, and the seconds it took."""

    request_id: str
    n_tokens: int
    n_bytes: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class TokenizeRequest:
    """Asks for the tokens of ``parts`` in order: texts, and token ids that stay as they are.

    ``add_special`` adds the model's special tokens before and after the first text. ``parse_special`` recognises
    special tokens written out. ``images`` stand in the first part, the only one then; their rows have ids of their own.
    """

    id: str
    parts: tuple[str | int, ...]
    add_special: bool = False
    parse_special: bool = True
    images: tuple[PromptImage, ...] = ()


@dataclass(frozen=True, slots=True)
class DetokenizeRequest:
    """Asks for the text of tokens, special ones written out."""

    id: str
    tokens: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Tokenized:
    """The tokens, and the bytes of each."""

    request_id: str
    tokens: tuple[int, ...]
    pieces: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Detokenized:
    """The text; bytes that are not UTF-8 are replaced."""

    request_id: str
    text: str
