"""The common parts of proposers with a context of their own, and of heads, which use the target's hidden states."""

from __future__ import annotations

import math
from collections.abc import Callable
from collections.abc import Sequence as Series
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from core.cost.calibration import MeasuredContext
from core.kv_cache.slot import Slot, TokenBuffer
from core.llama.context import Batch, Context, DecodeStatus, EmbeddingBatch
from core.llama.heads import StateRows
from core.llama.model import Model
from core.llama.sampler_chain import Candidates
from core.sampling.sampler import LARGE_VOCABULARY, largest_of_groups
from core.scheduler.sequence import Sequence
from core.speculation.proposers.proposer import AcceptanceSample, CostlyProposer, DraftFailed, Evaluated, ProposedToken

# Evidence is the probability that the drafting model gives its own token.
_EDGES = np.array([0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.997])
_MIDDLES = (0.03, 0.08, 0.15, 0.25, 0.35, 0.45, 0.55, 0.65, 0.75, 0.85, 0.93, 0.965, 0.985, 0.99, 0.995)
# Before anything was judged, this share of that probability is expected.
_TRUST = 0.9
_N_BINS = len(_MIDDLES)
# Sampled tokens have bins of their own, because there agreement also depends on the noise.
PRIORS = tuple(middle * _TRUST for middle in _MIDDLES) * 2


