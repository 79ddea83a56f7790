"""Is it the same text? Each prompt alone, again, in company, with drafts, after a restart, after losing its slot.

A seed promises the same text whatever happens beside the request and before it. Here each prompt is answered once by a
server that knows nothing of it, alone and without drafts, and then in other ways. Half of them are decoded greedily,
the others are sampled at temperature 0.8 with a seed of their own. Whole texts are compared, token by token:

- again: the same prompt once more, now cached on the device, in RAM and on disk.
- company: beside 7 others, none of them cached; when one ends, another begins.
- draft: with Ember-draft, 4 tokens deep and 2 wide in each step, whether that pays or not. Alone.
- draft-company: the same beside 7 others.
- lookup: with n-gram drafts, 4 tokens deep. Alone.
- restart: by a new engine that finds the prompts on disk.
- preempted: as a batch request that loses its slot to others half-way.
- peer: llama.cpp's own server (see the bench ``peers``), alone, again, and beside 7 others; on the first model.

Models are Ember's: in Q8_0, in F16, and in Q4_K_M as the app quantises it (tensors whose rows are no multiple of 256
become Q5_0 there), dense and as a mixture of experts. Every eleventh prompt is a longer chat. If two texts differ,
``gap`` is how far the less likely of the two tokens was from being chosen, in logits. The engine runs in this process.
Only ``--cost`` times anything: the cost of the measures that keep texts the same.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.process.child_process import WAITING

os.environ.update(WAITING)  # before llama.cpp is loaded: what the engine process uses

from app.jobs.quantise.job import QuantiseJob
from app.jobs.verify.verification import Mode
from benchmarks import prompts
from benchmarks.engine_client import AskedReply, EngineClient, Question
from benchmarks.http_load import run_load
from benchmarks.peer_server import PeerFailed, PeerOptions, PeerServer, find_peer
from benchmarks.report import BenchReport, ReportRow, median, run_bench, say
from benchmarks.same_cost import SWITCHES, measure_costs
from core.machine.host import core_count
from core.values.engine_options import EngineOptions
from models.facts.model_facts import read_model
from models.quantise.plan import make_plan
from tools.model_factory.gguf_factory import EMBER_DRAFT, Recipe, cached, cached_file
from tools.model_factory.wide_factory import SHAPES, wide_ember

TYPES = ("q8_0", "q4_k", "f16")
MODELS = tuple(f"{shape}{type_}" for shape in ("", "moe-") for type_ in TYPES)
# The kinds behind each figure of the summary, which is the lowest of theirs.
PROMISES = {
    "same_alone_again": ("again",),
    "same_in_company": ("company",),
    "same_drafted": ("draft", "draft-company", "lookup"),
    "same_restored": ("restart", "preempted"),
}
OWN_KINDS = tuple(kind for kinds in PROMISES.values() for kind in kinds)
KINDS = (*OWN_KINDS, "peer")
N_AT_ONCE = 8
_N_CTX = 1024
_N_EXPERTS, _N_EXPERTS_USED = 4, 2
_DRAFT_DEPTH = 4
# Costs are measured on a model with realistic step times, as in the other benches.
_COST_LAYERS = 60
# Every _LONG_EVERY-th prompt is a chat of _N_TURNS turns: about 300 tokens.
_LONG_EVERY, _N_TURNS = 11, 6
_TURN_END = "<|im_end|>\n"
_REPLY = "Once upon a time, there was a happy fox named Ella."
# Disk space for the texts of one model: 200 texts of about 120 tokens, 5 kB per token in Ember, far more in deep Ember.
_DISK_BYTES = 8 << 30
# Index in the list of prompts at which the interrupting ones begin; their replies are not compared.
_INTERRUPTING = 1_900


@dataclass(frozen=True)
class SameFinding:
    """The result of one question in one way: whether its text is the same as alone, and if not, the logit gap."""

    question: Question
    is_same: bool
    gap: float | None = None
    answer: AskedReply | None = None


def questions(n_prompts: int) -> list[Question]:
    """Return different prompts: in turns one of each kind, decoded greedily, and one of each with a seed of its own."""
    n_kinds = len(prompts.KINDS)
    return [Question(_prompt(place), Mode(place if place // n_kinds % 2 else None)) for place in range(n_prompts)]


def _prompt(place: int) -> str:
    if place % _LONG_EVERY != _LONG_EVERY - 1:
        return prompts.mixed(1, place)[0]
    # Taken from the end of the list, so that no turn of a chat is also a prompt by itself.
    turns = prompts.mixed(_N_TURNS, 1_000 + _N_TURNS * (place // _LONG_EVERY))
    return (_REPLY + _TURN_END).join(turns)


def model_file(name: str, n_layers: int | None) -> Path:
    """Return the file of a model, which is made on first use."""
    if name in SHAPES:
        return wide_ember(name)
    type_ = name.removeprefix("moe-")
    n_experts, n_used = (_N_EXPERTS, _N_EXPERTS_USED) if name.startswith("moe-") else (0, 0)
    recipe = Recipe(n_layers, None if type_ == "q8_0" else "F16", n_experts, n_used)
    if type_ != "q4_k":
        return cached(recipe)
    return cached_file(recipe.name.replace("-f16.", "-q4_k_m."), lambda path: _quantise(cached(recipe), path))


def _quantise(source: Path, path: Path) -> Path:
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        plan = make_plan(read_model(source), name="ember-f16", type_name="Q4_K_M", folder=Path(folder))
        return QuantiseJob(plan, Path(folder)).run().path.replace(path)


@dataclass(frozen=True)
class SameBench:
    """One model, and the options of its engines."""

    model: Path
    n_threads: int
    n_tokens: int
    kinds: Sequence[str]

    def run(self, asked: Sequence[Question]) -> dict[str, list[SameFinding]]:
        """Return the results of all questions by kind."""
        with tempfile.TemporaryDirectory(prefix="slipstream-bench-") as folder:
            return self._run(asked, Path(folder))

    def _run(self, asked: Sequence[Question], folder: Path) -> dict[str, list[SameFinding]]:
        answers: dict[str, list[AskedReply]] = {}
        plain = self._plain(folder)
        alone = [plain.ask(question) for question in asked]
        if "again" in self.kinds:
            answers["again"] = [plain.ask(question) for question in asked]
        if "restart" in self.kinds:
            plain.settle()
            plain.close()
            plain = self._plain(folder)
            # The engine scans the folder first.
            plain.settle()
            answers["restart"] = [plain.ask(question) for question in asked]
        plain.engine.forget_texts()
        if "company" in self.kinds:
            answers["company"] = plain.ask_together(asked)
        plain.engine.forget_texts()
        if "preempted" in self.kinds:
            others = prompts.mixed(N_AT_ONCE, _INTERRUPTING)
            groups = [asked[start : start + N_AT_ONCE] for start in range(0, len(asked), N_AT_ONCE)]
            answers["preempted"] = [one for group in groups for one in plain.ask_preempted(group, others)]
        answers |= self._drafted(asked)
        found = {kind: self._compare(plain, asked, alone, answers[kind]) for kind in OWN_KINDS if kind in answers}
        plain.close()
        return found

    def _drafted(self, asked: Sequence[Question]) -> dict[str, list[AskedReply]]:
        answers: dict[str, list[AskedReply]] = {}
        if "draft" in self.kinds or "draft-company" in self.kinds:
            client = self._client(None, speculation="draft", draft_path=str(EMBER_DRAFT), draft_depth=_DRAFT_DEPTH)
            if "draft" in self.kinds:
                answers["draft"] = [client.ask(question) for question in asked]
                client.engine.forget_texts()
            if "draft-company" in self.kinds:
                answers["draft-company"] = client.ask_together(asked)
            client.close()
        if "lookup" in self.kinds:
            client = self._client(None, speculation="auto", draft_depth=_DRAFT_DEPTH)
            answers["lookup"] = [client.ask(question) for question in asked]
            client.close()
        return answers

    def _plain(self, folder: Path) -> EngineClient:
        return self._client(folder, speculation="off", cache_disk=_DISK_BYTES)

    def _client(self, folder: Path | None, **options: Any) -> EngineClient:
        shared: dict[str, Any] = {"n_slots": N_AT_ONCE, "n_ctx": _N_CTX, "n_threads": self.n_threads}
        return EngineClient(EngineOptions(str(self.model), **shared, **options), self.n_tokens, folder)

    def _compare(
        self, client: EngineClient, asked: Sequence[Question], alone: Sequence[AskedReply], others: Sequence[AskedReply]
    ) -> list[SameFinding]:
        found = []
        for question, first, other in zip(asked, alone, others, strict=True):
            difference = client.compare(question, first.reply, other.reply)
            gap = difference.gap if difference is not None else None
            found.append(SameFinding(question, difference is None, gap, other))
        return found


def ask_peer(options: PeerOptions, asked: Sequence[Question], n_tokens: int) -> dict[str, list[SameFinding]]:
    """Return whether llama.cpp's server gives the same texts again, and with other requests running."""
    bodies: list[dict[str, object]] = [
        {
            "prompt": question.prompt,
            "max_tokens": n_tokens,
            "temperature": question.mode.sampling.temperature,
            **({"seed": question.mode.seed} if question.mode.seed is not None else {}),
        }
        for question in asked
    ]
    with PeerServer(options) as server:

        def texts(n_at_once: int) -> list[str]:
            groups = [bodies[start : start + n_at_once] for start in range(0, len(bodies), n_at_once)]
            return [reply.text for group in groups for reply in run_load(server.url, group).replies]

        alone, again, company = texts(1), texts(1), texts(N_AT_ONCE)
    return {
        kind: [
            SameFinding(question, first == other) for question, first, other in zip(asked, alone, others, strict=True)
        ]
        for kind, others in (("peer-again", again), ("peer-company", company))
    }


