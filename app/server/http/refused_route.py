"""What a client is told that asked for a route, or in a way, that this server does not have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from starlette.exceptions import HTTPException

from app.server.http.errors import STATUSES, ApiError, ErrorAnswer, refuse

PREFIX = "/v1"
RouteHint = tuple[str, str]  # method and path


def from_http_exception(error: HTTPException, method: str, path: str, offers: Sequence[RouteHint]) -> ApiError:
    """Return the error of an exception that the framework raised for ``method`` and ``path``, in OpenAI's shape.

    ``offers`` are the methods and paths that clients may use; an unknown one is answered with all of them.
    """
    if error.status_code == 404:
        return refuse(404, _unknown(method, path, offers))
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


def _unknown(method: str, path: str, offers: Sequence[RouteHint]) -> str:
    meant = _meant(path, (known for _, known in offers))
    hint = f" Is {meant} meant? The base URL ends with {PREFIX}." if meant else ""
    known = ", ".join(f"{one} {where}" for one, where in offers)
    return f"There is no {method} {path} here.{hint} This server has {known}."


def _meant(path: str, known: Iterable[str]) -> str | None:
    """Return the path that a base URL with the prefix left out, or said twice, was meant to reach."""
    rest = path
    while rest.startswith(f"{PREFIX}/"):
        rest = rest.removeprefix(PREFIX)
    meant = PREFIX + rest
    return meant if meant != path and meant in known else None
