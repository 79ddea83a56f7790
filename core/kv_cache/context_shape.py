"""What a context must have room for besides tokens: rows of logits and running states. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from core.kv_cache.state_snapshots import n_snapshots as most_snapshots
from core.values.engine_options import MAX_DRAFT_DEPTH, EngineOptions
from models.estimate.fit.memory import cells_in_window
from models.facts.model_facts import ModelFacts

# Logits of more rows than this would take memory for drafts that hardly ever pay.
_MOST_OUTPUTS = 128
# While a draft model catches up, this many of the latest tokens are compared with what it would have said.
MAX_READ_ALONG = 32


@dataclass(frozen=True, slots=True)
class ContextShape:
    """What the context of an engine has besides cells.

    ``can_cut`` says whether texts can be cut at any token and shared between sequences: not where there is a running
    state, or where layers with a sliding window keep only the last ``window`` tokens (0: they keep all). Of the
    ``n_sequences`` the slots come first, and where texts can be shared one more, ``spare``, through which pieces of the
    others are saved and loaded. ``n_snapshots`` running states are kept of each.
    """

    can_cut: bool
    window: int
    n_slots: int
    n_outputs: int
    n_snapshots: int
    n_ubatch: int

    @property
    def spare(self) -> int:
        """The id behind all sequences that are in use."""
        return self.n_slots

    @property
    def n_sequences(self) -> int:
        """How many sequences the context has."""
        return self.n_slots + self.can_cut


def context_shape(facts: ModelFacts, options: EngineOptions, n_cells: int, *, is_recurrent: bool) -> ContextShape:
    """Return the shape of the context of an engine with these options."""
    window = window_of(facts, options, n_cells)
    can_cut = not (is_recurrent or window)
    n_ubatch = min(options.n_ubatch, n_cells)
    return ContextShape(
        can_cut=can_cut,
        window=window,
        n_slots=options.n_slots,
        n_outputs=n_outputs(options),
        n_snapshots=n_snapshots(facts, options, n_ubatch),
        n_ubatch=n_ubatch,
    )


def n_snapshots(facts: ModelFacts, options: EngineOptions, n_ubatch: int) -> int:
    """Return how many running states to keep of each slot, so that rejected drafts can be taken back."""
    if options.speculation == "off":
        return 0
    return most_snapshots(facts.state_bytes, options.n_slots, facts.weight_bytes, n_ubatch)


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

    To keep only what is in sight saves memory, and time where rows attend to all cells. It costs that texts cannot be
    shared between sequences at work, and cut back only as far as the window is still whole.
    """
    is_cut = cells_in_window(facts, n_cells, options.n_slots, options.n_ubatch) < n_cells
    return facts.window if is_cut else 0
