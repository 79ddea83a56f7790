"""Who may use the server: the keys that it was started with, those that the user has made, and one for this machine."""

from __future__ import annotations

import hashlib
import secrets
from contextvars import ContextVar

from app.client.server_process import new_api_key
from app.settings.api_keys import KeyStore
from app.settings.server_settings import ServerSettings

caller: ContextVar[str | None] = ContextVar("caller", default=None)
"""The name of the key of the request that is being answered; None where it has none, or a key without a name."""

caller_id: ContextVar[str | None] = ContextVar("caller_id", default=None)
"""The id of the key of the request that is being answered; None for the owner's."""

manages: ContextVar[bool] = ContextVar("manages", default=True)
"""Whether the request that is being answered may manage models, or only use them."""

ENDPOINT = "editors"  # what the key of the open port is called where requests are listed


def may_see(made_by: str | None) -> bool:
    """Whether the request that is being answered may see what was made with this key: its own, and the owner all."""
    return caller_id.get() in (None, made_by)


def cache_salt(named: str = "") -> str:
    """Return the salt of what is cached for the request that is being answered; the owner's has none.

    Each client's key has its own texts, and of these each salt that the client has ``named``.
    """
    client = caller_id.get() or ""
    return f"{client}\n{named}" if client or named else ""


class ApiKeys:
    """All keys of a server. Keys that are made or revoked while it runs count from the next request on."""

    def __init__(self, settings: ServerSettings, store: KeyStore | None = None) -> None:
        """``local`` is what other programs of this user send; they read it in a file that is theirs alone."""
        given = dict.fromkeys(settings.api_keys)  # an option and a file may say the same one
        self._given = [key.encode() for key in given]
        self._is_open_to_others = not settings.is_loopback
        self.store = store or KeyStore()
        self._endpoint_key: bytes | None = None
        self.local = next(iter(given)) if len(given) == 1 else new_api_key()

    def open_to_others(self, key: str) -> None:
        """Let in programs with this key, and from now on nobody without one."""
        self._endpoint_key, self._is_open_to_others = key.encode(), True

    @property
    def is_needed(self) -> bool:
        """Whether requests without a key are refused."""
        return bool(self._given) or self._is_open_to_others or not self.store.is_empty

    def id_of(self, name: str | None, sent: bytes) -> str | None:
        """Return the id of a key of this name, or of none; None for the owner's.

        Where it was started with several keys, they may be those of several people. A name may be given again to
        another key, which is not to see what was made with the first.
        """
        if not name and (len(self._given) < 2 or secrets.compare_digest(sent, self.local.encode())):
            return None
        return hashlib.sha256(sent).hexdigest()[:32]

    def may_manage(self, name: str | None, sent: bytes) -> bool:
        """Return whether a key of this name, or none, may manage models: the owner's, and those that it lets."""
        return self.id_of(name, sent) is None or self.store.may_manage(sent)

    def name_of(self, sent: bytes) -> str | None:
        """Return the name of a key, "" for one without a name; None for what is no key of this server.

        All keys are compared, each in a time that does not depend on where they differ.
        """
        is_given = sum(secrets.compare_digest(sent, key) for key in (*self._given, self.local.encode())) > 0
        name = self.store.name_of(sent)
        if name is not None:
            return name
        if self._endpoint_key is not None and secrets.compare_digest(sent, self._endpoint_key):
            return ENDPOINT
        return "" if is_given else None
