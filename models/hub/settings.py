"""Settings of the Hub: address, proxy, token, timeout. The environment overrides saved settings.

The token comes from the environment, the system's keyring or Hugging Face's own file, and is never shown.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from models.files.disk import write_whole
from models.files.system_keyring import forget_secret, keep_secret, kept_secret
from models.formatting.sentence import Sentence
from models.hub.errors import BadHubSetting

SERVICE = "slipstream"  # by which the keyring has tokens
DEFAULT_ADDRESS = "https://huggingface.co"


@dataclass(frozen=True, slots=True)
class AccessToken:
    """A secret and where it came from. Its text stays out of every repr, and so of logs and tracebacks."""

    secret: str = field(repr=False)
    origin: str


def find_token(address: str) -> AccessToken | None:
    """The token for the Hub at ``address``: HF_TOKEN, else the keyring's, else the one Hugging Face's tools saved.

    The last one is sent only to Hugging Face or to the mirror that HF_ENDPOINT names.
    """
    named = os.environ.get("HF_TOKEN", "").strip()
    if named:
        return AccessToken(named, "HF_TOKEN")
    kept = kept_secret(SERVICE, address)
    if kept:
        return AccessToken(kept, "the system keyring")
    theirs = os.environ.get("HF_ENDPOINT", "").strip().rstrip("/") or DEFAULT_ADDRESS
    return _from_file() if address in (DEFAULT_ADDRESS, theirs) else None


def keep_token(address: str, secret: str) -> None:
    """Keep a token in the system keyring; raises BadHubSetting if there is no keyring."""
    if not keep_secret(SERVICE, address, secret):
        raise BadHubSetting(
            Sentence(
                "This system has no keyring that could keep the token (on Linux: GNOME Keyring or KWallet in "
                "a desktop session). Set the environment variable HF_TOKEN instead."
            )
        )


def forget_token(address: str) -> bool:
    """Remove the token from the keyring; False if there was none."""
    return forget_secret(SERVICE, address)


def _from_file() -> AccessToken | None:
    from huggingface_hub import constants

    if constants.HF_HUB_DISABLE_IMPLICIT_TOKEN:
        return None
    try:
        with open(constants.HF_TOKEN_PATH, encoding="utf-8") as file:
            secret = file.read(4096).strip()
    except (OSError, UnicodeDecodeError):
        return None
    return AccessToken(secret, "Hugging Face's token file") if secret else None


_TRUE = frozenset({"1", "on", "yes", "true"})


def _no_token() -> AccessToken | None:
    return None


@dataclass(frozen=True)
class HubSettings:
    """The Hub's address and the way to it; ``timeout`` is seconds without an answer.

    ``proxy`` None means the system's own (HTTPS_PROXY and the like). ``look_up_token`` is called once, when the token
    is first needed: opening the system's keyring takes time and may ask the user.
    """

    address: str = DEFAULT_ADDRESS
    proxy: str | None = None
    look_up_token: Callable[[], AccessToken | None] = field(default=_no_token, repr=False, compare=False)
    is_offline: bool = False
    timeout: float = 15.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "address", _checked("address", self.address))
        if self.proxy is not None:
            object.__setattr__(self, "proxy", _checked("proxy", self.proxy))

    @cached_property
    def token(self) -> AccessToken | None:
        """The access token, or None."""
        return self.look_up_token()

    @property
    def shown_proxy(self) -> str | None:
        """The proxy without a password in it."""
        return self.proxy and re.sub(r"//[^/@]*@", "//***@", self.proxy)

    @property
    def headers(self) -> dict[str, str]:
        """The headers that identify the app, and the user if there is a token."""
        named = {"User-Agent": "slipstream"}
        return named | ({"Authorization": f"Bearer {self.token.secret}"} if self.token else {})


def read_settings(file: Path) -> HubSettings:
    """The settings in ``file`` (JSON: "address", "proxy"), overridden by HF_ENDPOINT, HF_TOKEN and HF_HUB_OFFLINE.

    A missing file counts as empty; raises BadHubSetting for one that cannot be used.
    """
    saved = saved_settings(file)
    address = os.environ.get("HF_ENDPOINT") or saved.get("address") or DEFAULT_ADDRESS
    address = _checked("address", address)
    offline = os.environ.get("HF_HUB_OFFLINE", "").strip().lower() in _TRUE
    proxy = saved.get("proxy")
    look_up_token = _no_token if offline else partial(find_token, address)
    return HubSettings(address, str(proxy) if proxy else None, look_up_token, offline)


def save_settings(file: Path, *, address: str | None, proxy: str | None) -> None:
    """Save address and proxy, never the token; None means the default. Raises BadHubSetting and OSError."""
    chosen = {"address": address and _checked("address", address), "proxy": proxy and _checked("proxy", proxy)}
    # A proxy's address may have a password in it.
    write_whole(file, json.dumps({name: value for name, value in chosen.items() if value}), is_private=True)


def saved_settings(file: Path) -> dict[str, Any]:
    """The settings in ``file`` without the environment; raises BadHubSetting."""
    try:
        saved = json.loads(file.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError) as error:
        raise BadHubSetting(
            "The Hub's settings in {file} cannot be read. Correct or delete the file.", file=file
        ) from error
    return saved if isinstance(saved, dict) else {}


def _checked(what: str, url: object) -> str:
    """The URL without a slash at its end."""
    try:
        parts = urlsplit(str(url).strip())
        _ = parts.port
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in ("http", "https", *(("socks5", "socks5h") if what == "proxy" else ())) or not parts.hostname:
        shown = f"{parts.scheme}://{parts.hostname}" if parts.password else str(url)[:80]
        raise BadHubSetting(
            "The Hub's {what} {shown} is no web address. It looks like https://example.org:8080.",
            what=what,
            shown=repr(shown),
        )
    return str(url).strip().rstrip("/")
