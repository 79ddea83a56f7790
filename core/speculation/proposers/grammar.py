"""Drafts what a reply's grammar leaves no choice about: the keys of a schema, the marks between them. Costs little."""

from __future__ import annotations

from core.scheduler.sequence import Sequence
from core.speculation.acceptance import AcceptanceTable
from core.speculation.proposer import AcceptanceSample, DraftChain, ProposedToken

# The bytes are certain, their tokens are not: a model may spell them in other pieces. Behind a piece that came as
# expected the next one is likelier to. Bins: the first token of a run, those behind it.
_FIRST, _LATER = 0, 1
_PRIORS = (0.9, 0.97)


class GrammarProposer:
    """Proposes the tokens that must come next, in the pieces in which the tokenizer spells them."""

    name = "grammar"

    def __init__(self) -> None:
        self.table = AcceptanceTable(_PRIORS)
        self._runs: dict[str, list[int]] = {}

    def begin(self, sequence: Sequence) -> None:
        """Do nothing: all that counts is where the reply stands in its grammar."""

    def end(self, sequence: Sequence) -> None:
        """Drop the run of a sequence that has ended."""
        self._runs.pop(sequence.id, None)

    def clear(self) -> None:
        """Nothing is kept of texts."""

    def extend(self, chains: list[DraftChain]) -> list[ProposedToken | None]:
        """Return the next forced token of each chain; what the grammar says is asked once for each new chain."""
        return [self._next(chain) for chain in chains]

    def take_samples(self) -> list[AcceptanceSample]:
        """Nothing is learnt in passing."""
        return []

    def _next(self, chain: DraftChain) -> ProposedToken | None:
        sequence, place = chain.sequence, len(chain.tokens)
        if not place:
            grammar = sequence.sampler.grammar
            self._runs[sequence.id] = grammar.forced() if grammar is not None else []
        run = self._runs.get(sequence.id, [])
        return ProposedToken(run[place], _LATER if place else _FIRST) if place < len(run) else None
