"""Which projector in a model's folder is the model's."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from models.facts.projector import projector_beside
from tools.model_factory.gguf_factory import EMBER
from tools.model_factory.projector_factory import projector


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ([], None),
        (["mmproj-F16.gguf"], "mmproj-F16.gguf"),
        (["mmproj-model-f16.gguf"], "mmproj-model-f16.gguf"),
        (["mmproj-Ember-Q8_0.gguf", "mmproj-Ember-F16.gguf"], "mmproj-Ember-F16.gguf"),
        (["ember.mmproj-BF16.gguf", "ember.mmproj-F32.gguf"], "ember.mmproj-BF16.gguf"),
        (["mmproj-Gemma-3-F16.gguf"], None),
        (["projector.gguf"], None),
    ],
)
def test_belongs_by_its_name(tmp_path: Path, files: list[str], found: str | None) -> None:
    model = tmp_path / "Ember-Q4_K_M.gguf"
    shutil.copy(EMBER, model)
    for name in files:
        shutil.copy(projector("gemma3"), tmp_path / name)
    path = projector_beside(model)
    assert (path.name if path is not None else None) == found


@pytest.mark.parametrize("source", [EMBER, Path(__file__)], ids=["model", "text"])
def test_another_file_by_that_name_is_none(tmp_path: Path, source: Path) -> None:
    model = tmp_path / "ember.gguf"
    shutil.copy(EMBER, model)
    shutil.copy(source, tmp_path / "mmproj-F16.gguf")
    assert projector_beside(model) is None
