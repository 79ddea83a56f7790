"""Free memory, and an estimate of the memory that a model needs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import psutil

from models.estimate.fit.control_groups import CGROUP_MEMBERSHIP, CGROUP_MOUNT, cgroup_folders
from models.facts.model_facts import ModelFacts

# llama.cpp rounds the number of cells up to this.
CELL_PADDING = 256
# The share of free memory that a model may take; the rest is left for other uses.
USABLE_SHARE = 0.95
_F32, _F16 = 4, 2


@dataclass(frozen=True, slots=True)
class MemoryNeed:
    """Bytes that a loaded model takes.

    ``draft`` is what its draft models and heads take.
    """

    weights: int
    kv_cache: int
    compute: int
    draft: int = 0
    projector: int = 0

    @property
    def total(self) -> int:
        """Bytes altogether."""
        return self.weights + self.kv_cache + self.compute + self.draft + self.projector


@dataclass(frozen=True, slots=True)
class EngineShape:
    """The sizes that decide how much memory an engine takes besides weights and cached tokens.

    ``n_states`` recurrent states are kept for each of ``n_slots`` requests. A step has ``n_ubatch`` rows, of which
    ``n_outputs`` may want logits (None: one for each slot), and ``draft_outputs`` in a draft model. ``uses_heads``: the
    prediction heads in the model's file draft, with a cache of their own. A projector takes ``projector_bytes``.
    """

    n_slots: int = 1
    n_states: int = 1
    n_ubatch: int = 512
    n_outputs: int | None = None
    flash_attention: bool = True
    draft_outputs: int | None = None
    uses_heads: bool = False
    projector_bytes: int = 0

    def need(self, facts: ModelFacts, n_cells: int, kv_type: str, draft: ModelFacts | None = None) -> MemoryNeed:
        """Estimate the memory of such an engine with ``n_cells`` KV cells, with its draft models and heads."""
        need = estimate(facts, n_cells, self, kv_type=kv_type, cuts_windows=True)
        # Drafts always have an F16 cache.
        drafts = facts.mtp_kv_bytes_per_token() * n_cells if self.uses_heads else 0
        if draft is not None:
            own = EngineShape(self.n_slots, n_ubatch=self.n_ubatch, n_outputs=self.draft_outputs)
            drafts += estimate(draft, n_cells, own).total
        return replace(need, draft=drafts, projector=self.projector_bytes)


ONE_REQUEST = EngineShape()
"""An engine for one request that drafts nothing."""


def estimate(
    facts: ModelFacts,
    n_cells: int,
    shape: EngineShape = ONE_REQUEST,
    *,
    kv_type: str = "f16",
    cuts_windows: bool = False,
) -> MemoryNeed:
    """Estimate the memory of one context with ``n_cells`` KV cells.

    The KV cache is as llama.cpp allocates it; compute buffers follow its graph for dense and expert layers. With
    ``cuts_windows`` layers with a sliding window keep only the window if that saves much (``cells_in_window``).
    """
    n_kv = -(-n_cells // CELL_PADDING) * CELL_PADDING
    n_slots, n_ubatch = shape.n_slots * shape.n_states, shape.n_ubatch
    state = facts.state_bytes * n_slots
    n_outputs = shape.n_outputs or shape.n_slots
    in_windows = facts.kv_bytes_in_windows(kv_type)
    n_in_sight = cells_in_window(facts, n_kv, n_slots, n_ubatch) if cuts_windows else n_kv
    n_masked = n_kv + n_in_sight if in_windows else n_kv
    compute = _compute_bytes(facts, n_kv, n_masked, min(n_ubatch, n_kv), n_outputs, shape.flash_attention)
    everywhere = facts.kv_bytes_per_token(kv_type) + facts.idle_kv_bytes_per_token(kv_type)
    kv_cache = n_kv * (everywhere - in_windows) + n_in_sight * in_windows
    return MemoryNeed(facts.weight_bytes, kv_cache * facts.n_caches(shape.n_slots) + state, compute)


def cells_in_window(facts: ModelFacts, n_cells: int, n_slots: int, n_ubatch: int) -> int:
    """Return how many of ``n_cells`` cells the sliding-window layers keep (llama_kv_cache_iswa).

    They keep all if there is no window, or if that takes at most twice the memory, because texts can then be shared and
    cut anywhere.
    """
    if not facts.window:
        return n_cells
    n_together = n_slots // facts.n_caches(n_slots)
    in_sight = -(-(facts.window * n_together + n_ubatch) // CELL_PADDING) * CELL_PADDING
    return in_sight if 2 * in_sight < n_cells else n_cells


def free_memory() -> int:
    """Bytes that a process can still allocate on this machine, within the limit of its control group."""
    limits = [psutil.virtual_memory().available, *cgroup_free(CGROUP_MEMBERSHIP, CGROUP_MOUNT)]
    return max(0, min(limits))


def total_memory() -> int:
    """Bytes of this machine's memory, or those that a process's control group may take if that is less."""
    folders = cgroup_folders(CGROUP_MEMBERSHIP, CGROUP_MOUNT, "memory")
    limits = [limit for folder in folders for limit in _limits_in(folder)]
    return min([psutil.virtual_memory().total, *limits])


def cgroup_free(membership: Path, mount: Path) -> list[int]:
    """Bytes left below each memory limit of this process; empty without limits.

    ``membership`` is the process's /proc/<pid>/cgroup, ``mount`` the place where control groups are mounted.
    """
    left = (_left_in(folder) for folder in cgroup_folders(membership, mount, "memory"))
    return [n_bytes for n_bytes in left if n_bytes is not None]


def _compute_bytes(
    facts: ModelFacts, n_kv: int, n_masked: int, n_rows: int, n_outputs: int, flash_attention: bool
) -> int:
    """The larger of a layer's and the output's intermediate results, plus the logits.

    Each row has a mask for ``n_masked`` cells: one of all, and another of those in layers with a window.
    """
    n_attention = max(facts.n_embd, facts.n_heads * facts.key_length)
    # Gate, up and their product, once per chosen expert.
    n_feed_forward = 3 * max(facts.n_ff, (facts.n_ff_expert or facts.n_ff) * facts.n_experts_used)
    layer = n_rows * (4 * n_attention + n_feed_forward) * _F32
    mask = n_rows * n_masked * (_F16 if flash_attention else _F32)
    scores = 0 if flash_attention else facts.n_heads * n_rows * n_kv * _F32
    logits = facts.n_vocab * min(n_rows, n_outputs) * _F32
    return max(layer + mask + scores, logits + 2 * n_rows * facts.n_embd * _F32) + facts.n_vocab * n_outputs * _F32


# The files of a limit and of the use, and how names in the statistics begin, by the version of control groups.
_FILES = (("memory.max", "memory.current", ""), ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_"))


def _limits_in(folder: Path) -> list[int]:
    """The limit of one group, if it has one."""
    return [limit for name, _, _ in _FILES if (limit := _number(folder / name)) is not None]


def _left_in(folder: Path) -> int | None:
    """Bytes left in one group: its limit less its use, where cached files count as free."""
    for limit_name, use_name, prefix in _FILES:
        limit, use = _number(folder / limit_name), _number(folder / use_name)
        if limit is not None and use is not None:
            cached = _statistics(folder / "memory.stat", (f"{prefix}inactive_file", f"{prefix}active_file"))
            return limit - use + cached
    return None


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        # "max" means that there is no limit.
        return None


def _statistics(path: Path, names: tuple[str, ...]) -> int:
    try:
        pairs = (line.split() for line in path.read_text().splitlines())
        return sum(int(pair[1]) for pair in pairs if len(pair) == 2 and pair[0] in names)
    except (OSError, ValueError):
        return 0
