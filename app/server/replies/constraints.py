"""Turns the fields of a body that bind the form of a reply into one constraint."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field, model_validator

from app.server.http.body import WholeNumbers
from core.values.errors import BadRequest
from core.values.request import ANY_OBJECT, MAX_CHARACTERS, Constraint
from models.formatting.sentence import Sentence

JsonSchema = dict[str, Any] | bool
ANY_ARGUMENTS: JsonSchema = {"type": "object"}
# As at OpenAI: a function that lists no parameters takes none.
NO_ARGUMENTS: JsonSchema = {"type": "object", "properties": {}, "additionalProperties": False}
# llguidance's options for a schema that is not strict: what it does not know is passed over, as llama-server does. The
# tools of MCP servers come by the dozen, and one of them would make all calls impossible.
LOOSE: dict[str, JsonSchema] = {"lenient": True, "coerce_one_of": True}
_OPTIONS = "x-guidance"
# Keywords that say what an object has; keywords that hold schemas by name, any name; and keywords that hold values that
# are no schemas.
_LISTING = (
    "properties", "allOf", "anyOf", "oneOf", "$ref", "if", "dependencies", "dependentSchemas", "unevaluatedProperties",
)  # fmt: skip
_BY_NAME = ("properties", "patternProperties", "dependencies", "dependentSchemas", "definitions", "$defs")
_VALUES = ("const", "enum", "default", "examples")
_MOST_SHOWN = 60  # characters of a pattern in an error
# A grammar in Lark may have the sign in a text.
_GBNF_RULE = re.compile(r"^[ \t]*[\w-]+[ \t]*::=", re.MULTILINE)


class _SchemaBody(WholeNumbers):
    """A body with the field ``schema``, which would hide a method of pydantic's."""

    schema_: JsonSchema | None = Field(None, validation_alias="schema")


class NamedSchema(_SchemaBody):
    """A JSON schema as ``response_format`` names it.

    It is always followed, as far as that can be done; one that is ``strict`` and cannot be followed whole is refused.
    LM Studio's examples write ``strict`` as a text.
    """

    name: str | None = None
    description: str | None = None
    strict: bool | str | None = None

    @property
    def is_strict(self) -> bool:
        """Whether the whole schema must be followed."""
        return str(self.strict).lower() == "true"


class ResponseFormat(_SchemaBody):
    """What the answer must look like, in OpenAI's words; llama-server's ``schema`` beside the type is taken too."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: NamedSchema | None = None

    @model_validator(mode="before")
    @classmethod
    def _from_tgi(cls, form: Any) -> Any:
        """Take TGI's spelling too: huggingface_hub's client sends every schema as ``value`` of a ``json_object``."""
        if not isinstance(form, dict) or form.get("type") not in ("json", "json_object"):
            return form
        taken = form | {"type": "json_object"}
        if "value" in taken and taken.get("schema") is None:
            taken["schema"] = taken.pop("value")
        return taken

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
        if schema is None:
            return Constraint("json_schema", ANY_OBJECT, field="response_format")
        is_strict = self.json_schema is not None and self.json_schema.is_strict
        text = written(schema if is_strict else loose(schema), "response_format")
        return Constraint("json_schema", text, field="response_format")


def loose(schema: JsonSchema) -> JsonSchema:
    """Return a schema that binds as far as it can be followed, and whose objects have no properties but those listed.

    So it is at llama-server, Ollama and vLLM: small models would make some up. ``additionalProperties`` allows them.
    """
    if not isinstance(schema, dict):
        return schema
    with suppress(RecursionError):  # of one that is nested too deeply, which ``written`` refuses
        if len(json.dumps(schema, ensure_ascii=False)) > MAX_CHARACTERS:
            return schema  # refused for its length, and to go through all of it takes a second
        schema = schema if _is_split(schema) else _closed(schema)
    return schema | {_OPTIONS: LOOSE}


def _is_split(part: Any, *, is_schema: bool = True) -> bool:
    """Return whether what an object has may be listed in several places: then none of them is the whole."""
    if isinstance(part, list):
        return any(map(_is_split, part))
    if not isinstance(part, dict):
        return False
    if not is_schema:
        return any(map(_is_split, part.values()))
    several = part.get("allOf")
    return (
        sum(name in part for name in _LISTING) > 1
        or (isinstance(several, list) and len(several) > 1)
        or any(_is_split(value, is_schema=name not in _BY_NAME) for name, value in part.items())
    )


def _closed(part: Any, *, is_schema: bool = True) -> Any:
    if isinstance(part, list):
        return [_closed(entry) for entry in part]
    if not isinstance(part, dict):
        return part
    if not is_schema:
        return {name: _closed(value) for name, value in part.items()}
    found = {
        name: value if name in _VALUES else _closed(value, is_schema=name not in _BY_NAME)
        for name, value in part.items()
    }
    kind, properties, required = (found.get(name) for name in ("type", "properties", "required"))
    is_object = kind == "object" or (isinstance(kind, list) and "object" in kind)
    if not is_object or not isinstance(properties, dict) or "minProperties" in found:
        return found
    names = list(properties)  # what is required may be anything, also what no dict can look up
    is_whole = required is None or (isinstance(required, list) and all(name in names for name in required))
    return {"additionalProperties": False} | found if is_whole else found


def is_loose(schema: JsonSchema) -> bool:
    """Return whether a schema binds only as far as it can be followed."""
    return isinstance(schema, dict) and schema.get(_OPTIONS) == LOOSE


def written(schema: JsonSchema, field: str) -> str:
    """Return a schema as text, as far as it can be followed and without what is so for every object.

    Raises BadRequest, also for a pattern that looks around in a schema that is not loose.
    """
    options = schema.get(_OPTIONS) if isinstance(schema, dict) else None
    passes_over = isinstance(options, dict) and options.get("lenient") is True

    def followed(part: dict[str, Any]) -> dict[str, Any]:
        if part.get("type") == "object" and part.get("propertyNames") == {"type": "string"}:  # as zod says of records
            del part["propertyNames"]
        pattern = part.get("pattern")
        if isinstance(pattern, str) and (plain := without_looks(pattern)) != pattern:
            if not passes_over:
                shown = pattern if len(pattern) <= _MOST_SHOWN else f"{pattern[:_MOST_SHOWN]}…"
                raise BadRequest(
                    'The pattern "{shown}" looks around, which cannot be followed: change it, or leave out "strict".',
                    shown=shown,
                    param=field,
                )
            part["pattern"] = plain
        return part

    try:
        text = json.dumps(schema, ensure_ascii=False)
        if "propertyNames" in text or "(?" in text:
            text = json.dumps(json.loads(text, object_hook=followed), ensure_ascii=False)
        return text
    except (RecursionError, ValueError) as error:
        raise BadRequest(Sentence("The JSON schema is nested too deeply."), param=field) from error


def schema_text(constraint: Constraint) -> str:
    """Return a schema as a model is told of it: without the options that are not the client's."""
    schema = json.loads(constraint.text)
    if is_loose(schema):
        del schema[_OPTIONS]
    return json.dumps(schema, ensure_ascii=False)


