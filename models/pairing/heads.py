"""Which draft heads belong to a model, by the headers of both."""

from __future__ import annotations

import struct
from collections.abc import Mapping

from models.facts import architectures
from models.facts.model_facts import ModelFacts
from models.formatting.sentence import Sentence
from models.gguf.header import GgufHeader, TensorInfo
from models.pairing.gain import ProposerKind

IN_FILES: Mapping[str, str] = {ProposerKind.EAGLE3: "EAGLE-3 head", ProposerKind.DFLASH: "DFlash head"}
"""Names of heads in files of their own, by architecture."""
KINDS = {"model": "small model", "mtp": "heads in its file", **IN_FILES}
"""The kinds of drafts in words, by ``ProposerKind``."""
# llama.cpp's default if a file does not say (common/speculative.cpp).
USUAL_BLOCK = 16
_TABLES = ("token_embd.weight", "output.weight")


def why_no_mtp(facts: ModelFacts) -> str | None:
    """Why a model's prediction heads cannot be used, as a sentence; None if they can.

    The reasons after the first are those for which llama.cpp would abort.
    """
    if not facts.n_mtp_layers:
        return Sentence("The file carries no prediction heads.")
    if facts.architecture not in architectures.RUN_MTP_HEADS:
        return Sentence(
            "llama.cpp has no graph for the prediction heads of the architecture {architecture}.",
            architecture=facts.architecture,
        )
    if facts.n_mtp_layers > 1 and facts.architecture not in architectures.FIRST_MTP_HEAD_OF_SEVERAL:
        return Sentence(
            "The file carries {n_mtp_layers} prediction heads, and llama.cpp runs one for this architecture.",
            n_mtp_layers=facts.n_mtp_layers,
        )
    return None


def why_not_kind(architecture: str) -> str | None:
    """Why a head of this architecture does not run here, as a sentence, or None."""
    if architecture in IN_FILES or architecture not in architectures.DRAFT_HEADS:
        return None
    return Sentence(
        "It is a drafting head of the kind {architecture}, which Slipstream does not run. EAGLE-3 "
        "and DFlash heads and small models of the same vocabulary can draft.",
        architecture=architecture,
    )


def why_no_file(target: ModelFacts) -> str | None:
    """Why no head in a file of its own can draft for ``target``, or None."""
    if target.architecture in architectures.HAND_OUT_LAYERS:
        return None
    return Sentence(
        "llama.cpp exports no hidden states of layers for the architecture {architecture}.",
        architecture=target.architecture,
    )


def why_not_file(header: GgufHeader, target: ModelFacts) -> str | None:
    """Why a head does not belong to ``target``, or would make llama.cpp abort; None if it fits.

    Vocabularies are not compared. Raises GgufError.
    """
    reason = why_no_file(target)
    if reason is not None:
        return reason
    kind = header.text("general.architecture") or ""
    if kind == ProposerKind.DFLASH:
        reason = _why_not_variant(header)
    if reason is not None:
        return reason
    width = "target_hidden_size" if kind == ProposerKind.EAGLE3 else "embedding_length"
    made_for = header.integer(f"{kind}.{width}")
    if made_for != target.n_embd:
        return Sentence(
            "It was made for a model of width {made_for}, and this one's is {n_embd}.",
            made_for=made_for,
            n_embd=target.n_embd,
        )
    layers = header.integers(f"{kind}.target_layers") or ()
    bad = [layer for layer in layers if not 0 <= layer < target.n_layers]
    if bad:
        return Sentence(
            "It reads layer {layer}, and the model has layers 0 to {last}.", layer=bad[0], last=target.n_layers - 1
        )
    return _why_not_shape(header, kind, target) or (
        _why_not_block(header, target) if kind == ProposerKind.DFLASH else None
    )


def block_size(header: GgufHeader) -> int:
    """How many rows a DFlash head was trained to evaluate at once: the last token and masks."""
    found = header.integer(f"{ProposerKind.DFLASH}.block_size")
    return found if found is not None else USUAL_BLOCK


