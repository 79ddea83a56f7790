"""A model's weights by layer and tensor type, for placing them on devices and counting what a token reads."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from models.gguf.header import TensorInfo

_BLOCK = re.compile(r"blk\.(\d+)\.")
_EXPERTS = re.compile(r"_(ch)?exps\.")
# Tables that are looked up by token or position: a token reads one row of each.
LOOKED_UP = ("token_embd.weight", "per_layer_token_embd.weight", "position_embd.weight", "token_types.weight", "d2t")

BytesByType = tuple[tuple[str, int], ...]
"""(name of the tensor type, bytes), by name."""


@dataclass(frozen=True, slots=True)
class LayerWeights:
    """Bytes of one layer: a token reads all of ``shared``, and of ``experts`` (all of them) those it chooses."""

    shared: BytesByType = ()
    experts: BytesByType = ()

    @property
    def n_bytes(self) -> int:
        """Bytes altogether."""
        return self.expert_bytes + sum(n_bytes for _, n_bytes in self.shared)

    @property
    def expert_bytes(self) -> int:
        """Bytes of all experts."""
        return sum(n_bytes for _, n_bytes in self.experts)

    def with_shared(self, *others: LayerWeights) -> LayerWeights:
        """Return these weights plus the shared weights of ``others``."""
        shared = Counter(dict(self.shared))
        for other in others:
            shared.update(dict(other.shared))
        return LayerWeights(_sorted(shared), self.experts)


@dataclass(frozen=True, slots=True)
class WeightMap:
    """The main ``layers``, the ``output`` after them, and ``tables`` (bytes) of which a token reads one row.

    A table that is also the output (tied embeddings) counts in both, because llama.cpp keeps it in host memory and, if
    the output is on a GPU, there too.
    """

    layers: tuple[LayerWeights, ...] = ()
    output: LayerWeights = LayerWeights()
    tables: int = 0


def block_of(tensor: TensorInfo) -> int | None:
    """Number of the layer that a tensor belongs to; None for those outside of layers."""
    match = _BLOCK.match(tensor.name)
    return int(match[1]) if match else None


def is_of_experts(name: str) -> bool:
    """Whether a tensor of this name holds the experts of its layer, stacked."""
    return _EXPERTS.search(name) is not None


def weight_map(tensors: Iterable[TensorInfo], n_layers: int, *, is_tied: bool) -> WeightMap:
    """Sort tensors by layer and type; prediction heads, which follow the ``n_layers``, are left out.

    ``is_tied``: the table of embeddings is the output too.
    """
    shared: list[Counter[str]] = [Counter() for _ in range(n_layers)]
    experts: list[Counter[str]] = [Counter() for _ in range(n_layers)]
    output: Counter[str] = Counter()
    tables = 0
    for tensor in tensors:
        block = block_of(tensor)
        if block is None:
            is_table = tensor.name in LOOKED_UP
            tables += tensor.n_bytes if is_table else 0
            if not is_table or (is_tied and tensor.name == "token_embd.weight"):
                output[tensor.type.name] += tensor.n_bytes
        elif block < n_layers:
            (experts if is_of_experts(tensor.name) else shared)[block][tensor.type.name] += tensor.n_bytes
    layers = tuple(LayerWeights(_sorted(s), _sorted(e)) for s, e in zip(shared, experts, strict=True))
    return WeightMap(layers, LayerWeights(_sorted(output)), tables)


def head_weights(tensors: Iterable[TensorInfo], block: int) -> LayerWeights:
    """The weights that the prediction head in layer ``block`` reads for a token, with its output.

    Its own table of embeddings is left out: a token reads one row of it.
    """
    by_name = {tensor.name: tensor for tensor in tensors}
    prefix = f"blk.{block}.nextn."
    used = [one for one in by_name.values() if block_of(one) == block and one.name != f"{prefix}embed_tokens.weight"]
    if f"{prefix}shared_head_head.weight" not in by_name:
        output = by_name.get("output.weight") or by_name.get("token_embd.weight")
        used += [output] if output is not None else []
    shared: Counter[str] = Counter()
    experts: Counter[str] = Counter()
    for tensor in used:
        (experts if is_of_experts(tensor.name) else shared)[tensor.type.name] += tensor.n_bytes
    return LayerWeights(_sorted(shared), _sorted(experts))


def _sorted(bytes_by_type: Counter[str]) -> BytesByType:
    return tuple(sorted(bytes_by_type.items()))
