"""Does drafting change what a model says, and what does it gain? Decodes prompts both ways and compares the tokens.

Both ways run on one engine, request by request: with ``Request.speculates`` False an engine that drafts decodes as one
that never does, and its proposers learn nothing from it. So the model is in memory once, and both ways have the same
threads, caches and kernels.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from app.jobs.verify.near_tie import FAR, NEAR_TIE, shortfall
from core.engine.engine import Engine
from core.llama.library import silence_log
from core.loading.load_engine import load_engine
from core.values.engine_options import EngineOptions
from core.values.errors import SlipstreamError
from core.values.messages import Ended, FinishReason, LoadedModel
from core.values.request import Request, SamplingParams

TEMPERATURE = 0.8  # the usual one, as in SamplingParams
# Shorter replies are compared but say nothing of speed.
FEWEST_TIMED = 8
# A reply that takes fewer seconds is decoded again, so many times at most: a machine may be slow for a moment, and of
# 15 turns of 35 ms plain decoding comes to 0.95 to 1.12 of itself.
TIMED_SECONDS, MOST_TURNS = 1.5, 40
# Drafting must not cost time: a median below this is more than noise, over so many replies that were timed.
LEAST_SPEEDUP, _FEWEST_JUDGED = 0.97, 8
_WARM_UP_TOKENS = 16
_END = -1

TokenIds = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Mode:
    """How tokens are chosen: the best one where ``seed`` is None, else sampled with that seed."""

    seed: int | None = None

    @property
    def name(self) -> str:
        """ "greedy" or "sampled"."""
        return "greedy" if self.seed is None else "sampled"

    @property
    def sampling(self) -> SamplingParams:
        """The request's settings."""
        return SamplingParams(temperature=0.0 if self.seed is None else TEMPERATURE, seed=self.seed)


@dataclass(frozen=True, slots=True)
class DecodedReply:
    """The tokens of a reply: ``has_ended`` where the model itself ended it.

    ``rate`` is in tokens per second after the first, so prefill does not count: the median of all turns.
    """

    tokens: tuple[int, ...]
    has_ended: bool
    rate: float = 0.0
    n_drafted: int = 0
    n_accepted: int = 0

    @property
    def seconds(self) -> float:
        """The time of the tokens after the first; 0 where there are none."""
        return (len(self.tokens) - 1) / self.rate if self.rate > 0 else 0.0

    @property
    def _choices(self) -> tuple[int, ...]:
        return (*self.tokens, _END) if self.has_ended else self.tokens

    def choice(self, position: int) -> int | None:
        """Return the token chosen at a position, -1 for the end of the text, None where nothing was chosen."""
        choices = self._choices
        return choices[position] if position < len(choices) else None

    def first_difference(self, other: DecodedReply) -> int | None:
        """Return the first position at which the replies differ, None where they are the same."""
        longest = max(len(self._choices), len(other._choices))
        return next((place for place in range(longest) if self.choice(place) != other.choice(place)), None)


@dataclass(frozen=True, slots=True)
class ChosenToken:
    """A token that was chosen; None where the reply was cut off before."""

    token: int | None
    text: str


@dataclass(frozen=True, slots=True)
class Difference:
    """The place where two replies part: ``position`` counts generated tokens from 0.

    ``gap`` is how far the less likely candidate was from being chosen there, in logits, by one plain evaluation of what
    comes before: for two nearly best tokens the distance between them (see ``near_tie.shortfall``).
    """

    position: int
    plain: ChosenToken
    drafted: ChosenToken
    gap: float

    @property
    def is_near_tie(self) -> bool:
        """True where rounding explains it."""
        return self.gap <= NEAR_TIE


@dataclass(frozen=True, slots=True)
class Comparison:
    """One prompt decoded plainly and with drafts. ``prompt`` is its place in the list, from 0.

    ``speedup`` is drafted over plain decoding speed: the median over turns, each of which decodes both ways next to
    each other. None where a reply is too short to time. ``control`` is plain decoding over itself, from one turn to the
    next: what is no further from 1 is noise. None where there was one turn.
    """

    prompt: int
    mode: Mode
    plain: DecodedReply
    drafted: DecodedReply
    difference: Difference | None
    speedup: float | None
    control: float | None = None

    @property
    def is_identical(self) -> bool:
        """True where both said the same."""
        return self.difference is None


