"""The memory of a load, asked for and needed: facts of the file, sizes of its context, and a dry run."""

from __future__ import annotations

import json
import subprocess
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import cast

from core.process.child_process import run_module
from core.values.engine_options import MAX_DRAFT_DEPTH, MAX_READ_ALONG, EngineOptions, KvType, whole_lines
from core.values.errors import LoadFailed, SlipstreamError
from models.estimate.fit.memory import EngineShape, MemoryNeed, cells_in_window
from models.estimate.fit.plan import LoadSetting
from models.estimate.fit.search import KV_TYPES, FitRequest, usual_ctx
from models.facts.model_facts import ModelFacts, read_model
from models.facts.projector import read_projector
from models.formatting.json_values import value_of
from models.gguf.errors import GgufError


def read_facts(path: str) -> ModelFacts:
    """Read the header of a model that can be used here; raises LoadFailed."""
    try:
        facts = read_model(Path(path))
    except GgufError as error:
        raise LoadFailed(str(error)) from error
    if facts.problem:
        raise LoadFailed(facts.problem)
    return facts


def fit_request_of(
    facts: ModelFacts, options: EngineOptions, draft: ModelFacts | None, *, uses_heads: bool
) -> FitRequest:
    """Return the fit request: set options are fixed. ``draft`` drafts, or with ``uses_heads`` the model's own heads."""
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


def read_instead(facts: ModelFacts, n_ctx: int) -> dict[str, int]:
    """Return the metadata with which to load a model for requests of ``n_ctx`` tokens, in place of the file's.

    llama.cpp chooses the factors of LongRoPE by all cells together (``llama_model::get_rope_factors``). So where each
    request is short, the model is told that its cells never are more than what it was trained for first.
    """
    if n_ctx > facts.n_ctx_short:
        return {}
    return {f"{facts.architecture}.rope.scaling.original_context_length": (1 << 31) - 1}


# Logits of more rows than this would take memory for drafts that hardly ever pay.
_MOST_OUTPUTS = 128
# Snapshots of recurrent states may take this share of what the weights take: a load leaves room for it. Fewer than two
# are not worth the memory.
_SNAPSHOT_SHARE, _FEWEST_SNAPSHOTS = 1 / 16, 2


def n_snapshots(facts: ModelFacts, options: EngineOptions, n_ubatch: int) -> int:
    """Return how many recurrent states to keep of each slot beside the latest, so that drafts can be taken back.

    At most as many as are drafted; 0 where a state's size is not known. llama.cpp evaluates a sequence's latest
    ``n_rs_seq + 1`` rows together and aborts where ``n_ubatch`` has no room for more than those.
    """
    if options.speculation == "off" or not facts.state_bytes:
        return 0
    affordable = int(facts.weight_bytes * _SNAPSHOT_SHARE) // (facts.state_bytes * options.n_slots)
    most = min(affordable, MAX_DRAFT_DEPTH, n_ubatch - 2)
    return most if most >= _FEWEST_SNAPSHOTS else 0


def n_outputs(options: EngineOptions) -> int:
    """Return how many rows of a step may want logits: one for each slot, and those of drafted tokens.

    llama.cpp wants at least one for each sequence of a context, and there is one more of those.
    """
    if options.speculation == "off":
        return options.n_slots + 1
    most = min(options.n_slots * (1 + MAX_DRAFT_DEPTH), max(_MOST_OUTPUTS, 2 * options.n_slots))
    return max(most, options.n_slots + 1)


def cuts_windows(facts: ModelFacts, options: EngineOptions, n_cells: int) -> bool:
    """Return whether layers with a sliding window get fewer cells than the others.

    Room for only what is in sight saves memory, and time where rows attend to all cells. In return texts cannot be
    shared between running sequences, and lose what is out of sight sooner.
    """
    return cells_in_window(facts, n_cells, options.n_slots, options.n_ubatch) < n_cells


# Seconds for a dry run; it takes about half of one.
_CHILD_SECONDS = 60


def dry_run(options: EngineOptions) -> MemoryNeed:
    """Return the bytes that the engine would take with these options, without its draft; raises LoadFailed.

    Weights are the tensors of the file: llama.cpp does not say how it would lay them out. Takes about half a second.
    """
    try:
        child = run_module("core.loading.memory_fit", seconds=_CHILD_SECONDS, text=json.dumps(asdict(options)))
        fields = json.loads(child.stdout) if child.returncode == 0 else None
    except (OSError, ValueError, subprocess.TimeoutExpired):
        fields = None
    if not isinstance(fields, dict):
        raise LoadFailed("llama.cpp cannot say what {name} would take.", name=Path(options.model_path).name)
    if "problem" in fields:
        raise LoadFailed(value_of(str, fields["problem"]))
    return MemoryNeed(**fields)


def compute_bytes(options: EngineOptions) -> int | None:
    """Return the bytes of compute buffers with these options; None if the dry run fails."""
    if options.workers:
        return None  # a worker lends its devices to one process only, which is this one
    try:
        return dry_run(options).compute
    except SlipstreamError:
        return None
