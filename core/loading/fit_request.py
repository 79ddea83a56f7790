"""What a load asks for: the facts in the file, the fit request of engine options, the number of KV cells."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from core.kv_cache.context_shape import MAX_READ_ALONG, n_outputs, n_snapshots
from core.values.engine_options import EngineOptions, KvType
from core.values.errors import LoadFailed
from core.values.step_kind import whole_lines
from models.estimate.fit.memory import EngineShape
from models.estimate.fit.plan import LoadSetting
from models.estimate.fit.search import KV_TYPES, FitRequest, usual_ctx
from models.facts.model_facts import ModelFacts, read_model
from models.facts.projector import read_projector
from models.gguf.errors import GgufError


def fit_request_of(
    facts: ModelFacts, options: EngineOptions, draft: ModelFacts | None, *, uses_heads: bool
) -> FitRequest:
    """Return the fit request: options that are set are fixed, the others are to be chosen.

    ``draft`` is the model that drafts; ``uses_heads`` says whether the prediction heads in the model's file do.
    """
    # If ``n_cells`` is set, it bounds the context of all requests together.
    n_ctx = options.n_cells or options.n_ctx
    return FitRequest(
        n_ctx=n_ctx or usual_ctx(facts),
        kv_types=(options.kv_type,) if options.kv_type is not None else KV_TYPES,
        draft=draft,
        shape=engine_shape(facts, options, uses_heads=uses_heads),
        n_gpu_layers=options.n_gpu_layers,
        n_cpu_moe=options.n_cpu_moe,
        may_shorten=n_ctx is None,
        must_draft=options.must_draft,
    )


def with_setting(options: EngineOptions, setting: LoadSetting) -> EngineOptions:
    """Return the options with the setting of a plan that was found for them."""
    return replace(
        options,
        n_ctx=min(options.n_ctx or setting.n_ctx, setting.n_ctx),
        n_cells=setting.n_ctx,
        n_gpu_layers=setting.n_gpu_layers,
        n_cpu_moe=setting.n_cpu_moe,
        kv_type=cast("KvType", setting.kv_type),
    )


def engine_shape(facts: ModelFacts, options: EngineOptions, *, uses_heads: bool) -> EngineShape:
    """Return the sizes that determine the memory of an engine with these options."""
    return EngineShape(
        n_slots=options.n_slots,
        n_states=1 + n_snapshots(facts, options, options.n_ubatch),
        n_ubatch=options.n_ubatch,
        n_outputs=whole_lines(n_outputs(options)),
        flash_attention=options.flash_attention != "off",
        draft_outputs=whole_lines(max(options.n_slots, MAX_READ_ALONG)),
        uses_heads=uses_heads,
        projector_bytes=_projector_bytes(options),
    )


def _projector_bytes(options: EngineOptions) -> int:
    """Return what the projector takes; 0 where it cannot be read (loading it reports the error)."""
    try:
        return read_projector(Path(options.mmproj)).n_bytes if options.mmproj is not None else 0
    except GgufError:
        return 0


# Cells beyond one request's context may take this share of the memory that the weights leave.
_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class ContextSize:
    """``n_ctx`` tokens for one request, ``n_cells`` KV cells for all of them."""

    n_ctx: int
    n_cells: int


def pool_cells(n_ctx: int, n_slots: int, kv_bytes_per_token: int, free_bytes: int) -> int:
    """Return the cells for ``n_slots`` requests of ``n_ctx`` tokens; ``free_bytes`` is what the weights leave.

    Enough for every slot, but at most a quarter of ``free_bytes``; always enough for one request.
    """
    affordable = int(max(free_bytes, 0) * _SHARE) // max(kv_bytes_per_token, 1)
    return max(n_ctx, min(n_ctx * n_slots, affordable))


def read_facts(path: str) -> ModelFacts:
    """Read the header of a model that can be used here; raises LoadFailed."""
    try:
        facts = read_model(Path(path))
    except GgufError as error:
        raise LoadFailed(str(error)) from error
    if facts.problem:
        raise LoadFailed(facts.problem)
    return facts