class DraftSampler:
    """Chooses draft tokens with the request's own sampler and the same keyed noise as the target's.

    So two models with similar probabilities tend to draw the same token also at temperatures above 0.
    """

    def __init__(self, n_vocab: int) -> None:
        """``n_vocab`` is the size of the target's vocabulary; the drafting model's may differ by padding."""
        self._n_vocab = n_vocab
        self._candidates = Candidates(n_vocab)
        self._weights = np.empty(n_vocab, np.float32)

    def choose(
        self, sequence: Sequence, logits: npt.NDArray[np.float32], position: int, ahead: Series[int] | None = None
    ) -> ProposedToken | None:
        """Return the token for ``position`` by ``logits``, shape (n_vocab of the drafting model,).

        None if the logits are not finite or the grammar allows none of these tokens. The evidence is a bin of
        ``PRIORS``. ``ahead`` are the tokens drafted so far; None if the position is already part of the text.
        """
        sampler = sequence.sampler
        if len(logits) != self._n_vocab:
            logits = self._fitted(logits)
        best = int(logits.argmax())
        top = logits[best]
        if not math.isfinite(top):
            return None
        is_plain = sampler.is_plain_greedy and not sampler.banned
        token = best if is_plain else sampler.guess(logits, position, self._candidates, ahead)
        if token is None:
            return None
        chance = math.exp(logits[token] - top) / self._sum(logits, top)
        first_bin = 0 if sampler.params.is_greedy else _N_BINS
        return ProposedToken(token, first_bin + int(np.searchsorted(_EDGES, chance)))

    def _sum(self, logits: npt.NDArray[np.float32], top: np.float32) -> float:
        """Return the sum of all weights, of which the largest is 1.

        Of a large vocabulary only the likeliest token of each group counts: all weights would take longer than a GPU
        takes for the draft. What is left out matters where little is certain, and how often such tokens are right is
        learnt.
        """
        if len(logits) >= LARGE_VOCABULARY:
            return float(np.exp(largest_of_groups(logits) - top).sum())
        np.subtract(logits, top, out=self._weights)
        return float(np.exp(self._weights, out=self._weights).sum())

    def _fitted(self, logits: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Return the logits of exactly the target's vocabulary, which its samplers expect."""
        n_missing = self._n_vocab - len(logits)
        if n_missing <= 0:
            return logits[: self._n_vocab]
        return np.concatenate((logits, np.full(n_missing, -np.inf, np.float32)))


class ContextProposer(CostlyProposer):
    """Drafts with a context of its own, which it frees, as it does its ``model`` (None: that of the target).

    The text of a slot is kept as long as there is room, because the next turn of a conversation begins with it. The
    context has as many cells as the target's, and shares none of them between slots.
    """

    model: Model | None = None

    def __init__(self, own: MeasuredContext, priors: tuple[float, ...], n_vocab: int) -> None:
        """Take over ``own``; ``n_vocab`` is the size of the target's vocabulary."""
        super().__init__(priors)
        self.cost = own.cost
        self._observe = own.observe
        self._threads = own.threads
        self._context = own.context
        self._clock = own.clock
        self.reads = own.reads
        self._bytes_read = 0
        self._sampler = DraftSampler(n_vocab)
        # The tokens of each slot that the context holds, and their salt.
        self._held = [TokenBuffer(np.empty(0, np.int32)) for _ in range(own.n_slots)]
        self._salts = [""] * own.n_slots
        # The slots whose texts are held, each with the number of the request that it had (``Slot.n_tenants``).
        self._tenancies: dict[int, tuple[Slot, int]] = {}

    def clear(self) -> None:
        """Drop the texts of all slots."""
        self._context.clear()
        for held in self._held:
            held.truncate(0)

    def _drop(self, slot: int) -> None:
        self._context.remove(slot, 0)
        self._held[slot].truncate(0)

    def share_cores(self, n_engines: int) -> None:
        """Use this engine's part of the cores while ``n_engines`` compute."""
        if self._threads is not None:
            self._threads.share(n_engines)

    def round_seconds(self, n_chains: int) -> float:
        """Return the expected seconds of a round."""
        return self.cost.time(n_chains)

    def take_bytes_read(self) -> int:
        """Return the bytes that were read since this was last asked."""
        taken, self._bytes_read = self._bytes_read, 0
        return taken

    def close(self) -> None:
        """Free the context and the model."""
        self._context.close()
        if self.model is not None:
            self.model.close()

    # -- for those that draft -----------------------------------------------------------------------------------

    def _held_for(self, sequence: Sequence) -> TokenBuffer:
        """Return the tokens that the context holds in a sequence's slot; a text with another salt is dropped."""
        slot, salt = sequence.slot.id, sequence.request.salt
        if self._salts[slot] != salt:
            self._drop(slot)
            self._salts[slot] = salt
        return self._held[slot]

    def _use(self, sequence: Sequence) -> None:
        """Record that a slot's text is that of its present request."""
        slot = sequence.slot
        self._tenancies[slot.id] = slot, slot.n_tenants

    def _decode(self, batch: Batch | EmbeddingBatch, sequences: Series[Sequence], n_cells: int | None) -> None:
        """Evaluate a batch for ``sequences``, which attends to ``n_cells`` tokens altogether; None: count no bytes.

        While there is no room, the oldest idle texts are dropped. Raises DraftFailed; the texts of ``sequences`` are
        dropped then.
        """
        status = self._context.decode(batch)
        while status is DecodeStatus.NO_KV_SLOT and (slot := self._oldest_idle()) is not None:
            del self._tenancies[slot.id]
            self._drop(slot.id)
            status = self._context.decode(batch)
        if status is not DecodeStatus.OK:
            for sequence in sequences:
                self._drop(sequence.slot.id)  # with the cells that the failed decode took
            raise DraftFailed(sequences)
        if n_cells is not None:
            self._bytes_read += self.reads.step(batch.n_tokens, n_cells, len(sequences))

    def _oldest_idle(self) -> Slot | None:
        """Return the least recently used slot whose request has ended; reused slots come last."""
        idle = [slot for slot, tenancy in self._tenancies.values() if slot.is_free or slot.n_tenants != tenancy]
        return min(idle, key=lambda slot: (not slot.is_free, slot.last_used), default=None)

    def _compare(self, sequence: Sequence, position: int, guess: ProposedToken | None) -> bool:
        """Record whether a guess equals the token at a position, and return it."""
        if guess is None:
            return False
        was_right = guess.token == int(sequence.tokens.view[position])
        self._samples.append(AcceptanceSample(sequence.id, guess.evidence, was_right))
        return was_right


# This many of the latest states are kept for a head that has not read them yet. A head that starts late begins there:
# earlier ones matter little and would cost time and memory.
LONGEST_WINDOW = 512

TokenIds = npt.NDArray[np.int32]


class HiddenStateWindow:
    """Hidden states of the target by position, with the tokens that led to them.

    States of drafted tokens are kept too. Once the text is known, comparing the tokens shows which states are valid.
    """

    def __init__(self) -> None:
        self._first = 0
        self._rows: list[StateRows] = []
        self._tokens = TokenBuffer(np.empty(0, np.int32))

    def take(self, before: TokenIds, tokens: TokenIds, states: StateRows) -> None:
        """Add the states of ``tokens``, shape (n, width), which came after ``before``; they are kept, not copied.

        States of other texts, or from there on, are dropped.
        """
        start = len(before)
        if start < self._first or self._tokens.common_prefix(before) < start:
            self._first, self._rows, self._tokens = start, [], TokenBuffer(before)
        self._tokens.truncate(start)
        self._tokens.extend(tokens)
        self._rows[start - self._first :] = states
        n_old = max(len(self._rows) - LONGEST_WINDOW, 0)
        del self._rows[:n_old]
        self._first += n_old

    def known(self, tokens: TokenIds) -> range:
        """Return the positions whose states belong to ``tokens``."""
        return range(self._first, max(self._tokens.common_prefix(tokens), self._first))

    def rows(self, start: int, end: int) -> StateRows:
        """Return the states of positions that are ``known``, [start, end), shape (end - start, width)."""
        return np.stack(self._rows[start - self._first : end - self._first])


class UnreadSpan(NamedTuple):
    """Tokens [start, end) of a sequence to read; ``is_fresh`` if they do not continue the tokens already read."""

    sequence: Sequence
    start: int
    end: int
    is_fresh: bool

    @property
    def slot(self) -> int:
        """The id of the sequence's slot."""
        return self.sequence.slot.id

    @property
    def n_rows(self) -> int:
        """The number of tokens."""
        return self.end - self.start

    def split(self, place: int) -> tuple[UnreadSpan, UnreadSpan]:
        """Return the tokens before ``place`` and those from there on."""
        place = min(max(place, self.start), self.end)
        rest = self._replace(start=place, is_fresh=self.is_fresh and place == self.start)
        return self._replace(end=place), rest


class HiddenStateProposer(ContextProposer):
    """Keeps the target's features of each slot, and reads them into a context of its own.

    The tokens read are kept by longest common prefix. ``reads_last`` is 1 for a head that pairs each token with the
    features before it: it reads the last token too before it drafts.
    """

    reads_last = 0

    def __init__(
        self,
        own: MeasuredContext,
        target: Context,
        features: Callable[[int], tuple[StateRows, ...]],
        first_position: int = 0,
    ) -> None:
        """Take over ``own``; ``target`` is lent.

        ``features`` returns those of so many rows of the target's last batch, in parts to be joined along the columns.
        ``first_position`` is the head's position of the token at position 0.
        """
        # Tokens after the target's own token and after a drafted one have separate bins.
        super().__init__(own, PRIORS * 2, target.n_vocab)
        self._target = target
        self._features = features
        self._shift = first_position
        self._windows = tuple(HiddenStateWindow() for _ in range(own.n_slots))
        # The position from which on each slot's text was read: a head may begin late.
        self._starts = [0] * own.n_slots

    # -- what the target does -----------------------------------------------------------------------------------

    def observe(self, evaluated: Series[Evaluated]) -> None:
        """Keep the states of the rows that the target has just evaluated, for requests that may be drafted for."""
        if not any(one.sequence.request.may_draft for one in evaluated):
            return
        self._target.synchronize()
        # The next decode overwrites them; one copy of all is quicker than one for each sequence.
        states = np.concatenate(self._features(sum([one.n_rows + len(one.draft) for one in evaluated])), axis=1)
        row = 0
        for one in evaluated:
            begin, row = row, row + one.n_rows + len(one.draft)
            if not one.sequence.request.may_draft:
                continue
            tokens = one.sequence.tokens.view
            read = tokens[one.start : one.start + one.n_rows]
            if one.draft:
                read = np.concatenate((read, np.array(one.draft, np.int32)))
            self._windows[one.sequence.slot.id].take(tokens[: one.start], read, states[begin:row])

    def n_unread(self, sequence: Sequence) -> int:
        """Return how many tokens are to be read before the next one can be drafted, with the last one."""
        span = self._unread(sequence)
        return span.n_rows + 1 - self.reads_last if span is not None else 1

    def catch_up_seconds(self, n_behind: int) -> float:
        """Return the expected seconds of reading ``n_behind`` tokens."""
        return self.cost.time(n_behind)

    # -- helpers ------------------------------------------------------------------------------------------------

    def _unread(self, sequence: Sequence) -> UnreadSpan | None:
        """Return the tokens to read before the next can be drafted; None if states are missing."""
        slot, tokens = sequence.slot.id, sequence.tokens.view
        last = len(tokens) - 1
        known = self._windows[slot].known(tokens[:-1])
        if known.stop < last or not known:
            return None
        first, n_held = known.start + self.reads_last, min(self._held_for(sequence).common_prefix(tokens), last)
        is_fresh = n_held <= self._starts[slot] or n_held < first
        return UnreadSpan(sequence, first if is_fresh else n_held, last + self.reads_last, is_fresh)

    def _make_way(self, span: UnreadSpan) -> None:
        """Drop the head's cache from the span's start on: drafted and rejected tokens."""
        slot, start = span.slot, span.start
        if not span.is_fresh and self._context.remove(slot, start + self._shift):
            self._held[slot].truncate(start)
            return
        self._context.remove(slot, 0)
        self._held[slot] = TokenBuffer(span.sequence.tokens.view[:start])
        self._starts[slot] = start

    @staticmethod
    def _deeper(guess: ProposedToken | None) -> ProposedToken | None:
        return guess and ProposedToken(guess.token, guess.evidence + len(PRIORS))
