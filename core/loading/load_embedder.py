"""Opens embedders, which turn texts into vectors: beside an engine with the same weights, or alone."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

from core.engine.embedder import MAX_TEXTS, Embedder
from core.engine.engine import Engine
from core.llama.context import EmbeddingContext, EmbeddingOptions, pooling_of
from core.llama.model import Model, Vocab
from core.loading.fit_request import read_facts
from core.loading.memory_fit import ALL_LAYERS, layers_on_gpu, usable_gpus
from core.machine.host import core_count
from core.remote_devices.borrowing import connect_workers
from core.values.engine_options import EngineOptions, Pooling
from core.values.errors import LoadFailed, ModelDoesNotFit
from core.values.messages import LoadedModel
from models.estimate.fit.memory import USABLE_SHARE, EngineShape, estimate, free_memory
from models.facts.model_facts import ModelFacts
from models.formatting.sentence import Sentence

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
    """Return an embedder with an engine's model. It allocates memory when it is first used.

    Close it before the engine.
    """
    facts = read_facts(options.model_path)
    return _embedder(engine.model, engine.vocab, facts, options, loaded)


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

    model = Model(options.model_path, options, n_gpu_layers=n_gpu_layers, progress=progress)
    vocab = Vocab(model)
    n_ctx = min(options.n_ctx or model.n_ctx_train, model.n_ctx_train)
    loaded = LoadedModel(
        path=options.model_path,
        description=model.description,
        architecture=facts.architecture,
        n_params=model.n_params,
        n_bytes=model.n_bytes,
        n_vocab=vocab.n_tokens,
        n_ctx_train=model.n_ctx_train,
        n_ctx=n_ctx,
        n_cells=n_ctx,
        n_slots=1,
        n_threads=options.n_threads or core_count(),
        n_gpu_layers=layers_on_gpu(n_gpu_layers, model.n_layers),
        kv_type=options.cache_type,
        devices=tuple(gpu.name for gpu in gpus) if n_gpu_layers else ("CPU",),
        chat_template=None,
        bos=vocab.begin_text,
        eos=vocab.end_text,
        fim=None,
        load_seconds=time.perf_counter() - began,
        why_no_spark=Sentence("It turns texts into vectors and writes nothing."),
        pooling=pooling_in_effect(model, facts, options),
        can_write=False,
    )
    embedder = _embedder(model, vocab, facts, options, loaded)
    embedder.owns_model = True
    return embedder, loaded


def _embedder(model: Model, vocab: Vocab, facts: ModelFacts, options: EngineOptions, loaded: LoadedModel) -> Embedder:
    pooling = pooling_in_effect(model, facts, options)
    is_causal = not facts.is_embedder and model.metadata(f"{facts.architecture}.attention.causal") != "false"
    wanted = EmbeddingOptions(
        pooling,
        loaded.n_ctx,
        n_sequences=options.n_slots if model.is_recurrent else MAX_TEXTS,
        n_threads=loaded.n_threads,
        reads_parts=is_causal and pooling in ("last", "rank"),
        flash_attention=options.flash_attention,
    )
    return Embedder(model, vocab, wanted, partial(_open, model, facts, loaded.n_gpu_layers > 0))


def _open(model: Model, facts: ModelFacts, is_on_gpu: bool, options: EmbeddingOptions) -> EmbeddingContext:
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
        return EmbeddingContext(model, options)
    except LoadFailed as error:
        raise LoadFailed(
            Sentence("{message} Send shorter texts, or close other programs and try again.", message=error.message)
        ) from error
