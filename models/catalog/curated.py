"""A short list of models to begin with. The list ships with Slipstream, so it needs no network.

Each entry has the same figures as the header of a GGUF file: the keys of the architecture, and the weights summed by
kind. They make a header without a file, so fit and speed of a listed model come from the same code as those of a
downloaded one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from models.facts.layer_weights import LOOKED_UP
from models.facts.model_facts import ModelFacts, facts_from
from models.facts.quantisation_rank import resized
from models.formatting.json_values import value_of
from models.formatting.sentence import Sentence, joined
from models.gguf.header import GgufHeader, MetadataValue, StoredArray, TensorInfo
from models.gguf.tensor_types import BY_NAME

_FILE = Path(__file__).resolve().parents[1] / "curated.json"


@dataclass(frozen=True, slots=True)
class CuratedFile:
    """One quantisation: ``n_bytes`` on disk, computed from the shapes if ``is_estimate``."""

    quantisation: str
    n_bytes: int
    is_estimate: bool


@dataclass(frozen=True, slots=True)
class CuratedDraft:
    """A smaller model with the same vocabulary that may draft."""

    repo_id: str
    quantisation: str


@dataclass(frozen=True, slots=True)
class CuratedModel:
    """One recommendation.

    ``files`` begins with the usual quantisation. ``assistant`` is the repository of a draft head for the model, of a
    kind that Slipstream cannot run. ``sources`` says where the figures come from, ``checked`` on which day they were
    looked up. ``is_tested`` means that the model was run with Slipstream. ``facts`` are those of the files that the
    model's maker published.
    """

    title: str
    use: str
    repo_id: str
    licence: str
    good_for: str
    files: tuple[CuratedFile, ...]
    draft: CuratedDraft | None
    assistant: str | None
    is_tested: bool
    checked: str
    sources: tuple[str, ...]
    facts: ModelFacts

    @property
    def n_params(self) -> int:
        """The total number of parameters, all experts included."""
        return self.facts.n_params

    def facts_of(self, file: CuratedFile) -> ModelFacts:
        """Return the facts of one of its files."""
        if file.quantisation == self.facts.quantisation:
            return replace(self.facts, n_bytes=file.n_bytes)
        return resized(self.facts, file.quantisation, file.n_bytes)

    @property
    def drafting(self) -> str:
        """The drafts that it could have, in words; "" if none is known."""
        known: list[str] = []
        if self.facts.n_mtp_layers:
            known.append(Sentence("drafts with heads in its own file"))
        if self.draft is not None:
            known.append(Sentence("{draft} may draft", draft=f"{self.draft.repo_id}:{self.draft.quantisation}"))
        if not self.is_tested:
            known = [Sentence("{what}, untested", what=what) for what in known]
        return joined(known, "; ")

    @property
    def unusable_draft(self) -> str:
        """What was made to draft for it and does not run here, in words; "" if there is nothing."""
        if self.assistant is None:
            return ""
        return Sentence("{assistant}, made to draft for it, does not run here", assistant=self.assistant)


@dataclass(frozen=True, slots=True)
class CuratedList:
    """The list with its date and where it comes from."""

    date: str
    source: str
    models: tuple[CuratedModel, ...]


@cache
def curated() -> CuratedList:
    """Read the list."""
    read = json.loads(_FILE.read_bytes())
    return CuratedList(read["date"], read["source"], tuple(_model(item) for item in read["models"]))


def _model(item: dict[str, Any]) -> CuratedModel:
    about = {name: value for name, value in item.items() if name not in ("header", "weights")}
    values = {
        "files": value_of(tuple[CuratedFile, ...], item["files"]),
        "draft": value_of(CuratedDraft | None, item["draft"]),
        "sources": tuple(item["sources"]),
        "facts": facts_from([header_of(item)]),
    }
    return CuratedModel(**{**about, **values})


def header_of(item: dict[str, Any]) -> GgufHeader:
    """Return the GGUF header with an entry's ``header`` and ``weights``."""
    keys = dict(item["header"])
    architecture, n_tokens = keys.pop("architecture"), keys.pop("vocabulary")
    metadata: dict[str, MetadataValue] = {
        "general.architecture": architecture,
        "general.name": item["title"],
        "general.license": item["licence"],
        # The texts of the tokens are not in the list, only how many there are.
        "tokenizer.ggml.model": "unknown",
        "tokenizer.ggml.tokens": StoredArray("s", n_tokens, 0, 0),
    }
    for name, value in keys.items():
        metadata[f"{architecture}.{name}"] = tuple(value) if isinstance(value, list) else value
    tensors = tuple(tensor for weights in item["weights"] for tensor in _tensors(weights, n_tokens))
    n_bytes = sum(tensor.n_bytes for tensor in tensors)
    return GgufHeader(3, MappingProxyType(metadata), tensors, 0, n_bytes, _Nowhere(item["title"], n_bytes))


def _tensors(weights: dict[str, Any], n_tokens: int) -> Iterator[TensorInfo]:
    """Yield the weights of one kind, a tensor in each layer that has them; a table has a row for each token."""
    kind, n_elements = BY_NAME[weights["type"].lower()], weights["n_elements"]
    names = [f"blk.{layer}.{weights['name']}.weight" for layer in _layers(weights["layers"])] or [weights["name"]]
    for name in names:
        shape = (n_elements // n_tokens, n_tokens) if name in LOOKED_UP else (n_elements,)
        yield TensorInfo(name, shape, kind, 0, kind.bytes_for(n_elements))


def _layers(text: str) -> list[int]:
    """Numbers of layers, written like Python's slices: "3", "0:24" or "3:24:4", with commas between."""
    found: list[int] = []
    for part in filter(None, text.split(",")):
        numbers = [int(number) for number in part.split(":")]
        found += range(*numbers) if len(numbers) > 1 else numbers
    return found


@dataclass(frozen=True, slots=True)
class _Nowhere:
    """The byte source of a header without a file."""

    name: str
    size: int

    def read_at(self, offset: int, n_bytes: int) -> bytes:
        """Return nothing: there is no file."""
        return b""
