"""What the decisions on drafts are worth on recorded texts. There is no noise: two runs give the same figures.

Ember replies to the bench's prompts, and at each position Ember-draft's proposal and its probability are recorded. The
decisions of speculation then run over these texts, one after the other. The time of a step comes from a recorded curve
over its rows (``simulation.py``). Each way is compared with the best fixed depth, and draft model and lookups together
with the better of the two. The prompts come in several orders, because a way learns from each.

On the curve "deep" the draft is always right and takes a tenth of a step, as in ``bench draft``. There it is also
charged for reading what it did not write: the prompt, and what lookups have found.
"""

from __future__ import annotations

import argparse
import random
import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from app.jobs.verify.verification import Mode
from benchmarks import prompts
from benchmarks.contenders import ADAPTIVE, AUTO, LOOKUP, Way, fixed
from benchmarks.engine_client import EngineClient, Question
from benchmarks.report import BenchReport, ReportRow, run_bench, say
from benchmarks.simulation import CURVES, SimulatedDraftModel, SimulatedEngine
from core.cost.cost_model import Calibration, CostModel
from core.kv_cache.slot import TokenBuffer
from core.scheduler.input_processor import PreparedRequest
from core.scheduler.sequence import Sequence as Running
from core.speculation.proposers.context_proposer import PRIORS, DraftSampler
from core.speculation.proposers.free_proposers import NgramProposer
from core.speculation.proposers.proposer import AcceptanceSample, AcceptanceTable, DraftChain, ProposedToken
from core.values.engine_options import MAX_READ_ALONG, EngineOptions
from core.values.request import Request
from tools.model_factory.gguf_factory import EMBER, EMBER_DRAFT

DEPTHS = (1, 2, 3, 4, 6, 8, 12)
_N_CTX = 512
# Seconds of a step by its rows on two AMD cores: deep Ember with 60 layers, and Ember, which drafts for it.
DEEP = "deep"
_STEPS = CURVES | {
    DEEP: Calibration({1: 0.0068, 2: 0.0085, 3: 0.0097, 4: 0.0115, 5: 0.0145, 8: 0.0182, 12: 0.027, 16: 0.036})
}
_EMBER_STEPS = Calibration({1: 0.00078, 2: 0.0009, 3: 0.001, 4: 0.0014, 8: 0.002, 16: 0.0034, 32: 0.0058})
# A draft model reads so many tokens together with the ones that it drafts.
_FAR_BEHIND = 16
# The evidence of a perfect draft's token where the recorded draft had another one: a chance of a half.
_IN_DOUBT = 6


@dataclass(frozen=True)
class RecordedText:
    """A prompt, its reply with the end token, and what the draft model proposes at each position of the reply."""

    kind: str
    prompt: tuple[int, ...]
    reply: tuple[int, ...]
    guesses: tuple[ProposedToken | None, ...]


def record(asked: Iterable[prompts.BenchPrompt], n_tokens: int = prompts.N_TOKENS) -> list[RecordedText]:
    """Let Ember answer prompts, and Ember-draft predict each token of the replies from the text before it."""
    options = EngineOptions(str(EMBER), n_slots=1, n_ctx=_N_CTX, speculation="off")
    target = EngineClient(options, n_tokens)
    draft = EngineClient(EngineOptions(str(EMBER_DRAFT), n_slots=1, n_ctx=_N_CTX, speculation="off"), n_tokens)
    sampler = DraftSampler(target.engine.vocab.n_tokens)
    greedy = SimpleNamespace(is_plain_greedy=True, banned=(), params=SimpleNamespace(is_greedy=True))
    reader = cast("Any", SimpleNamespace(sampler=greedy))
    texts = []
    for one in asked:
        said = target.ask(Question(one.text, Mode())).reply
        prompt = tuple(target.engine.tokenize(Request("prompt", one.text)))
        reply = (*said.tokens, *([min(target.engine.vocab.end_tokens)] if said.has_ended else []))
        tokens = np.array([*prompt, *reply], np.int32)
        guesses = [
            sampler.choose(reader, draft.engine.next_logits(tokens[:place]), place)
            for place in range(len(prompt), len(tokens))
        ]
        texts.append(RecordedText(one.kind, prompt, reply, tuple(guesses)))
    target.close()
    draft.close()
    return texts


