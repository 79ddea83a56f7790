"""Whether a model on the processor attends by flash attention or by products of matrices: whichever is faster here.

llama.cpp takes flash attention wherever it can. On a GPU that is right. On many processors its kernel goes through the
keys one by one, while the products use the fast kernels of matrices: at a few thousand cached tokens that is several
times as fast, most of all for the rows of drafts and of requests that share a step.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

from core.llama.attention_probe import AttentionTimes, Heads, time_attention
from core.measurements import Measurements, measurement_key, physical_cores
from core.options import EngineOptions
from models.memory import estimate, fits, free_memory
from models.model_facts import ModelFacts

_log = logging.getLogger(__name__)
# Rows of a step and cells that they attend to, for which both are measured.
_PROBED = ((1, 1024), (4, 1024))
# Flash attention takes less memory: products must take at most such a share of its time on the whole, and in no case
# longer.
_WORTH, _NO_LOSS = 0.85, 1.0
# Scores of all rows of a step lie in memory at once: for speed alone, at most such a part of what is free.
_MOST_EXTRA = 1 / 8
# Types of cells that the products can read: values lie in the cache in another order.
_PLAIN_TYPES = ("f16",)

Timer = Callable[[Heads, int, int, int], AttentionTimes | None]


def choose_attention(
    facts: ModelFacts,
    options: EngineOptions,
    n_cells: int,
    n_gpu_layers: int,
    measured: Measurements,
    time_it: Timer = lambda heads, n_rows, n_cells, n_threads: time_attention(
        heads, n_rows, n_cells, n_threads=n_threads
    ),
) -> EngineOptions:
    """Return the options with flash attention off where that was asked to be decided and is faster here.

    What ``time_it`` measures is kept in ``measured``.
    """
    heads = _heads(facts)
    if options.flash_attention != "auto" or n_gpu_layers or options.cache_type not in _PLAIN_TYPES or heads is None:
        return options
    if not _has_room(facts, options, n_cells):
        return options
    n_threads = options.n_threads or physical_cores()
    key = measurement_key("attention", *heads, n_threads)
    known = measured.recall(key)
    is_better = known.get("products") if known is not None else None
    if not isinstance(is_better, bool):
        shares = _shares(heads, n_threads, time_it)
        _log.info("attention by products takes %s of the time of flash attention", shares)
        is_better = bool(shares) and max(shares) <= _NO_LOSS and sum(shares) / len(shares) <= _WORTH
        measured.keep(key, {"products": is_better})
    return replace(options, flash_attention="off") if is_better else options


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


def _shares(heads: Heads, n_threads: int, time_it: Timer) -> list[float]:
    """Return what products take of the time of flash attention in each case, nothing where one cannot be measured."""
    found = [time_it(heads, n_rows, n_cells, n_threads) for n_rows, n_cells in _PROBED]
    return [times.products / times.flash for times in found if times is not None] if all(found) else []
