"""Opens contexts (an engine's, and those of its draft models and heads), and makes the slots of an engine's context."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from core.cost.calibration import MeasuredContext, assumed_steps, cost_model_of, steps_key
from core.cost.cost_model import ReadCost
from core.cost.threads import ThreadChoice, thread_control
from core.kv_cache.disk_cache import FOLDER, DiskTier, SegmentFolder, model_key
from core.kv_cache.memory import AttentionMemory
from core.kv_cache.prefix_tree import PrefixTree
from core.kv_cache.segment_store import SegmentStore
from core.kv_cache.slot_table import SlotTable
from core.llama.build import llama_version
from core.llama.context import Batch, Context, ContextOptions
from core.llama.model import Model
from core.llama.projector import Projector
from core.loading.memory_need import ContextSize, cuts_windows, n_outputs, n_snapshots, read_instead
from core.machine.host import core_count
from core.machine.known_machine import Measurements
from core.values.engine_options import MAX_STEP_ROWS, EngineOptions
from core.values.errors import LoadFailed
from models.estimate.fit.memory import free_memory
from models.facts.model_facts import ModelFacts
from models.facts.split_files import parts
from models.pairing.vocabulary import why_vocabularies_differ


@dataclass(frozen=True, slots=True)
class LoadedTarget:
    """A loaded model, and how it was loaded."""

    model: Model
    context: Context
    facts: ModelFacts
    options: EngineOptions
    size: ContextSize
    threads: ThreadChoice
    n_gpu_layers: int
    measured: Measurements
    clock: Callable[[], float]

    @property
    def cuts_windows(self) -> bool:
        """True where layers with a sliding window have fewer cells than the others."""
        return cuts_windows(self.facts, self.options, self.size.n_cells)


def open_context(model: Model, facts: ModelFacts, options: EngineOptions, size: ContextSize) -> Context:
    """Return the context of an engine, with cells and outputs for all slots and their drafts.

    Where texts are shared between sequences, it has one more than slots, the last, through which parts of the others
    are saved and loaded.
    """
    has_fewer_cells = cuts_windows(facts, options, size.n_cells)
    return Context(
        model,
        ContextOptions(
            n_cells=size.n_cells,
            n_sequences=options.n_slots + (not model.is_recurrent and not has_fewer_cells),
            n_outputs=n_outputs(options),
            n_batch=max(MAX_STEP_ROWS, options.n_ubatch),
            n_ubatch=options.n_ubatch,
            n_threads=options.n_threads or core_count(),
            flash_attention=options.flash_attention,
            kv_type=options.cache_type,
            n_snapshots=n_snapshots(facts, options, min(options.n_ubatch, size.n_cells)),
            cuts_windows=has_fewer_cells,
        ),
    )


def open_side_context(
    model: Model,
    options: EngineOptions,
    threads: ThreadChoice,
    *,
    n_cells: int,
    n_outputs: int = 0,
    is_mtp: bool = False,
    lender: Context | None = None,
) -> Context:
    """Return the context of a model that works beside an engine with these ``options``, with as many slots.

    ``n_outputs`` is the most rows of a batch that want logits; each slot has at least one. ``is_mtp`` runs the model's
    prediction layers. A head without embeddings uses those of ``lender``.
    """
    n_outputs = max(options.n_slots, n_outputs)
    n_rows = max(options.n_ubatch, n_outputs)
    context = Context(
        model,
        ContextOptions(
            n_cells=n_cells,
            n_sequences=options.n_slots,
            n_outputs=n_outputs,
            n_batch=n_rows,
            n_ubatch=n_rows,
            n_threads=threads.decode,
            flash_attention=options.flash_attention,
            is_mtp=is_mtp,
        ),
        target=lender,
    )
    context.set_threads(threads.decode, threads.few, threads.many)
    return context


@contextmanager
def closed_on_failure(held: Context | Model | Projector | None) -> Iterator[None]:
    """Free what is held, if anything, if the block fails."""
    try:
        yield
    except BaseException:
        if held is not None:
            held.close()
        raise


@contextmanager
def draft_file(target: LoadedTarget, path: str, facts: ModelFacts) -> Iterator[Model]:
    """Load what drafts for the target from a file with these facts, and free it if the block fails.

    Raises LoadFailed, also where its vocabulary is another. Locked pages and experts are the target's.
    """
    options = replace(target.options, mlock=False, n_cpu_moe=None)
    metadata = read_instead(facts, target.size.n_ctx)
    model = Model(path, options, n_gpu_layers=target.n_gpu_layers, metadata=metadata)
    with closed_on_failure(model):
        reason = why_vocabularies_differ(target.model.vocab, model.vocab)
        if reason:
            raise cannot_draft(target, path, reason)
        yield model


def cannot_draft(target: LoadedTarget, path: str, reason: str) -> LoadFailed:
    """Return the error for a file that does not belong to the target."""
    facts = {"path": path, "model_path": target.options.model_path, "reason": reason}
    return LoadFailed("{path} cannot draft for {model_path}. {reason}", **facts)


def measure_context(
    target: LoadedTarget,
    context: Context,
    path: str,
    model: Model,
    kind: str,
    reads: ReadCost,
    make_batch: Callable[[int], Batch] = Batch,
) -> MeasuredContext:
    """Return a context of ``model`` with its step times and thread control.

    Step times are remembered by ``path``, the file of the model, and ``kind``, which is "" for the target itself.
    """
    options, threads, n_gpu_layers = target.options, target.threads, target.n_gpu_layers
    conditions: tuple[object, ...] = (kind, options.devices, options.flash_attention, options.n_ubatch)
    if not kind:
        conditions = (*conditions[1:3], options.cache_type, options.n_ubatch, options.n_cpu_moe)
    key = steps_key(path, model, n_gpu_layers, threads, *conditions)
    # llama.cpp's flash attention on the CPU skips masked cells (ggml-cpu/ops.cpp).
    skips_masked = not kind and not n_gpu_layers and options.flash_attention != "off"
    cost = cost_model_of(
        context,
        options.n_ubatch,
        target.measured,
        key,
        reads,
        make_batch,
        skips_masked=skips_masked,
        assumed=None if options.calibrates else assumed_steps(reads, is_on_gpu=n_gpu_layers != 0),
    )
    control = thread_control(context, cost, threads, n_gpu_layers)
    return MeasuredContext(context, cost, options.n_slots, reads, control, target.clock)


_log = logging.getLogger(__name__)
# By default, cached prompts may take this share of the memory that is free once the model is loaded.
_RAM_SHARE, _MOST_RAM = 0.25, 8 << 30
_DISK_SHARE, _MOST_DISK = 0.05, 8 << 30
# Size of one segment: moving it delays a step by a few milliseconds at most.
_SEGMENT_BYTES, _FEWEST_TOKENS, _MOST_TOKENS = 8 << 20, 32, 256


def make_slots(
    target: LoadedTarget, own: MeasuredContext, memory: AttentionMemory, cache_folder: Path | None
) -> SlotTable:
    """Return the slots of a target's context, with the cache behind them."""
    facts, options, cost, clock = target.facts, target.options, own.cost, own.clock
    ram_limit = min(int(free_memory() * _RAM_SHARE), _MOST_RAM) if options.cache_ram is None else options.cache_ram
    # What decides how tokens see each other; keys are turned by other angles in a longer context.
    seen = (target.model.window, target.cuts_windows, target.size.n_ctx > facts.n_ctx_short > 0)
    key = _key(options, seen, target.n_gpu_layers)
    per_token = max(facts.kv_bytes_per_token(options.cache_type), 1)
    size = max(_FEWEST_TOKENS, min(_MOST_TOKENS, _SEGMENT_BYTES // per_token))
    n_wide = min(options.n_ubatch, own.context.n_batch)
    disk = _disk(options, key, cache_folder)
    return SlotTable(
        memory,
        options.n_slots,
        store=SegmentStore(PrefixTree(), ram_limit=ram_limit, disk=disk, segment_size=size, key=key),
        prefill_seconds=lambda n_tokens: cost.time(n_wide) * n_tokens / n_wide,
        clock=clock,
    )


def _key(options: EngineOptions, seen: tuple[int, bool, bool], n_gpu_layers: int) -> bytes | None:
    """Return the key of files with texts of this model; None if there may be none."""
    if options.lora:  # of which the key knows nothing
        return None
    placing = (n_gpu_layers, options.n_cpu_moe, options.devices)
    conditions = (options.cache_type, options.flash_attention, *placing, seen, llama_version())
    try:
        return model_key(parts(Path(options.model_path)), *conditions)
    except OSError as error:
        _log.warning("Texts are not kept on disk: %s cannot be read again: %s", options.model_path, error)
        return None


def _disk(options: EngineOptions, key: bytes | None, cache_folder: Path | None) -> DiskTier | None:
    if options.cache_disk == 0 or cache_folder is None or key is None:
        return None
    limit = _disk_limit(cache_folder) if options.cache_disk is None else options.cache_disk
    return DiskTier(SegmentFolder(cache_folder / FOLDER, key, limit))


def _disk_limit(cache_folder: Path) -> int:
    """Return how many bytes cached prompts may take on a folder's disk by default."""
    existing = next((path for path in (cache_folder, *cache_folder.parents) if path.exists()), None)
    if existing is None:
        return 0
    return min(int(shutil.disk_usage(existing).total * _DISK_SHARE), _MOST_DISK)
