"""A small model that drafts for a large one of the same vocabulary, for all sequences in one batch."""

from __future__ import annotations

import time
from collections.abc import Callable
from collections.abc import Sequence as Series
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from core.cost.cost_model import CostModel
from core.cost.read_cost import ReadCost
from core.cost.threads import ThreadControl
from core.kv_cache.branches import Branches
from core.kv_cache.context_shape import MAX_READ_ALONG
from core.kv_cache.token_buffer import TokenBuffer
from core.llama.batch import Batch
from core.llama.context import Context
from core.llama.model import Model
from core.scheduler.draft import PENDING
from core.scheduler.sequence import Sequence
from core.speculation.acceptance import AcceptanceTable
from core.speculation.draft_tree import DraftTree, GrowthPoint
from core.speculation.proposer import AcceptanceSample, DraftChain, DraftFailed, ProposedToken
from core.speculation.proposers.draft_cache_eviction import DraftCacheEviction
from core.speculation.proposers.draft_sampler import PRIORS_BY_RANK, DraftSampler

# So many unread tokens of a text are read in one decode with what others draft; more take decodes of their own.
_FEW = 8
# A long text moves by at least so many rows, however little time a step leaves.
_SMALLEST_PIECE = 16


class _DraftSlot:
    """The tokens whose keys and values the draft model holds for one slot.

    ``forks`` are branches off it, by sequence id: the tokens of each behind the first ``n_certain``.
    """

    def __init__(self) -> None:
        self.resident = TokenBuffer(np.empty(0, np.int32))
        self.n_certain = 0
        self.forks: dict[int, list[int]] = {}


