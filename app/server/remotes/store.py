"""Which other servers there are: names and addresses in the settings, keys in the system's keyring."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from app.environment.exit_codes import ExitCode
from app.environment.paths import config_folder
from core.values.errors import BadRequest, SlipstreamError
from models.files.json_store import JsonStore, StoreRefused
from models.files.system_keyring import forget_secret, keep_secret, kept_secret
from models.formatting.program import PROGRAM, advice
from models.formatting.sentence import Sentence

_SERVICE = "slipstream remotes"
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,39}")
# An address without its protocol, and those that are of this machine or its network.
_BARE = re.compile(r"[\w.-]+(:\d+)?(/.*)?", re.ASCII)
_NEAR = re.compile(r"(localhost|127\.[\d.]+|10\.[\d.]+|192\.168\.[\d.]+|[\w-]+|[\w.-]+\.local)(:|/|$)", re.ASCII)
_LONGEST_URL, _LONGEST_KEY, LONGEST_MODEL, _MOST_MODELS = 2_000, 4_096, 300, 1_000


class BadRemote(BadRequest):
    """What was said of a remote cannot be."""

    exit_code = ExitCode.USAGE


@dataclass(frozen=True, slots=True)
class Remote:
    """A server that speaks OpenAI's protocol, at ``url``, which ends as base URLs do (``…/v1``).

    Only ``models`` of it can be named; all where there are none. ``fallback`` is the model of this machine that answers
    while the remote does not. ``changed`` is in seconds since 1970: a remote that was added again is another one.
    """

    name: str
    url: str
    has_key: bool = False
    fallback: str | None = None
    models: tuple[str, ...] = ()
    changed: float = 0.0

    @property
    def key_variable(self) -> str:
        """The environment variable that may hold the key: it goes before the keyring."""
        return "SLIPSTREAM_REMOTE_KEY_" + re.sub(r"\W", "_", self.name.upper().replace(".", "_"))

    @property
    def sends_key(self) -> bool:
        """True where requests carry a key."""
        return self.has_key or bool(os.environ.get(self.key_variable, "").strip())


class RemoteModel(NamedTuple):
    """A model at a remote, by the ``id`` that it has there."""

    remote: Remote
    id: str

    @property
    def name(self) -> str:
        """The name that it has here."""
        return f"{self.remote.name}/{self.id}"


class RemoteStore:
    """The remotes in one file. A key is kept for a name *and* its address: it cannot be sent anywhere else.

    It is kept for this version of them too, so that of two changes at once neither takes the other's key away.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._store = JsonStore(path or config_folder() / "remotes.json", what=Sentence("The remote servers"))
        self._lock = threading.Lock()
        self._remotes: dict[str, Remote] = {}

    def all(self) -> dict[str, Remote]:
        """Return the remotes by name; the file is read again where it has changed."""
        with self._lock:
            if (entries := self._store.changed()) is not None:
                read = (_remote(name, entry) for name, entry in entries.items())
                self._remotes = {remote.name: remote for remote in read if remote is not None}
            return self._remotes

    def check(self, name: str, url: str) -> None:
        """Raise BadRemote for a name or an address that no remote can have."""
        _checked_name(name)
        _checked_url(url)

    def add(
        self, name: str, url: str, *, key: str | None = None, fallback: str | None = None, models: Sequence[str] = ()
    ) -> Remote:
        """Keep a remote, in place of the one of this name. Raises BadRemote."""
        key = (key or "").strip()
        remote = Remote(
            _checked_name(name),
            _checked_url(url),
            bool(key),
            (fallback or "").strip() or None,
            tuple(dict.fromkeys(models)),
            time.time(),
        )
        if key and not is_key(key):
            raise BadRemote("That is no API key: it is one word of printable ASCII characters.", param="key")
        if remote.fallback is not None and "/" in remote.fallback:
            raise BadRemote(
                "{name} is no model of this machine: name one that {where} shows.",
                name=repr(remote.fallback),
                where=advice(f"`{PROGRAM} models list`", Sentence("the library")),
                param="fallback",
            )
        if len(remote.models) > _MOST_MODELS or any(not 0 < len(model) <= LONGEST_MODEL for model in remote.models):
            raise BadRemote(
                f"At most {_MOST_MODELS:,} models of up to {LONGEST_MODEL} characters can be listed.", param="models"
            )
        entry = {
            "url": remote.url,
            "key": remote.has_key,
            "fallback": remote.fallback,
            "models": list(remote.models),
            "changed": remote.changed,
        }
        if key:
            _keep_key(remote, key)
        try:
            self._put(remote.name, entry)
        except SlipstreamError:
            _forget_key(remote)
            raise
        return remote

    def remove(self, name: str) -> None:
        """Forget a remote and its key. Raises BadRemote where there is none of this name."""
        self._put(self.named(name).name, None)

    def named(self, name: str) -> Remote:
        """Return the remote of this name. Raises BadRemote, which says which there are."""
        remotes = self.all()
        if name.lower() not in remotes:
            how = advice(f"add one with `{PROGRAM} remotes add NAME URL`", "add one on the page Server")
            known = ", ".join(sorted(remotes)) or f"none: {how}"
            raise BadRemote(f"There is no remote {name[:80]!r}. There are {known}.", param="name")
        return remotes[name.lower()]

    def _put(self, name: str, entry: dict[str, Any] | None) -> None:
        """Put an entry in the place of the one of this name, None for none; the key of what was there is forgotten."""
        before: list[Remote | None] = []

        def change(entries: dict[str, Any]) -> None:
            before.append(_remote(name, entries.pop(name, None)))
            if entry is not None:
                entries[name] = entry

        try:
            self._store.update(change)
        except StoreRefused as error:
            raise SlipstreamError(str(error)) from error
        for remote in before:
            if remote is not None:
                _forget_key(remote)


