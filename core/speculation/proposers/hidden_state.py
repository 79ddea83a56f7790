"""A proposer that keeps what the target hands out beside its tokens: what is common to all heads."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from collections.abc import Sequence as Series
from typing import NamedTuple, NoReturn

import numpy as np

from core.cost.cost_model import CostModel
from core.cost.read_cost import ReadCost
from core.cost.threads import ThreadControl
from core.kv_cache.token_buffer import TokenBuffer
from core.llama.context import Context
from core.llama.heads import StateRows
from core.scheduler.sequence import Sequence
from core.speculation.acceptance import AcceptanceTable
from core.speculation.proposer import AcceptanceSample, DraftFailed, Evaluated, ProposedToken
from core.speculation.proposers.draft_cache_eviction import DraftCacheEviction
from core.speculation.proposers.draft_sampler import PRIORS, DraftSampler
from core.speculation.proposers.hidden_state_window import HiddenStateWindow


class SlotFeatures:
    """What a head knows of one slot: states of the target, and the tokens [first, end) that it has read with them."""

    def __init__(self, width: int) -> None:
        """Keep states of ``width`` numbers."""
        self.window = HiddenStateWindow(width)
        self.read = TokenBuffer(np.empty(0, np.int32))
        self.first = 0

    def forget(self) -> None:
        """Nothing is in the head's cache any more."""
        self.read.truncate(0)
        self.first = 0


class UnreadSpan(NamedTuple):
    """Tokens [start, end) of a sequence to read; ``is_fresh`` where they do not continue what the head has read."""

    sequence: Sequence
    lane: SlotFeatures
    start: int
    end: int
    is_fresh: bool

    @property
    def n_rows(self) -> int:
        """How many tokens that is."""
        return self.end - self.start

    def split(self, place: int) -> tuple[UnreadSpan, UnreadSpan]:
        """Return the tokens before ``place`` and those from there on."""
        place = min(max(place, self.start), self.end)
        rest = self._replace(start=place, is_fresh=self.is_fresh and place == self.start)
        return self._replace(end=place), rest


class HiddenStateProposer(ABC):
    """Keeps features of the target for each slot, and a context of its own with what was read of them.

    What was read is kept by longest common prefix.
    """

    name: str

    def __init__(
        self,
        context: Context,
        target: Context,
        cost: CostModel,
        *,
        n_slots: int,
        feature_width: int,
        first_position: int,
        reads: ReadCost | None = None,
        threads: ThreadControl | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """Take over ``context`` (``close`` frees it); ``target`` is lent.

        The target hands out features of ``feature_width`` numbers. ``first_position`` is where what belongs to the
        token at position 0 is put. ``threads`` None keeps the context's.
        """
        # What comes after a token of the target's and what comes after one of its own are different questions.
        self.table = AcceptanceTable(PRIORS * 2)
        self.cost = cost
        self._observe = threads.observe if threads is not None else cost.observe
        self._context = context
        self._target = target
        self._clock = clock
        self._reads = reads
        self._bytes_read = 0
        self._shift = first_position
        self._lanes = tuple(SlotFeatures(feature_width) for _ in range(n_slots))
        self._idle = DraftCacheEviction(context, self._drop)
        self._chooser = DraftSampler(target.n_vocab)
        self._observations: list[AcceptanceSample] = []

    @abstractmethod
    def _features(self, n_rows: int) -> tuple[StateRows, ...]:
        """Return the features of the target's last batch, as parts that lie side by side."""

    # -- what the target does -----------------------------------------------------------------------------------

    def observe(self, evaluated: Series[Evaluated]) -> None:
        """Keep the states of the rows that the target has just evaluated, for those who may be drafted for."""
        if not any(one.sequence.request.speculates for one in evaluated):
            return
        self._target.synchronize()
        parts = self._features(sum([one.n_rows + len(one.draft) for one in evaluated]))
        row = 0
        for one in evaluated:
            begin, row = row, row + one.n_rows + len(one.draft)
            if not one.sequence.request.speculates:
                continue
            tokens = one.sequence.tokens.view
            read = tokens[one.start : one.start + one.n_rows]
            if one.draft:
                read = np.concatenate((read, np.array(one.draft, np.int32)))
            window = self._lane(one.sequence).window
            window.take(tokens[: one.start], read, tuple([part[begin:row] for part in parts]))

    def begin(self, sequence: Sequence) -> None:  # noqa: B027 (a deliberate nothing)
        """Do nothing yet: what was evaluated is read when drafting first pays."""

    def end(self, sequence: Sequence) -> None:  # noqa: B027
        """Keep the cache: the next turn of the conversation begins with it."""

    def clear(self) -> None:
        """Forget what every slot holds."""
        self._context.clear()
        for lane in self._lanes:
            lane.forget()

    def catch_up_seconds(self, n_behind: int) -> float:
        """Return the expected seconds of reading ``n_behind`` tokens."""
        return self.cost.time(n_behind)

    def catch_up(self, sequence: Sequence, seconds: float) -> bool:
        """Leave what is unread to the draft itself: the states of a few hundred tokens are kept at most."""
        return True

    def take_bytes_read(self) -> int:
        """Return the bytes that were read since this was last asked."""
        taken, self._bytes_read = self._bytes_read, 0
        return taken

    def take_samples(self) -> list[AcceptanceSample]:
        """Return what reading along has shown."""
        taken, self._observations = self._observations, []
        return taken

    def close(self) -> None:
        """Free the context."""
        self._context.close()

    # -- helpers ------------------------------------------------------------------------------------------------

    def _lane(self, sequence: Sequence) -> SlotFeatures:
        assert sequence.slot is not None
        return self._lanes[sequence.slot.id]

    def _make_way(self, span: UnreadSpan) -> None:
        """Drop what the head's cache holds from the span's start on: drafted tokens, and what was rejected."""
        slot, lane = span.sequence.slot, span.lane
        assert slot is not None
        if not span.is_fresh and self._context.remove(slot.id, span.start + self._shift):
            lane.read.truncate(span.start)
            return
        self._context.remove(slot.id, 0)
        lane.read = TokenBuffer(span.sequence.tokens.view[: span.start])
        lane.first = span.start

    def _drop(self, slot: int) -> None:
        self._context.remove(slot, 0)
        self._lanes[slot].forget()

    def _fail(self, sequences: Series[Sequence]) -> NoReturn:
        """After a failed decode nothing is known of these lanes; where cells were short, others get theirs."""
        for sequence in sequences:
            assert sequence.slot is not None
            self._drop(sequence.slot.id)
        raise DraftFailed(sequences)

    def _count(self, n_rows: int, n_cells: int, n_sequences: int) -> None:
        if self._reads is not None:
            self._bytes_read += self._reads.step(n_rows, n_cells, n_sequences)

    @staticmethod
    def _deeper(guess: ProposedToken | None) -> ProposedToken | None:
        return guess and ProposedToken(guess.token, guess.evidence + len(PRIORS))
