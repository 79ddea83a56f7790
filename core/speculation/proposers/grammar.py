"""Drafts the tokens that a reply's grammar forces: the keys of a schema and the marks between them. Costs little."""

from __future__ import annotations

from core.scheduler.sequence import Sequence
from core.speculation.acceptance import AcceptanceTable
from core.speculation.proposer import AcceptanceSample, DraftChain, ProposedToken

# The bytes are certain, but a model may split them into other tokens. After a token that came as expected, the next one
# is likelier. Bins: the first token of a run, and the later ones.
_FIRST, _LATER = 0, 1
_PRIORS = (0.9, 0.97)


class GrammarProposer:
    """Proposes the forced bytes, split into tokens as the tokenizer does."""

    name = "grammar"

    def __init__(self) -> None:
        self.table = AcceptanceTable(_PRIORS)
        self._runs: dict[str, list[int]] = {}

    def begin(self, sequence: Sequence) -> None:
        """Do nothing: forced tokens depend only on the state of the grammar."""

    def end(self, sequence: Sequence) -> None:
        """Drop the run of a sequence that has ended."""
        self._runs.pop(sequence.id, None)

    def clear(self) -> None:
        """Do nothing: nothing is kept of texts."""

    def extend(self, chains: list[DraftChain]) -> list[ProposedToken | None]:
        """Return the next forced token of each chain; the grammar is asked once for each new chain."""
        return [self._next(chain) for chain in chains]

    def take_samples(self) -> list[AcceptanceSample]:
        """Return nothing: grammars are not sampled."""
        return []

    def _next(self, chain: DraftChain) -> ProposedToken | None:
        sequence, place = chain.sequence, len(chain.tokens)
        if not place:
            grammar = sequence.sampler.grammar
            self._runs[sequence.id] = grammar.forced() if grammar is not None else []
        run = self._runs.get(sequence.id, [])
        return ProposedToken(run[place], _LATER if place else _FIRST) if place < len(run) else None
