"""How much memory a model would take, from llama.cpp: it builds the context without allocating.

``python -m core.loading.dry_run`` reads options as JSON and prints the bytes. It is a separate process, because
llama.cpp aborts on many bad files.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

from core.ipc.child_process import run_module
from core.values.engine_options import EngineOptions
from core.values.errors import LoadFailed, SlipstreamError
from models.estimate.fit.memory import MemoryNeed
from models.formatting.json_values import plain, value_of
from models.formatting.sentence import Sentence

# Seconds for a dry run; it takes about half of one.
_CHILD_SECONDS = 60


def dry_run(options: EngineOptions) -> MemoryNeed:
    """Return the bytes that the engine would take with these options, without its draft; raises LoadFailed.

    Weights are the tensors of the file: llama.cpp does not say how it would lay them out. Takes about half a second.
    """
    try:
        child = run_module("core.loading.dry_run", seconds=_CHILD_SECONDS, text=json.dumps(asdict(options)))
        fields = json.loads(child.stdout) if child.returncode == 0 else None
    except (OSError, ValueError, subprocess.TimeoutExpired):
        fields = None
    if not isinstance(fields, dict):
        raise LoadFailed(Sentence("llama.cpp cannot say what {name} would take.", name=Path(options.model_path).name))
    if "problem" in fields:
        raise LoadFailed(value_of(str, fields["problem"]))
    return MemoryNeed(**fields)


def compute_bytes(options: EngineOptions) -> int | None:
    """Return the bytes of compute buffers with these options; None if the dry run fails."""
    if options.workers:
        return None  # a worker lends its devices to one process only, which is this one
    try:
        return dry_run(options).compute
    except SlipstreamError:
        return None


def _dry_run_here(options: EngineOptions) -> MemoryNeed:
    from core.kv_cache.context_shape import context_shape
    from core.llama.library import listening
    from core.llama.model import Model
    from core.loading.contexts import open_context
    from core.loading.fit_request import read_facts
    from core.loading.memory_fit import context_size

    facts = read_facts(options.model_path)
    with listening() as allocations:
        bounded = replace(options, n_cpu_moe=min(options.n_cpu_moe or 0, facts.n_layers))
        model = Model(options.model_path, bounded, n_gpu_layers=options.n_gpu_layers or 0, no_alloc=True)
        size = context_size(facts, options)
        shape = context_shape(facts, options, size.n_cells, is_recurrent=model.is_recurrent)
        context = open_context(model, options, size, shape)
        context.close()
        model.close()
    cache = allocations.kv_cache + allocations.of("RS")
    # The buffer for logits grows to this size with the first step that needs it.
    output = max(allocations.of("output"), context.n_outputs * context.n_vocab * 4)
    return MemoryNeed(facts.weight_bytes, cache, allocations.of("compute") + output)


def main() -> int:
    """Print the bytes for the options on standard input."""
    try:
        fields = json.load(sys.stdin)
        options = EngineOptions(**{**fields, "devices": tuple(fields["devices"])})
        answer = asdict(_dry_run_here(replace(options, draft_path=None)))
    except SlipstreamError as error:
        answer = {"problem": plain(error.message)}
    print(json.dumps(answer))
    return 0


if __name__ == "__main__":
    sys.exit(main())