class DraftModelProposer:
    """Drafts with a second model in a context of its own; its cache keeps the longest common prefix of each slot."""

    name = "draft"

    def __init__(
        self,
        model: Model,
        context: Context,
        cost: CostModel,
        *,
        n_slots: int,
        n_branches: int = 0,
        n_vocab: int,
        reads: ReadCost,
        threads: ThreadControl | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """Take over ``model`` and ``context`` (``close`` frees them); ``cost`` is that of the context's decodes.

        The context has ``n_slots`` sequences, and ``n_branches`` more for trees. ``n_vocab`` is the size of the
        target's vocabulary. ``reads`` says what a decode reads, for the meter. ``threads`` None keeps the context's.
        """
        self.table = AcceptanceTable(PRIORS_BY_RANK)
        self.most_tips = context.n_outputs
        self.cost = cost
        self._observe = threads.observe if threads is not None else cost.observe
        self.model = model
        self._context = context
        self._clock = clock
        self.reads = reads
        self._bytes_read = 0
        self._branches = Branches(context, n_slots, n_branches)
        self._lanes = tuple(_DraftSlot() for _ in range(n_slots))
        self._idle = DraftCacheEviction(context, self._drop)
        self._batch = Batch(context.n_batch)
        self._chooser = DraftSampler(n_vocab)
        self._observations: list[AcceptanceSample] = []

    def begin(self, sequence: Sequence) -> None:
        """Do nothing yet: the prompt is read when drafting first pays."""

    def end(self, sequence: Sequence) -> None:
        """Keep the cache: the next turn of the conversation begins with it."""
        if sequence.slot is not None and self._branches.count:
            self.keep_accepted(sequence)
            self._branches.trim(sequence.slot.id, 0)

    def clear(self) -> None:
        """Forget what every slot holds."""
        self._context.clear()
        for slot, lane in enumerate(self._lanes):
            self._branches.trim(slot, 0)
            lane.forks.clear()
            lane.resident.truncate(0)

    def n_unread(self, sequence: Sequence) -> int:
        """Return how many tokens of a sequence the draft model has not read."""
        lane = self._lane(sequence)
        return len(sequence.tokens) - lane.resident.common_prefix(sequence.tokens.view)

    def round_seconds(self, n_chains: int) -> float:
        """Return the expected seconds of a round."""
        return self.cost.time(n_chains)

    def first_round_seconds(self, n_chains: int) -> float:
        """Return nothing: a first round costs what others cost."""
        return 0.0

    def catch_up_seconds(self, n_behind: int) -> float:
        """Return the expected seconds of reading ``n_behind`` tokens."""
        return self.cost.time(n_behind, _kv(n_behind, 0))

    def catch_up(self, sequence: Sequence, seconds: float) -> bool:
        """Read a piece of what is unread of a text, in about ``seconds``; return whether a draft can begin behind it.

        What is left then is read beside the draft itself. Raises DraftFailed.
        """
        n_unread = self._n_unread(sequence)
        if n_unread <= _FEW:
            return True
        if seconds <= 0.0:
            return False
        began = self._clock()
        self._idle.use(sequence.slot)
        n_past = len(self._lane(sequence).resident)
        rows = min(n_unread, self._batch.capacity)
        while rows > _SMALLEST_PIECE and self.cost.time(rows, _kv(rows, n_past)) > seconds:
            rows //= 2
        self._read_some(sequence, rows)
        self._context.synchronize()
        self._observe(rows, _kv(rows, n_past), self._clock() - began)
        return n_unread - rows <= _FEW

    def extend(self, chains: list[DraftChain]) -> list[ProposedToken | None]:
        """Return the draft model's next token for each chain."""
        found = self.grow([GrowthPoint(chain, len(chain.tokens) - 1) for chain in chains], 1)
        return [guesses[0] if guesses else None for guesses in found]

    def grow(self, tips: Series[GrowthPoint], width: int) -> list[tuple[ProposedToken, ...]]:
        """Return the draft model's ``width`` best next tokens for each tip; at most ``most_tips`` at a time.

        There are none where its numbers are none, or where no branch is left for a tip off the trunk.
        Raises DraftFailed.
        """
        if not tips:
            return []
        began = self._clock()
        for tip in tips:
            self._idle.use(tip.chain.sequence.slot)
        rows, unread = self._read_what_is_far_behind(tips)
        self._batch.clear()
        outputs: list[tuple[Sequence, int] | None] = []
        placed = [self._place(tip, unread, outputs) for tip in tips]
        if not self._idle.decode(self._batch):
            self._fail([tip.chain.sequence for tip in tips])
        self._count(sum(_position(tip) for tip in tips), len(tips))
        self._context.synchronize()
        new = []
        for row, judged in zip(self._context.logits(len(outputs)), outputs, strict=True):
            if judged is None:
                new.append(row)
            else:
                self._judge(*judged, row)
        choose, rows_of_tips = self._chooser.choose, iter(new)
        found = [
            choose(tip.chain.sequence, next(rows_of_tips), _position(tip), width, _ahead(tip)) if is_placed else ()
            for tip, is_placed in zip(tips, placed, strict=True)
        ]
        self._observe(rows + self._batch.n_tokens, 0, self._clock() - began)
        return found

    def keep_accepted(self, sequence: Sequence) -> None:
        """Keep of a sequence's branches what has become part of it; the ids are free again."""
        slot, lane = sequence.slot, self._lane(sequence)
        if not lane.forks:
            return
        assert slot is not None
        tokens = sequence.tokens.view
        n_shared = lane.resident.common_prefix(tokens)
        if n_shared >= lane.n_certain:
            following = tokens[lane.n_certain :].tolist()
            branch = max(lane.forks, key=lambda branch: _n_common(lane.forks[branch], following))
            size = lane.n_certain + _n_common(lane.forks[branch], following)
            if size > n_shared and self._context.remove(slot.id, n_shared):
                self._context.copy(branch, slot.id, size, n_shared)
                lane.resident.truncate(n_shared)
                lane.resident.extend(tokens[n_shared:size])
        self._branches.release(slot.id, min(n_shared, lane.n_certain))
        lane.forks.clear()

    def drop_branches(self) -> None:
        """Free the branches of sequences that were not settled: they lost their slots."""
        for slot, lane in enumerate(self._lanes):
            if lane.forks:
                self._branches.release(slot, lane.n_certain)
                lane.forks.clear()

    def read_along(self, sequence: Sequence) -> None:
        """Read what a sequence has said since, and note how often the draft would have been right. Drafts nothing.

        Raises DraftFailed.
        """
        began = self._clock()
        self._idle.use(sequence.slot)
        rows = self._read_up_to_here(sequence)
        if rows:
            self._observe(rows, 0, self._clock() - began)

    def take_samples(self) -> list[AcceptanceSample]:
        """Return what catching up has shown."""
        taken, self._observations = self._observations, []
        return taken

    def take_bytes_read(self) -> int:
        """Return the bytes that were read since this was last asked."""
        taken, self._bytes_read = self._bytes_read, 0
        return taken

    def close(self) -> None:
        """Free context and model."""
        self._context.close()
        self.model.close()

    def _count(self, n_cells: int, n_sequences: int) -> None:
        self._bytes_read += self.reads.step(self._batch.n_tokens, n_cells, n_sequences)

    def _lane(self, sequence: Sequence) -> _DraftSlot:
        assert sequence.slot is not None
        return self._lanes[sequence.slot.id]

    def _read_what_is_far_behind(self, tips: Series[GrowthPoint]) -> tuple[int, set[str]]:
        """Leave at most a few tokens of each text unread, which can be read beside the tips themselves.

        Return how many rows that took, and the ids of the requests of which something is left.
        """
        rows, unread = 0, set()
        room = self._context.n_outputs - len(tips)
        for tip in tips:
            if tip.node != PENDING:
                continue
            sequence = tip.chain.sequence
            n_unread = self._n_unread(sequence)
            if n_unread > min(_FEW, room):
                rows += self._read_up_to_here(sequence)
            elif n_unread:
                room -= n_unread
                unread.add(sequence.id)
        return rows, unread

    def _place(self, tip: GrowthPoint, unread: set[str], outputs: list[tuple[Sequence, int] | None]) -> bool:
        """Add a tip's row, behind what is unread of its text; False where it has no place.

        ``outputs`` gets an item for each row with logits: None, or the sequence and position that it can be judged by.
        """
        sequence = tip.chain.sequence
        if tip.node == PENDING and sequence.id in unread:
            assert sequence.slot is not None
            lane, tokens = self._lane(sequence), sequence.tokens.view
            for position in range(len(lane.resident), len(tokens) - 1):
                token = int(tokens[position])
                if position >= sequence.n_prompt - 1:
                    self._batch.add(token, position, sequence.slot.id)
                    outputs.append((sequence, position))
                else:
                    self._batch.add_run(tokens[position : position + 1], position, sequence.slot.id, want_last=False)
                lane.resident.append(token)
        is_placed = self._add(tip)
        if is_placed:
            outputs.append(None)
        return is_placed

    def _n_unread(self, sequence: Sequence) -> int:
        """Drop what is not a sequence's text; return how many of its tokens are to be read, the last one left out."""
        assert sequence.slot is not None
        slot, lane, tokens = sequence.slot.id, self._lane(sequence), sequence.tokens
        self.keep_accepted(sequence)
        n_known = min(lane.resident.common_prefix(tokens.view), len(tokens) - 1)
        if n_known < len(lane.resident):
            self._cut(slot, lane, n_known)
        return len(tokens) - 1 - len(lane.resident)

    def _read_up_to_here(self, sequence: Sequence) -> int:
        """Evaluate all tokens of a sequence but the last; return how many rows that took."""
        n_rows = self._n_unread(sequence)
        lane = self._lane(sequence)
        while len(lane.resident) < len(sequence.tokens) - 1:
            self._read_some(sequence, self._batch.capacity)
        return n_rows

    def _read_some(self, sequence: Sequence, n_rows: int) -> None:
        """Evaluate the next ``n_rows`` unread tokens, or all but the text's last."""
        assert sequence.slot is not None
        slot, lane = sequence.slot.id, self._lane(sequence)
        tokens = sequence.tokens.view
        start = len(lane.resident)
        end = min(len(tokens) - 1, start + n_rows)
        # Rows whose next token was generated show whether the draft would have found it.
        first_judged = max(start, sequence.n_prompt - 1, len(tokens) - 1 - MAX_READ_ALONG)
        self._batch.clear()
        if first_judged > start:
            self._batch.add_run(tokens[start : min(first_judged, end)], start, slot, want_last=False)
        judged = range(max(first_judged, start), end)
        for position in judged:
            self._batch.add(int(tokens[position]), position, slot)
        if not self._idle.decode(self._batch):
            self._fail([sequence])
        self._count(end, 1)
        lane.resident.extend(tokens[start:end])
        if not judged:
            return
        self._context.synchronize()
        logits = self._context.logits(len(judged))
        for position, row in zip(judged, logits, strict=True):
            self._judge(sequence, position, row)

    def _judge(self, sequence: Sequence, position: int, row: npt.NDArray[np.float32]) -> None:
        """Compare what the draft model says behind ``position`` with what came."""
        for guess in self._chooser.choose(sequence, row, position + 1):
            was_right = guess.token == int(sequence.tokens.view[position + 1])
            self._observations.append(AcceptanceSample(sequence.id, guess.evidence, was_right))

    def _add(self, tip: GrowthPoint) -> bool:
        """Add the row whose logits give what comes behind a tip; False where it has no place."""
        chain, node = tip
        slot, lane = chain.sequence.slot, self._lane(chain.sequence)
        assert slot is not None
        token = chain.tokens[node] if node != PENDING else chain.sequence.tokens.last
        position = _position(tip) - 1
        branch = self._branch_for(lane, slot.id, chain, node, position) if isinstance(chain, DraftTree) else slot.id
        if branch is None:
            return False
        self._batch.add(token, position, branch)
        if branch == slot.id:
            lane.resident.append(token)
        else:
            lane.forks[branch].append(token)
        return True

    def _branch_for(self, lane: _DraftSlot, slot: int, tree: DraftTree, node: int, position: int) -> int | None:
        """Return a sequence id that ends just before a node: the slot's, that of a branch, or a new branch."""
        if node == PENDING:
            lane.n_certain = position + 1
            return slot
        before = tree.path(node)[:-1]
        lines = {slot: lane.resident.view[lane.n_certain :].tolist(), **lane.forks}
        for branch, line in lines.items():
            if line == before:
                return branch
        source = next((branch for branch, line in lines.items() if line[: len(before)] == before), None)
        if source is None or not self._branches.n_free:
            return None
        branch = self._branches.fork(slot, source, position)
        lane.forks[branch] = before
        return branch

    def _cut(self, slot: int, lane: _DraftSlot, size: int) -> None:
        self._branches.trim(slot, size)
        lane.forks.clear()
        if not self._context.remove(slot, size):
            self._branches.trim(slot, 0)
            self._context.remove(slot, 0)
            size = 0
        lane.resident.truncate(size)

    def _drop(self, slot: int) -> None:
        self._cut(slot, self._lanes[slot], 0)

    def _fail(self, sequences: Series[Sequence]) -> NoReturn:
        """After a failed decode nothing is known of these lanes; where cells were short, others get theirs."""
        for sequence in sequences:
            assert sequence.slot is not None
            self._drop(sequence.slot.id)
        raise DraftFailed(sequences)


def _kv(n_rows: int, n_past: int) -> int:
    """Return the tokens that rows of one text attend to altogether, behind ``n_past`` others."""
    return n_rows * n_past + n_rows * (n_rows + 1) // 2


def _position(tip: GrowthPoint) -> int:
    """Return the position of what comes behind a tip."""
    return len(tip.chain.sequence.tokens) + 1 + tip.chain.depth_of(tip.node)


def _ahead(tip: GrowthPoint) -> list[int]:
    """Return the drafted tokens that lead up to and include a tip."""
    chain, node = tip
    return chain.path(node) if isinstance(chain, DraftTree) else chain.tokens[: node + 1]


def _n_common(line: list[int], other: list[int]) -> int:
    """Return how many tokens at the start are the same."""
    return next((n for n, (a, b) in enumerate(zip(line, other, strict=False)) if a != b), min(len(line), len(other)))
