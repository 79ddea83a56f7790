"""Log probabilities on the wire, in both of OpenAI's shapes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from core.values.messages import Logprob, TokenLogprob

# JSON has no infinity; this is what OpenAI says for a token that is next to impossible.
LOWEST = -9999.0


def chat_logprobs(tokens: Sequence[TokenLogprob]) -> dict[str, Any]:
    """Return the object of a chat choice."""
    content = [_item(token.chosen) | {"top_logprobs": [_item(one) for one in token.top]} for token in tokens]
    return {"content": content, "refusal": None}


def text_logprobs(tokens: Sequence[TokenLogprob], n_chars_before: int) -> dict[str, Any]:
    """Return the object of a text choice; offsets count characters from the start of the choice's text."""
    texts = [_text(token.chosen) for token in tokens]
    offsets, offset = [], n_chars_before
    for text in texts:
        offsets.append(offset)
        offset += len(text)
    return {
        "tokens": texts,
        "token_logprobs": [_value(token.chosen) for token in tokens],
        "top_logprobs": [{_text(one): _value(one) for one in token.top} for token in tokens],
        "text_offset": offsets,
    }


def _item(one: Logprob) -> dict[str, Any]:
    return {"token": _text(one), "logprob": _value(one), "bytes": list(one.piece)}


def _text(one: Logprob) -> str:
    return one.piece.decode("utf-8", "replace")


def _value(one: Logprob) -> float:
    return max(one.logprob, LOWEST)
