"""What only the owner of a server may change: from its own machine, and with a key."""

from __future__ import annotations

from fastapi import Request as HttpRequest

from app.server.http.errors import refuse
from app.server.http.keys import ApiKeys, caller
from app.server.http.limits import LOOPBACK_NAMES


def check_owner(http: HttpRequest, what: str, *, by_name: bool = True) -> None:
    """Refuse anybody but the owner; ``what`` begins the sentence, as "Remotes are changed".

    Without ``by_name`` also those whose key has a name: an editor's key shall not make itself others.
    """
    keys: ApiKeys = http.app.state.keys
    if not keys.is_needed:
        raise refuse(403, f"{what} by a server with an API key only: start it with --api-key.", code="api_key_needed")
    # A Unix socket has no address, and belongs to this machine.
    if http.client is not None and http.client.host not in LOOPBACK_NAMES:
        raise refuse(403, f"{what} on the machine of the server only.", code="not_local")
    if not by_name and caller.get() is not None:
        raise refuse(403, f"{what} with the server's own key only, not with a client's.", code="not_owner")
