"""Opens the context of an engine."""

from __future__ import annotations

from core.kv_cache.context_shape import ContextShape
from core.llama.context import Context
from core.llama.model import Model
from core.loading.context_size import ContextSize
from core.machine.measurements import physical_cores
from core.values.engine_options import EngineOptions


def open_context(model: Model, options: EngineOptions, size: ContextSize, shape: ContextShape) -> Context:
    """Return the context of an engine, with cells and outputs for all slots and their drafts."""
    return Context(
        model,
        n_cells=size.n_cells,
        n_sequences=shape.n_sequences,
        n_outputs=shape.n_outputs,
        n_batch=options.n_batch,
        n_ubatch=options.n_ubatch,
        n_threads=options.n_threads or physical_cores(),
        flash_attention=options.flash_attention,
        kv_type=options.cache_type,
        n_snapshots=shape.n_snapshots,
        cuts_windows=shape.window > 0,
    )
