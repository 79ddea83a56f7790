"""From options to a running engine or embedder: check the file, check the memory, load, choose threads."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from core.cost.calibration import record_graphs, steps_key
from core.cost.cost_model import ReadCost
from core.cost.threads import BatchThreads, ThreadChoice, candidates, fewest_that_pay, step_times
from core.engine.embedder import MAX_TEXTS, Embedder
from core.engine.engine import Engine
from core.engine.meter import Meter
from core.kv_cache.disk_cache import model_key
from core.kv_cache.memory import choose_memory
from core.llama.context import Batch, Context, EmbeddingContext, EmbeddingOptions, LoraAdapters, pooling_of
from core.llama.model import Model
from core.llama.projector import Projector
from core.loading.contexts import LoadedTarget, closed_on_failure, make_slots, measure_context, open_context
from core.loading.load_drafts import make_speculator, small_model_facts, why_left_out, why_no_draft_engine
from core.loading.memory_fit import (
    ALL_LAYERS,
    LoadPlan,
    fit,
    is_mapped,
    layers_on_gpu,
    machine_with,
    usable_gpus,
    wants_mtp,
    why_so,
)
from core.loading.memory_need import compute_bytes, read_facts, read_instead
from core.machine.bandwidth import remembered
from core.machine.host import core_count, last_level_cache, this_machine
from core.machine.known_machine import MEASURED_FILE, Measurements
from core.remote_devices.borrowing import connect_workers
from core.scheduler.images import ImageEncoder, PromptReader
from core.scheduler.input_processor import InputProcessor
from core.speculation.proposers.context_proposer import ContextProposer
from core.values.addresses import is_worker
from core.values.engine_options import Device, EngineOptions, Pooling
from core.values.errors import DraftRefused, LoadFailed, ModelDoesNotFit, SlipstreamError
from core.values.messages import LoadedModel
from models.estimate.fit.memory import USABLE_SHARE, EngineShape, estimate, free_memory
from models.estimate.speed.machine import peak_of
from models.facts.model_facts import ModelFacts
from models.formatting.sentence import Sentence
from models.formatting.system_error import system_reason

_log = logging.getLogger(__name__)
# Rows at which the threads of each kind of step are measured. If a step takes longer than _LONG_STEP (seconds), wider
# ones are not: they take seconds, and they compute so much that all cores pay.
_THREAD_WIDTHS = {"decode": 1, "few": 6, "many": 64}
_LONG_STEP = 0.1


def load_engine(
    options: EngineOptions,
    *,
    cache_folder: Path | None,
    measured: Measurements | None = None,
    progress: Callable[[float], None] = lambda share: None,
    clock: Callable[[], float] = time.perf_counter,
) -> tuple[Engine, LoadedModel]:
    """Load a model and return an engine for it, and the facts about both.

    Raises LoadFailed (ModelDoesNotFit before anything is read, when memory is short) and BadOption. ``progress`` is
    called with 0 to 1. ``cache_folder`` keeps measurements and cached prompts on disk; None keeps neither. ``measured``
    replaces the measurements in ``cache_folder``. The engine and all of its parts have one ``clock`` (seconds).
    """
    began = time.perf_counter()
    facts = read_facts(options.model_path)
    connect_workers(options)
    gpus = usable_gpus(options)
    notices = why_left_out(facts, options)
    machine = machine_with(gpus, cache_folder)
    found = fit(facts, options, machine, compute_bytes)
    options, n_gpu_layers, size = found.options, found.n_gpu_layers, found.size
    notices += (*found.notices, *why_so(facts, found, machine))
    if measured is None:
        measured = Measurements(cache_folder / MEASURED_FILE if cache_folder else None)
    has_heads = wants_mtp(facts, options)
    model = Model(
        options.model_path,
        options,
        n_gpu_layers=n_gpu_layers,
        load_mtp=has_heads,
        metadata=read_instead(facts, size.n_ctx),
        progress=progress,
    )
    with closed_on_failure(model):
        projector, problem = _open_projector(model, options, n_gpu_layers)
        notices += (problem,) if problem else ()
        with closed_on_failure(projector):
            if projector is not None and not projector.is_causal:
                # A batch holds an image whose rows must be evaluated together.
                n_ubatch = max(projector.most_rows(), options.n_ubatch)
                found = replace(found, options=replace(options, n_ubatch=n_ubatch))
            build = partial(_build, model, facts, measured, cache_folder, clock, projector)
            try:
                engine, threads, refused = *build(found), ""
            except DraftRefused as error:
                if options.must_draft:
                    raise
                refused = error.message
                engine, threads = build(replace(found, options=replace(found.options, draft_path=None)))
            notices += (refused,) if refused else ()
            draft_path = _draft_in_use(engine, options)
            if options.lora:
                engine.use_adapters(LoraAdapters(model, options.lora))
            engine.meter.peak = peak_of(facts, found.placement, machine) if n_gpu_layers else _known_peak(cache_folder)
    loaded = _loaded(
        model,
        facts,
        options,
        (gpus, n_gpu_layers),
        began,
        n_ctx=size.n_ctx,
        n_cells=size.n_cells,
        n_slots=options.n_slots,
        n_threads=threads.decode,
        n_cpu_moe=options.n_cpu_moe or 0,
        chat_template=options.chat_template or model.chat_template,
        fim=model.vocab.fill_in_the_middle,
        notices=notices,
        spark=small_model_facts(engine.draft_model, options, size.n_ctx) if engine.draft_model is not None else None,
        why_no_spark=why_no_draft_engine(options) if engine.draft_model is None else "",
        draft_path=draft_path,
        mmproj=options.mmproj or "" if projector is not None else "",
        has_heads=has_heads,
    )
    return engine, loaded


def _loaded(
    model: Model,
    facts: ModelFacts,
    options: EngineOptions,
    on_gpus: tuple[tuple[Device, ...], int],
    began: float,
    **others: Any,
) -> LoadedModel:
    """Return the facts about a model with layers ``on_gpus``, whose load ``began`` then; ``others`` are its fields."""
    gpus, n_gpu_layers = on_gpus
    vocab = model.vocab
    return LoadedModel(
        path=options.model_path,
        description=model.description,
        architecture=facts.architecture,
        n_params=model.n_params,
        n_bytes=model.n_bytes,
        n_vocab=vocab.n_tokens,
        n_ctx_train=model.n_ctx_train,
        n_gpu_layers=layers_on_gpu(n_gpu_layers, model.n_layers),
        kv_type=options.cache_type,
        devices=tuple(gpu.name for gpu in gpus) if n_gpu_layers else ("CPU",),
        bos=vocab.begin_text,
        eos=vocab.end_text,
        load_seconds=time.perf_counter() - began,
        pooling=pooling_in_effect(model, facts, options),
        is_mapped=options.mmap is not False,
        **others,
    )


def _draft_in_use(engine: Engine, options: EngineOptions) -> str:
    """Return the file that drafts, which may be gone by now; "" if none does."""
    paid = engine.speculator.paid if engine.speculator is not None else ()
    has_file = any(isinstance(proposer, ContextProposer) and proposer.model is not None for proposer in paid)
    return options.draft_path or "" if has_file else ""


def _known_peak(cache_folder: Path | None) -> float | None:
    """Return the kept bandwidth of this machine."""
    known = remembered(cache_folder, this_machine()) if cache_folder else None
    return known.bytes_per_second if known else None


def _build(
    model: Model,
    facts: ModelFacts,
    measured: Measurements,
    cache_folder: Path | None,
    clock: Callable[[], float],
    projector: Projector | None,
    plan: LoadPlan,
) -> tuple[Engine, ThreadChoice]:
    """Return an engine for a model that was loaded as ``plan`` says, and the threads of its steps."""
    options, size, n_gpu_layers = plan.options, plan.size, plan.n_gpu_layers
    if not model.can_generate:
        raise LoadFailed(
            "{model_path} is not a model that continues text, so Slipstream cannot run it.",
            model_path=options.model_path,
        )
    context = open_context(model, facts, options, size)
    with closed_on_failure(context):
        threads = _choose_threads(context, model, options, n_gpu_layers, measured)
        context.set_threads(threads.decode, threads.few, threads.many)
        target = LoadedTarget(model, context, facts, options, size, threads, n_gpu_layers, measured, clock)
        reads = ReadCost.of(facts, options.cache_type, context.n_ubatch)
        own = measure_context(target, context, options.model_path, model, "", reads)
        memory = choose_memory(
            context,
            own.cost,
            is_recurrent=model.is_recurrent,
            window=model.window,
            cuts_windows=target.cuts_windows,
            clock=clock,
        )
        speculator = make_speculator(target, own.cost, memory)
        if speculator is not None and options.calibrates:
            record_graphs(context, options.n_ubatch, own.cost)
    slots = make_slots(target, own, memory, cache_folder)
    cache_bytes = 0 if n_gpu_layers else last_level_cache()
    meter = Meter(own.cost, reads, cache_bytes=cache_bytes, kv_type=options.cache_type)
    reader = _prompt_reader(projector, options, context.n_ubatch) if projector is not None else None
    intake = InputProcessor(model, size.n_ctx, reader)
    images = ImageEncoder(projector) if projector is not None else None
    return Engine(own, intake, slots, meter, speculator, images), threads


def _open_projector(model: Model, options: EngineOptions, n_gpu_layers: int) -> tuple[Projector | None, str]:
    """Return the projector that the options name, and a sentence if the model has to do without it.

    Raises LoadFailed if ``must_see`` is set. The projector is on the first GPU, if layers of the model are on GPUs.
    """
    if options.mmproj is None:
        return None, ""
    try:
        if not Path(options.mmproj).is_file():
            raise LoadFailed("There is no projector {mmproj}.", mmproj=options.mmproj)
        n_threads = options.n_threads or core_count()
        # Not on a worker: its embeddings are needed here.
        own = [name for name in options.devices if not is_worker(name)]
        uses_gpu = n_gpu_layers != 0 and (bool(own) or not options.devices)
        return Projector(
            options.mmproj, model, n_threads=n_threads, uses_gpu=uses_gpu, device=own[0] if own else ""
        ), ""
    except SlipstreamError as error:
        if options.must_see:
            raise
        return None, error.message


def _prompt_reader(projector: Projector, options: EngineOptions, n_ubatch: int) -> PromptReader:
    """Return the reader of prompts with images for an engine with these options. Raises LoadFailed."""
    assert options.mmproj is not None
    try:
        return PromptReader(projector, model_key([Path(options.mmproj)]), n_ubatch)
    except OSError as error:
        raise LoadFailed(
            "{mmproj} cannot be read again: {error}.", mmproj=options.mmproj, error=system_reason(error)
        ) from error


def _choose_threads(
    context: Context, model: Model, options: EngineOptions, n_gpu_layers: int, measured: Measurements
) -> ThreadChoice:
    """Return the threads set in the options or measured earlier; else measure now if the options allow it."""
    if options.n_threads is not None:
        return ThreadChoice(options.n_threads, options.n_threads, options.n_threads)
    counts = candidates(core_count())
    key = steps_key(options.model_path, model, n_gpu_layers, options.n_cpu_moe, "threads")
    known = measured.recall(key)
    if known is not None and known.keys() == _THREAD_WIDTHS.keys() and all(n in counts for n in known.values()):
        return ThreadChoice(**known)
    if not options.calibrates:
        return ThreadChoice(*[core_count()] * len(_THREAD_WIDTHS))
    chosen, fastest = {}, 0.0
    for name, n_rows in _THREAD_WIDTHS.items():
        if fastest > _LONG_STEP:
            chosen[name] = core_count()
            continue
        rows = min(n_rows, context.n_cells)
        times = step_times(partial(_probe, context, rows), counts)
        chosen[name], fastest = fewest_that_pay(times), min(times.values())
        _log.info("threads: steps of %d rows take %s", rows, times)
    context.clear()
    choice = ThreadChoice(**chosen)
    if measured.keep(key, asdict(choice)):
        return choice
    # Beside other programs fewer threads looked better. The thread tuner takes fewer for as long as they are there.
    return ThreadChoice(*[core_count()] * len(_THREAD_WIDTHS))


def _probe(context: Context, n_rows: int, n_threads: int) -> None:
    """Evaluate ``n_rows`` of one sequence with ``n_threads``."""
    context.remove(0, 0)
    context.set_threads(n_threads, n_threads, n_threads)
    batch = Batch(n_rows)
    batch.add_run(np.zeros(n_rows, np.int32), 0, 0, n_wanted=1)
    context.decode(batch)
    context.synchronize()


# -- embedders --------------------------------------------------------------------------------------------------

# Their graph for vectors has as many nodes as the one without, but other ones. ggml takes one for the other and crashes
# (``ggml_gallocr_needs_realloc`` compares no leaves), so each text is read at once.
_READ_WHOLE = ("lfm2", "lfm2moe")
# The pooling if neither options nor file name one, as in vLLM and Ollama.
_USUAL: Pooling = "last"
_USUAL_OF_ENCODERS: Pooling = "mean"


def is_embedder(path: str) -> bool:
    """Return whether the model only turns texts into vectors. Raises LoadFailed."""
    return read_facts(path).is_embedder


def pooling_in_effect(model: Model, facts: ModelFacts, options: EngineOptions) -> Pooling:
    """Return the pooling of the options, else of the file, else the usual one."""
    named = options.pooling or pooling_of(model, facts.architecture)
    return named or (_USUAL_OF_ENCODERS if facts.is_embedder else _USUAL)


def embedder_beside(engine: Engine, options: EngineOptions, loaded: LoadedModel) -> Embedder:
    """Return an embedder with an engine's model, to close before it; it allocates when it is first used."""
    facts = read_facts(options.model_path)
    # Its batches have many rows.
    n_threads = engine.threads.threads.many if engine.threads is not None else loaded.n_threads
    return _embedder(engine.model, facts, options, loaded, n_threads)