_LOOK = re.compile(r"\(\?<?[=!]")
# The parts of a pattern that are read one by one: an escape, a set of characters, an opening bracket, or a character.
_READ = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]|\(\?<?[=!]|.", re.DOTALL)


def without_looks(pattern: str) -> str:
    """Return a pattern without the groups that look ahead or behind, which matches as much or more."""
    kept: list[str] = []
    depth = 0  # of brackets within a group that is left out
    for part in _READ.findall(pattern):
        if depth:
            depth += part.startswith("(") - (part == ")")
        elif _LOOK.match(part):
            depth = 1
        else:
            kept.append(part)
    return "".join(kept)


def grammar_of(text: str) -> Constraint:
    """Return the constraint of the field ``grammar``: GBNF as llama.cpp's, else llguidance's Lark."""
    return Constraint("gbnf" if _GBNF_RULE.search(text) else "lark", text, field="grammar")


# The forms of a reply in vLLM's ``structured_outputs`` by our fields. Its older fields have ``guided_`` in front.
_STRUCTURED = {"json": "json_schema", "regex": "regex", "grammar": "grammar", "choice": "grammar"}
_GUIDED = {f"guided_{name}": name for name in _STRUCTURED}
_OF_VLLM = {"structured_outputs", *_GUIDED, "guided_decoding_backend", "guided_whitespace_pattern"}


def with_structured(sent: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a body with those of vLLM for the form of a reply as ours; raises ValueError."""
    if _OF_VLLM.isdisjoint(sent):
        return sent
    asked = sent.get("structured_outputs") or {}
    if not isinstance(asked, dict):
        raise ValueError("structured_outputs must be a JSON object")
    found = {name: value for name, value in sent.items() if name not in _OF_VLLM}
    asked = {_GUIDED[name]: value for name, value in sent.items() if name in _GUIDED} | asked
    for name, field in _STRUCTURED.items():
        value = asked.get(name)
        if value is None:
            continue
        sent_as = f"structured_outputs.{name}" if name in (sent.get("structured_outputs") or ()) else f"guided_{name}"
        if field in found:
            raise ValueError(f"{sent_as} and another form of the reply cannot be followed both")
        found[field] = (
            _one_of(value, sent_as) if name == "choice" else _read(value, sent_as) if name == "json" else value
        )
    if asked.get("json_object"):
        found.setdefault("response_format", {"type": "json_object"})
    return found


def _read(schema: Any, sent_as: str) -> Any:
    """Return a schema that may be written as text; raises ValueError."""
    with suppress(ValueError, RecursionError):
        schema = json.loads(schema) if isinstance(schema, str) else schema
    if not isinstance(schema, dict | bool):
        raise ValueError(f"{sent_as} must be a JSON schema")
    return schema


def _one_of(choices: Any, sent_as: str) -> str:
    """Return the grammar of a reply that is one of some texts; raises ValueError."""
    if not isinstance(choices, list) or not choices or not all(isinstance(one, str) for one in choices):
        raise ValueError(f"{sent_as} must be a list of texts")
    return "start: " + " | ".join(json.dumps(one, ensure_ascii=False) for one in choices)


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
