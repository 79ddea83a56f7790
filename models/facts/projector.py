"""What a projector (mmproj file) says about itself: what it is for, and the memory that it takes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from models.facts.architectures import PROJECTORS
from models.gguf.errors import BadGguf
from models.gguf.header import GgufHeader, read_header

_F32 = 4
# Where the size of images is free, llama.cpp's limits for common families (Qwen-VL: 4,096 tokens of 2 x 2 patches) are
# above what people send: so many patches are counted at least.
_USUAL_PATCHES = 4_096


@dataclass(frozen=True, slots=True)
class ProjectorFacts:
    """``n_embd`` is the width of the rows that it makes, which is that of its model; 0 where the file does not say."""

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
        raise BadGguf(str(path), "it is not a projector for images")
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
