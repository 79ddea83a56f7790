"""Which rows the next step evaluates. Pure: no llama.cpp, no clock."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from core.sequence import Sequence


@dataclass(frozen=True, slots=True)
class Share:
    """A sequence's part of a step: its next ``n_rows`` pending tokens."""

    sequence: Sequence
    n_rows: int

    @property
    def wants_output(self) -> bool:
        """True where the last pending token is reached, so that a token can be sampled."""
        return self.n_rows == self.sequence.n_pending


Plan = tuple[Share, ...]


def plan(running: list[Sequence], n_batch: int, chunk: int) -> Plan:
    """Return the next step: a row for every sequence that decodes, then prefill in fair order.

    ``n_batch`` bounds the rows of the step, ``chunk`` the prefill rows while anything decodes. Decoding rows keep
    the order of ``running``, so that llama.cpp can reuse its graph from step to step.
    """
    decoding = tuple(Share(sequence, 1) for sequence in running if sequence.n_pending == 1)
    prefilling = [sequence for sequence in running if sequence.is_prefilling]
    if not prefilling:
        return decoding
    room = min(n_batch - len(decoding), chunk if decoding else n_batch)
    return decoding + tuple(_prefill(prefilling, room))


def _prefill(prefilling: list[Sequence], room: int) -> Iterable[Share]:
    """Split ``room`` rows: half to whoever came first, the rest to the shortest remaining prompts.

    Short prompts are answered soon, and the long one that waits longest always moves on.
    """
    first = min(prefilling, key=lambda sequence: sequence.order)
    n_first = min(first.n_pending, max(1, room // 2)) if room else 0
    rest = sorted((s for s in prefilling if s is not first), key=lambda sequence: (sequence.n_pending, sequence.order))
    left = room - n_first
    shares = []
    for sequence in rest:
        n_rows = min(left, sequence.n_pending)
        if n_rows:
            shares.append(Share(sequence, n_rows))
            left -= n_rows
    n_first = min(first.n_pending, n_first + left)
    return ([Share(first, n_first)] if n_first else []) + shares


def halve_prefill(shares: Plan) -> Plan:
    """Return the plan with half the prefill rows (decode rows are kept); one row becomes none."""
    halved = []
    for share in shares:
        if not share.sequence.is_prefilling:
            halved.append(share)
        elif share.n_rows > 1:
            halved.append(Share(share.sequence, share.n_rows // 2))
    return tuple(halved)


def has_prefill(shares: Plan) -> bool:
    """True where a plan holds prefill rows."""
    return any(share.sequence.is_prefilling for share in shares)
