"""The kinds of memory that a model's texts are held in: how each is shared between sequences, cut and taken back.

Keys and values of all positions can be shared and cut at any token. Layers with a sliding window may have lost all but
the last tokens. A recurrent state (Mamba, RWKV, the recurrent layers of hybrids) is one value that each row overwrites.
llama.cpp can keep the states after the latest rows (``n_rs_seq``, for some architectures). Else the state is saved
before drafts are verified and loaded again when one is rejected. Then the rows in between are evaluated once more,
beside the next step's own.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from core.cost.cost_model import CostModel
from core.values.engine_options import MAX_DRAFT_DEPTH

if TYPE_CHECKING:
    from core.llama.context import Context

# A sequence that has more rows to evaluate again than this gets no drafts before that is done.
MOST_REPLAYED = 16
# Weight of the latest measurement in the moving average of the seconds for saving and loading a state. A measurement is
# capped at _OUTLIER times the average, and the first one at _MOST_AT_FIRST of a step: the machine may have slept
# meanwhile, and a state that seems too costly is never saved again, so never measured again.
_SECONDS_WEIGHT, _OUTLIER, _MOST_AT_FIRST = 0.1, 3.0, 0.25
# The state of a prompt is kept 8 tokens before its end, because the next turn may word the last ones differently, and
# after 512 tokens, 1,024 and so on, for texts that part earlier.
_BEFORE_END, _FIRST_CHECKPOINT = 8, 512
# A prompt of which less than this share is new gets no checkpoint at its end, where going back is possible without.
_NEW_SHARE = 0.25


class AttentionMemory:
    """Keys and values of all positions.

    ``can_share``: texts are shared between sequences and cut at any token. ``replays``: rows that a rejected draft lost
    are evaluated again. ``has_snapshots``: a rejection goes back to a state that llama.cpp keeps. ``reach`` is how many
    drafted tokens can be taken back. The engine sets ``n_decoding``, the requests that decode in the step, before it
    drafts.
    """

    can_share = True
    replays = False
    has_snapshots = False
    mark_seconds = 0.0

    def __init__(self, cells: Context, reach: int = MAX_DRAFT_DEPTH) -> None:
        self.cells = cells
        self.reach = reach
        self.n_decoding = 1

    # -- texts --------------------------------------------------------------------------------------------------

    def cut(self, sequence: int, size: int) -> int:
        """Drop what a sequence holds behind its first ``size`` tokens; return what is left: ``size``, or 0."""
        if self.cells.remove(sequence, size):
            return size
        self.cells.remove(sequence, 0)
        return 0

    def can_cut(self, sequence: int, size: int) -> bool:
        """Return whether a sequence can go on from its first ``size`` tokens, once what is behind them is dropped."""
        return True

    def holds(self, sequence: int, position: int) -> bool:
        """Return whether nothing was lost of a sequence's tokens from ``position`` on."""
        return True

    def saved_together(self, position: int, most: int) -> int:
        """Return how many tokens from ``position`` on may be saved as one segment: ``most``."""
        return most

    def checkpoints(self, n_prompt: int, n_held: int) -> set[int]:
        """Return where to keep the state of a prompt, of which ``n_held`` tokens are held: it can be cut anywhere."""
        return set()

    # -- drafts -------------------------------------------------------------------------------------------------

    @property
    def n_even(self) -> int:
        """How many requests must have the same number of rows in the step; 0: any number each."""
        return 0

    def mark(self, sequence: int, position: int) -> None:
        """Called before drafts are verified in a sequence, which holds ``position`` tokens."""

    def take_back(self, sequence: int, size: int) -> int:
        """Drop rejected drafts behind the first ``size`` tokens; return how many the sequence holds then.

        Fewer than ``size`` must be evaluated again from there. 0: all is lost and the sequence is empty.
        """
        return self.cut(sequence, size)

    def loss(self, n_rows: int) -> float:
        """Return the seconds that a rejection costs after which ``n_rows`` have to be evaluated again."""
        return 0.0

    def take_seconds(self) -> float:
        """Return the seconds spent on ``mark`` and ``take_back`` since this was last asked."""
        return 0.0