def perfect(text: RecordedText) -> RecordedText:
    """Return a text with a draft that is always right, and as sure as the recorded one where that was right."""
    pairs = zip(text.reply, text.guesses, strict=True)
    guesses = (
        guess if guess is not None and guess.token == token else ProposedToken(token, _IN_DOUBT)
        for token, guess in pairs
    )
    return replace(text, guesses=tuple(guesses))


class RecordedDraftModel(SimulatedDraftModel):
    """Proposes what Ember-draft proposed. After a wrong one it goes on as if that were right: the rest is rejected.

    With ``steps`` its time depends on its rows, and it has to read what it has not written.
    """

    def __init__(self, steps: Calibration | None = None) -> None:
        super().__init__("draft", lambda *_: True)
        self._cost = CostModel(steps) if steps is not None else None
        self._held = TokenBuffer(np.empty(0, np.int32))
        self.table = AcceptanceTable(PRIORS)
        self.text = RecordedText("", (), (), ())
        self._n_judged = 0

    def begin(self, sequence: Running) -> None:
        """Count what it would have proposed from the reply's first token on."""
        self._n_judged = sequence.n_prompt
        self._held.truncate(0)

    def n_unread(self, sequence: Running) -> int:
        """Return how many tokens it has not read, with the last one."""
        if self._cost is None:
            return super().n_unread(sequence)
        return len(sequence.tokens) - self._held.common_prefix(sequence.tokens.view[:-1])

    def round_seconds(self, n_chains: int) -> float:
        """Return the seconds of a round."""
        return self.catch_up_seconds(n_chains)

    def catch_up_seconds(self, n_behind: int) -> float:
        """Return the seconds of reading on."""
        return super().catch_up_seconds(n_behind) if self._cost is None else self._cost.time(n_behind)

    def catch_up(self, sequence: Running, seconds: float) -> bool:
        """Read a text that is far behind, which is paid for over the whole reply, as that of a real draft model is."""
        n_unread = self.n_unread(sequence)
        if n_unread > _FAR_BEHIND:
            self.clock.now += self.catch_up_seconds(n_unread - 1)
            self._read(sequence, len(sequence.tokens) - 1)
        return True

    def extend(self, chains: list[DraftChain]) -> list[ProposedToken | None]:
        """Return the next token of each chain."""
        self.n_asked += len(chains)
        n_rows = 0
        for chain in chains:
            if chain.tokens:
                n_rows += 1
                self._held.append(chain.tokens[-1])
            else:
                n_rows += self.n_unread(chain.sequence)
                self._read(chain.sequence, len(chain.sequence.tokens))
                self._judge(chain.sequence)
        self.clock.now += self.catch_up_seconds(n_rows)
        return [self._guess(chain.position) for chain in chains]

    def read_along(self, sequence: Running) -> None:
        """Note how often it would have been right lately."""
        self.clock.now += self.catch_up_seconds(max(self.n_unread(sequence) - 1, 1))
        self.n_probes += 1
        self._read(sequence, len(sequence.tokens) - 1)
        self._judge(sequence)

    def _read(self, sequence: Running, end: int) -> None:
        self._held = TokenBuffer(sequence.tokens.view[:end])

    def _guess(self, position: int) -> ProposedToken | None:
        place = position - len(self.text.prompt)
        return self.text.guesses[place] if 0 <= place < len(self.text.guesses) else None

    def _judge(self, sequence: Running) -> None:
        tokens = sequence.tokens.view
        for position in range(max(self._n_judged, len(tokens) - MAX_READ_ALONG), len(tokens)):
            guess = self._guess(position)
            if guess is not None:
                was_right = guess.token == int(tokens[position])
                self._samples.append(AcceptanceSample(sequence.id, guess.evidence, was_right))
        self._n_judged = len(tokens)