@dataclass(frozen=True, slots=True)
class Verification:
    """All comparisons. ``n_repeated`` prompts were left out because they came before."""

    comparisons: tuple[Comparison, ...]
    n_repeated: int = 0

    @property
    def differences(self) -> tuple[Difference, ...]:
        """Every difference found."""
        return tuple(one.difference for one in self.comparisons if one.difference is not None)

    @property
    def n_wrong(self) -> int:
        """Differences that rounding does not explain."""
        return sum(not difference.is_near_tie for difference in self.differences)

    @property
    def largest_gap(self) -> float | None:
        """The largest gap at a difference; None where there is none."""
        return max((difference.gap for difference in self.differences), default=None)

    def identical_share(self, mode: str) -> float | None:
        """Return the share of identical replies in "greedy" or "sampled" mode; None where there was none."""
        found = [one.is_identical for one in self.comparisons if one.mode.name == mode]
        return sum(found) / len(found) if found else None

    @property
    def speedups(self) -> tuple[float, ...]:
        """Drafted over plain speed of every reply that was long enough."""
        return tuple(one.speedup for one in self.comparisons if one.speedup is not None)

    @property
    def controls(self) -> tuple[float, ...]:
        """Plain speed over itself of every reply that was decoded several times."""
        return tuple(one.control for one in self.comparisons if one.control is not None)

    @property
    def median_speedup(self) -> float | None:
        """The median of ``speedups``; None where there are none."""
        return statistics.median(self.speedups) if self.speedups else None

    @property
    def is_slower(self) -> bool:
        """True where drafting costs time: by the median, over enough replies to say so."""
        median = self.median_speedup
        return median is not None and median < LEAST_SPEEDUP and len(self.speedups) >= _FEWEST_JUDGED

    @property
    def n_drafted(self) -> int:
        """Drafted tokens in all."""
        return sum(one.drafted.n_drafted for one in self.comparisons)

    @property
    def n_accepted(self) -> int:
        """Drafted tokens that were accepted."""
        return sum(one.drafted.n_accepted for one in self.comparisons)


class ReplyComparer:
    """Finds where two replies part and measures how near the choice was there."""

    def __init__(self, next_logits: Callable[[TokenIds], npt.NDArray[np.float32]], end_tokens: Iterable[int]) -> None:
        """``next_logits`` evaluates a text plainly; ``end_tokens`` end one."""
        self._next_logits = next_logits
        self._end_tokens = tuple(end_tokens)

    def compare(
        self, prompt: TokenIds, mode: Mode, plain: DecodedReply, drafted: DecodedReply, text: Callable[[int], str]
    ) -> Difference | None:
        """Return the first difference of two replies to ``prompt``; ``text`` writes a token out."""
        position = plain.first_difference(drafted)
        if position is None:
            return None
        before = np.concatenate([prompt, np.array(plain.tokens[:position], np.int32)])
        logits = self._next_logits(before)
        candidates, gaps = [], []
        for reply in (plain, drafted):
            token, gap = self._measure(reply.choice(position), logits, mode, len(before))
            candidates.append(ChosenToken(token, "" if token is None else text(token)))
            gaps.append(gap)
        return Difference(position, candidates[0], candidates[1], max(gaps))

    def _measure(
        self, choice: int | None, logits: npt.NDArray[np.float32], mode: Mode, position: int
    ) -> tuple[int | None, float]:
        """Return the token that was chosen and its shortfall; of several that end a text, the likeliest."""
        if choice is None:
            return None, FAR
        tokens = self._end_tokens if choice == _END else (choice,)
        gaps = {token: shortfall(logits, token, mode.sampling, mode.seed, position) for token in tokens}
        nearest = min(gaps, key=lambda token: gaps[token])
        return nearest, gaps[nearest]