def key_of(remote: Remote) -> str | None:
    """Return a remote's key: the environment's, else the keyring's. Can take long: a keyring may ask its owner."""
    named = os.environ.get(remote.key_variable, "").strip()
    if named or not remote.has_key:
        return named or None
    found = (kept_secret(_SERVICE, name) for name in _entry_names(remote))
    return next((key for key in found if key is not None), None)


def is_key(text: str) -> bool:
    """Return whether a text can be sent as a key."""
    return 0 < len(text) <= _LONGEST_KEY and text.isascii() and text.isprintable() and " " not in text


def _forget_key(remote: Remote) -> None:
    if remote.has_key:
        any(forget_secret(_SERVICE, name) for name in _entry_names(remote))


def _keep_key(remote: Remote, key: str) -> None:
    if not keep_secret(_SERVICE, _entry_names(remote)[0], key):
        raise BadRemote(
            "This system has no keyring that could keep the key (on Linux: GNOME Keyring or KWallet in a desktop "
            f"session). Add the remote without a key, and set {remote.key_variable} in the environment of the server.",
            param="key",
        )


def _entry_names(remote: Remote) -> tuple[str, str]:
    """Return the names that its key may have in the keyring; earlier versions took the second."""
    place = f"{remote.name} {remote.url}"
    return f"{place} {remote.changed}", place


def _checked_name(name: str) -> str:
    plain = name.strip().lower()
    if not _NAME.fullmatch(plain):
        raise BadRemote(
            f"{name[:80]!r} cannot name a remote: use up to 40 letters, digits, dots, dashes and underscores.",
            param="name",
        )
    return plain


def _checked_url(url: str) -> str:
    plain = url.strip().rstrip("/")
    if _BARE.fullmatch(plain):
        # A key must not leave the network in the clear.
        plain = f"{'http' if _NEAR.match(plain) else 'https'}://{plain}"
    try:
        parts = urlsplit(plain)
        parts.port  # noqa: B018 - raises ValueError
    except ValueError:
        parts = urlsplit("")
    is_plain = plain.isascii() and plain.isprintable() and " " not in plain and len(plain) <= _LONGEST_URL
    if parts.scheme not in ("http", "https") or not parts.hostname or not is_plain:
        raise BadRemote(
            f"{url[:80]!r} is not the address of a server; it looks like https://host.example/v1.", param="url"
        )
    if parts.username is not None or parts.query or parts.fragment:
        raise BadRemote("Leave names, keys and what begins with ? or # out of the address.", param="url")
    return plain if parts.path else f"{plain}/v1"


def _remote(name: str, entry: Any) -> Remote | None:
    """Return what the file says of a remote; None where somebody wrote what cannot be."""
    try:
        return Remote(
            _checked_name(name),
            _checked_url(entry["url"]),
            bool(entry.get("key")),
            str(entry["fallback"]) if entry.get("fallback") else None,
            tuple(str(model) for model in entry.get("models") or ()),
            float(entry.get("changed") or 0.0),
        )
    except (BadRemote, AttributeError, KeyError, TypeError, ValueError):
        return None
