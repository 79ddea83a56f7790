"""Reads the header of a model file for the engine."""

from __future__ import annotations

from pathlib import Path

from core.values.errors import LoadFailed
from models.facts.model_facts import ModelFacts, read_model
from models.gguf.errors import GgufError


def read_facts(path: str) -> ModelFacts:
    """Read the header of a model that can be used here; raises LoadFailed."""
    try:
        facts = read_model(Path(path))
    except GgufError as error:
        raise LoadFailed(str(error)) from error
    if facts.problem:
        raise LoadFailed(facts.problem)
    return facts