class Verifier:
    """Decodes prompts plainly and with drafts on one engine, which it takes over."""

    def __init__(self, engine: Engine, timed_seconds: float) -> None:
        """``engine`` must be idle and able to speculate.

        Replies that are long enough to be timed are repeated until they took ``timed_seconds``.
        """
        self.engine = engine
        self._timed_seconds = timed_seconds
        self._ids = itertools.count()
        self._judge = ReplyComparer(engine.next_logits, engine.vocab.end_tokens)

    def run(
        self,
        prompts: Sequence[TokenIds],
        modes: Sequence[Mode],
        n_tokens: int,
        progress: Callable[[float], None],
        is_enough: Callable[[int], bool] = lambda n_compared: False,
    ) -> Verification:
        """Compare every prompt in every mode, replies of at most ``n_tokens``; ``progress`` is called with 0 to 1.

        ``is_enough`` is asked with the number of comparisons made, and may end it early. Raises SlipstreamError where a
        request fails.
        """
        first = {tokens.tobytes(): index for index, tokens in reversed(list(enumerate(prompts)))}
        places = sorted(first.values())
        self._warm_up(prompts[places[0]])
        comparisons: list[Comparison] = []
        for turn, (mode, place) in enumerate((mode, place) for mode in modes for place in places):
            if is_enough(len(comparisons)):
                break
            progress(turn / (len(modes) * len(places)))
            # Plain and drafted decoding go first in turn: from prompt to prompt, and for one prompt from mode to mode.
            is_plain_first = (turn // len(places) + turn % len(places)) % 2 == 0
            comparisons.append(self._compare(place, prompts[place], mode, n_tokens, is_plain_first))
        return Verification(tuple(comparisons), len(prompts) - len(places))

    def close(self) -> None:
        """Free the engine."""
        self.engine.close()

    def _compare(self, place: int, prompt: TokenIds, mode: Mode, n_tokens: int, is_plain_first: bool) -> Comparison:
        ways = (False, True) if is_plain_first else (True, False)
        turns: dict[bool, list[DecodedReply]] = {False: [], True: []}
        for _ in range(MOST_TURNS):
            for speculates in ways:
                turns[speculates].append(self._reply(prompt, mode, n_tokens, speculates))
            is_short = min(len(replies[-1].tokens) for replies in turns.values()) < FEWEST_TIMED
            if is_short or sum(reply.seconds for reply in turns[False]) >= self._timed_seconds:
                break
            ways = ways[::-1]
        plain, drafted = (
            replace(replies[0], rate=statistics.median([reply.rate for reply in replies])) for replies in turns.values()
        )
        difference = self._judge.compare(prompt, mode, plain, drafted, self.engine.vocab.text)
        speedup = paired_speedup(turns[False], turns[True])
        control = paired_speedup(turns[False][:-1], turns[False][1:])
        return Comparison(place, mode, plain, drafted, difference, speedup, control)

    def _warm_up(self, prompt: TokenIds) -> None:
        """Let both ways touch their memory once: the first run of all would pay for that."""
        for speculates in (False, True):
            self._reply(prompt, Mode(), _WARM_UP_TOKENS, speculates)

    def _reply(self, prompt: TokenIds, mode: Mode, n_tokens: int, speculates: bool) -> DecodedReply:
        """Decode as if the prompt had never been seen: repeats flatter drafting, whose lookups know the reply then."""
        engine = self.engine
        engine.forget_texts()
        request_id = f"verify {next(self._ids)}"
        request = Request(request_id, tuple(prompt.tolist()), n_tokens, sampling=mode.sampling, speculates=speculates)
        sequence = engine.submit(engine.prepare(request, prompt))
        ended: Ended | None = None
        while not engine.is_idle:
            ended = next((event for event in engine.step() if isinstance(event, Ended)), ended)
        assert ended is not None
        if ended.failure is not None:
            raise SlipstreamError(ended.failure.message)
        receipt = ended.receipt
        return DecodedReply(
            tokens=tuple(sequence.tokens.view[sequence.n_prompt :].tolist()),
            has_ended=ended.reason is FinishReason.STOP,
            rate=receipt.decode_rate,
            n_drafted=receipt.n_drafted,
            n_accepted=receipt.n_accepted,
        )


def paired_speedup(plain: Sequence[DecodedReply], drafted: Sequence[DecodedReply]) -> float | None:
    """Return the median of drafted over plain speed, turn by turn.

    None where a reply is too short to time, or there are none.
    """
    replies = (*plain, *drafted)
    if not replies or any(len(reply.tokens) < FEWEST_TIMED or reply.rate <= 0 for reply in replies):
        return None
    return statistics.median([two.rate / one.rate for one, two in zip(plain, drafted, strict=True)])


def load_verifier(
    options: EngineOptions,
    *,
    cache_folder: Path | None,
    progress: Callable[[float], None],
    timed_seconds: float | None = None,
) -> tuple[Verifier, LoadedModel]:
    """Load a model and its proposers. Raises LoadFailed and BadOption."""
    silence_log()
    engine, model = load_engine(options, cache_folder=cache_folder, progress=progress)
    return Verifier(engine, TIMED_SECONDS if timed_seconds is None else timed_seconds), model
