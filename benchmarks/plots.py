"""Plots of bench results: a sentence as the title, units on both axes, names next to the lines."""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.report import ReportRow
from models.formatting.program import PROGRAM


def add_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--plot`` to a bench."""
    parser.add_argument("--plot", type=_picture, metavar="FILE.png", help="draw the result into this file too")


def _picture(text: str) -> Path:
    path = Path(text)
    if path.suffix != ".png":
        raise argparse.ArgumentTypeError(f"the picture is written as PNG: {text!r} must end in .png")
    if not path.absolute().parent.is_dir():
        raise argparse.ArgumentTypeError(f"there is no folder {path.absolute().parent} to write the picture to")
    try:
        import matplotlib  # noqa: F401 - only to see whether it is there
    except ImportError:
        raise argparse.ArgumentTypeError(
            f"pictures need matplotlib: install it with {PROGRAM} setup --dev, or leave --plot out"
        ) from None
    return path


_INK, _QUIET, _GRID = "#1f2328", "#6e7781", "#e6e8eb"
_COLOURS = {"perfect": "#0969da", "realistic": "#d4570a", "random": "#8250df", "none": "#1a7f37"}
_DRAFT_NAMES = {"perfect": "perfect draft", "realistic": "small draft", "random": "useless draft", "none": "lookups"}
_KIND_NAMES = {"story": "Telling a story", "code": "Free code", "rename": "Renaming in code", "copy": "Copying"}
_WIDTH = 10.0  # inches; at this size the text is readable at the width of a README


@dataclass(frozen=True)
class Series:
    """Points of one contender: (milliseconds per token of one client, tokens/s of all, clients)."""

    name: str
    colour: str
    points: Sequence[tuple[float, float, int]]
    is_dashed: bool = False


def _pyplot() -> Any:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    pyplot.rcParams.update(
        {
            "font.size": 11,
            "text.color": _INK,
            "axes.edgecolor": _QUIET,
            "axes.labelcolor": _INK,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "grid.color": _GRID,
            "xtick.color": _QUIET,
            "ytick.color": _QUIET,
        }
    )
    return pyplot


def _save(pyplot: Any, figure: Any, path: Path, title: str, subtitle: str) -> None:
    figure.suptitle(title, x=0.02, y=0.985, ha="left", va="top", fontsize=15, fontweight="bold")
    figure.text(0.02, 0.937, subtitle, ha="left", va="top", fontsize=10.5, color=_QUIET)
    figure.savefig(path, dpi=120, facecolor="white")
    pyplot.close(figure)


def draw_draft(rows: Sequence[ReportRow], path: Path, setting: str) -> None:
    """Draw speed-up by fixed depth for each kind of prompt, with what deciding in each step achieves."""
    pyplot = _pyplot()
    figure, axes = pyplot.subplots(2, 2, figsize=(_WIDTH, 7.6), sharex=True, sharey=True)
    figure.subplots_adjust(left=0.065, right=0.85, top=0.86, bottom=0.08, wspace=0.5, hspace=0.2)
    top = 1.08 * max(row["vs_plain"] for row in rows)
    for axis, kind in zip(axes.flat, _KIND_NAMES, strict=True):
        _draw_kind(axis, kind, [row for row in rows if row["kind"] == kind], top)
    for axis in axes[1]:
        axis.set_xlabel("Fixed depth: tokens drafted per step")
    for axis in axes[:, 0]:
        axis.set_ylabel("Speed against plain decoding")
    decided = [row["vs_plain"] for row in rows if row["depth"] is None]
    title = f"Depth decided step by step: {min(decided):.2f} to {max(decided):.2f} times plain decoding"
    subtitle = f"Lines: decided by Slipstream. Dots: every fixed depth. Medians, one client, greedy; {setting}."
    _save(pyplot, figure, path, title, subtitle)


def _draw_kind(axis: Any, kind: str, rows: Sequence[ReportRow], top: float) -> None:
    axis.set_title(_KIND_NAMES[kind], loc="left", fontsize=12, fontweight="bold")
    deepest = max((row["depth"] or 0 for row in rows), default=0) or 1
    axis.axhline(1.0, color=_INK, linewidth=1, linestyle=":")
    axis.set_xlim(0, deepest)
    labels = []
    for draft, colour in _COLOURS.items():
        mine = [row for row in rows if row["draft"] == draft]
        swept = sorted(
            (row["depth"], row["vs_plain"]) for row in mine if row["depth"] is not None and row["way"] != "control"
        )
        if len(swept) > 1:
            axis.plot(
                *zip(*swept, strict=True), "o-", color=colour, alpha=0.45, linewidth=1, markersize=4, clip_on=False
            )
        decided = next((row["vs_plain"] for row in mine if row["way"] in ("adaptive", "lookup")), None)
        if decided is not None:
            axis.axhline(decided, color=colour, linewidth=2.4)
            labels.append((decided, f"{_DRAFT_NAMES[draft]} {decided:.2f}\u00d7", colour))
    axis.set_ylim(0, top)
    for y, (_, text, colour) in zip(_apart([y for y, _, _ in labels], 0.075 * top), labels, strict=True):
        _label_at_the_right(axis, text, y, colour)


def _label_at_the_right(axis: Any, text: str, y: float, colour: str) -> None:
    place = {"xycoords": ("axes fraction", "data"), "xytext": (7, 0), "textcoords": "offset points", "va": "center"}
    axis.annotate(text, (1.0, y), color=colour, fontsize=9.5, annotation_clip=False, **place)


def _apart(places: Sequence[float], gap: float) -> list[float]:
    """Return positions for labels: near their points, in the same order, and at least ``gap`` apart."""
    order = sorted(range(len(places)), key=lambda index: places[index])
    moved = list(places)
    for _ in range(100):
        for lower, upper in itertools.pairwise(order):
            overlap = gap - (moved[upper] - moved[lower])
            if overlap > 1e-9:
                moved[lower] -= overlap / 2
                moved[upper] += overlap / 2
    return moved


def draw_throughput(series: Sequence[Series], path: Path, title: str, subtitle: str) -> None:
    """Draw throughput against latency: each contender's line goes through its numbers of clients."""
    pyplot = _pyplot()
    figure, axis = pyplot.subplots(figsize=(_WIDTH, 6.2))
    figure.subplots_adjust(left=0.075, right=0.85, top=0.86, bottom=0.1)
    axis.set_xscale("log")
    for one in series:
        _draw_series(axis, one)
    top = max(rate for one in series for _, rate, _ in one.points) * 1.12
    axis.set_ylim(0, top)
    ends = [max(one.points, key=lambda point: point[2])[1] for one in series]
    for one, y in zip(series, _apart(ends, 0.1 * top), strict=True):
        _label_at_the_right(axis, one.name, y, one.colour)
    axis.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.xaxis.set_minor_formatter(lambda value, _: f"{value:g}" if f"{value:g}"[0] in "235" else "")
    axis.set_xlabel("Milliseconds per token for each client, median (further left is better)")
    axis.set_ylabel("Tokens per second of all clients (higher is better)")
    note = {"fontsize": 9.5, "color": _QUIET, "ha": "right", "va": "bottom"}
    axis.text(0.99, 0.015, "Numbers at the points: clients at once", transform=axis.transAxes, **note)
    _save(pyplot, figure, path, title, subtitle)


