from __future__ import annotations

import pytest

from app.cli.chat.prompt import checked, decoded, join_prompt
from core.values.errors import BadRequest


def never() -> str:
    raise AssertionError("standard input was read")


def test_words_are_joined_and_standard_input_is_left_alone() -> None:
    assert join_prompt(["Tell", "me a story"], never) == "Tell me a story"


def test_without_words_standard_input_is_the_prompt() -> None:
    assert join_prompt([], lambda: "hi\nthere") == "hi\nthere"


def test_a_dash_puts_standard_input_below_the_words() -> None:
    assert join_prompt(["Sum up:", "-"], lambda: "a text") == "Sum up:\n\na text"
    assert join_prompt(["-"], lambda: "a text") == "a text"


@pytest.mark.parametrize(("words", "piped"), [([], ""), ([""], "x"), (["-"], " \n"), ([" ", "-"], "")])
def test_an_empty_prompt_is_refused(words: list[str], piped: str) -> None:
    with pytest.raises(BadRequest, match="empty"):
        join_prompt(words, lambda: piped)


def test_bytes_that_are_not_utf8_are_named() -> None:
    assert decoded("\ufeffGrüße\n".encode()) == "Grüße"
    with pytest.raises(BadRequest, match="0xff at offset 2"):
        decoded(b"ab\xff")
    with pytest.raises(BadRequest, match="character 3"):
        checked("ab\udcff")
