"""What a command asks of the library: a running server's answers, else the same service does in this process.

Where a server runs, its window sees what a command does, and no two processes change the same thing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from app.client.discovery import RunningServer, running_servers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from app.client.http_client import ServerRefused
    from app.client.library_client import LibraryClient
    from models.catalog.catalog import Catalog, ModelEntry

# What a server cannot do that is of another version, has no API key, or is stopping.
_NOT_DONE_THERE = frozenset({"not_found", "unknown_parameter", "api_key_needed", "library_stopped"})
_LOOK_SECONDS = 2.0


def answer(request: Any) -> Any:
    """Return the answer to one of ``models.library.requests``; raises LibraryError, UnknownModel and ServerRefused."""
    for library in libraries():
        from app.client.http_client import ServerRefused, ServerUnreachable

        try:
            return library.answer(request)
        except ServerUnreachable:
            continue
        except ServerRefused as refusal:
            if not is_not_done_there(refusal):
                raise
    return own_answer(request)


def libraries() -> Iterator[LibraryClient]:
    """Yield the library of each server that answers, the youngest first."""
    for server in running_servers():
        if _answers(server):
            from app.client.http_client import Client
            from app.client.library_client import LibraryClient

            yield LibraryClient(Client(server.url, server.api_key))


def is_not_done_there(refusal: ServerRefused) -> bool:
    """Whether a server cannot do what it was asked, and this process may."""
    return refusal.code in _NOT_DONE_THERE


def own_answer(request: Any) -> Any:
    """Return the answer of this process, for what changes nothing."""
    from app.library.trouble import as_library_errors
    from app.library_service.service import LibraryService

    with as_library_errors():
        return LibraryService().answer(request)


def asked_as(entry: ModelEntry, models: Catalog) -> str:
    """Return by what the library is asked about a model: its name among ``models``, else its path."""
    listed = models.find(entry.name)
    return entry.name if listed is not None and listed.path == entry.path else str(entry.path.absolute())


def _answers(server: RunningServer) -> bool:
    from app.client.http_client import Client, ServerRefused, ServerUnreachable

    try:
        Client(server.url, server.api_key, _LOOK_SECONDS).state()
    except ServerUnreachable:
        return False
    except ServerRefused:
        return True
    return True
