"""What tests of partners share."""

from __future__ import annotations

import pytest

from models.model_facts import ModelFacts, read_model
from tests.support import gguf_factory
from tests.support.gguf_factory import Recipe


@pytest.fixture(scope="module")
def deep() -> ModelFacts:
    """A model that costs enough for partners to pay."""
    return read_model(gguf_factory.cached(Recipe(n_layers=30)))
