"""How soon a reply is wanted: the ``speed`` of a request, or OpenAI's ``service_tier`` for it."""

from __future__ import annotations

from enum import StrEnum

from core.errors import BadRequest
from core.lane import Lane


class Speed(StrEnum):
    """What ``speed`` may say."""

    STANDARD = "standard"
    FAST = "fast"
    BATCH = "batch"
    DEEP = "deep"

    @property
    def lane(self) -> Lane:
        """The engine's lane."""
        return Lane.STANDARD if self is Speed.DEEP else Lane(self.value)


_TIERS = {
    "auto": Speed.STANDARD,
    "default": Speed.STANDARD,
    "priority": Speed.FAST,
    "flex": Speed.BATCH,
}


def wanted_speed(speed: str | None, service_tier: str | None) -> Speed:
    """Return what the two fields ask for. Raises BadRequest for unknown values and where they contradict each other."""
    if speed is not None and speed not in {one.value for one in Speed}:
        raise BadRequest(f"speed must be one of {', '.join(Speed)}, not {speed[:40]!r}.", param="speed")
    if service_tier is not None and service_tier not in _TIERS:
        raise BadRequest(
            f"service_tier must be one of {', '.join(_TIERS)}, not {service_tier[:40]!r}.", param="service_tier"
        )
    by_tier = None if service_tier in (None, "auto") else _TIERS[service_tier]
    if speed is not None and by_tier is not None and Speed(speed) is not by_tier:
        raise BadRequest(
            f"speed {speed} and service_tier {service_tier} contradict each other: send one of them.", param="speed"
        )
    return Speed(speed) if speed is not None else by_tier or Speed.STANDARD
