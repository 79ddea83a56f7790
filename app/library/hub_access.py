"""The Hub with the user's settings, and the error of the library."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.environment.exit_codes import ExitCode
from app.environment.paths import hub_file
from core.values.errors import SlipstreamError

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
