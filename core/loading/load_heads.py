"""Makes the draft heads of a loaded model: heads in the model's file, or a head in a separate file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from core.cost.calibration import assumed_for, cost_model_of, steps_key
from core.cost.cost_model import CostModel
from core.cost.read_cost import ReadCost
from core.cost.threads import ThreadChoice, ThreadControl, thread_control
from core.llama import heads
from core.llama.batch import Batch
from core.llama.context import Context
from core.llama.heads import HeadKind, StateBatch
from core.llama.model import Model
from core.llama.vocab import Vocab
from core.loading.context_size import ContextSize
from core.machine.measurements import Measurements
from core.speculation.proposers.autoregressive_head import MOST_OUTPUTS
from core.speculation.proposers.dflash import DFlashProposer
from core.speculation.proposers.eagle3 import Eagle3Proposer
from core.speculation.proposers.mtp import MtpProposer
from core.values.engine_options import MAX_DRAFT_DEPTH, EngineOptions
from core.values.errors import LoadFailed
from models.facts.model_facts import ModelFacts, read_model
from models.gguf.errors import GgufError
from models.gguf.header import GgufHeader, read_header
from models.pairing import heads as rules
from models.pairing.vocabulary import why_not

_KV_TYPE = "f16"


@dataclass(frozen=True, slots=True)
class LoadedTarget:
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
    """Return why a model's prediction heads cannot be used, as a sentence; None where they can."""
    return rules.why_no_mtp(facts) or heads.why_unavailable(HeadKind.MTP)


def wants_mtp(facts: ModelFacts, options: EngineOptions) -> bool:
    """Return whether to load a model's prediction heads; with speculation "draft", a draft file replaces them."""
    if options.speculation == "off" or not options.uses_heads:
        return False
    if options.speculation == "draft" and options.draft_path is not None:
        return False
    return why_no_mtp(facts) is None


def why_left_out(facts: ModelFacts, options: EngineOptions) -> tuple[str, ...]:
    """Return sentences about heads that this engine or this build of llama.cpp cannot use."""
    if options.speculation == "off":
        return ()
    left_out = []
    if facts.n_mtp_layers and options.uses_heads and (reason := why_no_mtp(facts)):
        left_out.append(f"The prediction heads of {options.model_path} are not used. {reason}")
    # Read the draft file only if the build lacks some kind of head; errors in the file are reported later.
    can_lack = options.draft_path is not None and any(heads.why_unavailable(kind) for kind in HeadKind)
    kind = head_kind(options.draft_path) if options.draft_path is not None and can_lack else None
    if kind is not None and (reason := heads.why_unavailable(kind)):
        left_out.append(f"{options.draft_path} does not draft. {reason}")
    return tuple(left_out)


def mtp_head(target: LoadedTarget) -> MtpProposer:
    """Return the proposer of a model that was loaded with its prediction heads."""
    width = heads.hidden_width(target.model)
    reads = ReadCost.of_mtp_head(target.facts, _KV_TYPE)
    make_batch = partial(StateBatch, width=width)
    context = _context(target, target.model, is_mtp=True)
    path = target.options.model_path
    with _measured(target, context, make_batch, path, target.model, HeadKind.MTP, reads) as (cost, threads):
        head = MtpProposer(
            context,
            target.context,
            cost,
            n_slots=target.options.n_slots,
            width=width,
            reads=reads,
            threads=threads,
        )
    return head


def head_kind(path: str) -> HeadKind | None:
    """Return the kind of head in a draft file, None for a model; raises LoadFailed for heads that do not run here."""
    try:
        facts = read_model(Path(path))
    except GgufError as error:
        raise LoadFailed(str(error)) from error
    reason = rules.why_not_kind(facts.architecture)
    if reason:
        raise LoadFailed(f"{path} cannot be used. {reason}")
    return HeadKind(facts.architecture) if facts.architecture in rules.IN_FILES else None


def runs_here(kind: HeadKind | None) -> bool:
    """Return whether this build of llama.cpp can draft with a file of this kind; None is a model."""
    return kind is None or heads.why_unavailable(kind) is None


