"""Turns the fields of a body that bind the form of a reply into one constraint."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import model_validator

from app.server.http.body import Body
from core.values.errors import BadRequest
from core.values.request import ANY_OBJECT, Constraint
from models.formatting.sentence import Sentence

JsonSchema = dict[str, Any] | bool
ANY_ARGUMENTS: JsonSchema = {"type": "object"}
# As at OpenAI: a function that lists no parameters takes none.
NO_ARGUMENTS: JsonSchema = {"type": "object", "properties": {}, "additionalProperties": False}
# llguidance's options for the arguments of a tool that is not strict: what of their schema it does not know is passed
# over. Tools come from MCP servers by the dozen, and one of them would make all calls impossible.
LOOSE: dict[str, JsonSchema] = {"lenient": True, "coerce_one_of": True}
# A grammar in Lark may have the sign in a text.
_GBNF_RULE = re.compile(r"^[ \t]*[\w-]+[ \t]*::=", re.MULTILINE)


class _SchemaBody(Body):
    """A body with the field ``schema``, which would hide a method of pydantic's."""

    schema_: JsonSchema | None = None

    @model_validator(mode="before")
    @classmethod
    def _rename(cls, value: Any) -> Any:
        if isinstance(value, dict) and "schema" in value:
            return {("schema_" if key == "schema" else key): entry for key, entry in value.items()}
        return value


class NamedSchema(_SchemaBody):
    """A JSON schema as ``response_format`` names it.

    ``strict`` changes nothing: the schema is always followed. LM Studio's examples write it as a text.
    """

    name: str | None = None
    description: str | None = None
    strict: bool | str | None = None


class ResponseFormat(_SchemaBody):
    """What the answer must look like, in OpenAI's words; llama-server's ``schema`` beside the type is taken too."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: NamedSchema | None = None

    @model_validator(mode="after")
    def _schema_fits_type(self) -> ResponseFormat:
        schema = self.json_schema.schema_ if self.json_schema is not None else self.schema_
        if self.type == "json_schema" and schema is None:
            raise ValueError('response_format json_schema needs {"json_schema": {"name": …, "schema": …}}')
        if self.type != "json_schema" and self.json_schema is not None:
            raise ValueError(f"response_format {self.type} takes no json_schema: the type must be json_schema")
        if self.type == "text" and self.schema_ is not None:
            raise ValueError("response_format text takes no schema")
        return self

    @property
    def constraint(self) -> Constraint | None:
        """The constraint, None for free text."""
        if self.type == "text":
            return None
        schema = self.json_schema.schema_ if self.json_schema is not None else self.schema_
        text = ANY_OBJECT if schema is None else written(schema, "response_format")
        return Constraint("json_schema", text, field="response_format")


def written(schema: JsonSchema, field: str) -> str:
    """Return a schema as text, without what is so for every object; raises BadRequest."""
    try:
        text = json.dumps(schema, ensure_ascii=False)
        return without(text, _NAMES, _has_texts_as_names) if _NAMES in text else text
    except (RecursionError, ValueError) as error:
        raise BadRequest(Sentence("The JSON schema is nested too deeply."), param=field) from error


def without(text: str, key: str, is_left_out: Callable[[dict[str, Any]], bool]) -> str:
    """Return a schema as text without ``key`` in those of its parts for which ``is_left_out`` is True."""

    def kept(part: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in part.items() if name != key or not is_left_out(part)}

    return json.dumps(json.loads(text, object_hook=kept), ensure_ascii=False)


_NAMES = "propertyNames"


def _has_texts_as_names(part: dict[str, Any]) -> bool:
    """Return whether names are texts, which zod says of each record and llguidance does not know."""
    return part.get("type") == "object" and part.get(_NAMES) == {"type": "string"}


def grammar_of(text: str) -> Constraint:
    """Return the constraint of the field ``grammar``: GBNF as llama.cpp's, else llguidance's Lark."""
    return Constraint("gbnf" if _GBNF_RULE.search(text) else "lark", text, field="grammar")


@dataclass(frozen=True, slots=True)
class ToolBinding:
    """Which calls a reply may or must have: name and schema of the arguments of each tool.

    With ``must_call`` the answer is calls and nothing else; without it, text may stand before and between them. Where
    there is an ``answer``, of the kind json_schema, a reply is either calls or JSON that follows it.
    """

    tools: tuple[tuple[str, JsonSchema], ...]
    must_call: bool
    at_most_one: bool
    answer: Constraint | None = None
