"""Facts about a loaded model."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SmallModel:
    """Facts about the draft model that can also answer alone; fields as in ``LoadedModel``."""

    name: str
    description: str
    n_bytes: int
    n_vocab: int
    n_ctx: int
    chat_template: str | None
    fim: tuple[str, str, str] | None


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """Facts about a loaded model and the options in effect.

    ``n_ctx`` is the context length of one request, ``n_cells`` the KV cells that all requests share. Experts of the
    first ``n_cpu_moe`` layers are in host memory. ``chat_template`` is the GGUF's jinja source, or None.
    ``bos``/``eos`` are the texts of these tokens ("" if none). ``fim`` holds the texts of the fill-in-the-middle
    prefix, suffix and middle tokens, or None. ``notices`` are sentences about parts that cannot be used. ``spark`` is
    the small model that answers if a request asks for it. If it is None, ``why_no_spark`` is a sentence. ``draft_path``
    is the file of the draft model or head, "" if none was loaded. ``has_heads``: the prediction heads in the model's
    file draft.
    """

    path: str
    description: str
    architecture: str
    n_params: int
    n_bytes: int
    n_vocab: int
    n_ctx_train: int
    n_ctx: int
    n_cells: int
    n_slots: int
    n_threads: int
    n_gpu_layers: int
    kv_type: str
    devices: tuple[str, ...]
    chat_template: str | None
    bos: str
    eos: str
    fim: tuple[str, str, str] | None
    load_seconds: float
    notices: tuple[str, ...] = ()
    spark: SmallModel | None = None
    why_no_spark: str = ""
    n_cpu_moe: int = 0
    draft_path: str = ""
    has_heads: bool = False
