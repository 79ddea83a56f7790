"""The draft engine: the draft model answers requests itself, in a separate engine that shares its weights."""

from __future__ import annotations

from pathlib import Path

from core.cost.calibration import MeasuredContext
from core.cost.cost_model import CostModel
from core.cost.threads import ThreadChoice, thread_control
from core.engine.engine import Engine
from core.engine.meter import Meter
from core.kv_cache.memory import choose_memory
from core.kv_cache.slot_table import SlotTable
from core.llama.model import Vocab
from core.loading.contexts import open_side_context
from core.loading.load_heads import kind_of_file
from core.scheduler.input_processor import InputProcessor
from core.speculation.proposers.draft_model import DraftModelProposer
from core.values.engine_options import DEFAULT_UBATCH, EngineOptions
from core.values.errors import LoadFailed
from core.values.messages import LoadedModel, SmallModel
from models.formatting.sentence import Sentence
from models.pairing.gain import ProposerKind

# KV cells for all requests of the draft engine, or those of one request if that needs more.
_CELLS = 8_192


def small_model_facts(draft: DraftModelProposer, options: EngineOptions, n_ctx: int) -> SmallModel:
    """Return the facts of the draft model of a model with ``n_ctx`` tokens for each request."""
    assert options.draft_path is not None
    model, vocab = draft.model, Vocab(draft.model)
    return SmallModel(
        name=Path(options.draft_path).stem,
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
        options = EngineOptions(loaded.path, n_slots=loaded.n_slots, n_batch=max(DEFAULT_UBATCH, loaded.n_slots))
        threads = ThreadChoice(loaded.n_threads, loaded.n_threads, loaded.n_threads)
        context = open_side_context(draft.model, options, threads, n_cells=n_cells)
    except LoadFailed as error:
        raise LoadFailed(
            Sentence(
                "There is too little memory for {name} to answer beside the loaded model: its cache of "
                "{n_cells:,} tokens does not fit. Choose another speed, or close other programs and try "
                "again.",
                name=facts.name,
                n_cells=n_cells,
            )
        ) from error
    cost = CostModel(draft.cost.snapshot())
    control = thread_control(context, cost, threads, loaded.n_gpu_layers)
    own = MeasuredContext(context, cost, loaded.n_slots, draft.reads, control)
    intake = InputProcessor(draft.model, Vocab(draft.model), min(facts.n_ctx, n_cells))
    slots = SlotTable(choose_memory(context, cost, is_recurrent=draft.model.is_recurrent), loaded.n_slots)
    engine = Engine(own, intake, slots, Meter(cost, draft.reads))
    engine.owns_model = False
    return engine
