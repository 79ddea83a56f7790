"""What a client is told about an error: one table from exceptions to status, type and code.

ApiError                 an answer in OpenAI's error shape
├── ModelNotFound        404, with the names there are
└── RequestFailed        the engine ended the request with a failure
"""

from __future__ import annotations

import json
import logging
import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from core.values.errors import BadRequest, EngineUnavailable, LoadFailed, SlipstreamError
from core.values.messages import Failure, FailureKind
from models.formatting.sentence import Sentence, as_object
from models.formatting.system_error import lacks_space, system_reason

if TYPE_CHECKING:
    from starlette.exceptions import HTTPException


logger = logging.getLogger("slipstream.server")

INVALID = "invalid_request_error"
SERVER = "server_error"
_LONGEST_NAME = 200
_LONGEST = 4_000  # characters of a message


class ErrorAnswer(NamedTuple):
    """HTTP status, OpenAI's ``type`` and ``code``, and whether the same request may succeed later."""

    status: int
    type: str
    code: str | None
    may_retry: bool = False


# The paths of protocols whose errors have a form of their own.
ANTHROPIC, OLLAMA, RESPONSES = "/v1/messages", "/api/", "/v1/responses"
LM_STUDIO, LM_STUDIO_1 = ("/api/v0/", "/api/v1/"), "/api/v1/"  # the older ones have OpenAI's form
_ANTHROPIC_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
}
# How llama-server calls errors on its own routes (``format_error_response`` in its server-common.cpp).
_LLAMA_CPP_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    501: "not_supported_error",
    503: "unavailable_error",
}
_LLAMA_CPP = frozenset(
    [
        "apply-template",
        "completion",
        "detokenize",
        "embedding",
        "embeddings",
        "infill",
        "lora-adapters",
        "metrics",
        "models",
        "props",
        "rerank",
        "reranking",
        "slots",
        "tokenize",
    ]
)


def _in_form_of(path: str, error: ApiError) -> dict[str, Any]:
    status = error.answer.status
    if path.startswith(ANTHROPIC):
        kind = _ANTHROPIC_TYPES.get(status, "invalid_request_error" if status < 500 else "api_error")
        message = error.message
        if error.sizes is not None:  # the words by which Anthropic's clients know that they must shorten their chat
            message = "prompt is too long: {} tokens > {} maximum".format(*error.sizes)
        told = {"type": kind, "message": message, "param": error.param, "code": error.answer.code}
        return {"type": "error", "error": told if error.details is None else told | {"details": error.details}}
    if is_ollama(path):
        return {"error": _naming_its_field(error)}
    body = error.body()
    if path.startswith(LM_STUDIO_1):
        not_found = "job_not_found" if error.answer.code == "job_not_found" else "model_not_found"
        kind = not_found if status == 404 else "invalid_request" if status < 500 else "internal_error"
        body["error"]["type"] = kind
    elif is_llama_cpp(path):
        kind = _LLAMA_CPP_TYPES.get(status, INVALID if status < 500 else SERVER)
        body["error"] |= {"code": status, "type": kind if error.sizes is None else "exceed_context_size_error"}
    return body


def _naming_its_field(error: ApiError) -> str:
    """Return the sentence of an error, with the name of its field, which this form has no other place for."""
    field = (error.param or "").rpartition(".")[2]
    is_named = field.casefold() in error.message.casefold() or error.sizes is not None
    is_named |= field == "model"  # such errors say its name
    return error.message if is_named else f"{error.param}: {error.message}"


def is_ollama(path: str) -> bool:
    """Return whether Ollama's protocol is spoken at ``path``."""
    return path.startswith(OLLAMA) and not path.startswith(LM_STUDIO)


def is_llama_cpp(path: str) -> bool:
    """Return whether ``path`` is one of llama-server's own, whose errors have a number as their ``code``."""
    return path[1:].partition("/")[0] in _LLAMA_CPP