def load_embedder(
    options: EngineOptions, progress: Callable[[float], None] = lambda share: None
) -> tuple[Embedder, LoadedModel]:
    """Load a model that only turns texts into vectors. Raises LoadFailed (ModelDoesNotFit if memory is short)."""
    began = time.perf_counter()
    facts = read_facts(options.model_path)
    connect_workers(options)
    gpus = usable_gpus(options)
    n_gpu_layers = options.n_gpu_layers if options.n_gpu_layers is not None else ALL_LAYERS if gpus else 0
    free = free_memory()
    if not n_gpu_layers and facts.weight_bytes > free * USABLE_SHARE:
        raise ModelDoesNotFit(facts.weight_bytes, int(free * USABLE_SHARE))

    options = replace(options, mmap=is_mapped(facts, options, n_gpu_layers, free))
    model = Model(options.model_path, options, n_gpu_layers=n_gpu_layers, progress=progress)
    n_ctx = min(options.n_ctx or model.n_ctx_train, model.n_ctx_train)
    loaded = _loaded(
        model,
        facts,
        options,
        (gpus, n_gpu_layers),
        began,
        n_ctx=n_ctx,
        n_cells=n_ctx,
        n_slots=1,
        n_threads=options.n_threads or core_count(),
        chat_template=None,
        fim=None,
        why_no_spark=Sentence("It turns texts into vectors and writes nothing."),
        can_write=False,
    )
    adapters = LoraAdapters(model, options.lora) if options.lora else None
    embedder = _embedder(model, facts, options, loaded, loaded.n_threads, adapters)
    embedder.owns_model = True
    return embedder, loaded