def file_head(target: LoadedTarget, path: str, kind: HeadKind) -> Eagle3Proposer | DFlashProposer:
    """Return the proposer in the file ``path``; raises LoadFailed where it does not belong to the target.

    This build of llama.cpp must be able to run it (``why_unavailable``).
    """
    options = target.options
    try:
        header = read_header(Path(path))
        reason = rules.why_not_file(header, target.facts)
    except GgufError as error:
        raise LoadFailed(str(error)) from error
    if reason:
        raise _refusal(target, path, reason)
    model = Model(path, n_gpu_layers=target.n_gpu_layers, mmap=options.mmap, devices=options.devices)
    try:
        reason = why_not(target.vocab, Vocab(model))
        if reason:
            raise _refusal(target, path, reason)
        if kind is HeadKind.DFLASH:
            return _dflash_head(target, path, model, header)
        return _eagle_head(target, path, model)
    except BaseException:
        model.close()
        raise


def _eagle_head(target: LoadedTarget, path: str, model: Model) -> Eagle3Proposer:
    reads = ReadCost.of_head_file(read_model(Path(path)), target.facts, _KV_TYPE)
    make_batch = partial(StateBatch, width=heads.embedding_width(model))
    context = _context(target, model, borrows=True)
    with _measured(target, context, make_batch, path, model, HeadKind.EAGLE3, reads) as (cost, threads):
        head = Eagle3Proposer(
            model,
            context,
            target.context,
            cost,
            n_slots=target.options.n_slots,
            target_width=heads.embedding_width(target.model),
            reads=reads,
            threads=threads,
        )
    return head


def _dflash_head(target: LoadedTarget, path: str, model: Model, header: GgufHeader) -> DFlashProposer:
    reads = ReadCost.of_head_file(read_model(Path(path)), target.facts, _KV_TYPE)
    # The last token, and at most as many masks as tokens can be drafted.
    n_block = min(rules.block_size(header), MAX_DRAFT_DEPTH + 1)
    context = _context(target, model, borrows=True, n_block=n_block)
    heads.set_causal(context, rules.is_causal(header))
    with _measured(target, context, Batch, path, model, HeadKind.DFLASH, reads) as (cost, threads):
        head = DFlashProposer(
            model,
            context,
            target.context,
            cost,
            n_slots=target.options.n_slots,
            target_width=heads.embedding_width(target.model),
            n_block=n_block,
            reads=reads,
            threads=threads,
        )
    return head


def _refusal(target: LoadedTarget, path: str, reason: str) -> LoadFailed:
    return LoadFailed(f"{path} cannot draft for {target.options.model_path}. {reason}")


def _context(
    target: LoadedTarget, model: Model, *, is_mtp: bool = False, borrows: bool = False, n_block: int = 0
) -> Context:
    """Return a context with ``n_block`` extra cells for each slot."""
    options, threads = target.options, target.threads
    n_outputs = max(options.n_slots, MOST_OUTPUTS)
    context = Context(
        model,
        n_cells=target.size.n_cells + options.n_slots * n_block,
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


@contextmanager
def _measured(
    target: LoadedTarget,
    context: Context,
    make_batch: Callable[[int], Batch],
    path: str,
    model: Model,
    kind: HeadKind,
    reads: ReadCost,
) -> Iterator[tuple[CostModel, ThreadControl | None]]:
    """Yield the cost model and the thread control of a head's ``context``.

    If measuring or the block of the caller fails, the context is freed.
    """
    options = target.options
    conditions = (kind.value, options.devices, options.flash_attention, options.n_ubatch)
    try:
        key = steps_key(path, model, target.n_gpu_layers, target.threads, *conditions)
        assumed = assumed_for(options, reads, target.n_gpu_layers)
        cost = cost_model_of(context, options.n_ubatch, target.measured, key, reads, make_batch, assumed=assumed)
        yield cost, thread_control(context, cost, target.threads, target.n_gpu_layers)
    except BaseException:
        context.close()
        raise
