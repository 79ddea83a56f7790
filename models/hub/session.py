"""huggingface_hub's HTTP session, with timeouts, the chosen proxy, and errors without long retries."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Final

from models.formatting.sentence import Sentence
from models.formatting.system_error import system_reason
from models.hub.errors import BadHubSetting, HubFault, RateLimited, TimedOut, Unreachable
from models.hub.settings import HubSettings

if TYPE_CHECKING:
    import httpx2

# Seconds of a week: longer waits are not believed.
_LONGEST_WAIT = 7 * 86_400.0
_RESET = re.compile(r"\bt\s*=\s*(\d+)")
_lock = threading.Lock()
_UNOPENED: Final = ""  # no proxy has this address
_opened_for: str | None = _UNOPENED
# Seconds without an answer, per thread: some calls can wait longer than others, and they share one session.
_patience: ContextVar[float] = ContextVar("patience", default=15.0)


def open_session(settings: HubSettings) -> None:
    """Make huggingface_hub use these settings for this thread's next requests. Its session is one per process.

    Changing the proxy ends the requests of other threads; changing the timeout does not.
    """
    global _opened_for
    # The library reads these when it is imported: no telemetry and no look-up of updates.
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    os.environ.setdefault("HF_HUB_DISABLE_UPDATE_CHECK", "1")
    from huggingface_hub import set_client_factory

    _patience.set(settings.timeout)
    with _lock:
        if _opened_for != settings.proxy:
            set_client_factory(lambda: _client(settings.proxy))
            _opened_for = settings.proxy


def _client(proxy: str | None) -> httpx2.Client:
    import httpx2

    class HubClient(httpx2.Client):
        """Raises the app's own errors, because huggingface_hub retries others for half a minute or longer."""

        def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
            # The library gives some of its calls no timeout at all.
            patience = _patience.get()
            request.extensions["timeout"] = httpx2.Timeout(patience, connect=min(10.0, patience)).as_dict()
            try:
                response = super().send(request, **options)
            except httpx2.TimeoutException as error:
                raise TimedOut(_origin(request), patience) from error
            except httpx2.RequestError as error:
                raise Unreachable(_origin(request), reason(error)) from error
            refuse_later(response.status_code, response.headers)
            return response

    with as_bad_proxy():
        return HubClient(follow_redirects=True, proxy=proxy)


@contextmanager
def as_bad_proxy() -> Iterator[None]:
    """Turn what is raised while a client is made into BadHubSetting: only a proxy can be wrong then."""
    try:
        yield
    except Exception as error:  # ValueError for a scheme, httpx's InvalidURL, ImportError for SOCKS, and more
        raise BadHubSetting(
            "The proxy cannot be used ({reason}). Correct it in the settings of the Hub, or in the variables "
            "HTTPS_PROXY, HTTP_PROXY and ALL_PROXY. It looks like http://example.org:3128 or socks5://127.0.0.1:1080.",
            reason=str(error).rstrip("."),
        ) from error


def refuse_later(status: int, headers: Any) -> None:
    """Raise the error of a status that asks for another try later (429, 408, 5xx); return for any other."""
    if status == 429:
        raise RateLimited(retry_after(headers))
    if status >= 500 or status == 408:
        raise HubFault(f"HTTP status {status}", status)


def retry_after(headers: Any) -> float | None:
    """The seconds to wait by a response's headers, at most a week; None if they do not say.

    A date is compared with the response's own date, in case this machine's clock is wrong.
    """
    value = str(headers.get("Retry-After", "")).strip()
    if value.isascii() and value.isdigit():
        return min(float(value), _LONGEST_WAIT)
    moment = _moment(value)
    if moment is not None:
        now = _moment(str(headers.get("Date", "")))
        return min(max(0.0, moment - (time.time() if now is None else now)), _LONGEST_WAIT)
    match = _RESET.search(str(headers.get("RateLimit", "")))
    return min(float(match[1]), _LONGEST_WAIT) if match else None


def _moment(date: str) -> float | None:
    """The seconds since 1970 of an HTTP date; None if it cannot be read."""
    try:
        return parsedate_to_datetime(date).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def reason(error: Exception) -> str:
    """Why a connection failed, in a few words."""
    found = system_reason(error)
    return found if isinstance(found, Sentence) else re.sub(r"^\[[^]]*\]\s*", "", found.strip())[:120]


def _origin(request: httpx2.Request) -> str:
    return f"{request.url.scheme}://{request.url.netloc.decode()}"
