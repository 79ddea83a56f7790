"""A request to the engine: a frozen value that crosses the pipe."""

from __future__ import annotations

from dataclasses import dataclass, field

from core.values.constraint import Constraint
from core.values.errors import BadRequest
from core.values.lane import Lane
from core.values.sampling_params import SamplingParams

MAX_STOP_STRINGS = 64
MAX_STOP_LENGTH = 1_024


@dataclass(frozen=True, slots=True)
class Request:
    """A prompt and how to continue it.

    ``prompt`` is text (tokenised in the engine, special tokens in it are parsed) or token ids. ``max_tokens`` None
    means until the model stops or the context is full; 0 evaluates the prompt only. ``stop`` strings end the text
    before their first occurrence. ``speculates`` False decodes without drafts: nothing is drafted for this request, and
    the proposers learn nothing from it. ``constraint`` restricts the reply; None leaves it free. ``lane`` is the
    priority. ``by_draft`` lets the draft model answer instead.
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

    def __post_init__(self) -> None:
        if self.max_tokens is not None and self.max_tokens < 0:
            raise BadRequest(f"max_tokens must be 0 or more, not {self.max_tokens}.", param="max_tokens")
        if len(self.stop) > MAX_STOP_STRINGS:
            raise BadRequest(f"stop takes at most {MAX_STOP_STRINGS} strings, not {len(self.stop)}.", param="stop")
        if any(not text or len(text) > MAX_STOP_LENGTH for text in self.stop):
            raise BadRequest(f"Each stop string must have 1 to {MAX_STOP_LENGTH} characters.", param="stop")
        if not self.prompt:
            raise BadRequest("The prompt is empty: send at least one token of text.", param="prompt")
