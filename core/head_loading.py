"""Makes the drafting heads of a loaded model: those in its own file, and one in a file of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from core.calibration import cost_model_of
from core.cost_model import CostModel
from core.errors import LoadFailed
from core.llama import heads
from core.llama.context import Context
from core.llama.heads import HeadKind, StateBatch
from core.llama.model import Model
from core.llama.vocab import Vocab
from core.measurements import Measurements, measurement_key
from core.meter import ReadCost
from core.options import EngineOptions
from core.sizing import ContextSize
from core.speculative.eagle3 import Eagle3Head
from core.speculative.head import MOST_OUTPUTS
from core.speculative.mtp import MtpHead
from core.speculative.vocab_match import why_not
from core.thread_choice import ThreadChoice
from core.thread_control import thread_control
from models import architectures
from models.gguf import GgufHeader, TensorInfo, read_header
from models.gguf_errors import GgufError
from models.model_facts import ModelFacts, read_model

EAGLE3 = "eagle3"
_KV_TYPE = "f16"
_TABLES = ("token_embd.weight", "output.weight")


@dataclass(frozen=True, slots=True)
class Target:
    """A loaded model, and how it was loaded."""

    model: Model
    vocab: Vocab
    context: Context
    facts: ModelFacts
    options: EngineOptions
    size: ContextSize
    threads: ThreadChoice
    n_gpu_layers: int
    measured: Measurements


def why_no_mtp(facts: ModelFacts) -> str | None:
    """Return why a model's prediction heads cannot be used, as a sentence; None where they can.

    The reasons after the first are those for which llama.cpp would abort.
    """
    if not facts.n_mtp_layers:
        return "The file carries no prediction heads."
    missing = heads.why_unavailable(HeadKind.MTP)
    if missing:
        return missing
    if facts.state_elements:
        return "Slipstream does not use heads with models that keep a running state."
    if facts.architecture not in architectures.RUN_MTP_HEADS:
        return f"llama.cpp has no graph for the prediction heads of the architecture {facts.architecture}."
    if facts.n_mtp_layers > 1 and facts.architecture not in architectures.FIRST_MTP_HEAD_OF_SEVERAL:
        return f"The file carries {facts.n_mtp_layers} prediction heads, and llama.cpp runs one for this architecture."
    return None


def wants_mtp(facts: ModelFacts, options: EngineOptions) -> bool:
    """Return whether to load a model's prediction heads; a draft that was asked for alone takes their place."""
    if options.speculation == "off" or (options.speculation == "draft" and options.draft_path is not None):
        return False
    return why_no_mtp(facts) is None


def why_left_out(facts: ModelFacts, options: EngineOptions) -> tuple[str, ...]:
    """Return sentences about the heads that are there and that this engine or this build of llama.cpp cannot use."""
    if options.speculation == "off":
        return ()
    left_out = []
    if facts.n_mtp_layers and (reason := why_no_mtp(facts)):
        left_out.append(f"The prediction heads of {options.model_path} are not used. {reason}")
    reason = heads.why_unavailable(HeadKind.EAGLE3)
    if reason and options.draft_path is not None and is_eagle(options.draft_path):
        left_out.append(f"{options.draft_path} does not draft. {reason}")
    return tuple(left_out)


def mtp_head(target: Target) -> MtpHead:
    """Return the drafter of a model that was loaded with its prediction heads."""
    width = heads.hidden_width(target.model)
    context = _context(target, target.model, is_mtp=True)
    try:
        cost = _cost(target, context, width, target.options.model_path, target.model, "mtp")
        reads = ReadCost.of_mtp_head(target.facts, _KV_TYPE)
        return MtpHead(
            context,
            target.context,
            cost,
            n_slots=target.options.n_slots,
            width=width,
            reads=reads,
            threads=thread_control(context, cost, target.threads, target.n_gpu_layers),
        )
    except BaseException:
        context.close()
        raise


def is_eagle(path: str) -> bool:
    """Return whether a draft file holds an EAGLE-3 head; raises LoadFailed for heads of kinds that do not run here."""
    try:
        facts = read_model(Path(path))
    except GgufError as error:
        raise LoadFailed(str(error)) from error
    if facts.architecture != EAGLE3 and facts.is_head:
        raise LoadFailed(
            f"{path} is a drafting head of the kind {facts.architecture}, which Slipstream does not run. "
            "EAGLE-3 heads and small models of the same vocabulary can draft."
        )
    return facts.architecture == EAGLE3


