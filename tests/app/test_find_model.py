"""From what is typed to a model."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from app.environment.paths import models_folder, usage_file
from app.library.find_model import UnknownModel, catalog, find_model, last_chosen
from app.settings.model_settings_store import UsageStore
from tests.support.pair_files import decoder_for_vectors
from tools.model_factory.gguf_factory import EMBER, EMBER_DRAFT


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
    with pytest.raises(UnknownModel, match=r"Models: Bear-7B-Q4_0, .* and 91 more"):
        find_model("????????????????")


def test_a_title_that_several_models_have_is_told_with_their_names(home: Path) -> None:
    assert find_model("ember").name == "ember-q8_0"
    models_folder().mkdir(parents=True)
    shutil.copyfile(EMBER, models_folder() / "ember-copy.gguf")
    with pytest.raises(UnknownModel, match="'ember' is the title of ember-copy, ember-q8_0: name one of them"):
        find_model("ember")


def test_what_is_typed_and_leads_to_no_model_is_told_apart(home: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("")
    for name, reason in (
        (str(tmp_path / "none.gguf"), "There is no file .*none.gguf. Models: ember-q8_0"),
        ("none.gguf", r"There is no file none.gguf. Models: .*-q8_0\.$"),
        ("./none", "There is no file ./none. Models"),
        ("~/none", "There is no file ~/none. Models"),
        (str(tmp_path), "is a folder: name a .gguf file in it. Models"),
        (str(tmp_path / "notes.txt"), "is no .gguf file. Models"),
        (f"/{'a' * 300}.gguf", "cannot be read: File name too long. Models"),
        ("acme/fox-GGUF:Q4_0", r"called 'acme/fox-GGUF:Q4_0'\. .* `./slipstream models pull acme/fox-GGUF:Q4_0` down"),
        ("fox\0.gguf", "There is no file"),
    ):
        with pytest.raises(UnknownModel, match=reason):
            find_model(name)


def test_the_model_used_last_is_the_newest_that_is_there(home: Path) -> None:
    assert last_chosen(catalog()) is None
    models_folder().mkdir(parents=True)
    vectors = decoder_for_vectors(models_folder() / "vectors.gguf")
    fox = Path(shutil.copyfile(EMBER_DRAFT, models_folder() / "fox.gguf"))
    bear = Path(shutil.copyfile(EMBER, models_folder() / "bear.gguf"))
    for seconds, model in ((2.0, fox), (1.0, bear), (3.0, vectors), (4.0, EMBER_DRAFT)):
        UsageStore(usage_file(), lambda now=seconds: now).note(model)
    found = last_chosen(catalog())
    assert found is not None
    assert found.name == "fox", "the newest that writes and is no toy, which a race may have used"
    fox.unlink()
    bear.unlink()
    assert last_chosen(catalog()) is None


def test_the_model_that_was_chosen_last_goes_before_those_that_were_used_since(home: Path) -> None:
    for seconds, what, model in (
        (1.0, "last_chosen", EMBER),
        (2.0, "last_chosen", EMBER_DRAFT),
        (3.0, "last_used", EMBER),
    ):
        UsageStore(usage_file(), lambda now=seconds: now).note(model, what)
    found = last_chosen(catalog())
    assert found is not None
    assert found.name == "ember-q8_0", "the other one has never run"
    UsageStore(usage_file(), lambda: 1.5).note(EMBER_DRAFT)
    found = last_chosen(catalog())
    assert found is not None
    assert found.name == "ember-draft-q8_0"
