"""From what is typed to a model."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from app.model_choice import UnknownModel, find_model
from app.paths import models_folder
from tests.support.gguf_factory import EMBER_DRAFT


def test_who_mistypes_a_name_is_told_the_likeliest_of_many(home: Path) -> None:
    with pytest.raises(UnknownModel, match=r"'embr'. Models: ember-q8_0, ember-draft-q8_0\. A path"):
        find_model("embr")
    folder = models_folder()
    folder.mkdir(parents=True)
    bear = shutil.copyfile(EMBER_DRAFT, folder / "Bear-7B-Q4_0.gguf")
    for number in range(100):
        os.link(bear, folder / f"Fox-{number:02}B-Q8_0.gguf")
    with pytest.raises(UnknownModel) as caught:
        find_model("bear-7b")
    assert "Models: Bear-7B-Q4_0" in str(caught.value)
    assert "more (`./slipstream models list`)" in str(caught.value)
    with pytest.raises(UnknownModel, match=r"Models: ember-q8_0, .* and 91 more"):
        find_model("????????????????")
