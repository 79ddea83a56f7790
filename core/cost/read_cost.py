"""How many bytes a step reads: weights (by its rows), keys and values."""

from __future__ import annotations

from dataclasses import dataclass

from core.values.engine_options import DEFAULT_UBATCH
from models.estimate.speed.work import reads_of_file
from models.facts.model_facts import ModelFacts, WeightBytes


@dataclass(frozen=True, slots=True)
class ReadCost:
    """Bytes that a model reads in a step: ``weights`` by the number of rows, ``cell`` for each cached token.

    ``state`` is the recurrent state of one sequence. Layers with a sliding window read ``cell_in_window`` for each of
    the last ``window`` tokens. More than ``n_ubatch`` rows are evaluated in several passes of ``n_ubatch`` rows, each
    of which reads all weights.
    """

    weights: WeightBytes
    cell: int
    state: int = 0
    window: int = 0
    cell_in_window: int = 0
    n_ubatch: int = DEFAULT_UBATCH

    @classmethod
    def of(cls, facts: ModelFacts, kv_type: str, n_ubatch: int = DEFAULT_UBATCH) -> ReadCost:
        """Return the cost of a model with a KV cache of ``kv_type``."""
        cell = facts.kv_bytes_per_further_token(kv_type, kv_type)
        in_window = facts.kv_bytes_per_token(kv_type, kv_type) - cell
        state = facts.state_bytes
        return cls(facts.active_weights, cell, state, facts.window, in_window, n_ubatch)

    @classmethod
    def of_mtp_head(cls, facts: ModelFacts, kv_type: str) -> ReadCost:
        """Return the cost of the first prediction head of a model."""
        cell = facts.mtp_kv_bytes_per_token(kv_type, kv_type) // max(facts.n_mtp_layers, 1)
        return cls(facts.mtp_weights, cell)

    @classmethod
    def of_head_file(cls, head: ModelFacts, target: ModelFacts, kv_type: str) -> ReadCost:
        """Return the cost of a head in its own file, which may also read the output weights of its target."""
        return cls(head.used_of(reads_of_file(head, target)), head.kv_bytes_per_token(kv_type, kv_type))

    def step(self, n_rows: int, n_cells: int, n_sequences: int = 1) -> int:
        """Return the bytes of a step; ``n_cells`` counts the cells of each sequence once, however many rows it has."""
        weights = self.weights.read_by(min(n_rows, self.n_ubatch))
        if n_rows > self.n_ubatch:
            n_full, rest = divmod(n_rows, self.n_ubatch)
            weights = n_full * weights + (self.weights.read_by(rest) if rest else 0)
            # The rows of each pass attend to the past tokens and to the rows of all passes up to it.
            n_past = n_cells - n_rows
            n_cells = n_full * n_past + self.n_ubatch * n_full * (n_full + 1) // 2 + (n_past + n_rows if rest else 0)
        n_bytes = weights + self.cell * n_cells + self.state * n_sequences
        return n_bytes + self.cell_in_window * min(n_cells, self.window * n_sequences) if self.window else n_bytes
