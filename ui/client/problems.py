"""What the window says of an error of the server: its own words where the code tells enough."""

from __future__ import annotations

import json
from typing import Any

from PySide6.QtNetwork import QNetworkReply, QNetworkRequest

from models.formatting.sentence import Sentence, said_in
from ui.language import of_data, tr

MAX_ERROR_BYTES = 1 << 20
MODEL_GONE = "model_not_found"
# By the code of an error that says no more than its code does.
_SENTENCES = {
    "shutting_down": tr("The server was stopped before the answer was whole."),
    "queue_full": tr("Too many requests wait already. Try again in a moment."),
    "cancelled": tr("The request was cancelled."),
    MODEL_GONE: tr("This model is not here any more."),
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
        "The messages have at least {n_prompt:,} tokens, and the context of the model has room for {n_ctx:,}.",
        n_prompt=sizes[0],
        n_ctx=sizes[1],
    )


def error_in(reply: QNetworkReply) -> Any:
    """Return the error in the body of a reply, without taking it; None where there is none."""
    try:
        body = json.loads(bytes(reply.peek(MAX_ERROR_BYTES).data())) if reply.isOpen() else None
    except ValueError:
        return None
    return body.get("error") if isinstance(body, dict) else None


def problem_of(reply: QNetworkReply) -> tuple[str, str]:
    """Return what went wrong with ``reply`` as a sentence, and the code of the server's error.

    The sentence is the server's own where it gave one.
    """
    try:
        # One that was ended here is closed.
        body = json.loads(bytes(reply.read(MAX_ERROR_BYTES).data())) if reply.isOpen() else None
    except ValueError:
        body = None
    sentence = sentence_of(body)
    return (sentence, code_of(body)) if sentence is not None else (network_problem(reply), "")


def network_problem(reply: QNetworkReply) -> str:
    """Return what went wrong with ``reply`` where the server gave no words, as a sentence."""
    status = reply.attribute(QNetworkRequest.Attribute.HttpStatusCodeAttribute)
    if status is not None:
        return tr("The server answered with HTTP status {status}.", status=status)
    return _NETWORK_SENTENCES.get(
        reply.error(), tr("The server cannot be reached: {problem}.", problem=reply.errorString())
    )


NOT_ANSWERING = tr("The server is not answering: it may have stopped.")
_Error = QNetworkReply.NetworkError
_NETWORK_SENTENCES = {
    _Error.ConnectionRefusedError: NOT_ANSWERING,
    _Error.RemoteHostClosedError: tr("The server closed the connection before it answered."),
    _Error.OperationCanceledError: tr("The server did not answer in time."),
    _Error.TimeoutError: tr("The server did not answer in time."),
}
