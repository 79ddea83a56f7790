"""The model that a bench runs: deep Ember, or on a GPU, where that is tiny, Ember in the shape of a large model."""

from __future__ import annotations

import argparse
from pathlib import Path

from tools.model_factory.gguf_factory import EMBER_DRAFT, Recipe, cached
from tools.model_factory.wide_factory import SHAPES, wide_draft, wide_ember


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add ``--layers`` and ``--shape``."""
    parser.add_argument("--layers", type=int, default=60, help="layers of deep Ember, the target")
    parser.add_argument("--shape", choices=tuple(SHAPES), help="a target of this size instead")


def target_file(options: argparse.Namespace) -> Path:
    """Return the file of the target, which is made on first use."""
    return wide_ember(options.shape) if options.shape else cached(Recipe(n_layers=options.layers))


def draft_file(options: argparse.Namespace) -> Path:
    """Return the file of a draft model for the target, which is made on first use."""
    return wide_draft() if options.shape else EMBER_DRAFT


def target_name(options: argparse.Namespace) -> str:
    """Return what a plot calls the target."""
    return f"Ember as large as {options.shape.upper()}" if options.shape else f"deep Ember, {options.layers} layers"
