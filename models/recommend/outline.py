"""Typical facts of a model when only its architecture and number of parameters are known.

The Hub's search says no more than that. Fit and speed of an outline come from the same code as those of a header. Once
the header was read, it replaces the outline.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from math import log

from models.catalog.curated import curated, header_of
from models.facts.model_facts import ModelFacts, facts_from
from models.facts.quantisation_rank import main_type, resized
from models.gguf.tensor_types import BY_NAME
from models.quantise.plan import TARGETS

# The quantisations that most people download, most popular first.
USUAL = ("Q4_K_M", "UD-Q4_K_M", "UD-Q4_K_XL", "MXFP4", "Q4_K_S", "Q4_0", "IQ4_XS", "Q5_K_M", "Q6_K", "Q8_0")
# Sizes of published dense models: parameters, layers, width, KV heads, and the length of a head.
_SHAPES = (
    (0.3e9, 18, 640, 1, 256), (0.6e9, 28, 1024, 8, 128), (1.2e9, 16, 2048, 8, 64), (3e9, 28, 3072, 8, 128),
    (8e9, 36, 4096, 8, 128), (14e9, 40, 5120, 8, 128), (32e9, 64, 5120, 8, 128), (70e9, 80, 8192, 8, 128),
    (120e9, 88, 12288, 8, 128), (400e9, 61, 7168, 8, 128),
)  # fmt: skip
_SAME_SIZE = 0.03  # as a share: the same model counted with and without some small tensors
# Typical numbers of tokens in vocabulary and context, and of experts.
_VOCABULARY, _USUAL_CONTEXT = 128_000, 32_768
_N_EXPERTS = 128
_ACTIVE = re.compile(r"(?<![A-Za-z0-9])A(\d+(?:\.\d+)?)B(?![A-Za-z0-9])", re.IGNORECASE)
_EXPERTS = re.compile(r"\d+x\d+(?:\.\d+)?B", re.IGNORECASE)
_MIXTURES = ("moe", "gpt-oss", "deepseek", "llama4", "dbrx", "arctic", "grok", "kimi", "minimax", "qwen3next")


def usual_quantisation(quantisations: Sequence[str]) -> str:
    """Return the most popular quantisation of a repository; "" if none is known."""
    known = [name for name in quantisations if _bits(name)]
    return next((name for name in USUAL if name in known), min(known, key=_bits, default=""))


def smallest_quantisation(quantisations: Sequence[str]) -> str:
    """Return the quantisation with the fewest bits; "" if none is known."""
    return min((name for name in quantisations if _bits(name)), key=_bits, default="")


def outline(name: str, architecture: str, n_params: int, quantisation: str, n_ctx_train: int = 0) -> ModelFacts | None:
    """Return the typical facts of a model of this size; ``name`` may contain the number of active parameters.

    None if the number of active parameters cannot be told.
    """
    n_bytes = round(n_params * _bits(quantisation) / 8)
    if n_bytes <= 0:
        return None
    for model in curated().models:
        is_same = abs(model.n_params / n_params - 1.0) < _SAME_SIZE
        if is_same and model.facts.architecture == architecture:
            return resized(model.facts, quantisation, n_bytes)
    active = _ACTIVE.search(name.rpartition("/")[2])
    if active is None and (_EXPERTS.search(name) or any(part in architecture for part in _MIXTURES)):
        return None
    facts = _shaped(architecture, n_params, float(active[1]) * 1e9 if active is not None else float(n_params))
    facts = replace(facts, n_ctx_train=n_ctx_train or _USUAL_CONTEXT)
    return resized(facts, quantisation, n_bytes)


def _shaped(architecture: str, n_params: int, n_active: float) -> ModelFacts:
    # A mixture's weights outside of experts are like those of a dense model with its active parameters.
    _, n_layers, width, n_key_heads, head_length = min(_SHAPES, key=lambda shape: abs(log(shape[0] / n_active)))
    n_tokens = max(min(_VOCABULARY, n_params // (4 * width)), 1)
    table = n_tokens * width
    attention = 3 * width * width
    rest = max(n_params - table - n_layers * attention, n_layers)
    share = (n_active - table - n_layers * attention) / rest
    is_mixture = n_active < 0.9 * n_params
    header = {
        "architecture": architecture,
        "vocabulary": n_tokens,
        "block_count": n_layers,
        "context_length": _USUAL_CONTEXT,
        "embedding_length": width,
        "feed_forward_length": 4 * width,
        "attention.head_count": max(width // head_length, n_key_heads),
        "attention.head_count_kv": n_key_heads,
        "attention.key_length": head_length,
        "attention.value_length": head_length,
    }
    if is_mixture:
        used = min(max(round(_N_EXPERTS * share), 1), _N_EXPERTS)
        header |= {"expert_count": _N_EXPERTS, "expert_used_count": used}
    layers = f"0:{n_layers}"
    weights = [
        {"name": "token_embd.weight", "layers": "", "n_elements": table, "type": "F16"},
        {"name": "attn", "layers": layers, "n_elements": attention, "type": "F16"},
        {"name": "ffn_exps" if is_mixture else "ffn", "layers": layers, "n_elements": rest // n_layers, "type": "F16"},
    ]
    return facts_from([header_of({"title": architecture, "licence": "", "header": header, "weights": weights})])


def _bits(quantisation: str) -> float:
    """Return the bits per weight in a usual model; 0 for an unknown type."""
    name = quantisation.removeprefix("UD-")
    for target in TARGETS:
        if target.name == name:
            return target.bits
    kind = BY_NAME.get(main_type(quantisation).lower())
    return 8.0 * kind.bytes_for(1 << 16) / (1 << 16) if kind is not None else 0.0
