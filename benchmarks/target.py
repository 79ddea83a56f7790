"""The model that a bench runs: deep Ember, Ember in the shape of a large model for a GPU, or any file."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from models.facts.model_facts import read_model
from models.gguf.errors import GgufError
from tools.model_factory.gguf_factory import EMBER, EMBER_DRAFT, Recipe, cached
from tools.model_factory.wide_factory import SHAPES, wide_draft, wide_ember

_LAYERS = 60


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add ``--layers``, ``--shape``, ``--target`` and ``--draft``."""
    parser.add_argument(
        "--layers", type=int, help=f"layers of the target, silent ones after its own (Ember: {_LAYERS})"
    )
    other = parser.add_mutually_exclusive_group()
    other.add_argument("--shape", choices=tuple(SHAPES), help="a target of this size instead")
    other.add_argument("--target", type=_model_file, metavar="FILE", help="the target's file, for another model")
    parser.add_argument("--draft", type=_model_file, metavar="FILE", help="that of a draft model for it")


def _model_file(path: str) -> Path:
    try:
        read_model(Path(path))
    except GgufError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return Path(path)


def settings_of(options: argparse.Namespace) -> dict[str, Any]:
    """Return the settings that say which target it was."""
    files = {name: path.name for name in ("target", "draft") if (path := getattr(options, name)) is not None}
    return {"layers": options.layers if options.target else options.layers or _LAYERS, "shape": options.shape, **files}


def target_file(options: argparse.Namespace) -> Path:
    """Return the file of the target, which is made on first use."""
    if options.shape:
        return wide_ember(options.shape)
    if options.target and not options.layers:
        return Path(options.target)
    return cached(Recipe(n_layers=options.layers or _LAYERS, source=source_file(options)))


def source_file(options: argparse.Namespace) -> Path:
    """Return the file of the model that the target was made from: as a draft it is always right."""
    return options.target or EMBER


def draft_file(options: argparse.Namespace) -> Path:
    """Return the file of a draft model for the target, which is made on first use."""
    if options.draft or options.target:
        return Path(options.draft or options.target)
    return wide_draft() if options.shape else EMBER_DRAFT


def target_name(options: argparse.Namespace) -> str:
    """Return what a plot calls the target."""
    if options.shape:
        return f"Ember as large as {options.shape.upper()}"
    name = options.target.stem if options.target else "deep Ember"
    return f"{name}, {options.layers or _LAYERS} layers" if options.layers or not options.target else name
