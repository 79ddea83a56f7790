"""Plans which rows the next step evaluates. Pure: no llama.cpp, no clock."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from core.cost.cost_model import CostModel, attended
from core.scheduler.sequence import Sequence
from core.values.engine_options import MANY_ROWS
from core.values.request import Lane

# Latency target of a step with prefill (seconds), by the highest lane that decodes. Text that comes ten times a second
# is still fluent; the fast lane gets it twice as often. Longer steps would not help the batch lane: with more steps per
# prompt, more tokens of other requests come along.
_DECODE_TARGETS = {Lane.FAST: 0.05, Lane.STANDARD: 0.1, Lane.BATCH: 0.1}
# The same if no request decodes: cancels and new requests still wait for the end of a step.
_PREFILL_TARGET = 0.5
# Up to this mean time between two tokens of a text (seconds), drafts for other texts may lengthen its steps.
_FLOW_TARGETS = {Lane.FAST: 0.05, Lane.STANDARD: 0.1, Lane.BATCH: _PREFILL_TARGET}


def step_latency_target(decoding: list[Sequence]) -> float:
    """Return the latency target (seconds) of a step with these decoding requests."""
    if not decoding:
        return _PREFILL_TARGET
    return _DECODE_TARGETS[min((sequence.lane for sequence in decoding), key=lambda lane: lane.rank)]


def token_latency_target(lane: Lane) -> float:
    """Return the inter-token latency (seconds) up to which drafts for others may slow down a text of a lane."""
    return _FLOW_TARGETS[lane]


# The least rows of a prefill chunk.
_SMALLEST_CHUNK = 16
# Prompts of lower lanes get one in this many rows, so that they make progress.
_SHARE_OF_LOWER = 8
# The prompt that came first gets one in this many rows of its lane, even if others are shorter.
_SHARE_OF_FIRST = 4


class Share(NamedTuple):
    """A sequence's part of a step: its next ``n_rows`` pending tokens, followed by drafted tokens to verify."""

    sequence: Sequence
    n_rows: int
    draft: tuple[int, ...] = ()

    @property
    def n_own_outputs(self) -> int:
        """Rows whose logits are wanted, without those of drafted tokens: the last pending one, or all to be scored."""
        return self.n_rows if self.sequence.is_scoring else int(self.n_rows == self.sequence.n_pending)

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

    Rows that a rejected draft lost are replayed before the sequence's own. ``n_batch`` bounds the rows of the step,
    ``chunk`` its prefill rows. Decoding rows keep the order of ``running``, so that llama.cpp can reuse its graph from
    step to step.
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
    """Return the requests that lead the step: those of the fast lane while one of them decodes, else all."""
    fast = [sequence for sequence in running if sequence.lane is Lane.FAST]
    return fast if fast and any(not sequence.is_prefilling for sequence in fast) else running


def _prefill_by_lane(prefilling: list[Sequence], room: int) -> list[Share]:
    """Split ``room`` rows by lane, highest first; each lower lane gets a small share in any case."""
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
    """Split ``room`` rows: the prompt that is nearest its end goes first, the oldest gets at least a quarter.

    One after the other, prompts wait less on average than all at once; and none waits for ever.
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
    """Return the plan without prefill rows beyond the next image, which has steps of its own."""
    return tuple(
        share._replace(n_rows=min(share.n_rows, rows.start - share.sequence.n_past))
        if (rows := share.sequence.next_image) is not None
        else share
        for share in shares
    )


def cut_at_outputs(shares: StepPlan, most: int) -> StepPlan:
    """Return the plan with at most ``most`` outputs: each row of a prompt that is scored is one."""
    room = most - sum(share.n_outputs for share in shares if not share.sequence.is_scoring)
    kept = []
    for share in shares:
        if share.sequence.is_scoring:
            share = Share(share.sequence, min(share.n_rows, room))
            room -= share.n_rows
        if share.n_rows:
            kept.append(share)
    return tuple(kept)


def without_stranded_drafts(shares: StepPlan, n_ubatch: int) -> StepPlan:
    """Return the plan without drafts where a rejection could not go back to a state that llama.cpp keeps.

    llama.cpp evaluates sequences with another number of rows, and those that an ubatch has no room for, after a drafted
    one. It puts two or more of them next to each other, for which the drafted sequence may have to move. Its earlier
    states do not move with it (``llama_memory_recurrent::find_slot``).
    """
    sizes = [share.n_rows + len(share.draft) for share in shares]
    for share, size in zip(shares, sizes, strict=True):
        n_alike = sizes.count(size)
        if share.draft and (len(sizes) - n_alike > 1 or n_alike * size > n_ubatch):
            return tuple([one._replace(draft=()) for one in shares])
    return shares


def halve_prefill(shares: StepPlan) -> StepPlan:
    """Return the plan with half the prefill rows (decode rows are kept); one row becomes none."""
    halved = []
    for share in shares:
        if not share.sequence.is_prefilling:
            halved.append(share)
        elif share.n_rows > 1:
            halved.append(Share(share.sequence, share.n_rows // 2))
    return tuple(halved)


def prefill_chunk(cost: CostModel, n_decoding: int, kv: int, widest: int, target: float, n_past: int = 0) -> int:
    """Return the most prefill rows, up to ``widest``, with which a step stays within its ``target`` time.

    The rows that decode read ``kv`` cached tokens; those of the prompt come after ``n_past`` tokens of it. It is at
    least _SMALLEST_CHUNK, or MANY_ROWS where nobody decodes, even if that is too slow, so that no prompt starves.
    """
    smallest = _SMALLEST_CHUNK if n_decoding else MANY_ROWS

    def seconds(rows: int) -> float:
        return cost.time(n_decoding + rows, kv + attended(rows, n_past))

    if widest <= smallest or seconds(widest) <= target:
        return widest
    # Multiples of it: the kernels for many rows work on blocks.
    chunks = range(smallest, widest, _SMALLEST_CHUNK)
    return chunks[max(bisect_right(chunks, target, key=seconds) - 1, 0)]