def is_causal(header: GgufHeader) -> bool:
    """Whether the rows of a DFlash head's block attend only to those before them."""
    return header.metadata.get(f"{ProposerKind.DFLASH}.attention.causal") is True


def _why_not_variant(header: GgufHeader) -> str | None:
    """Why a head that llama.cpp calls DFlash is of another kind, or None."""
    names = {tensor.name for tensor in header.tensors}
    if "selector_hidden.weight" in names:
        variant = "DFlash 2, which chooses among paths through its block"
    elif "markov_w1.weight" in names:
        variant = "DSpark, which lets each token of a block depend on the one before"
    elif header.integer(f"{ProposerKind.DFLASH}.hyper_connection.count"):
        variant = "DSpark for DeepSeek-V4"
    else:
        return None
    return Sentence(
        "It is a head of the kind {variant}. Slipstream runs DFlash heads of the first kind.", variant=variant
    )


def _why_not_block(header: GgufHeader, target: ModelFacts) -> str | None:
    if block_size(header) < 2:
        return Sentence("Its blocks have {n_rows} rows, so it drafts nothing.", n_rows=block_size(header))
    mask, n_tokens = header.integer("tokenizer.ggml.mask_token_id"), header.count("tokenizer.ggml.tokens") or 0
    if mask is None or not 0 <= mask < min(n_tokens, target.n_vocab):
        return Sentence("It does not name a token that stands for those to be drafted (mask_token_id).")
    return None


def _why_not_shape(header: GgufHeader, kind: str, target: ModelFacts) -> str | None:
    tensors = {tensor.name: tensor for tensor in header.tensors}
    width = header.integer(f"{kind}.embedding_length")
    if any(name not in tensors for name in _TABLES) and width != target.n_embd:
        return Sentence(
            "It has no embeddings of its own and its width is {width}, while the model's is {n_embd}.",
            width=width,
            n_embd=target.n_embd,
        )
    if kind == ProposerKind.EAGLE3 and header.integer(f"{kind}.block_count") != 1:
        return Sentence("An EAGLE-3 head has one layer.")
    usual = (width or 0) // max(header.integer(f"{kind}.attention.head_count") or 1, 1)
    key, value = (header.integer(f"{kind}.attention.{of}_length") or usual for of in ("key", "value"))
    if key != value:
        return Sentence("Its keys and values differ in length.")
    return _why_not_tables(header, tensors, target.n_vocab)


def _why_not_tables(header: GgufHeader, tensors: Mapping[str, TensorInfo], n_target: int) -> str | None:
    """Why a head's token tables would make llama.cpp read beyond their end."""
    n_tokens = header.count("tokenizer.ggml.tokens") or 0
    embeddings, output, ids = (tensors.get(name) for name in (*_TABLES, "d2t"))
    if embeddings is not None and embeddings.shape[-1] < n_target:
        return Sentence(
            "It has embeddings for {value:,} tokens and the model has {n_target:,}.",
            value=embeddings.shape[-1],
            n_target=n_target,
        )
    if output is None and n_tokens != n_target:
        return Sentence(
            "It has no output of its own and has {n_tokens:,} tokens, while the model has {n_target:,}.",
            n_tokens=n_tokens,
            n_target=n_target,
        )
    if ids is None:
        return None
    if output is None or ids.type.name != "I64" or ids.n_elements > n_tokens:
        return Sentence("Its table of token ids (d2t) does not go with an output of its own.")
    raw = header.source.read_at(header.data_offset + ids.offset, ids.n_bytes)
    values = struct.unpack(f"<{len(raw) // 8}q", raw[: len(raw) // 8 * 8])
    if min(values, default=0) < 0 or max(values, default=0) >= n_tokens:
        return Sentence(
            "Its table of token ids (d2t) names tokens that are not among its {n_tokens:,}.", n_tokens=n_tokens
        )
    return None
