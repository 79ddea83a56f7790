"""A library of its own with a deep Ember, for which the bundled models can draft."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tools.model_factory import gguf_factory
from tools.model_factory.gguf_factory import Recipe


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """All folders of the app below a new one, without a network."""
    monkeypatch.setenv("SLIPSTREAM_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    return tmp_path / "home"


@pytest.fixture
def library(home: Path) -> Path:
    """The models folder, with deep.gguf in it."""
    folder = home / "data" / "models"
    folder.mkdir(parents=True)
    shutil.copyfile(gguf_factory.cached(Recipe(n_layers=30)), folder / "deep.gguf")
    return folder
