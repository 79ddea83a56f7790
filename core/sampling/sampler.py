"""Chooses the next token of one request from the target's logits, with random numbers that do not depend on the batch.

A random number depends only on (seed, position, token). A counter-based generator (the finaliser of SplitMix64: Steele,
Lea, Flood, "Fast splittable pseudorandom number generators", 2014) replaces a random stream. So a seed gives the same
text however requests are batched, and two models that sample with the same key tend to agree.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from core.llama.model import Model, Vocab
from core.llama.sampler_chain import Candidates, SamplerChain
from core.sampling.grammar import GrammarLost
from core.sampling.thinking import Guide, ThinkingGuide
from core.values.errors import BrokenLogits
from core.values.messages import Logprob, TokenLogprob
from core.values.request import SamplingParams

Logits = npt.NDArray[np.float32]
Tokens = npt.NDArray[np.int32] | npt.NDArray[np.intp]

_MASK = (1 << 64) - 1  # arithmetic is that of 64 bits
# Constants of SplitMix64; _UNIT scales 53 bits to [0, 1).
_GOLDEN = 0x9E3779B97F4A7C15
_MIX_1, _MIX_2 = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_U_GOLDEN, _U_MIX_1, _U_MIX_2 = np.uint64(_GOLDEN), np.uint64(_MIX_1), np.uint64(_MIX_2)
_S30, _S27, _S31, _S11 = (np.uint64(bits) for bits in (30, 27, 31, 11))
_UNIT = 2.0**-53  # the mantissa of a double


def draw_seed() -> int:
    """Return a fresh 32-bit seed."""
    return secrets.randbits(32)


def _mix(value: int) -> int:
    value = (value + _GOLDEN) & _MASK
    value = ((value ^ (value >> 30)) * _MIX_1) & _MASK
    value = ((value ^ (value >> 27)) * _MIX_2) & _MASK
    return value ^ (value >> 31)


def uniform(seed: int, position: int, stream: int = 0) -> float:
    """Return one number in (0, 1) for a position; ``stream`` separates several uses at one position."""
    bits = _mix(_mix(_mix(seed & _MASK) ^ position) ^ (stream + 1))
    return ((bits >> 11) + 0.5) * _UNIT


def gumbel(seed: int, position: int, tokens: Tokens) -> npt.NDArray[np.float64]:
    """Return standard Gumbel noise for each token id at a position, shape of ``tokens``.

    The arg-max of logits plus this noise is a draw from their softmax (Gumbel-max).
    """
    key = np.uint64(_mix(_mix(seed & _MASK) ^ position))
    bits = tokens.astype(np.uint64)
    bits *= _U_GOLDEN
    bits ^= key
    bits += _U_GOLDEN
    bits ^= bits >> _S30
    bits *= _U_MIX_1
    bits ^= bits >> _S27
    bits *= _U_MIX_2
    bits ^= bits >> _S31
    uniforms = ((bits >> _S11).astype(np.float64) + 0.5) * _UNIT
    noise: npt.NDArray[np.float64] = -np.log(-np.log(uniforms))
    return noise


# Above this many candidates, one uniform number over cumulative probabilities is cheaper than noise for each.
_GUMBEL_LIMIT = 4096
# Tokens this far (in log probability) below the best are less than a ten-millionth as likely. Where min-p cuts far
# above that, dropping them first changes nothing, and the samplers see a small part of the vocabulary.
_UNLIKELY = 16.2
# A min-p of less would keep tokens that are that unlikely.
_SMALLEST_MIN_P = 1e-6
# Room for rounding at the edge of min-p.
_SLACK = 0.1
# The largest logits of so many groups of tokens take one pass, and the n-th of them is at most the n-th of all logits.
_GROUPS = 1024
# The sizes of vocabularies from which on that pays where unlikely tokens are dropped, and where not.
LARGE_VOCABULARY, _MIDDLE = 1 << 16, 1 << 14
# The parts of a sum in which one weight is found.
_PART = 512
# Below this the best token wins anyway, and dividing by less could overflow.
_LOWEST_TEMPERATURE = 1e-30
# Beyond the range of logits; added to the logits of tokens that a grammar forbids.
_EXCLUDED, _HALF_EXCLUDED = np.float32(-3e38), np.float32(-1.5e38)
_ANY = np.float32(-np.inf)
# Streams of keyed noise: each decision at a position has numbers of its own.
_XTC_STREAM, _CHOICE_STREAM, _SECOND_CHOICE_STREAM = 1, 2, 3


class Sampler:
    """Sampling state of one request: parameters, the penalties' token history, mirostat's running surprise.

    ``choose`` may be called for any position and does not change the state; ``accept`` advances it. Randomness is keyed
    by (seed, position), so choosing twice at one position gives the same token.
    """

    def __init__(
        self, model: Model, params: SamplingParams, seed: int, n_ctx: int, grammar: Guide | None = None
    ) -> None:
        """Build the chain; ``seed`` is the one to use. A ``grammar``, owned from now on, restricts the choice."""
        self.params = params
        self.seed = seed
        self.grammar = grammar
        self._vocab = model.vocab
        self._chain = SamplerChain(model, params, n_ctx)
        biases = _biases(model.vocab, params)
        self._biased, self._bias = np.fromiter(biases, np.int64), np.fromiter(biases.values(), np.float32)
        self._temperature = np.float64(max(params.temperature, _LOWEST_TEMPERATURE))
        self._mirostat_mu = 2.0 * params.mirostat_tau
        self._can_skip_unlikely = (
            params.min_p >= _SMALLEST_MIN_P
            and not self._chain.has_memory
            and params.top_n_sigma <= 0
            and params.typical_p >= 1.0
            and params.mirostat == 0
        )
        # How far below the best a token can survive. Top-p counts what min-p cuts afterwards.
        can_cut_at_min_p = self._can_skip_unlikely and params.top_p >= 1.0
        self._depth = min(_UNLIKELY, _SLACK - math.log(params.min_p)) if can_cut_at_min_p else _UNLIKELY
        self._n_enough = self._enough()
        self._takes_best = params.is_greedy and self._chain.is_empty
        # The choice is the arg-max of the raw logits unless that token is banned, so many rows can be done at once.
        self.is_plain_greedy = (
            params.is_greedy
            and all(value == -math.inf for value in biases.values())
            and self._chain.is_empty
            and not params.logprobs
            and grammar is None
        )
        self.banned = frozenset(token for token, value in biases.items() if value == -math.inf)

    @property
    def memory_length(self) -> int:
        """How many of the latest tokens the penalties use; 0 without penalties."""
        if not self._chain.has_memory:
            return 0
        lengths = (self.params.repeat_last_n, self.params.dry_penalty_last_n)
        return 1 << 30 if min(lengths) < 0 else max(lengths)

    @property
    def is_over(self) -> bool:
        """True if the reply is complete by its grammar."""
        return self.grammar is not None and self.grammar.is_over

    def choose(self, logits: Logits, position: int, candidates: Candidates) -> int:
        """Return the token for ``position``; ``logits`` has shape (n_vocab,) and may be changed in place.

        Raises BrokenLogits if the largest logit is not finite, which would abort the process in llama.cpp's samplers,
        and GrammarLost.
        """
        return self._choose(logits, position, candidates, self.grammar)

    def guess(
        self, logits: Logits, position: int, candidates: Candidates, ahead: Sequence[int] | None = None
    ) -> int | None:
        """Return the token to draft for ``position``; None if none can be chosen. The logits stay as they are.

        The grammar is applied only if ``ahead`` is given: the tokens between the accepted ones and ``position``.
        """
        if len(self._bias):
            logits = logits.copy()
        grammar = self.grammar.after(ahead) if self.grammar is not None and ahead is not None else None
        try:
            return self._choose(logits, position, candidates, grammar)
        except (BrokenLogits, GrammarLost):
            return None

    def _choose(self, logits: Logits, position: int, candidates: Candidates, grammar: Guide | None) -> int:
        if len(self._bias):
            logits[self._biased] += self._bias
        best = int(logits.argmax())
        if not math.isfinite(logits[best]):
            raise BrokenLogits
        token = best if self._takes_best else self._choose_likely(logits[best], logits, position, candidates)
        # The chosen token is mostly allowed, and checking one token is cheap: the mask of the whole vocabulary is
        # computed only if it is not (as ``common_sampler_sample`` does).
        if grammar is None or grammar.allows(token):
            return token
        return self._choose_allowed(grammar, logits, position, candidates)

    def _choose_allowed(self, grammar: Guide, logits: Logits, position: int, candidates: Candidates) -> int:
        # Arithmetic over the whole vocabulary: boolean indexing or branches take up to ten times as long.
        masked = np.logical_not(grammar.allowed()).astype(np.float32)
        masked *= _EXCLUDED
        masked += logits
        best = int(masked.argmax())
        if masked[best] <= _HALF_EXCLUDED:
            raise GrammarLost("what it allows is excluded by other parameters")
        if self._takes_best:
            return best
        return self._choose_likely(
            masked[best], masked, position, candidates, least=_HALF_EXCLUDED, stream=_SECOND_CHOICE_STREAM
        )

    def _choose_likely(
        self,
        top: np.float32,
        logits: Logits,
        position: int,
        candidates: Candidates,
        *,
        least: np.float32 = _ANY,
        stream: int = _CHOICE_STREAM,
    ) -> int:
        """Return the token for ``position`` among those with logits of ``least``, given the largest of them, ``top``.

        Tokens that the samplers would drop in any case are left out first.
        """
        if self._can_skip_unlikely:
            least = max(least, top - self._depth)
        is_large = len(logits) >= (LARGE_VOCABULARY if self._can_skip_unlikely else _MIDDLE)
        tokens = _most_likely(logits, self._n_enough if is_large else 0, least)
        if tokens is None:
            return self._choose_candidate(candidates.tokens, logits, position, candidates, stream)
        return self._choose_candidate(tokens, logits[tokens], position, candidates, stream)

    def _choose_candidate(
        self, tokens: Tokens, logits: Logits, position: int, candidates: Candidates, stream: int
    ) -> int:
        """Return one of ``tokens``, which ascend, by ``logits`` of the same shape."""
        if not self._chain.is_empty:
            candidates.fill(tokens, logits)
            self._chain.apply(candidates)
            view = candidates.view()
            tokens, logits = view["id"], view["logit"]
        if self.params.is_greedy:
            return int(tokens[int(logits.argmax())])
        if self.params.mirostat == 2:
            return self._choose_mirostat(tokens, logits, position, stream)
        if self.params.xtc_probability > 0:
            tokens, logits = self._exclude_top_choices(tokens, logits, position)
        return self._draw(tokens, self._scaled(logits), position, stream)

    def _enough(self) -> int:
        """Return how many of the most likely tokens are sure to have all that the chain can leave; 0 for all tokens."""
        params = self.params
        n_left = 1 if params.is_greedy else params.top_k
        may_rise = params.repeat_penalty < 1.0 or min(params.frequency_penalty, params.presence_penalty) < 0.0
        if n_left <= 0 or params.top_n_sigma > 0 or params.mirostat or (self._chain.has_memory and may_rise):
            return 0
        # Penalties only lower tokens in their memory.
        return n_left + self.memory_length

    def remember(self, token: int) -> None:
        """Record a token of the prompt."""
        self._chain.accept(token)

    def accept(self, token: int, logits: Logits | None = None) -> None:
        """Record that ``token`` was used; mirostat learns from ``logits`` (the row it was chosen from)."""
        self._chain.accept(token)
        if self.grammar is not None:
            self.grammar.accept(token)
        if self.params.mirostat == 2 and logits is not None and not self.params.is_greedy:
            surprise = -self._log_softmax(logits)[token] / math.log(2.0)
            # A token that only the grammar allowed has no finite surprise: skip it.
            if math.isfinite(surprise):
                self._mirostat_mu -= self.params.mirostat_eta * (float(surprise) - self.params.mirostat_tau)

    def end_thoughts(self) -> None:
        """Let thoughts that are bounded end now."""
        if isinstance(self.grammar, ThinkingGuide):
            self.grammar.end()

    def logprobs(self, logits: Logits, token: int) -> TokenLogprob:
        """Return the log probabilities before any sampler: of ``token`` and of the ``top_logprobs`` most likely."""
        log_sum = _log_sum_exp(logits)
        n_top = min(self.params.top_logprobs, len(logits))
        top: list[int] = []
        if n_top:
            best = _most_likely(logits, n_top, _ANY)
            best = np.arange(len(logits)) if best is None else best
            top = best[np.argsort(-logits[best], kind="stable")][:n_top].tolist()

        def entry(index: int) -> Logprob:
            return Logprob(index, self._vocab.pieces[index], float(logits[index]) - log_sum)

        return TokenLogprob(entry(token), tuple(entry(index) for index in top))

    def close(self) -> None:
        """Free the chain."""
        self._chain.close()

    def _draw(self, ids: Tokens, scaled: npt.NDArray[np.float64], position: int, stream: int) -> int:
        """Draw from the softmax of ``scaled``, which may be overwritten.

        A token's noise is its own, so what a grammar leaves is drawn from rightly with the same noise. One number for
        all has told already that it is not among the forbidden ones: a second choice needs another ``stream``.
        """
        if len(ids) == 1:
            return int(ids[0])
        if len(ids) <= _GUMBEL_LIMIT:
            return int(ids[int((scaled + gumbel(self.seed, position, ids)).argmax())])
        if not self._chain.is_empty:
            order = np.argsort(ids, kind="stable")  # the samplers' order of equal logits must not matter
            ids, scaled = ids[order], scaled[order]
        scaled -= scaled.max()
        weights = np.exp(scaled, out=scaled)
        return int(ids[_find(weights, uniform(self.seed, position, stream))])

    def _exclude_top_choices(self, tokens: Tokens, logits: Logits, position: int) -> tuple[Tokens, Logits]:
        """XTC (``llama_sampler_xtc_apply``): drop all candidates above the threshold but the least likely."""
        if self.params.xtc_threshold > 0.5 or len(tokens) < 2:
            return tokens, logits
        if uniform(self.seed, position, _XTC_STREAM) > self.params.xtc_probability:
            return tokens, logits
        values = logits.astype(np.float64)
        order = np.argsort(-values, kind="stable")
        weights = np.exp(values[order] - values[order[0]])
        above = int(np.count_nonzero(weights / weights.sum() >= self.params.xtc_threshold))
        kept = np.ones(len(tokens), np.bool_)
        kept[order[: max(above - 1, 0)]] = False
        return tokens[kept], logits[kept]

    def _choose_mirostat(self, tokens: Tokens, logits: Logits, position: int, stream: int) -> int:
        """Mirostat 2 (Basu et al., arXiv 2007.14966; ``llama_sampler_mirostat_v2_apply``)."""
        scaled = self._scaled(logits)
        _, keep = self._truncated(scaled)
        if not keep.any():
            return int(tokens[int(scaled.argmax())])
        return self._draw(tokens[keep], scaled[keep], position, stream)

    def _scaled(self, logits: Logits) -> npt.NDArray[np.float64]:
        """Return new logits for the request's temperature; a division by 1 would take the longest."""
        return logits.astype(np.float64) if self._temperature == 1.0 else logits / self._temperature

    def _log_softmax(self, logits: Logits) -> npt.NDArray[np.float64]:
        """Log probabilities at the request's temperature; mirostat truncates before it measures its surprise."""
        log_p, keep = self._truncated(self._scaled(logits))
        if not keep.any():
            return np.where(log_p == log_p.max(), 0.0, -np.inf)
        kept: npt.NDArray[np.float64] = log_p - np.log(np.exp(log_p[keep]).sum())
        return kept

    def _truncated(self, scaled: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
        """Return the log probabilities, and which of them mirostat keeps."""
        top = scaled.max()
        log_p = scaled - (top + np.log(np.exp(scaled - top).sum()))
        return log_p, -log_p / math.log(2.0) <= self._mirostat_mu


def _biases(vocab: Vocab, params: SamplingParams) -> dict[int, float]:
    """Return the request's logit biases by token, -inf for banned ones."""
    never = vocab.suppressed | vocab.end_tokens if params.ignore_eos else vocab.suppressed
    given = {token: value for token, value in params.logit_bias if token < vocab.n_tokens}
    return given | dict.fromkeys(never, -math.inf)


def _most_likely(logits: Logits, n: int, least: np.float32) -> npt.NDArray[np.intp] | None:
    """Return in ascending order the tokens that reach ``least``, but not those surely behind the ``n`` largest.

    ``n`` 0 stands for all tokens. None if nothing is left out.
    """
    if 0 < n <= min(_GROUPS, len(logits)) // 2:
        tops = largest_of_groups(logits) if len(logits) >= 2 * _GROUPS else logits
        least = max(least, np.partition(tops, -n)[-n])
    return None if least == _ANY else np.flatnonzero(logits >= least)


def largest_of_groups(logits: Logits) -> Logits:
    """Return the largest logit of each of _GROUPS groups; ``logits`` has at least as many."""
    n_whole = len(logits) // _GROUPS * _GROUPS
    tops: Logits = logits[:n_whole].reshape(-1, _GROUPS).max(axis=0)
    rest = logits[n_whole:]
    np.maximum(tops[: len(rest)], rest, out=tops[: len(rest)])
    return tops


def _find(weights: npt.NDArray[np.float64], share: float) -> int:
    """Return the first place where the sum of ``weights`` up to there reaches ``share``, in (0, 1), of all."""
    sums = np.add.reduceat(weights, np.arange(0, len(weights), _PART)).cumsum()
    aim = share * sums[-1]
    part = int(np.searchsorted(sums, aim))
    if part:
        aim -= sums[part - 1]
    inside = weights[part * _PART : (part + 1) * _PART].cumsum()
    # Rounding must not lead beyond the last weight that is not 0.
    return part * _PART + int(np.searchsorted(inside, min(aim, inside[-1])))


def _log_sum_exp(logits: Logits) -> float:
    top = float(logits.max())
    return top + math.log(float(np.exp(logits - top, dtype=np.float64).sum()))
