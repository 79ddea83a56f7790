"""Two or more checkouts of this project side by side: is the new one as fast as the old one?

Each checkout serves the same model from its own folder with its own packages, over HTTP. The first one runs twice: the
second time it is the control, whose ratio to the first is noise. Each round sends the same requests to all, by turns,
and each ratio is of one round. Each round has new processes, because the placement of a process's memory makes it
faster or slower by several per cent for its whole life. A feature is measured by its removal: the checkout without it
beside the one with it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from benchmarks import prompts
from benchmarks.draft import draft_path
from benchmarks.http_load import LoadRun, run_load
from benchmarks.report import BenchReport, median, percentile, run_bench, say
from core.machine.host import core_count
from core.machine.known_machine import MEASURED_FILE
from tools.model_factory import gguf_factory
from tools.model_factory.gguf_factory import Recipe

_READY, _KEY = "SLIPSTREAM READY ", "checkouts"
# Ember was trained for 1,024 positions.
_N_CTX, _SLOTS = 1024, 16
_N_BATCH = 8
# How many short replies, long prompts, or fast replies beside a batch, one after the other, make one run.
_EACH, _LONG_EACH, _FAST_EACH = 8, 3, 4
CONTROL = "control"
Body = dict[str, object]


class CheckoutServer:
    """The server of a checkout in a child process, which exits when its stdin closes; its files are in ``home``."""

    def __init__(self, checkout: Path, arguments: Sequence[str], home: Path) -> None:
        own = ["--host", "127.0.0.1", "--port", "0", "--announce", "--exit-with-stdin"]
        self._process = subprocess.Popen(
            [str(_python(checkout)), "-m", "app", "serve", *own, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=checkout,
            env={**os.environ, "SLIPSTREAM_API_KEY": _KEY, "SLIPSTREAM_HOME": str(home), "PYTHONPATH": str(checkout)},
        )
        assert self._process.stdout is not None
        lines = iter(self._process.stdout.readline, "")
        self._url = next((line.removeprefix(_READY).strip() for line in lines if line.startswith(_READY)), "")
        if not self._url:
            raise RuntimeError(f"the server of {checkout} ended with exit code {self._process.wait()}")

        # Wait for the model, because a calibration beside another one would be wrong.
        for prompt in prompts.warm_up():
            self.send([{"prompt": prompt.text, "max_tokens": 32}])

    def send(self, bodies: Sequence[Body]) -> LoadRun:
        """Send requests at once and wait for all replies."""
        return run_load(self._url, [{"temperature": 0, **body} for body in bodies], _KEY)

    def stop(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


@dataclass(frozen=True)
class Workload:
    """Requests of one kind.

    ``bodies`` makes the requests of a round; ``value`` computes a figure of a run, of which more is better.
    ``n_each`` such runs, one after the other, count as one, since short ones are noisy.
    """

    name: str
    bodies: Callable[[int], list[Body]]
    value: Callable[[LoadRun], float] = lambda run: run.rate
    n_each: int = 1


def _replies(name: str, n_clients: int, n_tokens: int) -> Workload:
    def bodies(round_: int) -> list[Body]:
        start = 1_000 + round_ * n_clients
        return [{"prompt": text, "max_tokens": n_tokens, "seed": 1} for text in prompts.mixed(n_clients, start)]

    return Workload(f"{name}, {n_clients} clients", bodies)


def _kind(kind: str, n_tokens: int) -> Workload:
    place = prompts.KINDS.index(kind)

    def bodies(round_: int) -> list[Body]:
        (text,) = prompts.mixed(1, round_ * len(prompts.KINDS) + place)
        return [{"prompt": text, "max_tokens": n_tokens}]

    # Only the reply's own seconds count: in short replies, prefill is a large and noisy share.
    return Workload(kind, bodies, lambda run: run.n_tokens / (run.replies[0].total - run.replies[0].ttft), n_each=_EACH)


def _long(n_clients: int) -> Workload:
    def bodies(round_: int) -> list[Body]:
        return [{"prompt": text, "max_tokens": 1} for text in prompts.long_texts(n_clients, 1_000 + round_ * n_clients)]

    return Workload(f"{n_clients} long prompts", bodies, lambda run: 1 / run.seconds, _LONG_EACH)


def _fast_beside_batch(n_tokens: int, of: str) -> Workload:
    def bodies(round_: int) -> list[Body]:
        texts = prompts.mixed(_N_BATCH + 1, 1_500 + round_ * (_N_BATCH + 1))
        speeds = ["fast"] + ["batch"] * _N_BATCH
        return [
            {"prompt": text, "max_tokens": n_tokens, "speed": speed, "ignore_eos": True}
            for text, speed in zip(texts, speeds, strict=True)
        ]

    def value(run: LoadRun) -> float:
        return run.replies[0].n_tokens / run.replies[0].total if of == "fast" else run.rate

    return Workload(of, bodies, value, _FAST_EACH)


def _second_turn(round_: int) -> list[Body]:
    # The first half of a prompt's words was sent before, the second half is new.
    (text,) = prompts.long_texts(1, 3_000 + round_ // 2)
    half = text[: len(text) // 2]
    return [{"prompt": text if round_ % 2 else half, "max_tokens": 1}]


def parts(n_tokens: int, draft: Path, useless: Path) -> dict[str, tuple[list[str], list[Workload]]]:
    """Return for each part its servers' options and its workloads."""
    kinds = [_kind(kind, n_tokens) for kind in prompts.KINDS]
    return {
        "plain": (
            ["--speculation", "off"],
            [*(_replies("plain", count, n_tokens) for count in (1, 4, 16)), _long(1), _long(4)],
        ),
        "draft": (["--draft", str(draft)], kinds),
        "company": (["--draft", str(draft)], [_replies("drafted", count, n_tokens) for count in (4, 8)]),
        "useless": (["--draft", str(useless)], [_kind("story", n_tokens), _replies("useless", 8, n_tokens)]),
        "lookups": (["--no-draft"], [*kinds, _replies("lookups", 4, n_tokens)]),
        "lanes": (
            ["--draft", str(draft)],
            [_fast_beside_batch(n_tokens, "fast"), _fast_beside_batch(n_tokens, "all beside it")],
        ),
        "cache": (["--speculation", "off"], [Workload("turns", _second_turn, lambda run: 1 / run.replies[0].ttft)]),
    }