def eagle_head(target: Target, path: str) -> Eagle3Head:
    """Return the drafter in the file ``path``; raises LoadFailed where it does not belong to the target.

    This build of llama.cpp must be able to run it (``why_unavailable``).
    """
    options = target.options
    try:
        reason = _why_not_file(target, path)
    except GgufError as error:
        raise LoadFailed(str(error)) from error
    if reason:
        raise _refusal(target, path, reason)
    model = Model(path, n_gpu_layers=target.n_gpu_layers, mmap=options.mmap, devices=options.devices)
    try:
        reason = _why_not_head(target, model)
        if reason:
            raise _refusal(target, path, reason)
        context = _context(target, model, borrows=True)
        try:
            cost = _cost(target, context, heads.embedding_width(model), path, model, EAGLE3)
            reads = ReadCost.of(read_model(Path(path)), _KV_TYPE)
            width = heads.embedding_width(target.model)
            return Eagle3Head(
                model,
                context,
                target.context,
                cost,
                n_slots=options.n_slots,
                target_width=width,
                reads=reads,
                threads=thread_control(context, cost, target.threads, target.n_gpu_layers),
            )
        except BaseException:
            context.close()
            raise
    except BaseException:
        model.close()
        raise


def _refusal(target: Target, path: str, reason: str) -> LoadFailed:
    return LoadFailed(f"{path} cannot draft for {target.options.model_path}. {reason}")


def _why_not_file(target: Target, path: str) -> str | None:
    """Return what in a head's file would make llama.cpp abort once it runs beside the target."""
    if target.facts.architecture not in architectures.HAND_OUT_LAYERS:
        return f"llama.cpp hands out no hidden states of layers of the architecture {target.facts.architecture}."
    header = read_header(Path(path))
    tensors = {tensor.name: tensor for tensor in header.tensors}
    width = header.integer(f"{EAGLE3}.embedding_length")
    if any(name not in tensors for name in _TABLES) and width != target.facts.n_embd:
        return f"It has no embeddings of its own and its width is {width}, while the model's is {target.facts.n_embd}."
    if header.integer(f"{EAGLE3}.block_count") != 1:
        return "An EAGLE-3 head has one layer."
    usual = (width or 0) // max(header.integer(f"{EAGLE3}.attention.head_count") or 1, 1)
    key, value = (header.integer(f"{EAGLE3}.attention.{kind}_length") or usual for kind in ("key", "value"))
    if key != value:
        return "Its keys and values differ in length."
    return _why_not_tables(header, tensors, target.vocab.n_tokens)


def _why_not_tables(header: GgufHeader, tensors: Mapping[str, TensorInfo], n_target: int) -> str | None:
    """Return why a head's tables of tokens would let llama.cpp read beyond an end."""
    n_tokens = header.count("tokenizer.ggml.tokens") or 0
    embeddings, output, ids = (tensors.get(name) for name in (*_TABLES, "d2t"))
    if embeddings is not None and embeddings.shape[-1] < n_target:
        return f"It has embeddings for {embeddings.shape[-1]:,} tokens and the model has {n_target:,}."
    if output is None and n_tokens != n_target:
        return f"It has no output of its own and has {n_tokens:,} tokens, while the model has {n_target:,}."
    if ids is None:
        return None
    if output is None or ids.type.name != "I64" or ids.n_elements > n_tokens:
        return "Its table of token ids (d2t) does not go with an output of its own."
    values = np.frombuffer(header.source.read_at(header.data_offset + ids.offset, ids.n_bytes), "<i8")
    if values.min() < 0 or values.max() >= n_tokens:
        return f"Its table of token ids (d2t) names tokens that are not among its {n_tokens:,}."
    return None


def _why_not_head(target: Target, model: Model) -> str | None:
    """Return why a loaded head does not belong to the target."""
    width, layers = model.metadata(f"{EAGLE3}.target_hidden_size"), heads.target_layers(model)
    if width != str(target.facts.n_embd):
        return f"It was made for a model of width {width}, and this one's is {target.facts.n_embd}."
    bad = [layer for layer in layers if not 0 <= layer < target.model.n_layers]
    if bad:
        return f"It reads layer {bad[0]}, and the model has layers 0 to {target.model.n_layers - 1}."
    return why_not(target.vocab, Vocab(model))


def _context(target: Target, model: Model, *, is_mtp: bool = False, borrows: bool = False) -> Context:
    options, threads = target.options, target.threads
    n_outputs = max(options.n_slots, MOST_OUTPUTS)
    context = Context(
        model,
        n_cells=target.size.n_cells,
        n_sequences=options.n_slots,
        n_outputs=n_outputs,
        n_batch=max(options.n_ubatch, n_outputs),
        n_ubatch=max(options.n_ubatch, n_outputs),
        n_threads=threads.decode,
        flash_attention=options.flash_attention,
        is_mtp=is_mtp,
        target=target.context if borrows else None,
    )
    context.set_threads(threads.decode, threads.few, threads.many)
    return context


def _cost(target: Target, context: Context, width: int, path: str, model: Model, kind: str) -> CostModel:
    options = target.options
    conditions = (options.devices, options.flash_attention, kind, options.n_ubatch)
    key = measurement_key(Path(path).name, model.n_bytes, target.n_gpu_layers, target.threads, *conditions)
    return cost_model_of(context, options.n_ubatch, target.measured, key, partial(StateBatch, width=width))
