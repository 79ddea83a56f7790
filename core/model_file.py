"""The file of a model, as the engine takes it."""

from __future__ import annotations

from pathlib import Path

from core.errors import LoadFailed
from models.gguf_errors import GgufError
from models.model_facts import ModelFacts, read_model


def read_facts(path: str) -> ModelFacts:
    """Read the header of a model that can be used here; raises LoadFailed."""
    try:
        facts = read_model(Path(path))
    except GgufError as error:
        raise LoadFailed(str(error)) from error
    if facts.problem:
        raise LoadFailed(facts.problem)
    return facts
