"""What is kept of chats: frozen values that the store and the window share."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum

from core.values.messages import Bottleneck
from models.formatting.json_values import fitting
from ui.client.attachments import Attachment
from ui.client.speeds import DeepReceipt, Speed
from ui.client.tool_calls import ToolCall
from ui.language import tr


class Role(StrEnum):
    """Who speaks."""

    USER = "user"
    ASSISTANT = "assistant"


EDITED = "edited"  # the finish reason of a reply that the user wrote


class Status(StrEnum):
    """How far a message got."""

    STREAMING = "streaming"
    DONE = "done"
    STOPPED = "stopped"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class ChatSettings:
    """What a chat asks of the model; None means: as is set for the model, else the server's default."""

    model: str | None = None
    system_prompt: str = ""
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    repeat_penalty: float | None = None
    max_tokens: int | None = None
    seed: int | None = None
    speed: Speed = Speed.AUTO
    begins_at: int = 0  # messages with a lower id are not sent

    def to_json(self) -> str:
        """Return all fields as one JSON object."""
        return json.dumps(asdict(self), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> ChatSettings:
        """Read what ``to_json`` wrote; fields that are missing or of another type keep their default."""
        try:
            found = json.loads(text)
        except ValueError:
            return cls()
        return fitting(cls, found) or cls()


@dataclass(frozen=True, slots=True)
class Timings:
    """The figures of one reply as the server's ``timings`` object gives them; times in milliseconds.

    ``speedup`` is None where the engine had not seen enough of plain decoding.
    """

    ttft_ms: float = 0.0
    prefill_ms: float = 0.0
    decode_ms: float = 0.0
    total_ms: float = 0.0
    queued_ms: float = 0.0
    prefill_tokens: int = 0
    prefill_per_second: float = 0.0
    decode_tokens: int = 0
    decode_per_second: float = 0.0
    cached_tokens: int = 0
    drafted_tokens: int = 0
    accepted_tokens: int = 0
    bytes_per_token: float = 0.0
    peak_share: float | None = None
    limited_by: Bottleneck = Bottleneck.UNKNOWN
    speedup: float | None = None
    seed: int | None = None
    kv_type: str = ""
    deep: DeepReceipt | None = None

    def followed_by(self, more: Timings) -> Timings:
        """Return the figures of a reply that was continued: what was measured of both parts together."""
        n_tokens = self.decode_tokens + more.decode_tokens
        seconds = (self.decode_ms + more.decode_ms) / 1_000
        speedups = [(part.speedup, part.decode_tokens) for part in (self, more)]
        known = [(speedup, count) for speedup, count in speedups if speedup is not None]
        # The prompt of the continuation has the first part in it.
        n_prompt = more.prefill_tokens + more.cached_tokens - self.decode_tokens
        n_cached = self.cached_tokens if self.knows_prompt else min(more.cached_tokens, max(n_prompt, 0))
        n_read = self.prefill_tokens if self.knows_prompt else max(0, n_prompt - n_cached)
        prefill_ms = self.prefill_ms + more.prefill_ms
        return replace(
            more,
            prefill_tokens=n_read,
            cached_tokens=n_cached,
            ttft_ms=self.ttft_ms,
            prefill_ms=prefill_ms,
            prefill_per_second=n_read / prefill_ms * 1_000 if prefill_ms > 0 else 0.0,
            decode_ms=self.decode_ms + more.decode_ms,
            total_ms=self.total_ms + more.total_ms,
            queued_ms=self.queued_ms + more.queued_ms,
            decode_tokens=n_tokens,
            decode_per_second=n_tokens / seconds if seconds > 0 else 0.0,
            drafted_tokens=self.drafted_tokens + more.drafted_tokens,
            accepted_tokens=self.accepted_tokens + more.accepted_tokens,
            speedup=sum(speedup * count for speedup, count in known) / n_tokens
            if len(known) == 2 and n_tokens
            else None,
        )

    @property
    def has_possible_speedup(self) -> bool:
        """False where more was said than drafts can bring: chats of earlier versions hold such figures.

        Each step brings a token of its own beside the accepted ones.
        """
        n_steps = max(self.decode_tokens - self.accepted_tokens, 1)
        return self.speedup is None or self.speedup <= max(self.decode_tokens / n_steps, 1.0) + 0.5

    @property
    def knows_prompt(self) -> bool:
        """False for the figures that the window measured itself, of a reply that was stopped."""
        return self.prefill_tokens + self.cached_tokens > 0

    @classmethod
    def from_object(cls, found: object) -> Timings | None:
        """Read the server's object; None where it is not one."""
        timings = fitting(cls, found)
        return timings if timings is None or timings.has_possible_speedup else replace(timings, speedup=None)


@dataclass(frozen=True, slots=True)
class Message:
    """One thing said. ``parent_id`` is the message before it: several with one parent are versions of each other.

    ``finish_reason`` of a failed reply is the code of the server's error, where it gave one. ``speed`` is how a reply
    was asked for; ``answered_by`` names the small model where that one gave it. ``thoughts`` came before the reply and
    took ``thinking_ms``. ``drafted`` are spans of characters that were drafted, where that was
    asked for. ``attachments`` are files that go with what the user said.
    """

    id: int
    chat_id: int
    parent_id: int | None
    role: Role
    content: str
    created_ms: int
    status: Status = Status.DONE
    problem: str | None = None
    finish_reason: str | None = None
    model: str | None = None
    timings: Timings | None = None
    speed: Speed = Speed.STANDARD
    answered_by: str | None = None
    thoughts: str = ""
    thinking_ms: float | None = None
    attachments: tuple[Attachment, ...] = ()
    calls: tuple[ToolCall, ...] = ()  # of tools, in a reply
    drafted: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Chat:
    """A chat without its messages. ``leaf_id`` is the last message of the branch that is shown."""

    id: int
    title: str
    created_ms: int
    updated_ms: int
    settings: ChatSettings = field(default_factory=ChatSettings)
    leaf_id: int | None = None


@dataclass(frozen=True, slots=True)
class ChatSummary:
    """A line of the history. ``snippet`` is where a search met its words, or empty; ``folder`` is empty for none."""

    id: int
    title: str
    updated_ms: int
    snippet: str = ""
    folder: str = ""
    is_pinned: bool = False
    is_archived: bool = False


@dataclass(frozen=True, slots=True)
class Prompt:
    """A text that is kept to be used again, with variables as ``{{name}}``.

    ``is_system`` says that it is instructions for a chat; ``model`` is the one whose new chats begin with them.
    """

    id: int
    name: str
    text: str
    is_system: bool = False
    model: str = ""


TITLE_LENGTH = 60


def title_of(text: str) -> str:
    """Return the title that a chat gets from its first message."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), tr("New chat"))
    line = " ".join(line.lstrip("#>*- ").split()) or line
    return line if len(line) <= TITLE_LENGTH else line[: TITLE_LENGTH - 1].rstrip() + "…"
