"""The facts of models, kept on disk, so that the next process reads only files that have changed."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from models.facts.model_facts import ModelFacts
from models.files.disk import read_json, write_whole
from models.formatting.json_values import plain, value_of

# The code that computes facts: after a change of it, headers are read again.
SOURCES = (
    "facts/architectures.py", "gguf/byte_source.py", "facts/facts_cache.py", "gguf/tensor_types.py", "gguf/header.py",
    "gguf/errors.py", "formatting/json_values.py", "facts/layer_weights.py", "facts/model_facts.py",
    "facts/split_files.py", "files/disk.py", "files/errors.py", "formatting/figures.py", "formatting/safe_text.py",
    "formatting/sentence.py", "formatting/system_error.py",
)  # fmt: skip
# Larger files are not read: the facts of 5,000 models with 64 layers each take this much.
_MAX_BYTES = 256 << 20

Stamp = tuple[tuple[str, int, int], ...]
"""The state of a model's files when they were read: path, modification time (ns) and size of each."""


class FactsFile:
    """Facts by the stamps of their files, in the file ``path``, which can be made again at any time."""

    def __init__(self, path: Path) -> None:
        """``path`` need not exist."""
        self._path = path

    def read(self) -> dict[Stamp, ModelFacts]:
        """Return the kept facts; none if the file is missing, damaged or of another version."""
        content = read_json(self._path, _MAX_BYTES)
        try:
            if content["made_by"] != made_by():
                return {}
            return dict(value_of(tuple[tuple[Stamp, ModelFacts], ...], content["models"]))
        except (ValueError, TypeError, KeyError):
            return {}

    def write(self, known: Mapping[Stamp, ModelFacts]) -> None:
        """Keep exactly these. Errors are ignored: the next process then reads the models again."""
        with contextlib.suppress(OSError):
            content = {"made_by": made_by(), "models": plain(tuple(known.items()))}
            write_whole(self._path, json.dumps(content, separators=(",", ":")))


@cache
def made_by() -> str:
    """Return a hash of the code that computes facts."""
    hashed = hashlib.sha256()
    for name in SOURCES:
        hashed.update((Path(__file__).parents[1] / name).read_bytes())
    return hashed.hexdigest()[:16]
