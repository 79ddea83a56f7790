"""Does a model fit, in which sizes, and how much of it goes to the GPUs: asked before anything is loaded."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from core.context_shape import n_branches, n_outputs, n_snapshots, window_of
from core.errors import ModelDoesNotFit
from core.head_loading import wants_mtp
from core.llama.devices import Device, list_devices
from core.options import EngineOptions
from core.sizing import ContextSize, choose_context
from core.speculative.draft_model import MOST_SHADOWED
from models.gguf_errors import GgufError
from models.memory import USABLE_SHARE, MemoryNeed, estimate, free_memory
from models.model_facts import ModelFacts, read_model

ALL_LAYERS = -1
# Left free on a GPU for the driver, the desktop and what the estimate does not know.
_GPU_SHARE = 0.92


def usable_gpus(options: EngineOptions) -> tuple[Device, ...]:
    """Return the GPUs that the options allow."""
    gpus = tuple(device for device in list_devices() if device.is_gpu)
    return tuple(gpu for gpu in gpus if gpu.name in options.devices) if options.devices else gpus


def fit(facts: ModelFacts, options: EngineOptions, gpus: tuple[Device, ...]) -> tuple[int, ContextSize]:
    """Return how many layers go to the GPUs and the context size; raises ModelDoesNotFit with both numbers."""
    gpu_free = int(sum(gpu.free for gpu in gpus) * _GPU_SHARE)
    host_free = int(free_memory() * USABLE_SHARE)
    pool = gpu_free if gpus and options.n_gpu_layers != 0 else host_free
    size = context_size(facts, options, pool)
    need = need_of(facts, options, size)
    # Experts that stay behind are not the GPUs' concern.
    kept = sum(layer.expert_bytes for layer in facts.weight_map.layers[: options.n_cpu_moe])
    of_gpus = replace(need, weights=need.weights - kept)
    n_gpu_layers = _gpu_layers(options.n_gpu_layers, facts.n_layers, of_gpus, gpu_free)
    on_gpu = of_gpus.total * min(n_gpu_layers if n_gpu_layers >= 0 else facts.n_layers + 1, facts.n_layers + 1)
    on_host = need.total - on_gpu // (facts.n_layers + 1)
    if on_host > host_free:
        raise ModelDoesNotFit(need.total, host_free + gpu_free, _detail(need))
    return n_gpu_layers, size


def context_size(facts: ModelFacts, options: EngineOptions, free: int | None = None) -> ContextSize:
    """Return the sizes in effect where ``free`` bytes can be used (None: those of the host)."""
    pool = int(free_memory() * USABLE_SHARE) if free is None else free
    return choose_context(
        n_ctx=options.n_ctx,
        n_cells=options.n_cells,
        n_slots=options.n_slots,
        n_ctx_train=facts.n_ctx_train,
        kv_bytes_per_token=_bytes_of_cell(facts, options.kv_type),
        free_bytes=max(pool - facts.weight_bytes, 0),
    )


def _bytes_of_cell(facts: ModelFacts, kv_type: str) -> int:
    """Return what one more cell takes; windows that are cut do not grow."""
    per_cell = facts.kv_bytes_per_token(kv_type, kv_type)
    return per_cell - facts.kv_bytes_in_windows(kv_type, kv_type) if facts.window else per_cell


def need_of(facts: ModelFacts, options: EngineOptions, size: ContextSize) -> MemoryNeed:
    """Estimate the memory of an engine with these options, with all that drafts for it."""
    n_states = n_snapshots(facts, options, min(options.n_ubatch, size.n_cells))
    n_side_branches = n_branches(options, can_branch=not window_of(facts, options, size.n_cells))
    need = estimate(
        facts,
        n_cells=size.n_cells,
        kv_type=options.kv_type,
        n_slots=options.n_slots * (1 + n_states),
        n_ubatch=options.n_ubatch,
        n_outputs=n_outputs(options, n_side_branches),
        flash_attention=options.flash_attention != "off",
        cuts_windows=True,
    )
    return replace(need, draft=_draft_bytes(facts, options, size, n_side_branches))


def _draft_bytes(facts: ModelFacts, options: EngineOptions, size: ContextSize, n_side_branches: int) -> int:
    """Return what a draft model, a head in a file of its own, and the model's own prediction heads take."""
    if options.speculation == "off":
        return 0
    kv_type = options.kv_type
    heads = facts.mtp_kv_bytes_per_token(kv_type, kv_type) * size.n_cells if wants_mtp(facts, options) else 0
    try:
        draft = read_model(Path(options.draft_path)) if options.draft_path is not None else None
    except GgufError:
        return heads  # whoever loads it says what is wrong
    if draft is None:
        return heads
    need = estimate(
        draft,
        n_cells=size.n_cells,
        n_slots=options.n_slots,
        n_ubatch=options.n_ubatch,
        n_outputs=max(options.n_slots + n_side_branches, MOST_SHADOWED),
    )
    return heads + need.total


def _detail(need: MemoryNeed) -> str:
    draft = f", what drafts {need.draft / 1e9:.1f} GB" if need.draft else ""
    return (
        f"Weights take {need.weights / 1e9:.1f} GB, the KV cache {need.kv_cache / 1e9:.1f} GB{draft}. "
        "Choose a smaller quantisation or a smaller context, or close other programs."
    )


def _gpu_layers(asked: int | None, n_layers: int, need: MemoryNeed, gpu_free: int) -> int:
    """Return the layers to offload: as asked, else all that fit (-1 for every one)."""
    if not gpu_free:
        return 0
    if asked is not None:
        return asked if asked <= n_layers else ALL_LAYERS
    if need.total <= gpu_free:
        return ALL_LAYERS
    per_layer = (need.weights + need.kv_cache) // (n_layers + 1)
    return int(max(0, min(n_layers, (gpu_free - need.compute - need.draft) // max(per_layer, 1))))


def layers_on_gpu(n_gpu_layers: int, n_layers: int) -> int:
    """Return a number of offloaded layers as a count, the output being one more."""
    return n_layers + 1 if n_gpu_layers == ALL_LAYERS else n_gpu_layers
