"""The Hub with the user's settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.environment.paths import hub_file

if TYPE_CHECKING:
    from models.hub.client import Hub
    from models.hub.settings import HubSettings
    from models.library.values import HubFacts


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
