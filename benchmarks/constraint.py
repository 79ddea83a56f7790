"""The time that a grammar adds to a step: JSON mode, a JSON schema and a regular expression, at a large vocabulary.

The model is deep Ember with made-up tokens up to 150,000: words, capitals, runs of marks, as in the vocabularies of
recent models. Free and constrained replies to the same prompt take turns of equally many steps in one engine, without
drafts. A turn's time is that of all its decoding steps, so it includes the few that compute the mask of the whole
vocabulary. Each ratio is to the free turns just before and after.

Tokens that a schema forces are drafted. To measure that, Ember and deep Ember reply by a schema with keys of usual
length, with those drafts and without any, in turns; nothing else is drafted. Replies are timed from their first token
to their last.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from dataclasses import dataclass

from core.process.child_process import WAITING

os.environ.update(WAITING)  # before llama.cpp is loaded: what the engine process uses

from benchmarks import synthetic_vocab
from benchmarks.report import BenchReport, ReportRow, median, run_bench, say
from core.engine.engine import Engine
from core.llama.library import silence_log
from core.loading.load_engine import load_engine
from core.machine.host import core_count
from core.sampling.grammar import GrammarMatcher
from core.values.engine_options import EngineOptions
from core.values.messages import Ended, Token
from core.values.request import ANY_OBJECT, Constraint, Request, SamplingParams
from tools.model_factory import gguf_factory

PROMPT = "<|im_start|>user\nTell me about three friends as JSON.<|im_end|>\n<|im_start|>assistant\n"
_PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 8, "maxLength": 60},
        "age": {"type": "integer", "minimum": 0, "maximum": 120},
        "likes": {"type": "array", "items": {"type": "string", "maxLength": 30}, "minItems": 2, "maxItems": 6},
        "kind": {"enum": ["fox", "owl", "otter"]},
    },
    "required": ["name", "age", "likes", "kind"],
    "additionalProperties": False,
}
CONSTRAINTS = {
    "json_object": Constraint("json_schema", ANY_OBJECT),
    "json_schema": Constraint("json_schema", json.dumps({"type": "array", "items": _PERSON, "minItems": 20})),
    "regex": Constraint("regex", r"([A-Z][a-z]+( [a-z]+){3,12}\.( |\n))+"),
}
PROMISED = ("json_object", "json_schema")
ORDER = {
    "type": "object",
    "properties": {
        "customer_name": {"type": "string", "minLength": 3, "maxLength": 16},
        "delivery_address": {
            "type": "object",
            "properties": {
                "street_and_number": {"type": "string", "minLength": 3, "maxLength": 16},
                "postal_code": {"type": "integer", "minimum": 10000, "maximum": 99999},
            },
            "required": ["street_and_number", "postal_code"],
            "additionalProperties": False,
        },
        "payment_method": {"enum": ["credit_card", "bank_transfer", "cash_on_delivery"]},
        "express_shipping": {"type": "boolean"},
        "number_of_items": {"type": "integer", "minimum": 1, "maximum": 99},
    },
    "required": ["customer_name", "delivery_address", "payment_method", "express_shipping", "number_of_items"],
    "additionalProperties": False,
}
TEMPERATURES = {"greedy": 0.0, "sampled": 0.8}
_N_CTX = 1024


@dataclass(frozen=True)
class ConstraintTurn:
    """Decode steps of one way: their seconds, and how many computed the mask of the whole vocabulary."""

    seconds: float
    n_steps: int
    n_looks: int

    @property
    def each(self) -> float:
        """Seconds of a step."""
        return self.seconds / self.n_steps


class Looks:
    """Counts how often a grammar matcher computes the mask of the whole vocabulary."""

    def __init__(self) -> None:
        self.n = 0
        listed = GrammarMatcher.allowed

        def counted(guide: GrammarMatcher) -> object:
            self.n += 1
            return listed(guide)

        GrammarMatcher.allowed = counted  # type: ignore[assignment,method-assign]  # counts calls


def run_turn(
    engine: Engine, looks: Looks, constraint: Constraint | None, sampling: SamplingParams, n: int
) -> ConstraintTurn:
    """Run ``n`` decoding steps; if a reply ends sooner, another one follows."""
    seconds, n_steps, n_looks, n_replies = 0.0, 0, looks.n, 0
    while n_steps < n:
        name = f"r{n_replies}"
        n_replies += 1
        sequence = engine.submit(engine.prepare(Request(name, PROMPT, None, sampling=sampling, constraint=constraint)))
        while not sequence.n_generated and not engine.is_idle:
            engine.step()
        while n_steps < n and not engine.is_idle:
            began = time.perf_counter()
            engine.step()
            seconds += time.perf_counter() - began
            n_steps += 1
        engine.cancel(name)
        engine.step()
    return ConstraintTurn(seconds, n_steps, looks.n - n_looks)


def measure_pair(engine: Engine, looks: Looks, name: str, way: str, options: argparse.Namespace) -> ReportRow:
    """Return the row of one constraint and one way to sample."""
    ratios: list[float] = []
    free: list[ConstraintTurn] = []
    bound: list[ConstraintTurn] = []
    for turn in range(options.rounds + 1):
        # Another seed, another text; ignore_eos keeps both sides going for as many steps.
        sampling = SamplingParams(TEMPERATURES[way], seed=turn, ignore_eos=True)
        free.append(run_turn(engine, looks, None, sampling, options.steps))
        if turn == options.rounds:
            break
        bound.append(run_turn(engine, looks, CONSTRAINTS[name], sampling, options.steps))
        if turn:
            ratios.append(bound[turn - 1].each / ((free[turn - 1].each + free[turn].each) / 2))
    ratios.append(bound[-1].each / ((free[-2].each + free[-1].each) / 2))
    free_each, bound_each = median([one.each for one in free]), median([one.each for one in bound])
    n_steps = sum(one.n_steps for one in bound)
    return {
        "constraint": name,
        "sampling": way,
        "free_step_us": round(free_each * 1e6, 1),
        "constrained_step_us": round(bound_each * 1e6, 1),
        "added_us": round((median(ratios) - 1) * free_each * 1e6, 1),
        "overhead": round(median(ratios) - 1, 4),
        "looked_through_share": round(sum(one.n_looks for one in bound) / n_steps, 3),
    }


@dataclass
class Replies:
    """Sums over some replies: seconds and steps after the first token, tokens, and drafts."""

    texts: list[str]
    seconds: float = 0.0
    n_steps: int = 0
    n_tokens: int = 0
    n_drafted: int = 0
    n_accepted: int = 0


def reply(engine: Engine, seed: int, drafts: bool, replies: Replies) -> float:
    """Add a reply to ``ORDER``; return its seconds after the first token."""
    prompt = PROMPT.replace("three friends", f"order number {seed}")
    sampling = SamplingParams(seed=seed, temperature=0.8)
    constraint = Constraint("json_schema", json.dumps(ORDER))
    request = Request("order", prompt, 400, sampling=sampling, constraint=constraint, speculates=drafts)
    sequence = engine.submit(engine.prepare(request))
    text, seconds = "", 0.0
    while not engine.is_idle:
        is_first = not sequence.n_generated
        began = time.perf_counter()
        events = engine.step()
        if not is_first:
            seconds += time.perf_counter() - began
            replies.n_steps += 1
        text += "".join(event.text for event in events if isinstance(event, Token | Ended))
    replies.texts.append(text)
    replies.seconds += seconds
    replies.n_tokens += sequence.n_generated - 1
    replies.n_drafted += sequence.n_drafted
    replies.n_accepted += sequence.n_accepted
    return seconds


def measure_forced(name: str, path: str, options: argparse.Namespace) -> ReportRow:
    """Return the row of a model whose replies are drafted as far as the schema forces them."""
    n_threads = options.threads or core_count()
    # Without a draft model, heads and n-grams, only the grammar drafts.
    forced = EngineOptions(path, n_slots=1, n_ctx=_N_CTX, n_threads=n_threads, speculation="draft", uses_heads=False)
    engine, _ = load_engine(forced, cache_folder=None)
    plain, drafted = Replies([]), Replies([])
    ratios: list[float] = []
    for seed in range(-2, options.replies):
        if not seed:
            plain, drafted, ratios = Replies([]), Replies([]), []
        ways = ((plain, False), (drafted, True))
        seconds = {drafts: reply(engine, seed + 2, drafts, into) for into, drafts in ways[:: -1 if seed % 2 else 1]}
        ratios.append(seconds[True] / seconds[False])
    engine.close()
    same = [one == other for one, other in zip(plain.texts, drafted.texts, strict=True)]
    return {
        "constraint": "forced_keys",
        "model": name,
        "replies": len(same),
        "identical_texts": sum(same),
        "drafted": drafted.n_drafted,
        "accepted": drafted.n_accepted,
        "steps_per_token_plain": round(plain.n_steps / plain.n_tokens, 3),
        "steps_per_token": round(drafted.n_steps / drafted.n_tokens, 3),
        "time_ratio": round(median(ratios), 3),
    }


def measure(options: argparse.Namespace) -> BenchReport:
    """Run the bench."""
    silence_log()
    n_threads = options.threads or core_count()
    settings = {name: getattr(options, name) for name in ("vocabulary", "layers", "rounds", "steps", "replies")}
    report = BenchReport("constraint", settings={**settings, "threads": n_threads})
    say("making and loading the model")
    path = synthetic_vocab.model(options.vocabulary, options.layers)
    engine, _ = load_engine(
        EngineOptions(str(path), n_slots=1, n_ctx=_N_CTX, n_threads=n_threads, speculation="off"), cache_folder=None
    )
    looks = Looks()
    compile_ms = {}
    for name, constraint in CONSTRAINTS.items():
        began = time.perf_counter()
        engine.prepare(Request("compiled", PROMPT, 1, constraint=constraint)).sampler.close()
        compile_ms[name] = round((time.perf_counter() - began) * 1e3, 1)
    for name in CONSTRAINTS:
        for way in TEMPERATURES:
            row = measure_pair(engine, looks, name, way, options)
            report.rows.append(row)
            say(f"{name}, {way}: {row['added_us']:.0f} µs on {row['free_step_us']:.0f} µs, {row['overhead']:.1%}")
    engine.close()
    forced = []
    deep = gguf_factory.cached_file(
        f"deep-{options.layers}.gguf", lambda path: gguf_factory.deep_ember(path, options.layers)
    )
    for name, model in (("ember", gguf_factory.EMBER), ("deep-ember", deep)):
        row = measure_forced(name, str(model), options)
        forced.append(row)
        say(", ".join(f"{key} {value}" for key, value in row.items()))
    promised = [row for row in report.rows if row["constraint"] in PROMISED]
    worst = max(promised, key=lambda row: row["overhead"])
    report.summary = {
        "constraint_overhead": worst["overhead"],
        "constraint_added_us": worst["added_us"],
        "free_step_us": worst["free_step_us"],
        # The first one reads the vocabulary; off the thread that steps.
        "first_compile_ms": compile_ms["json_object"],
        "compile_ms": compile_ms["json_schema"],
    }
    report.summary |= {
        "forced_steps_per_token": max(row["steps_per_token"] for row in forced),
        "forced_time_ratio_max": max(row["time_ratio"] for row in forced),
    }
    report.rows += forced
    return report


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vocabulary", type=int, default=150_000, help="tokens of the model")
    parser.add_argument("--layers", type=int, default=60, help="layers of the model")
    parser.add_argument("--rounds", type=int, default=9, help="constrained turns of each kind; medians are reported")
    parser.add_argument("--steps", type=int, default=48, help="decoding steps of a turn")
    parser.add_argument("--replies", type=int, default=12, help="replies with and without what a schema forces")
    parser.add_argument("--threads", type=int, default=None, help="threads (default: all physical cores)")
    raise SystemExit(run_bench("constraint", measure, parser))
