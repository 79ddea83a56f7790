"""The facts of a model's header that are shown. Importing this is quick."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from models.facts.model_facts import ModelFacts


@dataclass(frozen=True, slots=True)
class HeaderFacts:
    """The shown facts; sizes are in bytes."""

    architecture: str = ""
    quantisation: str = ""
    licence: str | None = None
    n_params: int = 0
    n_active_params: int = 0
    n_ctx_train: int = 0
    n_layers: int = 0
    n_experts: int = 0
    n_experts_used: int = 0
    n_vocab: int = 0
    weight_bytes: int = 0
    bytes_per_token: int = 0
    kv_bytes_per_token: int = 0
    tokenizer: str | None = None
    has_chat_template: bool = False


def header_facts(facts: ModelFacts) -> HeaderFacts:
    """Return the shown ones of a model's facts."""
    return HeaderFacts(
        architecture=facts.architecture,
        quantisation=facts.quantisation,
        licence=facts.licence,
        n_params=facts.n_params,
        n_active_params=facts.n_active_params,
        n_ctx_train=facts.n_ctx_train,
        n_layers=facts.n_layers,
        n_experts=facts.n_experts,
        n_experts_used=facts.n_experts_used,
        n_vocab=facts.n_vocab,
        weight_bytes=facts.weight_bytes,
        bytes_per_token=facts.active_bytes_per_token,
        kv_bytes_per_token=facts.kv_bytes_per_token(),
        tokenizer=facts.tokenizer,
        has_chat_template=facts.has_chat_template,
    )