def _draw_series(axis: Any, one: Series) -> None:
    latencies, rates, clients = zip(*sorted(one.points, key=lambda point: point[2]), strict=True)
    style = {"linestyle": "--" if one.is_dashed else "-", "linewidth": 2, "marker": "o", "color": one.colour}
    axis.plot(latencies, rates, **style)
    for latency, rate, count in zip(latencies, rates, clients, strict=True):
        place = {"xytext": (0, 7), "textcoords": "offset points", "ha": "center"}
        axis.annotate(str(count), (latency, rate), color=one.colour, fontsize=9, **place)


_TYPE_COLOURS = {"Q4_0": "#0969da", "Q8_0": "#d4570a", "F16": "#8250df"}
_KIND_MARKS = {"dense": "o", "moe": "D"}


def draw_prediction(rows: Sequence[ReportRow], path: Path, summary: Mapping[str, Any]) -> None:
    """Draw predicted over measured speed: one point for each model and context, by type, kind and context."""
    pyplot = _pyplot()
    figure, axis = pyplot.subplots(figsize=(_WIDTH, 7.2))
    figure.subplots_adjust(left=0.085, right=0.97, top=0.86, bottom=0.09)
    axis.set_xscale("log")
    axis.set_yscale("log")
    rates = [row[name] for row in rows for name in ("measured", "learnt")]
    ends = [min(rates) / 1.15, max(rates) * 1.15]
    axis.plot(ends, ends, color=_INK, linewidth=1)
    axis.fill_between(ends, [end * 0.85 for end in ends], [end * 1.15 for end in ends], color=_GRID, zorder=0)
    for type_, colour in _TYPE_COLOURS.items():
        for kind, mark in _KIND_MARKS.items():
            for context, fill in (("empty", colour), ("full", "white")):
                mine = [r for r in rows if (r["type"], r["kind"], r["context"]) == (type_, kind, context)]
                points = [row["measured"] for row in mine], [row["learnt"] for row in mine]
                axis.plot(*points, mark, color=colour, markerfacecolor=fill, markersize=5, linestyle="")
    axis.set_xlim(*ends)
    axis.set_ylim(*ends)
    for side in (axis.xaxis, axis.yaxis):
        side.set_major_formatter(lambda value, _: f"{value:g}")
    axis.set_xlabel("Measured tokens per second")
    axis.set_ylabel("Predicted tokens per second")
    for line, (type_, colour) in enumerate(_TYPE_COLOURS.items()):
        axis.text(0.02, 0.97 - 0.035 * line, type_, color=colour, transform=axis.transAxes, va="top", weight="bold")
    note = {"fontsize": 9.5, "color": _QUIET, "ha": "right", "va": "bottom"}
    told = "Circles: dense, diamonds: experts. Filled: empty context, hollow: 600 tokens. Grey band: 15 % off"
    axis.text(0.99, 0.015, told, transform=axis.transAxes, **note)
    title = f"The median prediction is {100 * summary['median_error']:.1f} % off"
    subtitle = "Each model predicted without runs of any model of its size; deep Ember, 10 sizes, 3 types, two kinds"
    _save(pyplot, figure, path, title, subtitle)
