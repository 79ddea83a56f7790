"""How long steps should take at most, for those who read along and for those who wait for the step's end. Pure."""

from __future__ import annotations

from core.scheduler.sequence import Sequence
from core.values.lane import Lane

# Seconds that a step should take at most beside prefill, by the lane that goes first among those who decode. Text that
# comes ten times a second still flows; the fast lane is for those who want it twice as smooth. Nobody watches the batch
# lane, but longer steps would not help it: the more of them a prompt takes, the more tokens of others come along.
_DECODE_TARGETS = {Lane.FAST: 0.05, Lane.STANDARD: 0.1, Lane.BATCH: 0.1}
# Where nobody decodes: cancels and new requests wait for the step's end.
_PREFILL_TARGET = 0.5
# Seconds between two tokens of a text, on average, that drafts of others may make of it.
_FLOW_TARGETS = {Lane.FAST: 0.05, Lane.STANDARD: 0.1, Lane.BATCH: _PREFILL_TARGET}


def step_latency_target(decoding: list[Sequence]) -> float:
    """Return the seconds that a step should take at most beside those that decode."""
    if not decoding:
        return _PREFILL_TARGET
    return _DECODE_TARGETS[min((sequence.lane for sequence in decoding), key=lambda lane: lane.rank)]


def token_latency_target(lane: Lane) -> float:
    """Return the inter-token latency (seconds) up to which a text of a lane may wait for what others draft."""
    return _FLOW_TARGETS[lane]
