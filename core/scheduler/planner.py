"""Which rows the next step evaluates. Pure: no llama.cpp, no clock."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from core.cost.cost_model import CostModel
from core.scheduler.sequence import Sequence
from core.values.request import Lane

# Seconds that a step should take at most beside prefill, by the lane that goes first among those who decode. Text that
# comes ten times a second still flows; the fast lane is for those who want it twice as smooth. Nobody watches the batch
# lane, but longer steps would not help it: the more of them a prompt takes, the more tokens of others come along.
_DECODE_TARGETS = {Lane.FAST: 0.05, Lane.STANDARD: 0.1, Lane.BATCH: 0.1}
# Where no request decodes: cancels and new requests wait for the step's end.
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


_FAST = Lane.FAST
# Prompts move by at least so many rows.
_SMALLEST_CHUNK = 16
# Prompts of lower lanes get this share of the rows beside those of higher ones, so that they move on.
_SHARE_OF_LOWER = 8
# Of the rows of a lane, the prompt that came first gets one in so many, also where others are shorter.
_SHARE_OF_FIRST = 4


class Share(NamedTuple):
    """A sequence's part of a step: its next ``n_rows`` pending tokens, and drafted tokens to verify behind them."""

    sequence: Sequence
    n_rows: int
    draft: tuple[int, ...] = ()

    @property
    def wants_output(self) -> bool:
        """True where the last pending token is reached, so that a token can be sampled."""
        return self.n_rows == self.sequence.n_pending

    @property
    def n_own_outputs(self) -> int:
        """Rows whose logits are wanted, without those of drafted tokens."""
        return self.n_rows if self.sequence.is_scoring else int(self.wants_output)

    @property
    def n_outputs(self) -> int:
        """Rows whose logits are wanted."""
        return self.n_own_outputs + len(self.draft)


StepPlan = tuple[Share, ...]
NO_DRAFTS: Mapping[str, tuple[int, ...]] = MappingProxyType({})


def plan(
    running: list[Sequence], n_batch: int, chunk: int, drafts: Mapping[str, tuple[int, ...]] = NO_DRAFTS
) -> StepPlan:
    """Return the next step: a row (and its ``drafts``) for every sequence that decodes, then prefill in fair order.

    A sequence that lost rows with a rejected draft has them replayed before its own.
    ``n_batch`` bounds the rows of the step, ``chunk`` its prefill rows. Decoding rows keep the order of ``running``,
    so that llama.cpp can reuse its graph from step to step.
    """
    shares = tuple(
        [Share(s, 1 + s.n_replay, drafts.get(s.id, ())) for s in running if s.n_pending == 1 or not s.is_prefilling]
    )
    if len(shares) == len(running):
        return shares
    prefilling = [sequence for sequence in running if sequence.is_prefilling]
    room = min(n_batch - sum(share.n_rows + len(share.draft) for share in shares), chunk)
    return shares + tuple(_prefill_by_lane(prefilling, room))


def leading_requests(running: list[Sequence]) -> list[Sequence]:
    """Return the requests whose step this is: the fast lane's while one of them decodes, else all."""
    fast = [sequence for sequence in running if sequence.lane is _FAST]
    return fast if fast and any(not sequence.is_prefilling for sequence in fast) else running


def _prefill_by_lane(prefilling: list[Sequence], room: int) -> list[Share]:
    """Split ``room`` rows: to the highest lane, and behind it to the next, which gets a little in any case."""
    lanes: dict[Lane, list[Sequence]] = {}
    for sequence in sorted(prefilling, key=lambda sequence: sequence.lane.rank):
        lanes.setdefault(sequence.lane, []).append(sequence)
    shares: list[Share] = []
    for place, sequences in enumerate(lanes.values(), 1):
        kept = room // _SHARE_OF_LOWER if place < len(lanes) else 0
        found = list(_prefill(sequences, room - kept))
        room -= sum(share.n_rows for share in found)
        shares += found
    return shares


def _prefill(prefilling: list[Sequence], room: int) -> Iterable[Share]:
    """Split ``room`` rows: the prompt with the least left goes first, the one that came first gets a quarter at least.

    One after the other, prompts wait less in the mean than side by side. No prompt waits for ever.
    """
    first = min(prefilling, key=lambda sequence: sequence.order)
    kept = min(first.n_pending, max(1, room // _SHARE_OF_FIRST)) if room else 0
    left = room - kept
    shares = []
    for sequence in sorted(prefilling, key=lambda sequence: (sequence.n_pending, sequence.order)):
        own = kept if sequence is first else 0
        n_rows = min(left + own, sequence.n_pending)
        left -= n_rows - own
        if n_rows:
            shares.append(Share(sequence, n_rows))
    return shares


def cut_at_checkpoints(shares: StepPlan) -> StepPlan:
    """Return the plan without the prefill rows beyond the next stop of each sequence (see ``Slot.stops``)."""
    stopped = []
    for share in shares:
        sequence = share.sequence
        if sequence.is_prefilling and sequence.slot.stops:
            stop = sequence.slot.next_stop
            if stop is not None and stop - sequence.n_past < share.n_rows:
                share = Share(sequence, stop - sequence.n_past)
        stopped.append(share)
    return tuple(stopped)


def cut_at_images(shares: StepPlan) -> StepPlan:
    """Return the plan without the prefill rows from the next image on, which has steps of its own."""
    return tuple(
        share._replace(n_rows=min(share.n_rows, rows.start - share.sequence.n_past))
        if (rows := share.sequence.next_image) is not None
        else share
        for share in shares
    )


def cut_at_outputs(shares: StepPlan, most: int) -> StepPlan:
    """Return the plan with no more than ``most`` outputs: prompts that are scored want one for each of their rows."""
    room = most - sum(share.n_outputs for share in shares if not share.sequence.is_scoring)
    kept = []
    for share in shares:
        if share.sequence.is_scoring:
            share = Share(share.sequence, min(share.n_rows, room))
            room -= share.n_rows
        if share.n_rows:
            kept.append(share)
    return tuple(kept)


def drop_drafts(shares: StepPlan) -> StepPlan:
    """Return the plan without drafted tokens."""
    return tuple(share._replace(draft=()) for share in shares)


def has_drafts(shares: StepPlan) -> bool:
    """True where a plan holds drafted tokens."""
    return any(share.draft for share in shares)


def halve_prefill(shares: StepPlan) -> StepPlan:
    """Return the plan with half the prefill rows (decode rows are kept); one row becomes none."""
    halved = []
    for share in shares:
        if not share.sequence.is_prefilling:
            halved.append(share)
        elif share.n_rows > 1:
            halved.append(Share(share.sequence, share.n_rows // 2))
    return tuple(halved)


def has_prefill(shares: StepPlan) -> bool:
    """True where a plan holds prefill rows."""
    return any(share.sequence.is_prefilling for share in shares)


def prefill_chunk(cost: CostModel, n_decoding: int, kv: int, widest: int, target: float) -> int:
    """Return the most prefill rows, up to ``widest``, with which a step stays within its ``target`` time.

    A prompt is never starved: where even a small chunk is too slow, a small chunk it is.
    """
    rows = widest
    while rows > _SMALLEST_CHUNK and cost.time(n_decoding + rows, kv) > target:
        rows //= 2
    return max(rows, min(_SMALLEST_CHUNK, widest))
