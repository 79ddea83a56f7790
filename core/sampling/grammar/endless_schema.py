"""Finds JSON schemas that no finite text satisfies, since a required part requires itself. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from core.sampling.grammar.json_pointer import child, escaped, keys, unescaped
from core.sampling.grammar.least_fixed_point import find_cycle, least_fixed_point

Kinds = frozenset[str]
_NONE: Kinds = frozenset()
_ALL: Kinds = frozenset({"null", "boolean", "number", "string", "array", "object"})
_ROOT = "#"
# Items checked per list at most; longer lists are not this check's concern.
_MOST_ITEMS = 64


def why_endless(text: str) -> str | None:
    """Return why no reply by the schema ``text`` can ever end; None if one can, or if that is not clear."""
    if '"$ref"' not in text:
        return None
    try:
        return _Graph(json.loads(text)).why_endless()
    except (ValueError, RecursionError):
        return None  # not for this check to say


def reason_clause(names: list[str]) -> str:
    """Return the reason as a clause: each of ``names`` requires the next, and the last one is the first."""
    if len(names) == 2:
        return f"it can never be satisfied, since {names[0]} requires itself"
    return f"it can never be satisfied, since {' requires '.join(names)}"


def why_endless_value(schema: object) -> str | None:
    """Return the same for a parsed schema."""
    return _Graph(schema).why_endless()


class _Graph:
    """A schema's parts by JSON pointer, with the kinds of values for which each part has a finite one."""

    def __init__(self, schema: object) -> None:
        self._root = schema
        self._parts: dict[str, object] = {}
        self._needs: dict[str, list[str]] = {}
        self._collect()

    def why_endless(self) -> str | None:
        kinds = least_fixed_point(self._needs, self._kinds, _NONE)
        if kinds is None or kinds[_ROOT]:
            return None
        cycle = find_cycle(_ROOT, lambda pointer: next((p for p in self._needs[pointer] if not kinds[p]), None))
        targets = [pointer for pointer in cycle if pointer in self._targets]
        if not targets:
            return "no value that ends satisfies all that it says"
        names = [_name(pointer) for pointer in targets]
        if targets[0] != targets[-1]:
            names.append(names[0])
        return reason_clause(names)

    def _collect(self) -> None:
        """Collect the parts that matter, dependencies first."""
        self._targets: set[str] = {_ROOT}
        stack, order = [(_ROOT, False)], []
        self._parts[_ROOT] = self._root
        while stack:
            pointer, is_done = stack.pop()
            if is_done:
                order.append(pointer)
                continue
            if pointer in self._needs:
                continue
            stack.append((pointer, True))
            self._needs[pointer] = self._needs_of(pointer)
            stack += [(need, False) for need in self._needs[pointer]]
        self._needs = {pointer: self._needs[pointer] for pointer in order}

    def _needs_of(self, pointer: str) -> list[str]:
        part = self._parts[pointer]
        if not isinstance(part, dict) or _is_base(part, pointer):
            return []
        found: dict[str, object] = {}
        for key in ("allOf", "anyOf", "oneOf", "prefixItems", "items"):
            value = part.get(key)
            if isinstance(value, list):
                found |= {f"{pointer}/{key}/{index}": one for index, one in enumerate(value)}
        for key in ("items", "additionalItems", "additionalProperties"):
            if isinstance(part.get(key), dict | bool):
                found[f"{pointer}/{key}"] = part[key]
        properties, required = part.get("properties"), part.get("required")
        if isinstance(properties, dict) and isinstance(required, list):
            for name in required:
                if isinstance(name, str) and name in properties:
                    found[f"{pointer}/properties/{escaped(name)}"] = properties[name]
        self._parts |= found
        needs = list(found)
        target = self._target(part.get("$ref"))
        if target is not None:
            self._targets.add(target)
            needs.append(target)
        return needs

    def _target(self, reference: object) -> str | None:
        """Return the pointer of a reference within the schema; None for other references."""
        if not isinstance(reference, str) or not (reference == _ROOT or reference.startswith("#/")):
            return None
        pointer, part = _ROOT, self._root
        for key in keys(reference):
            if isinstance(part, dict) and _is_base(part, pointer):
                return None
            try:
                part = child(part, key)
            except LookupError:
                return None
            pointer = f"{pointer}/{escaped(key)}"
        self._parts[pointer] = part
        return pointer

    def _kinds(self, pointer: str, known: Mapping[str, Kinds]) -> Kinds:
        """Return the kinds of values for which a part has a finite one, given the ``known`` kinds of other parts."""
        part = self._parts[pointer]
        if part is False:
            return _NONE
        if not isinstance(part, dict) or _is_base(part, pointer):
            return _ALL
        kinds = _typed(part)
        if "$ref" in part:
            target = self._target(part["$ref"])
            kinds &= known[target] if target is not None else _ALL
        for index, _ in enumerate(_list(part, "allOf")):
            kinds &= known[f"{pointer}/allOf/{index}"]
        for key in ("anyOf", "oneOf"):
            if branches := _list(part, key):
                kinds &= frozenset().union(*(known[f"{pointer}/{key}/{index}"] for index in range(len(branches))))
        if "const" in part or "enum" in part:
            return kinds  # listed values are finite
        if "object" in kinds and not self._has_object(part, pointer, known):
            kinds -= {"object"}
        if "array" in kinds and not self._has_array(part, pointer, known):
            kinds -= {"array"}
        return kinds

    @staticmethod
    def _has_object(part: dict[str, Any], pointer: str, known: Mapping[str, Kinds]) -> bool:
        properties = part.get("properties")
        properties = properties if isinstance(properties, dict) else {}
        others = known.get(f"{pointer}/additionalProperties", _ALL) if not part.get("patternProperties") else _ALL
        required = [name for name in _list(part, "required") if isinstance(name, str)]
        for name in required:
            if not (known[f"{pointer}/properties/{escaped(name)}"] if name in properties else others):
                return False
        return bool(others or properties or not _count(part, "minProperties"))

    @staticmethod
    def _has_array(part: dict[str, Any], pointer: str, known: Mapping[str, Kinds]) -> bool:
        items, prefix = part.get("items"), len(_list(part, "prefixItems"))
        first, others = f"{pointer}/prefixItems", f"{pointer}/items"
        if isinstance(items, list):
            first, others, prefix = f"{pointer}/items", f"{pointer}/additionalItems", len(items)
        n_least = min(_count(part, "minItems"), prefix + _MOST_ITEMS)
        if any(not known[f"{first}/{index}"] for index in range(min(n_least, prefix))):
            return False
        return n_least <= prefix or bool(known.get(others, _ALL))


def _typed(part: dict[str, Any]) -> Kinds:
    names = part.get("type", sorted(_ALL))
    names = [names] if isinstance(names, str) else names
    if not isinstance(names, list):
        return _ALL
    kinds = frozenset("number" if name == "integer" else name for name in names if isinstance(name, str))
    return kinds & _ALL


def _list(part: dict[str, Any], key: str) -> list[Any]:
    value = part.get(key)
    return value if isinstance(value, list) else []


def _count(part: dict[str, Any], key: str) -> int:
    value = part.get(key)
    return int(value) if isinstance(value, int | float) and value > 0 else 0


def _is_base(part: dict[str, Any], pointer: str) -> bool:
    """Return whether references inside have another base than those outside."""
    return pointer != _ROOT and ("$id" in part or ("id" in part and isinstance(part["id"], str)))


def _name(pointer: str) -> str:
    if pointer == _ROOT:
        return "the schema"
    return unescaped(pointer.rsplit("/", 1)[-1])
