"""The Hub's access token: from the environment, the system keyring or Hugging Face's own file; never shown."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from models.files.system_keyring import forget_secret, keep_secret, kept_secret
from models.formatting.sentence import Sentence
from models.hub.errors import BadHubSetting

SERVICE = "slipstream"  # by which the keyring has tokens
HUGGING_FACE = "https://huggingface.co"


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
    theirs = os.environ.get("HF_ENDPOINT", "").strip().rstrip("/") or HUGGING_FACE
    return _from_file() if address in (HUGGING_FACE, theirs) else None


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