class ApiError(Exception):
    """An answer in OpenAI's error shape."""

    def __init__(self, answer: ErrorAnswer, message: str, param: str | None = None, retry_after: int = 1) -> None:
        """``retry_after`` is in seconds, for answers that may be better later."""
        if len(message) > _LONGEST:  # it says back what a client sent
            message = f"{message[:_LONGEST]}…"
        super().__init__(message)
        self.answer, self.message, self.retry_after = answer, message, retry_after
        self.param = param[:_LONGEST_NAME] if param is not None else None
        self.sizes: tuple[int, int] | None = None  # tokens of a prompt that is too long, and of the context
        self.guessed_sizes: tuple[int, int] | None = None  # the same by a remote's words, which clients are not told
        self.details: dict[str, Any] | None = None  # by which Anthropic's clients know what to do

    def body(self) -> dict[str, Any]:
        """Return the JSON object of the error, with the facts of its sentence where these are known.

        One of a prompt that is too long has llama-server's fields too.
        """
        error: dict[str, Any] = {
            "message": self.message,
            "type": self.answer.type,
            "param": self.param,
            "code": self.answer.code,
        }
        if self.sizes is not None:
            error |= {"n_prompt_tokens": self.sizes[0], "n_ctx": self.sizes[1]}
        if isinstance(self.message, Sentence):
            error["said"] = as_object(self.message)
        return {"error": error}

    def encoded(self, path: str = "") -> bytes:
        """Return the JSON object as bytes, in the form of the protocol that ``path`` belongs to."""
        return json.dumps(_in_form_of(path, self), ensure_ascii=False).encode("utf-8", "replace")

    def event(self, path: str) -> bytes:
        """Return the event, or in Ollama's protocol the line, that ends a stream which fails."""
        encoded = self.encoded(path)
        if is_ollama(path):
            return encoded + b"\n"
        if path.startswith((RESPONSES, LM_STUDIO_1)):
            error = json.loads(encoded)["error"]
            # OpenAI's event has the fields beside its type; clients that know a chat's errors look for the object.
            fields = error | {"sequence_number": 0} if path.startswith(RESPONSES) else {}
            encoded = json.dumps(fields | {"type": "error", "error": error}).encode()
        name = b"event: error\n" if path.startswith((ANTHROPIC, RESPONSES, LM_STUDIO_1)) else b""
        return name + b"data: " + encoded + b"\n\n"

    def headers(self) -> dict[str, str]:
        """Headers by which the client libraries decide whether to try again."""
        headers = {"x-should-retry": "true" if self.answer.may_retry else "false"}
        if self.answer.may_retry:
            headers["retry-after"] = str(self.retry_after)
        return headers


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else name[:_LONGEST_NAME] + "…"


class ModelNotFound(ApiError):
    """No model of this name; the names there are go with it."""

    def __init__(self, name: str, names: Iterable[str]) -> None:
        known = ", ".join(names) or "none"
        super().__init__(
            ErrorAnswer(404, INVALID, "model_not_found"),
            Sentence(
                "There is no model {name} here. The models there are: {known}.", name=repr(_short(name)), known=known
            ),
            param="model",
        )


FAILURES: Mapping[FailureKind, ErrorAnswer] = {
    FailureKind.BAD_REQUEST: ErrorAnswer(400, INVALID, "invalid_value"),
    FailureKind.CONTEXT_LENGTH: ErrorAnswer(400, INVALID, "context_length_exceeded"),
    FailureKind.ENGINE_DIED: ErrorAnswer(503, SERVER, "engine_died", may_retry=True),
    FailureKind.LOAD_FAILED: ErrorAnswer(503, SERVER, "model_load_failed"),
    FailureKind.SHUTDOWN: ErrorAnswer(503, SERVER, "shutting_down"),
    FailureKind.INTERNAL: ErrorAnswer(500, SERVER, "internal_error"),
}

EXCEPTIONS: Mapping[type[SlipstreamError], ErrorAnswer] = {
    BadRequest: ErrorAnswer(400, INVALID, "invalid_value"),
    EngineUnavailable: ErrorAnswer(503, SERVER, "engine_unavailable"),
    LoadFailed: ErrorAnswer(503, SERVER, "model_load_failed"),
    SlipstreamError: ErrorAnswer(500, SERVER, "internal_error"),
}

STATUSES: Mapping[int, ErrorAnswer] = {
    400: ErrorAnswer(400, INVALID, "invalid_value"),
    401: ErrorAnswer(401, "authentication_error", "invalid_api_key"),
    403: ErrorAnswer(403, INVALID, "forbidden"),
    404: ErrorAnswer(404, INVALID, "not_found"),
    405: ErrorAnswer(405, INVALID, "method_not_allowed"),
    408: ErrorAnswer(408, INVALID, "request_timeout", may_retry=True),
    413: ErrorAnswer(413, INVALID, "request_too_large"),
    415: ErrorAnswer(415, INVALID, "unsupported_media_type"),
    426: ErrorAnswer(426, INVALID, "no_websockets"),
    431: ErrorAnswer(431, INVALID, "headers_too_large"),
    499: ErrorAnswer(499, INVALID, "cancelled"),  # clients try none again that is below 500
    501: ErrorAnswer(501, INVALID, "not_supported"),
    503: ErrorAnswer(503, SERVER, "overloaded", may_retry=True),
    507: ErrorAnswer(507, SERVER, "disk_full"),
}


