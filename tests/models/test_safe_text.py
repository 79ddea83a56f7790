"""A name cannot hide, turn around or move what stands beside it."""

from __future__ import annotations

import pytest

from models.formatting.safe_text import lines, one_line

R = "\N{REPLACEMENT CHARACTER}"


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("Qwen3-8B", "Qwen3-8B"),
        ("mein modell 模型 नमस्ते שלום مدل", "mein modell 模型 नमस्ते שלום مدل"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("a\nb\tc\r", "a b c "),
        ("fox\u202effug.exe", f"fox{R}ffug.exe"),
        ("\u2067a\u2069", f"{R}a{R}"),
        ("\x1b[2Jgone\x9b1A", f"{R}[2Jgone{R}1A"),
        ("a\u2028b\u200bc\ufeff", f"a{R}b{R}c{R}"),
        ("\udce9t\udce9", f"{R}t{R}"),
        ("", ""),
    ],
)
def test_what_controls_is_seen_and_does_nothing(name, shown):
    assert one_line(name) == shown


def test_lines_stay_lines():
    assert lines("a\nb\u202ec\n") == f"a\nb{R}c\n"
