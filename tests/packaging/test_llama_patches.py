"""llama.cpp's sources are patched as a whole, or left as they are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from first_start import llama_patches
from first_start.llama_patches import PatchError, apply_patches, patch_files, read_patch

TWO_FILES = """Say what it is for

Gain: none

--- a/one.c
+++ b/one.c
@@ -2,3 +2,4 @@
 b
-c
+C
+C
 d
--- a/deep/two.c
+++ b/deep/two.c
@@ -1,2 +1,2 @@
-x
+X
 y
"""
SECOND = """Change it again

--- a/one.c
+++ b/one.c
@@ -4,2 +4,2 @@
 C
-d
+D
"""


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    patches = tmp_path / "patches"
    patches.mkdir()
    (patches / "0001-first.patch").write_text(TWO_FILES)
    (patches / "0002-second.patch").write_text(SECOND)
    (patches / "own.h").write_text("// added\n")
    monkeypatch.setattr(llama_patches, "PATCHES", patches)
    folder = tmp_path / "llama.cpp"
    (folder / "deep").mkdir(parents=True)
    (folder / "ggml" / "src" / "ggml-cpu").mkdir(parents=True)
    (folder / "one.c").write_text("a\nb\nc\nd\n\f\ne\n")
    (folder / "deep" / "two.c").write_text("x\ny\n")
    return folder


def test_patches_are_applied_in_order_and_once(sources: Path) -> None:
    assert apply_patches(sources)
    expected = "a\nb\nC\nC\nD\n\f\ne\n"
    assert (sources / "one.c").read_text() == expected
    assert (sources / "deep" / "two.c").read_text() == "X\ny\n"
    assert (sources / "ggml" / "src" / "ggml-cpu" / "own.h").read_text() == "// added\n"
    assert not apply_patches(sources)
    assert (sources / "one.c").read_text() == expected


def test_lines_that_have_moved_are_found(sources: Path) -> None:
    (sources / "one.c").write_text("new\nnew\na\nb\nc\nd\n")
    apply_patches(sources)
    assert (sources / "one.c").read_text() == "new\nnew\na\nb\nC\nC\nD\n"


@pytest.mark.parametrize("content", ["a\nb\nother\nd\n", "", None])
def test_where_one_file_is_another_nothing_is_changed(sources: Path, content: str | None) -> None:
    two = sources / "deep" / "two.c"
    if content is None:
        two.unlink()
    else:
        two.write_text(content)
    with pytest.raises(PatchError, match=r"two\.c"):
        apply_patches(sources)
    assert (sources / "one.c").read_text() == "a\nb\nc\nd\n\f\ne\n"
    assert not list((sources / "ggml" / "src" / "ggml-cpu").iterdir())
    program = str(Path(llama_patches.__file__))
    said = subprocess.run([sys.executable, program, str(sources)], capture_output=True, text=True, check=False)
    assert said.returncode == 1
    assert said.stdout.startswith("llama.cpp's sources stay as they are: ")


def test_each_patch_says_why_what_it_gains_where_it_was_tried_and_how_to_drop_it() -> None:
    files = patch_files()
    assert len(files) == 4
    for file in files:
        text = file.read_text()
        message = text.partition("\n--- a/")[0]
        assert all(f"\n{word}:" in message for word in ("Gain", "Where", "Tried", "Drop")), file.name
        assert all(hunks for _, hunks in read_patch(text)), file.name
        added = text.count("\n+") - text.count("\n+++ ")
        removed = text.count("\n-") - text.count("\n--- ")
        parts = [hunk for _, hunks in read_patch(text) for hunk in hunks]
        assert sum(len(hunk.new) - len(hunk.old) for hunk in parts) == added - removed, file.name
