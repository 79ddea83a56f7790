"""The library for a command: a running server's answers, else the same service does in this process.

Where a server runs, its window sees what a command does, and no two processes change the same thing.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar, cast

from app.client.discovery import RunningServer, running_servers
from core.values.errors import SlipstreamError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from app.client.library_client import LibraryClient
    from app.library_service.service import LibraryService
    from models.catalog.catalog import Catalog, ModelEntry
    from models.library.values import Download, Quantising

_Done = TypeVar("_Done")
_Work = TypeVar("_Work", "Download", "Quantising")
# Errors of a server that is of another version, has no API key, or is stopping; and no server takes the name of a file
# that UTF-8 cannot hold.
_NOT_DONE_THERE = frozenset({"not_found", "unknown_parameter", "api_key_needed", "library_stopped", "invalid_json"})
_LOOK_SECONDS = 2.0  # for a server to answer; one that hangs is passed over


def answer(request: Any, *, same_hub: bool = False) -> Any:
    """Return the answer to one of ``models.library.requests``; raises LibraryError, UnknownModel and ServerRefused.

    With ``same_hub``, only a server is asked that reaches the same Hub in the same way as this process.
    """
    for library in libraries(same_hub=same_hub):
        with _unless_it_cannot(may_break=False):
            return library.answer(request)
    return own_answer(request)


def answer_parts(request: Any, stop: Any) -> Generator[Any, None, None]:
    """Yield the parts of an answer; ``stop`` is the request that ends a server's work when nobody waits for it."""
    for library in libraries():
        with _unless_it_cannot():  # where it has gone, this process begins anew
            try:
                yield from library.parts(request)
                return
            except (KeyboardInterrupt, GeneratorExit):
                with suppress(SlipstreamError):  # a server that has gone has ended its work with it
                    library.answer(stop)
                raise
    with own_library() as service:
        yield from service.answer(request)


def asked_there(ask: Callable[[LibraryClient], _Done | None], *, same_hub: bool = False) -> _Done | None:
    """Return what ``ask`` gets of the first server that can do it; None where none can, or all of them have gone."""
    for library in libraries(same_hub=same_hub):
        with _unless_it_cannot():
            if (done := ask(library)) is not None:
                return done
    return None


@contextmanager
def _unless_it_cannot(*, may_break: bool = True) -> Iterator[None]:
    """Go on behind the block where a server has gone, or does not do what it is asked for.

    Without ``may_break``, an answer that breaks off is an error: what was asked for may be done.
    """
    from app.client.http_client import ServerRefused, ServerUnreachable, StreamBroken

    gone = (ServerUnreachable, StreamBroken) if may_break else (ServerUnreachable,)
    try:
        yield
    except gone:
        return
    except ServerRefused as refusal:
        if refusal.code not in _NOT_DONE_THERE:
            raise


def followed(
    library: LibraryClient, work: _Work, show: Callable[[Any], None], *, undo: Any, stopped: Exception
) -> _Work | None:
    """Follow work that a library has begun to its end; None if the library stops before that.

    ``show`` gets its progress, and Ctrl-C asks for ``undo``, if that is not None. Raises LibraryError where it fails,
    and ``stopped`` where the window stops it.
    """
    from app.library.trouble import library_error
    from models.library.values import Download

    try:
        for known in library.downloads() if isinstance(work, Download) else library.quantisings():
            now: Any = next((one for one in known if one.number == work.number), None)
            if now is None or now.phase.value in ("paused", "cancelled"):
                raise stopped
            if now.trouble is not None:
                raise library_error(now.trouble)
            if now.done is not None:
                return cast("_Work", now)
            show(now.progress)
    except KeyboardInterrupt:
        if undo is not None:
            with suppress(SlipstreamError):  # a server that has gone has ended its work with it
                library.answer(undo)
        raise
    return None


def libraries(*, same_hub: bool = False) -> Iterator[LibraryClient]:
    """Yield the library of each server that answers, the youngest first; ``same_hub`` is as for ``answer``."""
    for server in running_servers():
        if _answers(server):
            from app.client.http_client import Client
            from app.client.library_client import LibraryClient

            library = LibraryClient(Client(server.url, server.api_key))
            if not same_hub or _has_our_hub(library):
                yield library


def own_answer(request: Any) -> Any:
    """Return the answer of this process, for what changes nothing or where no server runs."""
    with own_library() as service:
        return service.answer(request)


def asked_as(entry: ModelEntry, models: Catalog) -> str:
    """Return what names a model in a request to the library: its name if ``models`` has it, else its path."""
    listed = models.find(entry.name)
    return entry.name if listed is not None and listed.path == entry.path else str(entry.path.absolute())


@contextmanager
def own_library() -> Iterator[LibraryService]:
    """Use the library in this process."""
    from app.library.trouble import as_library_errors, library_error, trouble_of
    from app.library_service.service import LibraryService

    try:
        with as_library_errors():
            yield LibraryService()
    except OSError as error:
        raise library_error(trouble_of(error)) from error


def _has_our_hub(library: LibraryClient) -> bool:
    from app.client.http_client import ServerRefused, ServerUnreachable, StreamBroken
    from app.library.errors import LibraryError
    from app.library.hub_access import hub_facts
    from models.hub.errors import HubError
    from models.library.requests import ShowHub

    try:
        return bool(library.answer(ShowHub()) == hub_facts())
    except (HubError, LibraryError, ServerRefused, ServerUnreachable, StreamBroken):
        return False  # this process does it, and says what is wrong with its own settings


def _answers(server: RunningServer) -> bool:
    from app.client.http_client import Client, ServerRefused, ServerUnreachable

    try:
        Client(server.url, server.api_key, _LOOK_SECONDS).state()
    except ServerUnreachable:
        return False
    except ServerRefused:
        return True
    return True
