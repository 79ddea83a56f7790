"""Whether a model on the processor attends by flash attention or by products of matrices: whichever is faster here.

llama.cpp takes flash attention wherever it can. On a GPU that is right. On many processors its kernel goes through the
keys one by one, while the products use the fast kernels of matrices: at a few thousand cached tokens that is several
times as fast, most of all for the rows of drafts. But they are more operations, each of which all threads wait for, so
small models lose more by that in short texts than they win in long ones; and they are computed over all cells, those of
other texts included.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from core.llama.attention_probe import AttentionProbe, AttentionTimes, Heads, probe_attention
from core.llama.system import features
from core.measurements import Measurements, measurement_key, physical_cores
from core.options import EngineOptions
from models.memory import estimate, fits, free_memory
from models.model_facts import ModelFacts

_log = logging.getLogger(__name__)
# What a step may take by products, as a share of what it takes by flash attention: behind few cells, and behind many.
_MOST_BEHIND_FEW, _MOST_BEHIND_MANY = 1.05, 0.95
# Scores of all rows of a step lie in memory at once: for speed alone, at most such a part of what is free.
_MOST_EXTRA = 1 / 8
# Types of cells that the products can read: values lie in the cache in another order.
_PLAIN_TYPES = ("f16",)

Prober = Callable[[Heads, int], AttentionProbe | None]


def choose_attention(
    facts: ModelFacts,
    options: EngineOptions,
    n_cells: int,
    n_gpu_layers: int,
    measured: Measurements,
    probe: Prober = probe_attention,
) -> EngineOptions:
    """Return the options with flash attention off where that was asked to be decided and is faster here.

    What ``probe`` measures for heads and a number of threads is kept in ``measured``. What may not be measured and is
    not known stays flash attention.
    """
    heads = _heads(facts)
    if options.flash_attention != "auto" or n_gpu_layers or options.cache_type not in _PLAIN_TYPES or heads is None:
        return options
    if options.n_slots > 1:
        # Products are computed over the cells of all texts, also of those at rest; flash attention passes over them.
        # Sixteen together lost an eighth of their speed by that, and one beside texts at rest two fifths.
        return options
    if not _has_room(facts, options, n_cells):
        return options
    found = _probed(heads, options.n_threads or physical_cores(), measured, probe if options.calibrates else _unknown)
    return replace(options, flash_attention="off") if found is not None and _pays(facts, found) else options


def _heads(facts: ModelFacts) -> Heads | None:
    """Return the heads of a model's layers, None where they have none, or keep keys and values as one."""
    n_key_heads = max(facts.n_kv_heads, default=0)
    if not facts.n_heads or not n_key_heads or facts.n_heads % n_key_heads:
        return None
    if any(not layer.n_v for layer in facts.caches):
        return None
    return Heads(facts.n_heads, n_key_heads, facts.key_length, facts.value_length)


def _has_room(facts: ModelFacts, options: EngineOptions, n_cells: int) -> bool:
    by_flash, by_products = (
        estimate(facts, n_cells, n_slots=options.n_slots, n_ubatch=options.n_ubatch, flash_attention=is_flash)
        for is_flash in (True, False)
    )
    free = free_memory()
    return by_products.total - by_flash.total <= _MOST_EXTRA * free and fits(by_products, free)


def _probed(heads: Heads, n_threads: int, measured: Measurements, probe: Prober) -> AttentionProbe | None:
    key = measurement_key("attention", *heads, n_threads, features())
    known = measured.recall(key)
    try:
        if known is not None:
            return _read(known)
    except (KeyError, TypeError, ValueError):
        _log.warning("What was measured of attention could not be read")
    found = probe(heads, n_threads)
    if found is not None:
        measured.keep(key, {"few": [*found.few], "many": [*found.many], "bytes_per_second": found.bytes_per_second})
    return found


def _unknown(heads: Heads, n_threads: int) -> None:
    """Measure nothing."""


def _read(known: dict[str, Any]) -> AttentionProbe:
    few, many = (AttentionTimes(*map(float, known[name])) for name in ("few", "many"))
    rate = float(known["bytes_per_second"])
    if not all(0.0 < value < math.inf for value in (*few, *many, rate)):
        raise ValueError("times and rates are above zero")
    return AttentionProbe(few, many, rate)


def _pays(facts: ModelFacts, found: AttentionProbe) -> bool:
    """Whether whole steps of one row lose next to nothing behind few cells and win behind many."""
    weights = facts.active_weights.read_by(1) / found.bytes_per_second
    n_layers = sum(1 for n_key_heads in facts.n_kv_heads if n_key_heads)
    few, many = (
        (weights + n_layers * times.products) / (weights + n_layers * times.flash) for times in (found.few, found.many)
    )
    _log.info("steps with attention by products take %.2f of the time behind few tokens, %.2f behind many", few, many)
    return few <= _MOST_BEHIND_FEW and many <= _MOST_BEHIND_MANY
