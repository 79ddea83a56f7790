"""Blocks of a growing text: cutting changes nothing that can be seen."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ui.chat.markdown.code_spans import MAX_CODE, code_spans
from ui.chat.markdown.markdown import MAX_BLOCK, MAX_UNCUT, Markdown, certain_code, cut_offset, is_open, n_certain

MARKDOWN = Markdown()
BLOCKS = (
    "# Head\n\n",
    "Some *words*.\n\n",
    "- a\n- b\n\n",
    "```py\nx = 1\n```\n\n",
    "> quote\n\n",
    "|a|\n|-|\n|1|\n\n",
    "---\n\n",
)


@given(st.lists(st.sampled_from(BLOCKS), max_size=8))
def test_the_pieces_make_up_the_text(blocks: list[str]) -> None:
    text = "".join(blocks)
    assert sum(piece.length for piece in MARKDOWN.pieces(text)) == (len(text) if blocks else 0)


@given(st.text(alphabet="ab `*#->|\n1.[]()\\_~", max_size=80))
def test_no_text_breaks_the_parser(text: str) -> None:
    pieces = MARKDOWN.pieces(text)
    assert sum(piece.length for piece in pieces) == (len(text) if pieces else 0)


@pytest.mark.parametrize(
    "text",
    [
        "word " * 2_000,
        "x" * 9_000,
        "- item\n" * 2_000,
        "> quote\n" * 2_000,
        "| a | b |\n|---|---|\n" + "| 1 | 2 |\n" * 900,
    ],
    ids=["paragraph", "word", "list", "quote", "table"],
)
def test_a_long_block_is_cut_into_short_pieces(text: str) -> None:
    pieces = MARKDOWN.pieces(text)
    assert sum(piece.length for piece in pieces) == len(text)
    assert max(piece.length for piece in pieces) <= MAX_BLOCK
    assert len({piece.tokens[0].type for piece in pieces}) == 1


def test_a_long_paragraph_is_cut_behind_a_sentence() -> None:
    text = "He vowed to do it again. " * 200
    begins = [piece.tokens[1].content[:3] for piece in MARKDOWN.pieces(text)]
    assert set(begins) == {"He "}
    assert len(begins) < 8


def test_a_cut_is_in_the_same_place_while_the_text_grows() -> None:
    text = "- item with words\n" * 500
    whole = [piece.length for piece in MARKDOWN.pieces(text)]
    closed: list[int] = []
    shown, head = 0, ""
    for end in range(29, len(text) + 29, 29):
        for piece in MARKDOWN.pieces(text[shown:end], head)[:-1]:
            closed.append(piece.length)
            shown, head = shown + piece.length, piece.head
    assert closed == whole[: len(closed)]
    assert len(closed) >= len(whole) - 1


def test_a_cut_table_stays_a_table_and_code_and_short_lists_are_never_cut() -> None:
    pieces = MARKDOWN.pieces("| a | b |\n|---|---|\n" + "| 1 | 2 |\n" * 900)
    assert pieces[0].head == "| a | b |\n|---|---|\n"
    assert len(pieces) > 3
    head = "| a column " * 30 + "|\n" + "|---" * 30 + "|\n"
    for row in ("| 1 " * 30 + "|\n", "| many words " * 90 + "|\n"):
        wide = MARKDOWN.pieces(head + row * 90)
        assert all(piece.length >= len(row) for piece in wide), "none has the head alone"
        assert all(len(piece.head) + piece.length <= 4 * len(head) + len(row) for piece in wide)
    assert len(MARKDOWN.pieces("```\n" + "line\n" * 5_000)) == 1
    indented = "- one\n" + "  more\n" * 400
    assert len(indented) < MAX_UNCUT
    assert len(MARKDOWN.pieces(indented)) == 1
    assert cut_offset("short", "paragraph_open") is None


def test_a_block_is_certain_once_the_next_has_a_whole_line() -> None:
    for text, expected in (("1. a\n\n2", 0), ("1. a\n\nb\n", 1), ("a\n\nb\n\nc", 1), ("one", 0), ("", 0)):
        assert n_certain(MARKDOWN.pieces(text), text) == expected
    text = "word " * 900
    assert n_certain(MARKDOWN.pieces(text), text) == len(MARKDOWN.pieces(text)) - 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [("```py", True), ("```py\n", True), ("```\nx", True), ("```\nx\n``", True), ("```\nx\n```", False),
     ("```\nx\n```\n", False), ("~~~\nx\n```\n", True), ("```\n```", True), ("````\nx\n```\n", True)],
)  # fmt: skip
def test_a_fence_is_open_until_it_is_closed(text: str, expected: bool) -> None:
    assert is_open(MARKDOWN.pieces(text)[-1], text) is expected
    # What may become the closing fence is not code yet.
    assert certain_code(MARKDOWN.pieces("```\nx = 1\n``")[0].tokens[0]) == "x = 1\n"
    assert certain_code(MARKDOWN.pieces("```\nx = 1")[0].tokens[0]) == "x = 1"


@pytest.mark.parametrize("language", ["python", "json", "html", "c++", "bash", "diff", "rust"])
def test_spans_lie_inside_the_code(language: str) -> None:
    code = 'def f(x):\n    """🦊 doc"""\n    return {"a": [1, null]} # <b class="c">é</b>\n\n'
    length = len(code.encode("utf-16-le")) // 2
    spans = code_spans(code, language)
    assert all(span.start >= 0 and span.start + span.length <= length for span in spans)
    assert [span.start for span in spans] == sorted(span.start for span in spans)
    plain = (("x = 1", "no such language"), ("x = 1", ""), ("x" * (MAX_CODE + 1), "python"))
    assert [code_spans(*one) for one in plain] == [[]] * 3
