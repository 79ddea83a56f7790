"""The figures that the pages quote are those of the files in ``benchmarks/results/``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
MEASURED, SPEED, SPEED_MODEL = "docs/measured.md", "docs/speed.md", "docs/speed-model.md"
MODELS, DRAFTS = ("deep", "ember"), ("realistic", "perfect", "random")


def _result(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_bytes())
    return found


def _rows(name: str, **wanted: Any) -> list[dict[str, Any]]:
    rows = _result(name)["rows"]
    return [row for row in rows if all(row.get(field) == value for field, value in wanted.items())]


def _joined(values: Any, by: str = " / ") -> str:
    return by.join(f"{value:.2f}" for value in values)


def _least_of_the_bare_loop(name: str) -> str:
    by_model = ([row["engine_vs_bare"] for row in _rows(name, model=one) if "sequences" in row] for one in MODELS)
    return _joined(map(min, by_model))


def _quoted_of_prompts() -> Iterator[tuple[str, str]]:
    for new_tokens in (64, 1):
        rows = _rows("peers", mode="prompts", side="slipstream", new_tokens=new_tokens)
        yield MEASURED, f"| {_joined(row['vs_peer'] for row in rows)} "
    beside = {
        state: _joined(row["vs_none"] for row in _rows("peers", mode="beside", state=state))
        for state in ("rest", "work")
    }
    yield MEASURED, f"| {beside['rest']}; {beside['work']} |"


def _quoted_of_a_larger_model() -> Iterator[tuple[str, str]]:
    plain, drafted = (_rows("peers_1b", mode=mode, side="slipstream") for mode in ("plain", "drafted"))
    for values in ([row["vs_peer"] for row in plain], [row["vs_best"] for row in drafted]):
        yield "README.md", f"| {_joined(values, ' | ')} |"
        yield MEASURED, f"| {_joined(values)} |"
    yield MEASURED, _joined(row["ttft_vs_peer"] for row in plain)
    yield MEASURED, f"| {_joined(row['vs_own_plain'] for row in drafted)} |"


def _quoted_of_an_amd() -> Iterator[tuple[str, str]]:
    plain, drafted = (_rows("peers_amd", mode=mode, side="slipstream") for mode in ("plain", "drafted"))
    ttft = [row["ttft_vs_peer"] for row in plain]
    for values in ([row["vs_peer"] for row in plain], [row["vs_best"] for row in drafted]):
        yield MEASURED, _joined(values)
        yield "README.md", f"{min(values):.2f} to {max(values):.2f}"
    yield "README.md", f"{min(ttft):.2f} to {max(ttft):.2f}"
    yield MEASURED, f"| {_joined(row['vs_own_plain'] for row in drafted)} |"


def _quoted_of_a_gpu() -> Iterator[tuple[str, str]]:
    plain, drafted = (_rows("gpu/peers", mode=mode, side="slipstream") for mode in ("plain", "drafted"))
    for values in ([row["vs_peer"] for row in plain], [row["vs_best"] for row in drafted]):
        yield "README.md", _joined(values)
        yield MEASURED, _joined(values)
    summary = _result("gpu/peers")["summary"]
    yield MEASURED, f"{summary['vs_peer_ttft_max']:.2f}; {summary['vs_peer_best_ttft_max']:.2f}"
    yield MEASURED, f"| {_least_of_the_bare_loop('gpu/engine')} |"
    yield MEASURED, _joined(row["http_vs_engine"] for row in _rows("gpu/engine", model="deep") if "clients" in row)
    draft = {(row["kind"], row["way"]): row for row in _result("gpu/draft")["rows"]}
    kinds = ("story", "code", "rename", "copy")
    yield MEASURED, _joined(draft[kind, "auto"]["vs_plain"] for kind in kinds)
    fixed = (
        max(row["vs_plain"] for (kind, way), row in draft.items() if kind == one and "depth" in way) for one in kinds
    )
    alone = (draft[kind, "adaptive"]["vs_plain"] for kind in kinds)
    yield MEASURED, "; ".join(f"{way:.2f} / {best:.2f}" for way, best in zip(alone, fixed, strict=True))
    worst = _result("gpu/draft")["summary"]["draft_vs_plain_min"]
    yield "README.md", f"and at {worst:.2f} on a GPU"
    same = _result("gpu/same")["summary"]
    yield MEASURED, " / ".join(f"{same[name]:.3f}" for name in same if name.startswith("same_"))
    yield MEASURED, " / ".join(f"{same[name]:.3f}" for name in ("peer_alone_again", "peer_in_company"))


def _quoted() -> Iterator[tuple[str, str]]:
    """Each page with what it quotes, as the files have it now."""
    peers = {mode: _rows("peers", mode=mode, side="slipstream") for mode in ("plain", "drafted")}
    rates = {
        "plain": [row["vs_peer"] for row in peers["plain"]],
        "drafted": [row["vs_best"] for row in peers["drafted"]],
    }
    for values in (*rates.values(), [row["ttft_vs_peer"] for row in peers["plain"]]):
        yield "README.md", f"| {_joined(values, ' | ')} |"
    for values in rates.values():
        yield MEASURED, _joined(values)

    draft = _result("draft")["summary"]
    yield "README.md", f"the worst is at {draft['draft_vs_plain_min']:.2f} of plain"
    kinds = ("story", "code", "rename", "copy")
    realistic = {row["kind"]: row["vs_plain"] for row in _rows("draft", draft="realistic", way="adaptive")}
    yield MEASURED, _joined(realistic[kind] for kind in kinds)
    yield MEASURED, f"{draft['perfect_speedup']:.2f}; {draft['lookup_speedup_copy']:.2f};"

    of_a_real_model = {row["kind"]: row["vs_plain"] for row in _rows("draft_smollm2", way="lookup")}
    control = [row["vs_plain"] for row in _rows("draft_smollm2", way="control")]
    yield MEASURED, f"{min(control):.2f} to {max(control):.2f}) | {_joined(of_a_real_model[kind] for kind in kinds)} |"

    plain, prompts = (_rows("peers_smollm2", mode=mode, side="slipstream") for mode in ("plain", "prompts"))
    yield "README.md", f"gave {_joined(row['vs_peer'] for row in plain)} plain"
    yield MEASURED, f"| {_joined(row['vs_peer'] for row in plain)} |"
    yield MEASURED, f"| {_joined(row['ttft_vs_peer'] for row in plain)} |"
    long = [row for row in prompts if row["new_tokens"] == 64]
    rates, ttfts = (_joined(row[name] for row in long) for name in ("vs_peer", "ttft_vs_peer"))
    yield MEASURED, f"| {rates}; {ttfts} |"

    yield MEASURED, _joined(_result("concurrency")["summary"][f"drafted_vs_plain_min_{n}"] for n in (1, 2, 4, 8, 16))
    together = [row for row in _result("draft")["rows"] if "vs_best_part" in row]
    least = (min(row["vs_best_part"] for row in together if row["draft"] == one) for one in DRAFTS)
    yield MEASURED, f"16 prompts of each kind | {_joined(least)} |"
    yield MEASURED, f"| {_least_of_the_bare_loop('engine')} |"

    yield from _quoted_of_prompts()
    yield from _quoted_of_a_larger_model()
    truth = _result("truth")["summary"]
    yield MEASURED, f"| {truth['speedup_known_share']:.0%} |".replace("%", " %")
    yield MEASURED, f"{truth['speedup_error_p50']:.0%} / {truth['speedup_error_p90']:.0%} off".replace("%", " %")
    lanes = [_rows("lanes", way=way, measure="fast lane")[0]["itl_ratio"] for way in ("plain", "drafted")]
    yield MEASURED, f"{lanes[0]:.2f}, with drafts {lanes[1]:.2f}"

    yield from _quoted_of_an_amd()
    yield from _quoted_of_a_gpu()

    cache = {row["what"]: row for row in _result("cache")["rows"]}
    yield MEASURED, _joined(cache[what]["ratio"] for what in ("second_turn", "shared_prefix", "restart"))
    yield "README.md", f"a second turn begins in {cache['second_turn']['ratio']:.0%} of the time".replace("%", " %")
    for row in cache.values():
        without, seconds = row["ttft_ms_without"] / 1000, row["ttft_ms"] / 1000
        yield SPEED, f"| {without:.2f} s | {seconds:.2f} s | {row['ratio']:.2f} |"

    steps = {row["sequences"]: row["decode_us_per_step"] for row in _rows("engine", model="deep") if "sequences" in row}
    yield SPEED, f"a step of 8 rows takes {steps[8] / steps[1]:.1f} times as long as a step of one"
    load = _result("load")["summary"]
    yield MEASURED, f"{load['loaded_vs_best_fixed_min']:.2f} / {load['loaded_vs_all_threads_min']:.1f} at worst"
    api = [f"{row['http_vs_engine']:.2f}" for row in _rows("api", part="rate")]
    yield MEASURED, f"| {' / '.join(api)} ("
    yield MEASURED, _joined(row["ratio"] for row in _result("embeddings")["rows"])
    window = _result("ui_stall")["summary"]
    yield MEASURED, f"| {window['longest_frame_ms']:.0f} ms |"

    predict = _result("predict")
    for suffix in ("_bandwidth", "_cold", "_few", "_again"):
        median, p90 = (predict["summary"][f"{name}_error{suffix}"] * 100 for name in ("median", "p90"))
        yield SPEED_MODEL, f"| {median:.0f} % | {p90:.0f} % |"
    kernels = {name: f"{rate / 1e9:.0f}" for name, rate in predict["settings"]["probe"]["CPU"]["weights"].items()}
    yield (
        SPEED_MODEL,
        f"Q8_0 at {kernels['Q8_0']} GB/s, Q5_K at {kernels['Q5_K']}, Q3_K at {kernels['Q3_K']} and IQ2_XXS at "
        f"{kernels['IQ2_XXS']}",
    )


@pytest.mark.parametrize(("page", "figures"), [pytest.param(*one, id=f"{one[0]}: {one[1]}") for one in _quoted()])
def test_a_page_quotes_what_was_measured(page: str, figures: str) -> None:
    assert figures in " ".join((ROOT / page).read_text(encoding="utf-8").split())
