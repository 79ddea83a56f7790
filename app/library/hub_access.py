"""The Hub with the user's settings, and where the library keeps what is set."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from app.environment.exit_codes import ExitCode
from app.environment.paths import config_folder
from core.values.errors import SlipstreamError
from models.formatting.sentence import Sentence
from models.formatting.system_error import system_reason

if TYPE_CHECKING:
    from models.hub.client import Hub
    from models.hub.settings import HubSettings
    from models.library.values import HubFacts, Trouble


class LibraryError(SlipstreamError):
    """Something about the library that the user is told, with the exit code it means.

    ``trouble`` has what else is known of it, as what helps.
    """

    def __init__(self, message: str, exit_code: ExitCode, trouble: Trouble | None = None) -> None:
        super().__init__(message)
        self.exit_code, self.trouble = exit_code, trouble


def hub() -> Hub:
    """The Hub as the environment and the saved settings say; raises BadHubSetting."""
    from models.hub.client import Hub

    return Hub(hub_settings())


def hub_settings() -> HubSettings:
    """How the Hub is reached; raises BadHubSetting."""
    from models.hub.settings import read_settings

    return read_settings(hub_file())


def hub_facts() -> HubFacts:
    """Return how the Hub is reached, as it may be shown; raises BadHubSetting."""
    from models.library.values import HubFacts

    settings = hub_settings()
    token = settings.token.origin if settings.token is not None else None
    return HubFacts(settings.address, settings.shown_proxy, token, settings.is_offline)


def change_hub(address: str | None, proxy: str | None) -> None:
    """Save another address or proxy: None leaves one as it is, "" is the usual one.

    Raises BadHubSetting, and LibraryError where the file cannot be written.
    """
    from models.hub.settings import save_settings, saved_settings

    saved = saved_settings(hub_file())
    try:
        save_settings(
            hub_file(),
            address=saved.get("address") if address is None else address,
            proxy=saved.get("proxy") if proxy is None else proxy,
        )
    except OSError as error:
        raise LibraryError(
            Sentence("{file} cannot be written: {reason}.", file=hub_file(), reason=system_reason(error)),
            ExitCode.ERROR,
        ) from error


def log_in(typed: str) -> str:
    """Keep an access token in the system's keyring once the Hub has taken it; return its owner's name.

    Raises HubError, and LibraryError for what cannot be a token.
    """
    from models.hub.token import keep_token

    secret = typed.strip()
    if not secret or any(character.isspace() or not character.isprintable() for character in secret):
        raise LibraryError(
            Sentence("That is no access token. Make one in your account's settings on the Hub."), ExitCode.USAGE
        )
    client = hub()
    user = client.user_of(secret)
    keep_token(client.settings.address, secret)
    return user


def log_out() -> bool:
    """Remove the access token from the keyring; False if there was none. Raises BadHubSetting."""
    from models.hub.token import forget_token

    return forget_token(hub_settings().address)


def hub_file() -> Path:
    """Where the Hub's address and proxy are kept."""
    return config_folder() / "hub.json"


def folders_file() -> Path:
    """Where the list of imported folders is kept."""
    return config_folder() / "folders.json"
