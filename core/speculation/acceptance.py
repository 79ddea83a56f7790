"""How likely a drafted token is to be accepted, learnt from what was accepted before."""

from __future__ import annotations

import math

# What is old counts less: about this many observations per bin are remembered.
_MEMORY = 400.0
# A prior is worth this many observations.
_PRIOR_WEIGHT = 2.0
_MEAN_WEIGHT = 0.12
_FIRST_STEP, _SLOWEST_STEP = 1.0, 0.15
_MOST_OFFSET = 4.0
# The corrected table counts like this many tokens seen in the sequence itself, of which so many are remembered.
_TRUST_IN_TABLE = 10.0
_OWN_MEMORY = 30.0
# How tokens spread over the bins is not known before so many.
_LEAST_SPREAD = 4.0
_LOWEST, _HIGHEST = 0.005, 0.995


class AcceptanceTable:
    """Measured acceptance of a proposer's tokens by evidence bin, over all requests.

    A proposer sorts each token that it proposes into a bin by what it knows of it: a draft model by the token's
    probability, a lookup by the length of the match. The table says how often such tokens were accepted.
    """

    def __init__(self, priors: tuple[float, ...]) -> None:
        """``priors`` are the expected acceptance rates of the bins before anything was seen."""
        self._accepted = [prior * _PRIOR_WEIGHT for prior in priors]
        self._total = [_PRIOR_WEIGHT] * len(priors)

    def rate(self, evidence: int) -> float:
        """Return the acceptance rate of a bin."""
        return min(max(self._accepted[evidence] / self._total[evidence], _LOWEST), _HIGHEST)

    def learn(self, evidence: int, was_accepted: bool) -> None:
        """Count one token of a bin."""
        if self._total[evidence] > _MEMORY:
            self._total[evidence] *= 0.5
            self._accepted[evidence] *= 0.5
        self._total[evidence] += 1.0
        self._accepted[evidence] += was_accepted


class SequenceAcceptance:
    """What one proposer achieves on one sequence.

    ``mean`` is the expected acceptance of its next token before the token and its evidence are known. ``offset``
    corrects the table for this sequence, in log odds: logistic regression with the table's rate as its only input,
    learnt by stochastic gradient. What was seen in a bin of this very sequence comes to count for more, but slowly: on
    recorded drafts of a draft model and of lookups, trust in few tokens made the log loss 3 to 4 % worse.
    """

    def __init__(self, mean: float) -> None:
        """Begin with the mean seen on other sequences."""
        self.mean = mean
        self.offset = 0.0
        self.n_seen = 0
        self._own: dict[int, tuple[float, float]] = {}

    def expect(self, evidence: int, rate: float) -> float:
        """Return the acceptance to expect here of a token in bin ``evidence``, whose rate in the table is ``rate``."""
        accepted, total = self._own.get(evidence, (0.0, 0.0))
        expected = (accepted + _TRUST_IN_TABLE * self._corrected(rate)) / (total + _TRUST_IN_TABLE)
        return min(max(expected, _LOWEST), _HIGHEST)

    def spread(self, table: AcceptanceTable) -> list[tuple[float, float]]:
        """Return how often a token comes in each bin here, as a share, and the acceptance to expect of it then.

        Nothing before some tokens were seen in this sequence.
        """
        n_seen = sum([total for _, total in self._own.values()])
        if n_seen < _LEAST_SPREAD:
            return []
        return [
            (total / n_seen, self.expect(evidence, table.rate(evidence))) for evidence, (_, total) in self._own.items()
        ]

    def _corrected(self, rate: float) -> float:
        odds = math.log(rate / (1.0 - rate)) + self.offset
        return 1.0 / (1.0 + math.exp(-odds))

    def learn(self, evidence: int, rate: float, was_accepted: bool) -> None:
        """Learn from one token in bin ``evidence``, whose rate in the table was ``rate``."""
        accepted, total = self._own.get(evidence, (0.0, 0.0))
        fade = 1.0 if total < _OWN_MEMORY else 1.0 - 1.0 / _OWN_MEMORY
        self._own[evidence] = (accepted * fade + float(was_accepted), total * fade + 1.0)
        self.n_seen += 1
        # The first tokens of a sequence say more about it than anything seen elsewhere.
        weight = max(_MEAN_WEIGHT, 1.0 / (self.n_seen + 3.0))
        self.mean += weight * (float(was_accepted) - self.mean)
        step = max(_SLOWEST_STEP, _FIRST_STEP / (1.0 + 0.1 * self.n_seen))
        self.offset += step * (float(was_accepted) - self._corrected(rate))
        self.offset = min(max(self.offset, -_MOST_OFFSET), _MOST_OFFSET)
