"""A model is known again wherever it lies, and told from one that only looks like it."""

from __future__ import annotations

import shutil

import pytest

from models.catalog.fingerprint import identity
from tools.model_factory.gguf_factory import EMBER, EMBER_DRAFT


def test_it_is_of_the_content_alone(tmp_path):
    copy = tmp_path / "新しい 名前.gguf"
    shutil.copyfile(EMBER_DRAFT, copy)
    assert identity([copy]) == identity([EMBER_DRAFT]) != identity([EMBER])


@pytest.mark.parametrize("place", [0.0001, 0.2499, 0.4999, 0.7499, 0.9999])
def test_other_weights_make_another_model(tmp_path, place):
    content = bytearray(EMBER.read_bytes())
    content[int(len(content) * place)] ^= 255
    other = tmp_path / "other.gguf"
    other.write_bytes(content)
    assert identity([other]) != identity([EMBER])


def test_every_part_counts(tmp_path):
    assert identity([EMBER, EMBER_DRAFT]) != identity([EMBER])
    with pytest.raises(OSError, match="No such file"):
        identity([EMBER, tmp_path / "none.gguf"])


def test_small_files_have_one_too(tmp_path):
    (tmp_path / "a").write_bytes(b"")
    (tmp_path / "b").write_bytes(b"x")
    assert identity([tmp_path / "a"]) != identity([tmp_path / "b"])
