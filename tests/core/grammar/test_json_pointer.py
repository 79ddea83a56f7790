"""References within a JSON document."""

from __future__ import annotations

import pytest

from core.sampling.grammar.endless_schema import why_endless_value
from core.sampling.grammar.json_pointer import child, escaped, keys, unescaped
from core.sampling.grammar.nesting import schema_levels

# Digits to str.isdigit, and too many of them for int.
NO_NUMBERS = ("²", "1" * 5_000)


def test_a_pointer_is_read_as_it_was_written() -> None:
    assert keys("#") == []
    assert keys("#/$defs/a~1b/c~0d/%C3%A4") == ["$defs", "a/b", "c~d", "ä"]
    assert unescaped(escaped("~1/~0")) == "~1/~0"


def test_a_key_leads_into_objects_and_lists() -> None:
    assert child({"a": [1, 2]}, "a") == [1, 2]
    assert child([1, 2], "1") == 2


@pytest.mark.parametrize("part", [{}, [1], 3, None])
@pytest.mark.parametrize("key", ["a", "7", "-1", *NO_NUMBERS])
def test_what_is_not_there_is_said(part: object, key: str) -> None:
    with pytest.raises(LookupError):
        child(part, key)


@pytest.mark.parametrize("key", NO_NUMBERS)
def test_a_schema_may_refer_to_what_is_no_place_in_a_list(key: str) -> None:
    schema = {"allOf": [{"$ref": f"#/allOf/{key}"}]}
    assert why_endless_value(schema) is None
    assert schema_levels(schema) > 0
