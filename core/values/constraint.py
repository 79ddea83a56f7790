"""The constraint on a reply's form, as given in the request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from core.values.errors import BadRequest

ConstraintKind = Literal["json_schema", "regex", "lark", "gbnf"]
MAX_CHARACTERS = 1 << 17
ANY_OBJECT = '{"type": "object"}'


@dataclass(frozen=True, slots=True)
class Constraint:
    """A grammar by its source.

    ``kind`` is json_schema (the text is a JSON document), regex (the whole reply matches it), lark (llguidance's
    dialect) or gbnf (llama.cpp's). ``field`` is the request field that it came from, for error messages.
    """

    kind: ConstraintKind
    text: str
    field: str = "grammar"

    def __post_init__(self) -> None:
        if self.kind not in get_args(ConstraintKind):
            raise BadRequest(f"A grammar must be one of {', '.join(get_args(ConstraintKind))}, not {self.kind!r}.")
        # A regex of white space is valid.
        if not (self.text if self.kind == "regex" else self.text.strip()):
            raise BadRequest(f"The {self.name} is empty: leave the field out for a free reply.", param=self.field)
        if len(self.text) > MAX_CHARACTERS:
            raise BadRequest(
                f"The {self.name} has {len(self.text):,} characters, at most {MAX_CHARACTERS:,} are taken.",
                param=self.field,
            )

    @property
    def name(self) -> str:
        """Its name in error messages."""
        if self.kind == "lark" and not self.is_as_sent:
            return f"form of the {self.field}"
        return {"json_schema": "JSON schema", "regex": "regular expression"}.get(self.kind, "grammar")

    @property
    def is_as_sent(self) -> bool:
        """True if the text is as the client sent it."""
        return self.field != "tools"
