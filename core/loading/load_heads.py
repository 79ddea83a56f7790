"""Makes the draft heads of a loaded model: heads in the model's file, or a head in a separate file."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from core.cost.read_cost import ReadCost
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
from core.speculation.proposers.autoregressive_head import MOST_OUTPUTS, Eagle3Proposer, MtpProposer
from core.speculation.proposers.dflash import DFlashProposer
from core.values.engine_options import MAX_DRAFT_DEPTH, EngineOptions
from core.values.errors import LoadFailed
from models.facts.model_facts import ModelFacts, read_model
from models.formatting.sentence import Sentence
from models.gguf.errors import GgufError
from models.gguf.header import read_header
from models.pairing import heads as rules
from models.pairing.gain import ProposerKind

_KV_TYPE = "f16"


def why_no_mtp(facts: ModelFacts) -> str | None:
    """Return why a model's prediction heads cannot be used, as a sentence; None where they can."""
    return rules.why_no_mtp(facts) or why_unavailable(ProposerKind.MTP)


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


def mtp_head(target: LoadedTarget) -> MtpProposer:
    """Return the proposer of a model that was loaded with its prediction heads."""
    model, options = target.model, target.options
    width = model.n_embd_out
    reads = ReadCost.of_mtp_head(target.facts, _KV_TYPE)
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
        raise LoadFailed(Sentence("{path} cannot be used. {reason}", path=path, reason=reason))
    return ProposerKind(facts.architecture) if facts.architecture in rules.IN_FILES else ProposerKind.MODEL


def file_head(target: LoadedTarget, path: str, kind: ProposerKind) -> Eagle3Proposer | DFlashProposer:
    """Return the proposer in the file ``path``; raises LoadFailed where it does not belong to the target.

    This build of llama.cpp must be able to run it (``why_unavailable``).
    """
    try:
        header = read_header(Path(path))
        reason = rules.why_not_file(header, target.facts)
    except GgufError as error:
        raise LoadFailed(str(error)) from error
    if reason:
        raise cannot_draft(target, path, reason)
    reads = ReadCost.of_head_file(read_model(Path(path)), target.facts, _KV_TYPE)
    # The last token, and at most as many masks as tokens can be drafted. A block takes cells beside the text's.
    n_block = min(rules.block_size(header), MAX_DRAFT_DEPTH + 1) if kind is ProposerKind.DFLASH else 0
    n_cells = target.size.n_cells + target.options.n_slots * n_block
    with draft_file(target, path) as model:
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
