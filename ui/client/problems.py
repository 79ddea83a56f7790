"""What the window says of an error of the server: its own words where the code tells enough. No Qt here."""

from __future__ import annotations

from typing import Any

from models.formatting.sentence import Sentence, said_in
from ui.language import of_data, tr

# By the code of an error that says no more than its code does.
_SENTENCES = {
    "shutting_down": tr("The server was stopped before the answer was whole."),
    "queue_full": tr("Too many requests wait already. Try again in a moment."),
    "cancelled": tr("The request was cancelled."),
    "model_not_found": tr("This model is not here any more."),
}


def sentence_of(body: object) -> str | None:
    """Return what to say of an error in OpenAI's shape, or None where it is not one."""
    error = body.get("error") if isinstance(body, dict) else None
    message = error.get("message") if isinstance(error, dict) else error
    if not isinstance(message, str) or not message:
        return None
    said = error.get("said") if isinstance(error, dict) else None
    if isinstance(said, dict):
        said = said_in(said)
    if isinstance(said, Sentence) and set(said.facts) == {"problem", "seconds"}:
        said = str(said.facts["problem"])  # when to try again is for programs; a chat is read much later
    return _of_context(error) or _SENTENCES.get(code_of(body)) or (said if isinstance(said, str) else of_data(message))


def code_of(body: object) -> str:
    """Return the code of an error in OpenAI's shape, "" where it has none."""
    error = body.get("error") if isinstance(body, dict) else None
    code = error.get("code") if isinstance(error, dict) else None
    return code if isinstance(code, str) else ""


def _of_context(error: Any) -> str:
    """Return what to say of a prompt that is too long, "" for other errors."""
    sizes = [error.get(name) for name in ("n_prompt_tokens", "n_ctx")] if isinstance(error, dict) else []
    if not sizes or not all(isinstance(size, int) and size > 0 for size in sizes):
        return ""
    return tr(
        "The messages have {n_prompt:,} tokens, and the context of the model has room for {n_ctx:,}.",
        n_prompt=sizes[0],
        n_ctx=sizes[1],
    )
