"""Which models are siblings, by how their makers name them: "Qwen3-8B-Q4_K_M.gguf" and "Qwen3 0.6B" are "qwen3"."""

from __future__ import annotations

import re

from models.hub.quantisation import without_quantisation

_SIZE = re.compile(r"^(a?\d+(\.\d+)?[bm]|\d+x\d+(\.\d+)?b|e\d+b)$")
_N_PARAMS = re.compile(r"(?<![a-z0-9.])(\d+(?:\.\d+)?)([bm])(?![a-z0-9])", re.IGNORECASE)
_COMMON = frozenset({"instruct", "it", "chat", "base", "gguf", "meta", "hf", "preview", "thinking", "qat", "ud", "i1"})
_DATE = re.compile(r"^\d{4,6}$")
_PARTS = re.compile(r"[\s_/:-]+")


def family(name: str) -> str:
    """The words of a model's name without maker, size, purpose and quantisation; "" where nothing is left."""
    stem = without_quantisation(name.rsplit("/", 1)[-1].removesuffix(".gguf")).lower()
    words = [word for word in _PARTS.split(stem) if word and word not in _COMMON]
    kept = [word for word in words if not _SIZE.match(word) and not _DATE.match(word)]
    return " ".join(kept).strip(". ")


def n_params_in(name: str) -> int:
    """The parameters that a name like "Qwen2.5-Coder-0.5B-Instruct" tells; 0 where it tells none."""
    found = _N_PARAMS.search(name.rsplit("/", 1)[-1])
    if found is None:
        return 0
    return round(float(found[1]) * (1e9 if found[2].lower() == "b" else 1e6))
