"""Makes what drafts for a loaded model: heads in its file or in another, a draft model, and that model's own engine."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from core.cost.calibration import MeasuredContext
from core.cost.cost_model import CostModel, ReadCost
from core.cost.threads import ThreadChoice, thread_control
from core.engine.engine import Engine
from core.engine.meter import Meter
from core.kv_cache.memory import AttentionMemory, choose_memory
from core.kv_cache.slot_table import SlotTable
from core.llama import heads
from core.llama.heads import StateBatch, why_unavailable
from core.loading.contexts import (
    LoadedTarget,
    cannot_draft,
    closed_on_failure,
    draft_file,
    measure_context,
    open_side_context,
)
from core.loading.memory_fit import wants_mtp, why_no_mtp_here
from core.loading.memory_need import read_facts
from core.scheduler.input_processor import InputProcessor
from core.speculation.proposers.draft_model import DraftModelProposer
from core.speculation.proposers.free_proposers import NgramProposer
from core.speculation.proposers.heads import MOST_OUTPUTS, DFlashProposer, Eagle3Proposer, MtpProposer
from core.speculation.proposers.proposer import CostlyProposer
from core.speculation.speculator import Speculator
from core.values.engine_options import DEFAULT_KV_TYPE, MAX_DRAFT_DEPTH, MAX_READ_ALONG, EngineOptions
from core.values.errors import DraftRefused, LoadFailed
from core.values.messages import LoadedModel, SmallModel
from models.facts.model_facts import ModelFacts, read_model
from models.formatting import figures
from models.formatting.safe_text import in_utf8
from models.formatting.sentence import Sentence
from models.gguf.errors import GgufError
from models.gguf.header import read_header
from models.pairing import heads as rules
from models.pairing.gain import ProposerKind


def why_left_out(facts: ModelFacts, options: EngineOptions) -> tuple[str, ...]:
    """Return sentences about heads that this engine or this build of llama.cpp cannot use."""
    if options.speculation == "off":
        return ()
    left_out = []
    if facts.n_mtp_layers and options.uses_heads and (reason := why_no_mtp_here(facts)):
        left_out.append(
            Sentence(
                "The prediction heads of {model_path} are not used. {reason}",
                model_path=options.model_path,
                reason=reason,
            )
        )
    # Read the draft file only if the build lacks some kind of head; errors in the file are reported later.
    if options.draft_path is not None and any(map(why_unavailable, heads.KINDS)):
        reason = why_unavailable(kind_of_file(options.draft_path))
        if reason:
            left_out.append(
                Sentence("{draft_path} does not draft. {reason}", draft_path=options.draft_path, reason=reason)
            )
    return tuple(left_out)


def make_speculator(target: LoadedTarget, cost: CostModel, memory: AttentionMemory) -> Speculator | None:
    """Return the speculator with the proposers that the options select; raises DraftRefused for a wrong draft."""
    options = target.options
    if options.speculation == "off":
        return None
    paid: list[CostlyProposer] = []
    try:
        if options.draft_path is not None:
            paid += _named_draft(target, options.draft_path)
        if wants_mtp(target.facts, options):
            paid.append(_mtp_head(target))
    except BaseException:
        for proposer in paid:
            proposer.close()
        raise
    ngram = NgramProposer() if options.speculation != "draft" else None
    return Speculator(
        cost,
        n_ctx=target.size.n_ctx,
        ngram=ngram,
        paid=paid,
        fixed_depth=options.draft_depth,
        memory=memory,
        end_tokens=target.model.vocab.end_tokens,
        clock=target.clock,
    )


def _mtp_head(target: LoadedTarget) -> MtpProposer:
    model, options = target.model, target.options
    width = model.n_embd_out
    reads = ReadCost.of_mtp_head(target.facts, DEFAULT_KV_TYPE)
    context = open_side_context(
        model, options, target.threads, n_cells=target.size.n_cells, n_outputs=MOST_OUTPUTS, is_mtp=True
    )
    with closed_on_failure(context):
        make_batch = partial(StateBatch, width=width)
        own = measure_context(target, context, options.model_path, model, ProposerKind.MTP, reads, make_batch)
        return MtpProposer(own, target.context, width)


def kind_of_file(path: str) -> ProposerKind:
    """Return what drafts in a file; raises LoadFailed for heads that llama.cpp does not know."""
    try:
        facts = read_model(Path(path))
    except GgufError as error:
        raise LoadFailed(str(error)) from error
    reason = rules.why_not_kind(facts.architecture)
    if reason:
        raise LoadFailed("{path} cannot be used. {reason}", path=path, reason=reason)
    return ProposerKind(facts.architecture) if facts.architecture in rules.IN_FILES else ProposerKind.MODEL


def _file_head(target: LoadedTarget, path: str, kind: ProposerKind) -> Eagle3Proposer | DFlashProposer:
    """Return the head in ``path``, which this build can run; raises LoadFailed where it is not for the target."""
    try:
        header, facts = read_header(Path(path)), read_model(Path(path))
        reason = rules.why_not_file(header, target.facts)
    except GgufError as error:
        raise LoadFailed(str(error)) from error
    if reason:
        raise cannot_draft(target, path, reason)
    reads = ReadCost.of_head_file(facts, target.facts, DEFAULT_KV_TYPE)
    # The last token, and at most as many masks as tokens can be drafted. A block takes cells beside the text's.
    n_block = min(rules.block_size(header), MAX_DRAFT_DEPTH + 1) if kind is ProposerKind.DFLASH else 0
    n_cells = target.size.n_cells + target.options.n_slots * n_block
    with draft_file(target, path, facts) as model:
        context = open_side_context(
            model, target.options, target.threads, n_cells=n_cells, n_outputs=MOST_OUTPUTS, lender=target.context
        )
        with closed_on_failure(context):
            width = heads.embedding_width(target.model)
            if kind is ProposerKind.DFLASH:
                heads.set_causal(context, rules.is_causal(header))
                own = measure_context(target, context, path, model, kind, reads)
                return DFlashProposer(model, own, target.context, width, n_block)
            make_batch = partial(StateBatch, width=heads.embedding_width(model))
            own = measure_context(target, context, path, model, kind, reads, make_batch)
            return Eagle3Proposer(model, own, target.context, width)


def _named_draft(target: LoadedTarget, path: str) -> list[CostlyProposer]:
    """Return the proposer in the file ``path``; an empty list if this build of llama.cpp cannot run it."""
    try:
        kind = kind_of_file(path)
        if kind is ProposerKind.MODEL:
            return [_load_draft(target, path)]
        return [] if why_unavailable(kind) else [_file_head(target, path, kind)]
    except LoadFailed as error:
        raise DraftRefused(error.message) from error


def _load_draft(target: LoadedTarget, path: str) -> DraftModelProposer:
    options = target.options
    facts = read_facts(path)
    reason = facts.why_no_draft  # llama.cpp aborts where an encoder is made to write
    if reason is not None:
        raise cannot_draft(target, path, reason)
    if facts.weight_bytes > target.facts.weight_bytes:
        mine, its = figures.size(target.facts.weight_bytes), figures.size(facts.weight_bytes)
        raise LoadFailed(
            "{path} ({its}) is larger than {model_path} ({mine}), so drafting with it only costs time: "
            "choose a smaller draft model.",
            path=path,
            its=its,
            model_path=options.model_path,
            mine=mine,
        )
    with draft_file(target, path, facts) as model:
        context = open_side_context(
            model, options, target.threads, n_cells=target.size.n_cells, n_outputs=MAX_READ_ALONG
        )
        with closed_on_failure(context):
            own = measure_context(target, context, path, model, "draft", ReadCost.of(facts, DEFAULT_KV_TYPE))
            return DraftModelProposer(model, own, target.context.n_vocab)


# KV cells for all requests of the draft engine, or those of one request if that needs more.
_CELLS = 8_192


def small_model_facts(draft: DraftModelProposer, options: EngineOptions, n_ctx: int) -> SmallModel:
    """Return the facts of the draft model of a model with ``n_ctx`` tokens for each request."""
    assert options.draft_path is not None
    model, vocab = draft.model, draft.model.vocab
    return SmallModel(
        name=in_utf8(Path(options.draft_path).stem),
        description=model.description,
        n_bytes=model.n_bytes,
        n_vocab=vocab.n_tokens,
        n_ctx=min(n_ctx, model.n_ctx_train or n_ctx),
        chat_template=model.chat_template,
        fim=vocab.fill_in_the_middle,
    )


def why_no_draft_engine(options: EngineOptions) -> str:
    """Return why there is no draft engine beside the loaded model, as a sentence."""
    if options.draft_path is None and options.speculation == "off":
        return Sentence("None is loaded, since drafting is switched off.")
    if options.draft_path is None:
        return Sentence("No small model is paired with this one.")
    name = Path(options.draft_path).name
    if options.speculation == "off":
        return Sentence("{name} is not loaded, since drafting is switched off.", name=name)
    try:
        if kind_of_file(options.draft_path) is not ProposerKind.MODEL:
            return Sentence("{name} is a head that drafts for this model and cannot answer alone.", name=name)
    except LoadFailed:
        pass  # a kind that does not run here, or a missing file
    return Sentence("{name} could not be loaded.", name=name)


def open_draft_engine(main: Engine, loaded: LoadedModel) -> Engine:
    """Return an engine that answers with the draft model of ``main``, which keeps owning the weights.

    Close it before ``main``. Raises LoadFailed where there is no memory for its cache.
    """
    draft, facts = main.draft_model, loaded.spark
    assert draft is not None
    assert facts is not None
    n_cells = min(loaded.n_cells, max(facts.n_ctx, _CELLS))
    try:
        options = EngineOptions(loaded.path, n_slots=loaded.n_slots)
        threads = ThreadChoice(loaded.n_threads, loaded.n_threads, loaded.n_threads)
        context = open_side_context(draft.model, options, threads, n_cells=n_cells)
    except LoadFailed as error:
        raise LoadFailed(
            "There is too little memory for {name} to answer beside the loaded model: its cache of "
            "{n_cells:,} tokens does not fit. Choose another speed, or close other programs and try "
            "again.",
            name=facts.name,
            n_cells=n_cells,
        ) from error
    cost = CostModel(draft.cost.snapshot())
    control = thread_control(context, cost, threads, loaded.n_gpu_layers)
    own = MeasuredContext(context, cost, loaded.n_slots, draft.reads, control)
    intake = InputProcessor(draft.model, min(facts.n_ctx, n_cells))
    memory = choose_memory(context, cost, is_recurrent=draft.model.is_recurrent, window=draft.model.window)
    slots = SlotTable(memory, loaded.n_slots)
    engine = Engine(own, intake, slots, Meter(cost, draft.reads))
    engine.owns_model = False
    return engine