class RequestFailed(ApiError):
    """The engine ended a request with a failure."""

    def __init__(self, failure: Failure) -> None:
        seconds = max(math.ceil(failure.retry_after), 1)
        super().__init__(FAILURES[failure.kind], failure.message, failure.param, seconds)
        if failure.n_ctx:
            self.sizes = failure.n_prompt, failure.n_ctx


def refuse(status: int, message: str, param: str | None = None, code: str | None = None) -> ApiError:
    """Return the error of an HTTP status, with a more exact ``code`` where there is one."""
    answer = STATUSES[status]
    return ApiError(answer._replace(code=code) if code else answer, message, param)


def cancelled() -> ApiError:
    """Return what a client is told whose request was ended from elsewhere."""
    return refuse(499, Sentence("The request was cancelled."))


@contextmanager
def renamed(names: Mapping[str, str]) -> Iterator[None]:
    """Let errors name the fields of a protocol where they name those of the chat's body, by ``names``."""
    try:
        yield
    except (ApiError, BadRequest) as error:
        if error.param is not None:
            error.param = names.get(re.split(r"[.\[]", error.param, maxsplit=1)[0], error.param)
        raise


def from_exception(error: Exception) -> ApiError:
    """Return what a client is told of any exception; details of unforeseen ones stay in the log."""
    if isinstance(error, ApiError):
        return error
    if isinstance(error, EngineUnavailable) and error.retry_after is not None:
        seconds = max(math.ceil(error.retry_after), 1)
        answer = EXCEPTIONS[EngineUnavailable]._replace(may_retry=True)
        again = Sentence("{problem} Try again in {seconds} s.", problem=error.message, seconds=seconds)
        return ApiError(answer, again, retry_after=seconds)
    for kind, answer in EXCEPTIONS.items():
        if isinstance(error, kind):
            param, code = getattr(error, "param", None), getattr(error, "code", None)
            return ApiError(answer._replace(code=code or answer.code), str(error), param)
    if lacks_space(error):
        reason = system_reason(error)
        message = Sentence("There is no room on the disk for this ({reason}): free some and try again.", reason=reason)
        return refuse(507, message)
    logger.error("unforeseen error", exc_info=error)
    return ApiError(
        ErrorAnswer(500, SERVER, "internal_error"), Sentence("Something went wrong in the server; its log says what.")
    )


_RULES: Mapping[str, tuple[str, str]] = {
    "missing": ("missing_required_parameter", "Missing required field: {field}."),
    "too_many_fields": ("invalid_value", "{field} has {n} fields, and may have {most}."),
    "extra_forbidden": ("unknown_parameter", "The field {field} is not known or not supported here: leave it out."),
    "greater_than_equal": ("integer_below_min_value", "{field} must be {ge} or more, not {input}."),
    "less_than_equal": ("integer_above_max_value", "{field} must be {le} or less, not {input}."),
    "too_short": ("array_below_min_length", "{field} must have {min_length} or more entries, not {actual_length}."),
    "string_too_short": ("string_below_min_length", "{field} must have {min_length} or more characters."),
    "string_too_long": ("string_above_max_length", "{field} must have {max_length} or fewer characters."),
    "too_long": ("array_above_max_length", "{field} must have {max_length} or fewer entries, not {actual_length}."),
    "json_invalid": ("invalid_json", "The body is not valid JSON: {error}."),
}


_SHOULD_BE = "Input should be "
_JSON_WORDS = (
    ("a valid dictionary or object to extract fields from", "a JSON object"),
    ("a valid dictionary", "a JSON object"),
    ("a valid list", "a list"),
    ("a valid boolean", "true or false"),
    ("True", "true"),
    ("False", "false"),
    ("None", "null"),
)


