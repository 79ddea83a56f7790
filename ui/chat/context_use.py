"""How much of a model's context a chat takes: an estimate, by what its replies have shown of its vocabulary. No Qt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ui.chat.messages.receipts import CONTEXT_FULL
from ui.client.attachments import Attachment
from ui.client.chat_records import Message, Role, Status

_BYTES_PER_TOKEN = 4.0  # English in common vocabularies; where replies have been counted, theirs stand
_MARKS_PER_MESSAGE = 8  # tokens that a chat template adds to a message
# Share of the context that earlier messages keep when some are left out: the rest is for new ones.
_LEFT_FOR_EARLIER = 0.5
_ROOM = 1.5  # a larger context is this many times as long as what must fit, so that the chat can go on
_NEARLY_FULL = 0.85  # of the context: an answer of usual length may no longer fit


@dataclass(frozen=True, slots=True)
class ContextUse:
    """Tokens of the chat, of the message that is being written, and of the context; ``n_ctx`` 0 is not known."""

    n_used: int = 0
    n_draft: int = 0
    n_ctx: int = 0
    is_estimate: bool = False

    @property
    def n_free(self) -> int:
        """Tokens that are left."""
        return max(0, self.n_ctx - self.n_used - self.n_draft)

    @property
    def is_nearly_full(self) -> bool:
        """True where an answer may be cut."""
        return self.n_used + self.n_draft >= _NEARLY_FULL * self.n_ctx


def used_by(sent: Sequence[Message]) -> tuple[int, bool]:
    """Return the tokens that messages take, and whether the engine has counted them; else it is an estimate.

    The last reply's figures have all of the prompt and the reply. What a model thought is not sent again.
    """
    timings = sent[-1].timings if sent else None
    if timings is not None and timings.knows_prompt and not sent[-1].thoughts:
        return timings.prefill_tokens + timings.cached_tokens + timings.decode_tokens, True
    return tokens_in(sent), not sent


def is_cut_by_context(message: Message) -> bool:
    """Return whether a reply ended because the context was full."""
    return message.status is Status.DONE and message.finish_reason == CONTEXT_FULL


def draft_tokens(n_text: int) -> int:
    """Return what a message of so many tokens takes, with the marks around it."""
    return n_text + _MARKS_PER_MESSAGE


def sent_of(path: Sequence[Message], begins_at: int = 0) -> list[Message]:
    """Return what of a path is sent: nothing before ``begins_at``, nor what was too long to be answered."""
    kept = [message for message in path if message.id >= begins_at]
    too_long = {
        m.parent_id for m in kept if m.status is Status.FAILED and m.finish_reason == CONTEXT_FULL and not m.content
    }
    return [
        message
        for message in kept
        if (message.content or message.attachments or message.calls) and message.id not in too_long
    ]


def tokens_in(messages: Sequence[Message], text: str = "", attachments: Sequence[Attachment] = ()) -> int:
    """Return about how many tokens the messages take, with one more that says ``text`` and has ``attachments``."""
    counted = [m for m in messages if m.timings is not None and m.timings.decode_tokens > 8]  # fewer say little
    n_tokens = sum(m.timings.decode_tokens for m in counted if m.timings is not None)
    per_token = sum(_n_bytes(m.content) for m in counted) / n_tokens if n_tokens else _BYTES_PER_TOKEN
    n_bytes = sum(_n_bytes(m.content) for m in messages) + _n_bytes(text)
    n_bytes += sum(_n_bytes(call.arguments) + _n_bytes(call.result) for m in messages for call in m.calls)
    n_files = sum(one.tokens for m in messages for one in m.attachments) + sum(one.tokens for one in attachments)
    is_said = bool(text or attachments)
    return round(n_bytes / max(per_token, 1.0)) + n_files + _MARKS_PER_MESSAGE * (len(messages) + is_said)


def later_start(sent: Sequence[Message], text: str, n_ctx: int) -> int:
    """Return the id from which on messages are sent so that they and ``text`` leave room; the last question stays."""
    questions = [message.id for message in sent if message.role is Role.USER]
    for begins_at in questions:
        if tokens_in([m for m in sent if m.id >= begins_at], text) <= n_ctx * _LEFT_FOR_EARLIER:
            return begins_at
    if text and sent:
        return sent[-1].id + 1
    return questions[-1] if questions else 0


def larger_context(n_tokens: int, n_ctx: int, most: int) -> int | None:
    """Return a context of a model trained for ``most`` tokens that holds so many; None where there is none."""
    wanted = n_ctx
    while wanted < n_tokens * _ROOM and wanted < most:
        wanted = min(wanted * 2, most)
    return wanted if wanted > max(n_ctx, n_tokens) else None


def _n_bytes(text: str) -> int:
    return len(text.encode("utf-8", "replace"))