def _embedder(
    model: Model,
    facts: ModelFacts,
    options: EngineOptions,
    loaded: LoadedModel,
    n_threads: int,
    adapters: LoraAdapters | None = None,
) -> Embedder:
    pooling = pooling_in_effect(model, facts, options)
    is_causal = not facts.is_embedder and model.metadata(f"{facts.architecture}.attention.causal") != "false"
    wanted = EmbeddingOptions(
        pooling,
        loaded.n_ctx,
        n_sequences=options.n_slots if model.is_recurrent else MAX_TEXTS,
        n_threads=n_threads,
        reads_parts=is_causal and pooling in ("last", "rank") and facts.architecture not in _READ_WHOLE,
        flash_attention=options.flash_attention,
    )
    # With layers on a GPU, threads only wait.
    threads = BatchThreads(n_threads) if not loaded.n_gpu_layers else None
    return Embedder(model, wanted, partial(_open, model, facts, loaded.n_gpu_layers > 0, adapters), threads)


def _open(
    model: Model, facts: ModelFacts, is_on_gpu: bool, adapters: LoraAdapters | None, options: EmbeddingOptions
) -> EmbeddingContext:
    """Open a context if host memory allows it; on a GPU the driver reports a lack of memory."""
    rows = options.n_rows if options.reads_parts else options.n_tokens
    outputs = 1 if facts.is_embedder else options.n_sequences if options.reads_parts else rows
    shape = EngineShape(options.n_sequences, n_ubatch=rows, n_outputs=outputs)
    need = estimate(facts, options.n_tokens, shape)
    needed = need.compute + (0 if facts.is_embedder else need.kv_cache)
    free = int(free_memory() * USABLE_SHARE)
    if not is_on_gpu and needed > free:
        raise ModelDoesNotFit(
            needed,
            free,
            Sentence(
                "Vectors of texts with {n_tokens:,} tokens take it. Send shorter ones.", n_tokens=options.n_tokens
            ),
        )
    try:
        context = EmbeddingContext(model, options)
    except LoadFailed as error:
        raise LoadFailed(
            "{message} Send shorter texts, or close other programs and try again.", message=error.message
        ) from error
    if adapters is not None:
        adapters.apply(context, adapters.scales)
    return context