def from_validation(problems: Iterable[Mapping[str, Any]], names: Mapping[str, str] = {}) -> ApiError:
    """Return the 400 for the first of pydantic's problems, naming its field; ``names`` are those sent, by ours."""
    listed = list(problems)
    # Each member of a union complains for itself: the one that got furthest, or has the type, was meant.
    same_field = [one for one in listed if _place(one)[:1] == _place(listed[0])[:1]]
    problem = max(same_field, key=lambda one: (len(one["loc"]), not one["type"].endswith("_type")))
    kind = str(problem["type"])
    kinds = [one for one in same_field if len(one["loc"]) == len(problem["loc"]) and one["type"].endswith("_type")]
    place = _place(problem)
    if kind == "json_invalid":
        place = ()
    # The name of an unknown field is the client's: it may be anything.
    field = _field_name(place[:-1], _short(str(place[-1]))) if kind == "extra_forbidden" else _field_name(place)
    first = re.split(r"[.\[]", field, maxsplit=1)[0]
    if first in names:
        # Inside a list our entries are not the client's, and its formats have no "json_schema" around them.
        rest = field.removeprefix(first).removeprefix(".json_schema")
        field = names[first] + (rest if rest.startswith(".") else "")
    if not place and kind == "missing":
        return refuse(400, "The body is empty: send a JSON object.", code="invalid_json")
    code, sentence = _RULES.get(kind, ("invalid_value", "{field}: {message}."))
    message = str(problem["msg"]).removeprefix("Value error, ").rstrip(".")
    if not field and kind == "value_error":  # about several fields: the sentence begins with one
        field = message.split()[0]
    if kind == "value_error" and field in message:
        sentence = "{message}."
    elif kind not in _RULES and message.startswith(_SHOULD_BE):
        # If the value has the type of no member, each may be meant.
        meant = dict.fromkeys(_must_be(str(one["msg"])) for one in (kinds if problem in kinds else [problem]))
        sentence, message = "{field} must be {message}.", " or ".join(meant)
    sent = problem.get("input")  # said of numbers alone: to write millions of entries takes a second
    facts = {
        "field": field or "The body",
        "message": message,
        "input": repr(sent) if isinstance(sent, int | float) else "",
    }
    facts |= {name: str(value) for name, value in problem.get("ctx", {}).items()}
    return refuse(400, sentence.format(**facts), param=field or None, code=code)


def _place(problem: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return where in what the client sent one of pydantic's problems is."""
    place: tuple[Any, ...] = problem["loc"]
    return place[1:] if place[:1] in (("body",), ("path",)) else place


def _must_be(message: str) -> str:
    """Return what pydantic's "Input should be …" asks for."""
    wanted, _, _ = message.removeprefix(_SHOULD_BE).partition(" or instance of")
    for pythons, jsons in _JSON_WORDS:
        wanted = wanted.replace(pythons, jsons)
    return wanted


def _field_name(place: Iterable[Any], last: str | None = None) -> str:
    from pydantic import BaseModel  # not before there is a request: it takes its time

    # pydantic puts the names of tried union members into the place; they are no fields of the request.
    members = {"str", "float", "int", "bool", *_names_below(BaseModel)}
    name = ""
    for part in place:
        if isinstance(part, int):
            name += f"[{part}]"
        elif part.isidentifier() and part not in members:
            name += f".{part}" if name else part
    return ".".join(filter(None, (name, last)))


def _names_below(kind: type[Any]) -> Iterator[str]:
    for one in kind.__subclasses__():
        yield one.__name__
        yield from _names_below(one)


PREFIX = "/v1"


def from_http_exception(error: HTTPException, method: str, path: str, known: Collection[str]) -> ApiError:
    """Return the error of an exception that the framework raised for ``method`` and ``path``, in OpenAI's shape.

    ``known`` are the paths that clients may use.
    """
    if error.status_code == 404:
        return refuse(404, _unknown(method, path, known))
    if error.status_code == 405:
        allowed = " or ".join(sorted((error.headers or {}).get("Allow", "").split(", ")))
        return refuse(405, f"{path} does not take {method}, but {allowed}.")
    if isinstance(error.__cause__, UnicodeDecodeError):
        return refuse(error.status_code, "The body is not valid UTF-8.", code="invalid_json")
    if isinstance(error.__cause__, RecursionError):
        return refuse(error.status_code, "The body's JSON is nested too deep.", code="invalid_json")
    if isinstance(error.__cause__, ValueError):  # what json.loads raises besides: int() refuses thousands of digits
        return refuse(error.status_code, "The body holds a number with too many digits.", code="invalid_json")
    if error.status_code not in STATUSES:
        return ApiError(ErrorAnswer(error.status_code, "invalid_request_error", None), str(error.detail))
    return refuse(error.status_code, str(error.detail))


def _unknown(method: str, path: str, known: Collection[str]) -> str:
    meant = _meant(path, known)
    hint = f" Is {meant} meant? The base URL ends with {PREFIX}." if meant else ""
    return f"There is no {method} {_short(path)} here.{hint} GET /docs lists what there is."


def _meant(path: str, known: Collection[str]) -> str | None:
    """Return the path that a base URL with the prefix left out, or said twice, was meant to reach."""
    rest = path
    while rest.startswith(f"{PREFIX}/"):
        rest = rest.removeprefix(PREFIX)
    meant = PREFIX + rest
    return meant if meant != path and meant in known else None
