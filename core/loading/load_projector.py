"""Loads the projector that turns images into embeddings for a model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from core.images.prompt_images import PromptReader
from core.kv_cache.prefix_cache.disk_folder import model_key
from core.llama.model import Model
from core.llama.projector import Projector
from core.machine.measurements import physical_cores
from core.values.engine_options import EngineOptions
from core.values.errors import LoadFailed, SlipstreamError
from core.values.worker_address import is_worker
from models.formatting.sentence import Sentence
from models.formatting.system_error import system_reason


def open_projector(model: Model, options: EngineOptions, n_gpu_layers: int) -> tuple[Projector | None, str]:
    """Return the projector that the options name, and a sentence if the model has to do without it.

    Raises LoadFailed if ``must_see`` is set. The projector is on the first GPU, if layers of the model are on GPUs.
    """
    if options.mmproj is None:
        return None, ""
    try:
        if not Path(options.mmproj).is_file():
            raise LoadFailed(Sentence("There is no projector {mmproj}.", mmproj=options.mmproj))
        n_threads = options.n_threads or physical_cores()
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


def with_whole_images(options: EngineOptions, projector: Projector) -> EngineOptions:
    """Return the options with batches that hold an image whose rows must be evaluated together."""
    n_rows = max(projector.most_rows(), options.n_ubatch)
    return replace(options, n_ubatch=n_rows, n_batch=max(n_rows, options.n_batch))


def prompt_reader(projector: Projector, options: EngineOptions, n_ubatch: int) -> PromptReader:
    """Return the reader of prompts with images for an engine with these options. Raises LoadFailed."""
    assert options.mmproj is not None
    try:
        return PromptReader(projector, model_key([Path(options.mmproj)]), n_ubatch)
    except OSError as error:
        raise LoadFailed(
            Sentence("{mmproj} cannot be read again: {error}.", mmproj=options.mmproj, error=system_reason(error))
        ) from error
