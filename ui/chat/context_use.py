"""How much of a model's context a chat takes: an estimate, by what its replies have shown of its vocabulary. No Qt."""

from __future__ import annotations

from collections.abc import Sequence

from ui.chat.messages.receipts import CONTEXT_FULL
from ui.client.chat_records import Message, Role, Status

_BYTES_PER_TOKEN = 4.0  # English in common vocabularies; where replies have been counted, theirs stand
_MARKS_PER_MESSAGE = 8  # tokens that a chat template adds to a message
_LEFT_FOR_EARLIER = (
    0.5  # share of the context that earlier messages keep when some are left out: the rest is for new ones
)
_ROOM = 1.5  # a larger context is this many times as long as what must fit, so that the chat can go on


def sent_of(path: Sequence[Message], begins_at: int = 0) -> list[Message]:
    """Return what of a path is sent: nothing before ``begins_at``, nor what was too long to be answered."""
    kept = [message for message in path if message.id >= begins_at]
    too_long = {m.parent_id for m in kept if m.status is Status.FAILED and m.finish_reason == CONTEXT_FULL}
    return [message for message in kept if message.content and message.id not in too_long]


def tokens_in(messages: Sequence[Message], text: str = "") -> int:
    """Return about how many tokens the messages take, with one more that says ``text``."""
    counted = [m for m in messages if m.timings is not None and m.timings.decode_tokens > 8]  # fewer say little
    n_tokens = sum(m.timings.decode_tokens for m in counted if m.timings is not None)
    per_token = sum(_n_bytes(m.content) for m in counted) / n_tokens if n_tokens else _BYTES_PER_TOKEN
    n_bytes = sum(_n_bytes(m.content) for m in messages) + _n_bytes(text)
    return round(n_bytes / max(per_token, 1.0)) + _MARKS_PER_MESSAGE * (len(messages) + bool(text))


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
