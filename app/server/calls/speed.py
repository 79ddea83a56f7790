"""How soon a reply is wanted: the ``speed`` of a request, or OpenAI's ``service_tier`` for it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from core.values.errors import BadRequest
from core.values.messages import LoadedModel
from core.values.request import ReplySpeed
from models.formatting.program import PROGRAM, advice
from models.formatting.sentence import Sentence

if TYPE_CHECKING:
    from app.server.calls.model_host import ModelHost

_TIERS = {
    "auto": ReplySpeed.STANDARD,
    "default": ReplySpeed.STANDARD,
    "scale": ReplySpeed.STANDARD,
    "priority": ReplySpeed.FAST,
    "fast": ReplySpeed.FAST,
    "ultrafast": ReplySpeed.FAST,
    "flex": ReplySpeed.BATCH,
}
# As OpenAI: a reply names the tier that it was served in.
_TIER_OF = {ReplySpeed.FAST: "priority", ReplySpeed.BATCH: "flex"}


def wanted_speed(speed: str | None, service_tier: str | None) -> ReplySpeed:
    """Return what the two fields ask for. Raises BadRequest for unknown values and where they contradict each other."""
    if speed is not None and speed not in {one.value for one in ReplySpeed}:
        raise BadRequest(f"speed must be one of {', '.join(ReplySpeed)}, not {speed[:40]!r}.", param="speed")
    if service_tier is not None and service_tier not in _TIERS:
        raise BadRequest(
            f"service_tier must be one of {', '.join(_TIERS)}, not {service_tier[:40]!r}.", param="service_tier"
        )
    by_tier = None if service_tier in (None, "auto") else _TIERS[service_tier]
    if speed is not None and by_tier is not None and ReplySpeed(speed) is not by_tier:
        raise BadRequest(
            f"speed {speed} and service_tier {service_tier} contradict each other: send one of them.", param="speed"
        )
    return ReplySpeed(speed) if speed is not None else by_tier or ReplySpeed.STANDARD


def why_no_spark(host: ModelHost) -> str:
    """Return why no small model answers beside the loaded one, as a sentence; "" if one does or none is loaded."""
    model = host.model
    if model is None or model.spark is not None:
        return ""
    if host.state.left_out:
        return host.state.left_out[0]  # what is left out first is drafting
    return model.why_no_spark if host.settings.drafts else Sentence("None is loaded, since drafting is switched off.")


def answering(host: ModelHost, speed: ReplySpeed) -> LoadedModel:
    """Return the model that answers: the loaded one, or for ``spark`` its small one. Raises BadRequest without one.

    A small model without a chat template of its own uses the loaded one's: their vocabularies are the same.
    """
    model = host.model
    assert model is not None
    if speed is not ReplySpeed.SPARK:
        return model
    spark = model.spark
    if spark is None:
        raise BadRequest(
            "speed spark is answered by a small model beside the loaded one. {why} {how}",
            why=why_no_spark(host),
            how=_way_to_spark(host),
            param="speed",
        )
    return replace(
        model,
        description=spark.description,
        n_bytes=spark.n_bytes,
        n_vocab=spark.n_vocab,
        n_ctx=spark.n_ctx,
        chat_template=spark.chat_template or model.chat_template,
        fim=spark.fim,
        mmproj="",
    )


def _way_to_spark(host: ModelHost) -> str:
    """Return what helps where no small model answers."""
    if host.state.left_out:
        return advice(
            "POST /slipstream/load with its name does that. Until then, choose another speed.",
            Sentence("Until then, choose another speed."),
        )
    if not host.settings.drafts:
        return advice(
            f"Start `{PROGRAM} serve` without --no-draft and --speculation off, or choose another speed.",
            Sentence("Switch it on in the settings under Drafting, or choose another speed."),
        )
    return advice(
        f"Pair a small model of the same vocabulary: `{PROGRAM} models pair NAME` lists what fits, "
        f"`{PROGRAM} serve --draft FILE` names one.",
        Sentence("Pair a small model of the same vocabulary: the model's page in the library lists what fits."),
    )


def marks(model: LoadedModel, speed: ReplySpeed, service_tier: str | None) -> dict[str, Any]:
    """Return what a reply says of its speed: the tier where one was asked for, and who answered for spark."""
    fields: dict[str, Any] = {}
    if service_tier is not None:
        fields["service_tier"] = _TIER_OF.get(speed, "default")
    if speed is ReplySpeed.SPARK and model.spark is not None:
        fields |= {"speed": speed.value, "answered_by": model.spark.name}
    return fields
