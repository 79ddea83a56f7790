"""What a context must have room for besides tokens: rows of logits and running states. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from core.values.engine_options import MAX_DRAFT_DEPTH, EngineOptions
from models.estimate.fit.memory import cells_in_window
from models.facts.model_facts import ModelFacts

# Logits of more rows than this would take memory for drafts that hardly ever pay.
_MOST_OUTPUTS = 128
# While a draft model catches up, this many of the latest tokens are compared with what it would have said.
MAX_READ_ALONG = 32
# Snapshots of running states may take this share of what the weights take: a load leaves room for it. Fewer than two
# are not worth the memory.
_SNAPSHOT_SHARE, _FEWEST_SNAPSHOTS = 1 / 16, 2


@dataclass(frozen=True, slots=True)
class ContextShape:
    """What the context of an engine needs besides cells.

    ``is_recurrent``: texts have a running state, of which ``n_snapshots`` are kept. ``window``: layers with a sliding
    window keep only so many tokens of a text, 0: all. In both cases texts cannot be shared between sequences. Else the
    context has one sequence more than slots, the last, through which parts of the others are saved and loaded.
    """

    is_recurrent: bool
    window: int
    n_slots: int
    n_outputs: int
    n_snapshots: int
    n_ubatch: int

    @property
    def n_sequences(self) -> int:
        """How many sequences the context has."""
        return self.n_slots + (not self.is_recurrent and not self.window)


def context_shape(facts: ModelFacts, options: EngineOptions, n_cells: int, *, is_recurrent: bool) -> ContextShape:
    """Return the shape of the context of an engine with these options."""
    n_ubatch = min(options.n_ubatch, n_cells)
    return ContextShape(
        is_recurrent=is_recurrent,
        window=window_of(facts, options, n_cells),
        n_slots=options.n_slots,
        n_outputs=n_outputs(options),
        n_snapshots=n_snapshots(facts, options, n_ubatch),
        n_ubatch=n_ubatch,
    )


def n_snapshots(facts: ModelFacts, options: EngineOptions, n_ubatch: int) -> int:
    """Return how many running states to keep of each slot beside the latest, so that drafts can be taken back.

    At most as many as are drafted; 0 where a state's size is not known. llama.cpp evaluates a sequence's latest
    ``n_rs_seq + 1`` rows together and aborts where ``n_ubatch`` has no room for more than those.
    """
    if options.speculation == "off" or not facts.state_bytes:
        return 0
    affordable = int(facts.weight_bytes * _SNAPSHOT_SHARE) // (facts.state_bytes * options.n_slots)
    most = min(affordable, MAX_DRAFT_DEPTH, n_ubatch - 2)
    return most if most >= _FEWEST_SNAPSHOTS else 0


def n_outputs(options: EngineOptions) -> int:
    """Return how many rows of a step may want logits: one for each slot, and those of drafted tokens.

    llama.cpp wants at least one for each sequence of a context, and there is one more of those.
    """
    if options.speculation == "off":
        return options.n_slots + 1
    most = min(options.n_slots * (1 + MAX_DRAFT_DEPTH), max(_MOST_OUTPUTS, 2 * options.n_slots), options.n_batch)
    return max(most, options.n_slots + 1)


def window_of(facts: ModelFacts, options: EngineOptions, n_cells: int) -> int:
    """Return how many tokens of a sequence layers with a sliding window keep; 0 where all layers keep all.

    Keeping only what is in sight saves memory, and time where rows attend to all cells. In return texts cannot be
    shared between running sequences, and can be cut back only as far as the window is still whole.
    """
    is_cut = cells_in_window(facts, n_cells, options.n_slots, options.n_ubatch) < n_cells
    return facts.window if is_cut else 0