def row_of(model: str, kind: str, found: Sequence[SameFinding]) -> ReportRow:
    """Return the row of a model and a kind."""
    gaps = [one.gap for one in found if one.gap is not None]
    receipts = [one.answer.receipt for one in found if one.answer is not None]
    n_prompt, n_drafted = (sum(getattr(receipt, name) for receipt in receipts) for name in ("n_prompt", "n_drafted"))
    return {
        "model": model,
        "kind": kind,
        "texts": len(found),
        "same": _share(found),
        "greedy": _share([one for one in found if one.question.mode.seed is None]),
        "sampled": _share([one for one in found if one.question.mode.seed is not None]),
        "different": sum(not one.is_same for one in found),
        "gap_p50": round(median(gaps), 4) if gaps else None,
        "gap_max": round(max(gaps), 4) if gaps else None,
        # Evidence that the reply really came in this way: cached prompt tokens, accepted drafts, preemptions.
        "cached_share": round(sum(receipt.n_cached for receipt in receipts) / n_prompt, 3) if n_prompt else None,
        "acceptance": round(sum(receipt.n_accepted for receipt in receipts) / n_drafted, 3) if n_drafted else None,
        "preempted": sum(one.answer.was_preempted for one in found if one.answer is not None) if receipts else None,
    }