class RecordedEngine(SimulatedEngine):
    """A server that decodes recorded texts in one way, with step times from a curve, and learns from each text."""

    def __init__(self, curve: str, way: Way) -> None:
        """Begin in the state of a new server."""
        self._draft = RecordedDraftModel(_EMBER_STEPS if curve == DEEP else None)
        self._text = RecordedText("", (0,), (), ())
        super().__init__(
            _STEPS[curve],
            *([self._draft] if way.with_draft else []),
            ngram=NgramProposer() if way.with_lookup else None,
            fixed_depth=way.depth,
        )

    def decode(self, text: RecordedText) -> float:
        """Decode a reply and return its speed over that of plain decoding, from its first token on."""
        self._text = self._draft.text = text
        self.begin()
        (sequence,) = self.sequences
        self.seconds, self.n_sampled = 0.0, 0
        while len(sequence.tokens) < len(text.prompt) + len(text.reply):
            self.run(1)
        return self.speedup

    def _new_sequence(self, index: int) -> Running:
        sampler = cast("Any", SimpleNamespace(seed=1, grammar=None))
        prepared = PreparedRequest(Request(str(index), "x"), np.array(self._text.prompt, np.int32), sampler)
        sequence = Running(prepared, order=index, submitted_at=0.0)
        for token in self._text.reply[:1]:
            sequence.tokens.append(token)
            sequence.n_generated = 1
        return sequence

    def _choices(self, start: int, draft: tuple[int, ...]) -> list[int]:
        left = self._text.reply[start - len(self._text.prompt) :]
        pairs = zip(draft, left, strict=False)
        n_right = next((place for place, (drafted, said) in enumerate(pairs) if drafted != said), len(draft))
        return list(left[: n_right + 1])


def compare(
    texts: Sequence[RecordedText], curve: str, ways: Sequence[Way], n_orders: int
) -> dict[str, dict[Way, float]]:
    """Return each way's speed over plain decoding by kind of prompt: the geometric mean over all texts."""
    found: dict[str, dict[Way, list[float]]] = defaultdict(lambda: defaultdict(list))
    for way in ways:
        # A fixed depth learns nothing.
        for order in range(1 if way.depth is not None else n_orders):
            shuffled = random.Random(order).sample(list(texts), len(texts))
            engine = RecordedEngine(curve, way)
            for text in shuffled:
                found[text.kind][way].append(engine.decode(text))
    return {
        kind: {way: statistics.geometric_mean(speedups) for way, speedups in of_kind.items()}
        for kind, of_kind in found.items()
    }


def rows_of(texts: Sequence[RecordedText], curve: str, n_orders: int) -> list[ReportRow]:
    """Return a row for each kind and way that decides in each step."""
    depths = [fixed(depth) for depth in DEPTHS]
    rows: list[ReportRow] = []
    for kind, speedups in compare(texts, curve, (ADAPTIVE, LOOKUP, AUTO, *depths), n_orders).items():
        best_depth = max(depths, key=lambda way: speedups[way])
        best_fixed = max(1.0, speedups[best_depth])
        best_part = max(speedups[ADAPTIVE], speedups[LOOKUP])
        for way in (ADAPTIVE, LOOKUP, AUTO):
            rows.append(
                {
                    "curve": curve,
                    "kind": kind,
                    "way": way.name,
                    "vs_plain": round(speedups[way], 4),
                    "best_depth": best_depth.depth if best_fixed > 1.0 else 0,
                    "vs_best_fixed": round(speedups[way] / best_fixed, 4) if way == ADAPTIVE else None,
                    "vs_best_part": round(speedups[way] / best_part, 4) if way == AUTO else None,
                }
            )
    return rows


def summarise(rows: Sequence[ReportRow]) -> dict[str, float]:
    """Return the worst of each comparison."""
    return {
        f"{way}_{against}_min": min(row[against] for row in rows if row["way"] == way)
        for way, against in (
            (ADAPTIVE.name, "vs_plain"),
            (ADAPTIVE.name, "vs_best_fixed"),
            (AUTO.name, "vs_plain"),
            (AUTO.name, "vs_best_part"),
        )
    }


def measure(options: argparse.Namespace) -> BenchReport:
    settings = {"prompts": options.prompts, "orders": options.orders, "depths": DEPTHS, "is_simulated": True}
    report = BenchReport("replay", settings=settings)
    say("recording")
    texts = record([one for kind in prompts.KINDS for one in prompts.of_kind(kind)[: options.prompts]])
    for curve in _STEPS:
        say(curve)
        asked = [perfect(text) for text in texts] if curve == DEEP else texts
        report.rows += rows_of(asked, curve, options.orders)
    report.summary = dict(summarise(report.rows))
    return report


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--prompts", type=int, default=prompts.N_EACH, choices=range(1, prompts.N_EACH + 1), help="of each kind"
    )
    parser.add_argument("--orders", type=int, default=5, help="orders in which the prompts come")
    return run_bench("replay", measure, parser)


if __name__ == "__main__":
    raise SystemExit(main())
