"""On a processor a row computes the same to the last bit alone, in company, in any piece of a prompt, and restored.

The set-up changes llama.cpp for that (``packaging/first_start``). It is what lets a seed give the same text always.
"""

from __future__ import annotations

import ctypes
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from core.llama.context import Batch, Context, ContextOptions, DecodeStatus
from core.llama.library import L
from core.llama.model import Model
from core.process.child_process import WAITING
from tools.model_factory import gguf_factory, hybrid_factory, recurrent_factory
from tools.model_factory.gguf_factory import Recipe

N_TEXTS, N_CELLS, WIDEST = 4, 1024, 96
# Beyond 256 cells, the threads share a single row.
LENGTH = 280
# llama.h: LLAMA_FTYPE_MOSTLY_Q4_K_M and others.
Q4_K_M, Q5_K_S = 15, 16

Logits = npt.NDArray[np.float32]


def ember(tensor_type: str | None = None, n_experts: int = 0) -> Path:
    """Return Ember's first two layers: more of them have the same shapes."""
    recipe = Recipe(n_layers=2, tensor_type=tensor_type, n_experts=n_experts, n_experts_used=n_experts // 2)
    return gguf_factory.cached(recipe)


def quantised(path: Path, kind: int) -> Path:
    options = L.llama_model_quantize_default_params()
    options.ftype, options.nthread = kind, 1
    source = ember("F16")
    assert L.llama_model_quantize(str(source).encode(), str(path).encode(), ctypes.byref(options)) == 0
    return path


@contextmanager
def opened(path: Path, n_threads: int, kv_type: str) -> Iterator[Context]:
    with closing(Model(str(path))) as model:
        context = Context(
            model,
            ContextOptions(
                n_cells=N_CELLS,
                n_sequences=N_TEXTS,
                n_outputs=WIDEST,
                n_batch=WIDEST,
                n_ubatch=WIDEST,
                n_threads=n_threads,
                flash_attention="on",
                kv_type=kv_type,
            ),
        )
        with closing(context):
            yield context


def evaluate(context: Context, parts: list[tuple[int, npt.NDArray[np.int32], int]]) -> Logits:
    """Evaluate the next tokens of some texts as one batch and return the logits of the last text's rows."""
    batch = Batch(WIDEST)
    for text, tokens, past in parts:
        for offset, token in enumerate(tokens):
            batch.add(int(token), past + offset, text)
    assert context.decode(batch) is DecodeStatus.OK
    context.synchronize()
    return context.logits(batch.n_outputs)[-len(parts[-1][1]) :].copy()


def with_a_past(context: Context, tokens: npt.NDArray[np.int32], seed: int) -> Logits:
    """Read text 0 in pieces, beside others that come and go, moved out and back in between."""
    chooser = random.Random(seed)
    sizes = dict.fromkeys(range(1, N_TEXTS), 0)
    found, past = [], 0
    while past < len(tokens):
        others = []
        for text in chooser.sample(sorted(sizes), chooser.randint(0, len(sizes))):
            if sizes[text] > 150 or chooser.random() < 0.05:
                assert context.remove(text, 0)
                sizes[text] = 0
            n_rows = chooser.choice((1, 1, 2, 7, 16))
            others.append((text, np.full(n_rows, 11 + text, np.int32), sizes[text]))
            sizes[text] += n_rows
        piece = tokens[past : past + chooser.choice((1, 1, 1, 2, 3, 5, 8, 9, 33, 48))]
        found.append(evaluate(context, [*others, (0, piece, past)]))
        past += len(piece)
        if chooser.random() < 0.05:
            blob = context.read_cells(0)
            assert blob is not None
            assert context.remove(0, 0)
            assert context.write_cells(0, blob)
    return np.concatenate(found)


MODELS: dict[str, Callable[[Path], Path]] = {
    "q8_0": lambda path: ember(),
    "f16": lambda path: ember("F16"),
    "q4_0": lambda path: ember("Q4_0"),
    "q4_k_m": lambda path: quantised(path, Q4_K_M),
    "q5_k_s": lambda path: quantised(path, Q5_K_S),
    "experts": lambda path: ember(n_experts=4),
    "experts-q4_0": lambda path: ember("Q4_0", n_experts=4),
    "windows": recurrent_factory.gemma3,
    "hybrid": hybrid_factory.qwen35,
}


@pytest.mark.parametrize(
    ("name", "kv_type"), [*((name, "f16") for name in MODELS), ("q8_0", "q8_0"), ("f16", "q4_0")], ids=str
)
def test_a_row_computes_the_same_whatever_was_before_and_beside_it(name: str, kv_type: str, tmp_path: Path) -> None:
    path = MODELS[name](tmp_path / "model.gguf")
    tokens = np.random.default_rng(3).integers(7, 250, LENGTH).astype(np.int32)
    with opened(path, 1, kv_type) as context:
        alone = np.concatenate([evaluate(context, [(0, tokens[at : at + 1], at)]) for at in range(LENGTH)])
    # Threads share the work in one way for all types of weights.
    for seed, n_threads in enumerate((2, 3) if name == "q8_0" else (3,)):
        with opened(path, n_threads, kv_type) as context:
            found = with_a_past(context, tokens, seed)
        differing = np.flatnonzero((found != alone).any(axis=1))
        assert not len(differing), f"from row {differing[0]} on, {n_threads} threads: {np.abs(found - alone).max()}"


@pytest.mark.slow
def test_threads_share_the_work_without_a_difference() -> None:
    """In a process of its own: where tests run side by side, OpenMP was told at its start to have one thread only."""
    # Threads that spin would keep the cores from those whom they wait for.
    environment = {name: value for name, value in (os.environ | WAITING).items() if name != "OMP_THREAD_LIMIT"}
    names = "q8_0-f16 or q4_0-f16 or experts-q4_0-f16 or q4_k_m-f16"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__, "-k", names]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout
    assert " passed" in ran.stdout


def test_cells_in_any_order_are_attended_to_in_the_order_of_positions() -> None:
    """The room that another text leaves at the front of the cache is filled with later positions."""
    tokens = np.random.default_rng(4).integers(7, 250, 200).astype(np.int32)
    with opened(ember(), 2, "f16") as context:
        alone = np.concatenate([evaluate(context, [(0, tokens[at : at + 1], at)]) for at in range(len(tokens))])
    with opened(ember(), 2, "f16") as context:
        for at in range(0, 720, 90):
            evaluate(context, [(1, tokens[:90], at)])
        found = [evaluate(context, [(0, tokens[:80], 0)])]
        assert context.remove(1, 0)
        found += [evaluate(context, [(0, tokens[at : at + 20], at)]) for at in range(80, 200, 20)]
    assert np.array_equal(np.concatenate(found), alone)