def _share(found: Sequence[SameFinding]) -> float | None:
    return round(sum(one.is_same for one in found) / len(found), 4) if found else None


def summarise(rows: Sequence[ReportRow]) -> dict[str, float | str | None]:
    """Return the least share of identical texts over all models for each of ``PROMISES``, and the largest gap."""

    def least(*kinds: str) -> float | None:
        return min((row["same"] for row in rows if row.get("kind") in kinds), default=None)

    return {
        **{name: least(*kinds) for name, kinds in PROMISES.items()},
        "gap_max": max((row["gap_max"] for row in rows if row.get("gap_max") is not None), default=None),
        "peer_alone_again": least("peer-again"),
        "peer_in_company": least("peer-company"),
        "cost_max": max((row["cost"] for row in rows if "cost" in row), default=None),
    }


def measure(options: argparse.Namespace) -> BenchReport:
    """Run the bench."""
    n_threads = options.threads or core_count()
    names = ("models", "prompts", "kinds", "tokens", "layers")
    report = BenchReport("same", settings={**{name: getattr(options, name) for name in names}, "threads": n_threads})
    asked = questions(options.prompts)
    try:
        peer = find_peer(options.server) if "peer" in options.kinds else None
        for name in options.models:
            say(f"{name}: loading")
            model = model_file(name, options.layers)
            bench = SameBench(model, n_threads, options.tokens, options.kinds)
            path = peer.path if peer is not None else None
            peer_options = PeerOptions(str(model), N_AT_ONCE, _N_CTX, n_threads, server=path)
            found: dict[str, list[SameFinding]] = {}
            if set(options.kinds) & set(OWN_KINDS):
                found |= bench.run(asked)
            # One model is enough for the peer.
            if "peer" in options.kinds and name == options.models[0]:
                found |= ask_peer(peer_options, asked, options.tokens)
            for kind, results in found.items():
                report.rows.append(row_of(name, kind, results))
                say(f"{name}: {kind}: {report.rows[-1]['same']:.3f} the same")
    except PeerFailed as error:
        raise SystemExit(str(error)) from error
    if options.cost:
        report.rows += measure_costs(model_file("q8_0", _COST_LAYERS), n_threads, SWITCHES)
    report.summary = summarise(report.rows)
    return report


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", choices=(*MODELS, *SHAPES), default=list(MODELS), help="only these")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS), help="only these")
    parser.add_argument("--prompts", type=int, default=200, choices=range(1, 801), metavar="N", help="of all kinds")
    parser.add_argument("--tokens", type=int, default=prompts.N_TOKENS, help="most tokens of a reply")
    parser.add_argument("--layers", type=int, help="layers of the models; Ember's own if left out")
    parser.add_argument("--threads", type=int, help="threads; all physical cores if left out")
    parser.add_argument("--server", metavar="PATH", help="the llama-server to compare with")
    parser.add_argument("--cost", action="store_true", help="say what the measures that keep texts the same cost")
    return parser


if __name__ == "__main__":
    raise SystemExit(run_bench("same", measure, _parser()))
