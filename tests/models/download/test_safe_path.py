"""Names from the Hub never lead out of the models' folder."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.files.errors import UnsafeName
from models.files.safe_path import partial, safe_parts, target

BAD = [
    "../x.gguf", "a/../../x.gguf", "/etc/x.gguf", "a//x.gguf", "", ".", "..", "a/./x.gguf", "..\\x.gguf",
    "C:\\x.gguf", "c:x.gguf", "a\0b.gguf", "a\nb.gguf", ".hidden/x.gguf", "~root/x.gguf", "x.gguf ", "x.gguf.",
    "con.gguf", "a/NUL", "x" * 300 + ".gguf", "ü" * 130 + ".gguf", "a/" * 20 + "x.gguf", "evil\u202efugg.exe",
    "a\ud800.gguf",
]  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_names_that_are_refused(name, tmp_path):
    with pytest.raises(UnsafeName, match="choose another repository"):
        target(tmp_path, "acme/repo", name)


@pytest.mark.parametrize(
    "name", ["x.gguf", "Q4/x y.gguf", "模型-Q4.gguf", "модель ё.gguf", "🦊.gguf", "a.b-c_d+e(1).gguf"]
)
def test_names_that_are_fine(name, tmp_path):
    assert target(tmp_path, "acme/repo", name) == tmp_path / "acme" / "repo" / name
    assert partial(tmp_path, "acme/repo", name, ".part").parent.is_relative_to(tmp_path / ".partial")


def test_links_that_lead_out_are_refused(tmp_path):
    outside, folder = tmp_path / "outside", tmp_path / "models"
    outside.mkdir()
    (folder / "acme").mkdir(parents=True)
    (folder / "acme" / "repo").symlink_to(outside, target_is_directory=True)
    with pytest.raises(UnsafeName, match="through a link"):
        target(folder, "acme/repo", "x.gguf")
    (tmp_path / "linked").symlink_to(folder, target_is_directory=True)
    assert target(tmp_path / "linked", "acme/other", "x.gguf")


@settings(max_examples=100, deadline=None, derandomize=True, database=None)
@given(st.text(alphabet="ab./\\ ~:\0ü", max_size=12))
def test_whatever_the_name_it_stays_inside(tmp_path_factory, name):
    folder = tmp_path_factory.getbasetemp()
    try:
        parts = safe_parts(name)
    except UnsafeName:
        return
    assert folder.joinpath(*parts).resolve().is_relative_to(folder.resolve())
    assert folder.joinpath(*parts) != folder