class WindowMemory(AttentionMemory):
    """In some layers a token sees only the last ``window`` tokens of a sequence.

    These layers lose tokens that are out of sight: llama.cpp puts tokens of any text into their cells, even if others
    are free (``llama_kv_cache::find_slot``). So a sequence can be cut and shared as far as everything is held that is
    then in sight. After drafts that holds within one ubatch. Rows of a later ubatch may have overwritten tokens that
    would come back into sight. Where these layers have fewer cells than the others, texts are not shared.
    """

    def __init__(self, cells: Context, window: int, *, has_fewer_cells: bool) -> None:
        super().__init__(cells)
        self._window = window
        self.can_share = not has_fewer_cells

    def can_cut(self, sequence: int, size: int) -> bool:
        """Return whether everything in sight from ``size`` on is still held."""
        return self.holds(sequence, max(0, size - self._window))

    def holds(self, sequence: int, position: int) -> bool:
        """Return whether the layers with a window hold all tokens from ``position`` on."""
        return 0 <= self.cells.first_position(sequence) <= position

    def saved_together(self, position: int, most: int) -> int:
        """Return how many tokens may be saved as one segment: those up to the next multiple of the window.

        llama.cpp saves only what a sequence's last token attends to. A longer segment would come back without its
        beginning, and could not be cut. Windows of Llama 4 begin at these multiples (``LLAMA_SWA_TYPE_CHUNKED``).
        """
        return min(most, self._window - position % self._window)

    def take_back(self, sequence: int, size: int) -> int:
        """Drop rejected drafts; drop everything if too little is left in sight."""
        return self.cut(sequence, size if self.can_cut(sequence, size) else 0)

    def checkpoints(self, n_prompt: int, n_held: int) -> set[int]:
        """Return where to keep what is in sight: the end too, for when it has left, unless the turn was small."""
        if self.can_share:
            return set()
        return _checkpoints(n_prompt, has_end=n_prompt - n_held >= _NEW_SHARE * n_prompt)


class RecurrentMemory(AttentionMemory):
    """A recurrent state, of which llama.cpp keeps the latest ``reach``, so that many rows can be taken back."""

    can_share = False
    has_snapshots = True

    def can_cut(self, sequence: int, size: int) -> bool:
        """Return False: the state of an earlier position is not kept."""
        return False

    def checkpoints(self, n_prompt: int, n_held: int) -> set[int]:
        """Return where to keep the state."""
        return _checkpoints(n_prompt, has_end=True)

    @property
    def n_even(self) -> int:
        """How many requests must bring equally many rows.

        Rows beyond the common number take another pass over the weights (``llama_batch_allocr::split_equal``).
        """
        return self.n_decoding if self.n_decoding > 1 else 0


class CheckpointMemory(RecurrentMemory):
    """A recurrent state, saved before drafts and loaded on a rejection; the accepted rows are to be replayed."""

    replays = True
    has_snapshots = False

    def __init__(self, cells: Context, cost: CostModel, clock: Callable[[], float] = time.perf_counter) -> None:
        """Save and load in ``cells``; ``cost`` predicts what replayed rows add to a step."""
        super().__init__(cells)
        self._cost = cost
        self._clock = clock
        self._marks: dict[int, tuple[int, npt.NDArray[np.uint8] | None]] = {}
        self._seconds = 0.0
        self.mark_seconds = self._load_seconds = 0.0

    def mark(self, sequence: int, position: int) -> None:
        """Save the state of a sequence."""
        began = self._clock()
        self._marks[sequence] = position, self.cells.save_state(sequence)
        self.mark_seconds = self._spent(began, self.mark_seconds)

    def take_back(self, sequence: int, size: int) -> int:
        """Load the saved state, and drop the keys and values behind it; drop everything if that fails."""
        began = self._clock()
        position, state = self._marks.get(sequence, (0, None))
        is_back = state is not None and position <= size and self.cells.load_state(sequence, state)
        held = self.cut(sequence, position if is_back else 0)
        self._load_seconds = self._spent(began, self._load_seconds)
        return held

    def loss(self, n_rows: int) -> float:
        """Return the seconds of loading a state, and of ``n_rows`` more in the next step."""
        again = self._cost.time(n_rows) if self.n_even else self._cost.extra(1, n_rows)
        return self._load_seconds + again

    def take_seconds(self) -> float:
        """Return the seconds of saving and loading, once."""
        taken, self._seconds = self._seconds, 0.0
        return taken

    def _spent(self, began: float, lately: float) -> float:
        seconds = self._clock() - began
        self._seconds += seconds
        if not lately:
            return min(seconds, _MOST_AT_FIRST * self._cost.time(1))
        return lately + _SECONDS_WEIGHT * (min(seconds, _OUTLIER * lately) - lately)


def _checkpoints(n_prompt: int, *, has_end: bool) -> set[int]:
    """Return the positions of checkpoints. The distance doubles, since a checkpoint may hold all tokens so far."""
    stops = {n_prompt - _BEFORE_END} if n_prompt >= 2 * _BEFORE_END and has_end else set()
    position = _FIRST_CHECKPOINT
    while position < n_prompt - _BEFORE_END:
        stops.add(position)
        position *= 2
    return stops


def choose_memory(
    cells: Context,
    cost: CostModel,
    *,
    is_recurrent: bool,
    window: int = 0,
    cuts_windows: bool = False,
    clock: Callable[[], float] = time.perf_counter,
) -> AttentionMemory:
    """Return the memory of a context.

    In some layers a token sees only ``window`` tokens (0: all of them), and with ``cuts_windows`` these layers have
    fewer cells.
    """
    if is_recurrent:
        n_snapshots = min(cells.n_snapshots, MAX_DRAFT_DEPTH)
        return RecurrentMemory(cells, n_snapshots) if n_snapshots else CheckpointMemory(cells, cost, clock)
    return WindowMemory(cells, window, has_fewer_cells=cuts_windows) if window else AttentionMemory(cells)
