"""The facts of a projector (mmproj file): its width and its memory; and which projector belongs to a model."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TypeVar

from models.facts.architectures import PROJECTORS
from models.facts.model_facts import read_model
from models.facts.split_files import model_name
from models.formatting.sentence import Sentence
from models.gguf.errors import BadGguf, GgufError
from models.gguf.header import GgufHeader, read_header

_F32 = 4
# The patches that are counted at least for projectors that take images of any size. llama.cpp's own limit (Qwen-VL:
# 4,096 tokens of 2 x 2 patches) is above common images.
_USUAL_PATCHES = 4_096


@dataclass(frozen=True, slots=True)
class ProjectorFacts:
    """``n_embd`` is the width of its rows, which is that of its model; 0 if the file does not say."""

    n_embd: int
    weight_bytes: int
    work_bytes: int

    @property
    def n_bytes(self) -> int:
        """Bytes that it takes beside its model."""
        return self.weight_bytes + self.work_bytes


def read_projector(path: Path) -> ProjectorFacts:
    """Read the header of a projector for images; raises GgufError."""
    header = read_header(path)
    is_one = header.text("general.architecture") in PROJECTORS
    if not is_one or header.metadata.get("clip.has_vision_encoder") is not True:
        raise BadGguf(str(path), Sentence("it is not a projector for images"))
    return ProjectorFacts(
        n_embd=header.integer("clip.vision.projection_dim") or 0,
        weight_bytes=sum(tensor.n_bytes for tensor in header.tensors),
        work_bytes=_work_bytes(header),
    )


def _work_bytes(header: GgufHeader) -> int:
    """Estimate the compute buffer: activations of a layer for all patches, without the scores of flash attention."""

    def number(key: str) -> int:
        return max(0, header.integer(f"clip.vision.{key}") or 0)

    n_patches = (number("image_size") // (number("patch_size") or 1)) ** 2
    return max(n_patches, _USUAL_PATCHES) * (6 * number("embedding_length") + number("feed_forward_length")) * _F32


_MARK = re.compile(r"(^|[-._])mmproj([-._]|$)", re.IGNORECASE)
_AnyPath = TypeVar("_AnyPath", bound=PurePath)
_NO_NAME = "model"  # as in mmproj-model-f16.gguf
_TYPE = re.compile(r"[-._]?(f16|bf16|f32|q\d[_a-z0-9]*)$", re.IGNORECASE)
# Preferred types, best first: projectors are small, so finer types are worth their memory, except f32.
_PREFERENCE = ("f16", "bf16", "q8_0", "f32")


def projectors_of(model: PurePath, files: Iterable[_AnyPath]) -> list[_AnyPath]:
    """Return those of ``files`` that are projectors of the model by their names, best first.

    Such a name is a bare ``mmproj-F16.gguf``, or contains the model's name. The file lies beside its model or one
    folder above.
    """
    beside = {folder: place for place, folder in enumerate(model.parents[:2])}
    named = [path for path in files if path.parent in beside and _MARK.search(path.stem) and _belongs(path, model)]
    return sorted(named, key=lambda path: (beside[path.parent], _rank(path), path.name))


def projector_beside(model: Path) -> Path | None:
    """Return the projector that lies beside a model and fits it; None if there is none."""
    try:
        files = [path for folder in model.parents[:2] for path in folder.glob("*mmproj*.gguf")]
    except OSError:
        return None
    named = projectors_of(model, files)
    width = _width(model) if named else 0
    return next((path for path in named if _fits(path, width)), None)


def _belongs(projector: PurePath, model: PurePath) -> bool:
    rest = _TYPE.sub("", _MARK.sub("-", _TYPE.sub("", projector.stem))).strip("-._").lower()
    return rest == _NO_NAME or model_name(model).lower().startswith(rest)


def _rank(path: PurePath) -> int:
    name = path.stem.lower()
    return next((place for place, kind in enumerate(_PREFERENCE) if re.search(rf"(^|[-._]){kind}$", name)), 9)


def _width(model: Path) -> int:
    try:
        return read_model(model).n_embd
    except GgufError:
        return 0


def _fits(path: Path, width: int) -> bool:
    try:
        return read_projector(path).n_embd in (0, width)
    except GgufError:
        return False