def run_round(
    arms: dict[str, CheckoutServer], workloads: Sequence[Workload], round_: int
) -> dict[str, dict[str, float]]:
    """Return for each workload the arms' speeds over that of the first one."""
    names = list(arms)
    ratios = {}
    for workload in workloads:
        seconds = dict.fromkeys(names, 0.0)
        for each in range(round_ * workload.n_each, (round_ + 1) * workload.n_each):
            start = each % len(names)
            for name in names[start:] + names[:start]:
                seconds[name] += 1.0 / workload.value(arms[name].send(workload.bodies(each)))
        ratios[workload.name] = {name: round(seconds[names[0]] / seconds[name], 4) for name in names[1:]}
    return ratios


def _checkout(name: str) -> Path:
    path = Path(name).resolve()
    if not _python(path).exists():
        raise argparse.ArgumentTypeError(f"{name} is no checkout that is set up: run ./slipstream setup in it first")
    return path


def _python(checkout: Path) -> Path:
    return checkout / ".venv" / "bin" / "python"


def measure(options: argparse.Namespace) -> BenchReport:
    """Run the bench."""
    n_threads = options.threads or core_count()
    checkouts = {path.name: path for path in options.checkouts}
    first = next(iter(checkouts))
    model = str(gguf_factory.cached(Recipe(n_layers=options.layers)))
    realistic, useless = draft_path("realistic"), draft_path("random")
    assert realistic is not None
    assert useless is not None
    known = parts(options.tokens, realistic, useless)
    settings = {"checkouts": list(checkouts), "rounds": options.rounds, "layers": options.layers, "threads": n_threads}
    report = BenchReport("checkouts", settings=settings)
    least: dict[str, float] = {}
    for part in options.parts or known:
        arguments, workloads = known[part]
        arguments = [*arguments, "--model", model, "--threads", str(n_threads), "--ctx", str(_N_CTX)]
        arguments += ["--parallel", str(_SLOTS), "--cache-disk", "0"]
        ratios = _ratios(part, checkouts, arguments, workloads, options.rounds)
        for (workload, name), values in ratios.items():
            low, high = percentile(values, 0.25), percentile(values, 0.75)
            row = {"part": part, "workload": workload, "checkout": name, "rounds": len(values)}
            row |= {f"vs_{first}": round(median(values), 3), "quarter": round(low, 3), "three_quarters": round(high, 3)}
            report.rows.append(row)
            least[name] = min(least.get(name, 9.0), median(values))
            say(f"{part:8} {workload:22} {name:16} {median(values):.3f}  ({low:.3f} to {high:.3f})")
    report.summary = {f"{name}_vs_{first}_min": round(value, 3) for name, value in least.items()}
    return report


def _ratios(
    part: str, checkouts: dict[str, Path], arguments: list[str], workloads: Sequence[Workload], n_rounds: int
) -> dict[tuple[str, str], list[float]]:
    """Run the rounds of a part; return by workload and checkout what each round gave beside the first checkout."""
    first = next(iter(checkouts))
    ratios: dict[tuple[str, str], list[float]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        homes = {name: Path(folder) / name for name in (first, CONTROL, *checkouts)}
        for round_ in range(n_rounds):
            with ExitStack() as stack:
                arms = {}
                for name, home in homes.items():
                    _copy_calibration(homes[first], home)
                    arms[name] = CheckoutServer(checkouts.get(name, checkouts[first]), arguments, home)
                    stack.callback(arms[name].stop)
                results = run_round(arms, workloads, round_)
            for workload, found in results.items():
                for name, ratio in found.items():
                    ratios[workload, name].append(ratio)
                say(f"{part} {round_ + 1}/{n_rounds} {workload}: {found}")
    return ratios


def _copy_calibration(first: Path, home: Path) -> None:
    """Let a server that has no home yet use the calibration of the first, so that a lucky one favours none."""
    kept = first / "cache" / MEASURED_FILE
    if home != first and not home.exists():
        (home / "cache").mkdir(parents=True)
        if kept.exists():
            shutil.copy(kept, home / "cache")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkouts", type=_checkout, nargs="+", help="folders, each set up; the first is the old one")
    parser.add_argument("--parts", nargs="*", choices=list(parts(1, Path(), Path())), help="what to measure")
    parser.add_argument("--rounds", type=int, default=8, help="rounds of each workload")
    parser.add_argument("--tokens", type=int, default=64, help="most tokens of a reply")
    parser.add_argument("--layers", type=int, default=60, help="layers of the target")
    parser.add_argument("--threads", type=int, help="threads of each server")
    raise SystemExit(run_bench("checkouts", measure, parser))
