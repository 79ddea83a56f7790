"""Makes an engine's slots and the tiers (RAM, disk) for cached prompts that leave the KV cache."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

from core.cost.calibration import MeasuredContext
from core.kv_cache.context_shape import ContextShape
from core.kv_cache.kv_offload import KvOffload
from core.kv_cache.memory import AttentionMemory
from core.kv_cache.prefix_cache.disk_folder import FOLDER, SegmentFolder, model_key
from core.kv_cache.prefix_cache.disk_tier import DiskTier
from core.kv_cache.prefix_cache.prefix_tree import PrefixTree
from core.kv_cache.prefix_cache.segment_store import SegmentStore
from core.kv_cache.slot_table import SlotTable
from core.llama.build import llama_version
from core.loading.contexts import LoadedTarget
from core.values.engine_options import EngineOptions
from models.estimate.fit.memory import free_memory
from models.facts.split_files import parts

_log = logging.getLogger(__name__)
# By default, cached prompts may take this share of the memory that is free once the model is loaded.
_RAM_SHARE, _MOST_RAM = 0.25, 8 << 30
_DISK_SHARE, _MOST_DISK = 0.05, 8 << 30
# Size of one segment: moving it delays a step by a few milliseconds at most.
_SEGMENT_BYTES, _FEWEST_TOKENS, _MOST_TOKENS = 8 << 20, 32, 256


def make_slots(
    target: LoadedTarget, own: MeasuredContext, shape: ContextShape, memory: AttentionMemory, cache_folder: Path | None
) -> SlotTable:
    """Return the slots of a context of this shape, with the cache behind them."""
    facts, options, cost, clock = target.facts, target.options, own.cost, own.clock
    ram_limit = min(int(free_memory() * _RAM_SHARE), _MOST_RAM) if options.cache_ram is None else options.cache_ram
    disk = _disk(options, (shape.window, facts.window), target.n_gpu_layers, cache_folder)
    per_token = max(facts.kv_bytes_per_token(options.cache_type, options.cache_type), 1)
    size = max(_FEWEST_TOKENS, min(_MOST_TOKENS, _SEGMENT_BYTES // per_token))
    # llama.cpp saves only the tokens that a sequence's last token attends to. In layers with a window, a longer segment
    # would come back without its beginning, and could not be cut.
    size = min(size, facts.window or size)
    offload = None
    if ram_limit or disk is not None:
        store = SegmentStore(PrefixTree(), ram_limit=ram_limit, disk=disk)
        is_whole = not memory.can_share
        offload = KvOffload(store, own.context, shape.n_slots, segment_size=size, is_whole=is_whole, clock=clock)
    n_wide = min(options.n_ubatch, own.context.n_batch)
    return SlotTable(
        memory,
        options.n_slots,
        offload=offload,
        prefill_seconds=lambda n_tokens: cost.time(n_wide) * n_tokens / n_wide,
        clock=clock,
    )


def _disk(
    options: EngineOptions, windows: tuple[int, int], n_gpu_layers: int, cache_folder: Path | None
) -> DiskTier | None:
    # The key on disk does not include LoRA adapters.
    if options.cache_disk == 0 or cache_folder is None or options.lora:
        return None
    placing = (n_gpu_layers, options.n_cpu_moe, options.devices)
    conditions = (options.cache_type, options.flash_attention, *placing, windows, llama_version())
    try:
        key = model_key(parts(Path(options.model_path)), *conditions)
    except OSError as error:
        _log.warning("Texts are not kept on disk: %s cannot be read again: %s", options.model_path, error)
        return None
    limit = _disk_limit(cache_folder) if options.cache_disk is None else options.cache_disk
    return DiskTier(SegmentFolder(cache_folder / FOLDER, key, limit))


def _disk_limit(cache_folder: Path) -> int:
    """Return how many bytes cached prompts may take on a folder's disk by default."""
    existing = next((path for path in (cache_folder, *cache_folder.parents) if path.exists()), None)
    if existing is None:
        return 0
    return min(int(shutil.disk_usage(existing).total * _DISK_SHARE), _MOST_DISK)
