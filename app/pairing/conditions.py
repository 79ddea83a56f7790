"""What a pair would find on this machine: memory beside the model, the cost of a row, heads that llama.cpp can run."""

from __future__ import annotations

from app.server.settings import ServerSettings
from core.llama.backends import gpu_backends
from core.sizing import choose_context
from models.memory import USABLE_SHARE, estimate, free_memory
from models.model_facts import ModelFacts
from models.pairing.gain import CPU_ROW, GPU_ROW, Kind
from models.pairing.partner import Conditions

USUAL = ServerSettings()


def conditions_of(facts: ModelFacts, settings: ServerSettings = USUAL) -> Conditions:
    """Return the conditions beside a model that a server loads with these settings.

    Where llama.cpp has a GPU, only the engine knows what is free: the room is unknown.
    """
    free = int(free_memory() * USABLE_SHARE)
    kv_type = settings.kv_type or "f16"
    size = choose_context(
        n_ctx=settings.n_ctx,
        n_cells=None,
        n_slots=settings.n_slots,
        n_ctx_train=facts.n_ctx_train,
        kv_bytes_per_token=facts.kv_bytes_per_token(kv_type, kv_type),
        free_bytes=max(free - facts.weight_bytes, 0),
    )
    has_gpu = settings.n_gpu_layers != 0 and bool(gpu_backends())
    need = estimate(facts, size.n_cells, kv_type=kv_type, n_slots=settings.n_slots)
    return Conditions(
        n_cells=size.n_cells,
        n_slots=settings.n_slots,
        room=None if has_gpu else free - need.total,
        row_cost=GPU_ROW if has_gpu else CPU_ROW,
        why_no_head=why_no_head,
    )


def machine_key() -> str:
    """Return the name under which this machine's measurements of pairs are kept."""
    from core.measurements import measurement_key

    return measurement_key("pair", *gpu_backends())


def why_no_head(kind: Kind) -> str | None:
    """Return why the llama.cpp here cannot run heads of a kind, as a sentence, or None."""
    # Loads llama.cpp, so it is asked only where there is a head that fits otherwise.
    from core.llama.heads import HeadKind, why_unavailable

    return why_unavailable(HeadKind.MTP if kind is Kind.MTP else HeadKind.EAGLE3)
