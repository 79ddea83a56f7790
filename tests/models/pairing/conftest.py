"""What tests of partners share."""

from __future__ import annotations

import pytest

from models.facts.model_facts import ModelFacts, read_model
from tools.model_factory import gguf_factory
from tools.model_factory.gguf_factory import Recipe


@pytest.fixture(scope="module")
def deep() -> ModelFacts:
    """A model that costs enough for partners to pay."""
    return read_model(gguf_factory.cached(Recipe(n_layers=30)))
