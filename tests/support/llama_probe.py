"""Asks llama.cpp itself, in a process of its own: greedy text, logits and the sizes of its buffers."""

from __future__ import annotations

import ctypes
import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

PROJECT = Path(__file__).resolve().parents[2]
MIB = 1 << 20
KV_TYPES = {"f32": 0, "f16": 1, "q4_0": 2, "q8_0": 8}


@dataclass(frozen=True)
class Question:
    """What to run. ``tokens`` of text are generated greedily after ``prompt`` (special tokens are parsed)."""

    path: str
    prompt: str = ""
    n_tokens: int = 0
    n_ctx: int = 1024
    n_ubatch: int = 512
    n_slots: int = 1
    n_outputs: int = 0
    kv_type: str = "f16"


@dataclass(frozen=True)
class Answer:
    """What came back. ``logits`` has one row per generated token; ``log`` is everything llama.cpp wrote."""

    returncode: int
    loaded: bool
    text: str
    log: str
    logits: np.ndarray = field(repr=False)

    def buffer_bytes(self, what: str) -> int:
        """Sum of the log's "... <what> buffer size = N MiB", in bytes."""
        sizes = re.findall(rf"{what} buffer size = +([\d.]+) MiB", self.log)
        assert sizes, f"no {what} buffer in the log:\n{self.log}"
        return round(sum(float(size) for size in sizes) * MIB)


def ask(question: Question, timeout: float = 60) -> Answer:
    """Run ``question`` in a child process; an abort of llama.cpp is an answer too."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        environment = os.environ | {"OMP_WAIT_POLICY": "passive", "PYTHONPATH": str(PROJECT)}
        child = subprocess.run(
            [sys.executable, __file__, json.dumps(asdict(question)), str(out)],
            capture_output=True,
            timeout=timeout,
            env=environment,
            check=False,
        )
        result = json.loads(out.read_text()) if out.exists() else {"loaded": False, "text": ""}
        rows = out.with_suffix(".npy")
        logits = np.load(rows) if rows.exists() else np.empty((0, 0), np.float32)
    log = (child.stdout + child.stderr).decode("utf-8", "replace")
    return Answer(child.returncode, result["loaded"], result["text"], log, logits)


def _main() -> None:
    question, out = Question(**json.loads(sys.argv[1])), Path(sys.argv[2])
    from core.llama import library

    llama = library.L
    llama.llama_backend_init()
    parameters = llama.llama_model_default_params()
    parameters.n_gpu_layers = 0
    model = llama.llama_model_load_from_file(question.path.encode(), parameters)
    result = {"loaded": bool(model), "text": ""}
    if model:
        result["text"], logits = _generate(llama, model, question)
        np.save(out.with_suffix(".npy"), logits)
    out.write_text(json.dumps(result))
    sys.stderr.flush()
    os._exit(0)


def _generate(llama: object, model: object, question: Question) -> tuple[str, np.ndarray]:
    parameters = llama.llama_context_default_params()
    parameters.n_ctx, parameters.n_batch, parameters.n_ubatch = question.n_ctx, 2048, question.n_ubatch
    parameters.n_seq_max, parameters.kv_unified = question.n_slots, True
    parameters.n_outputs_max = question.n_outputs or question.n_slots
    parameters.type_k = parameters.type_v = KV_TYPES[question.kv_type]
    parameters.n_threads = parameters.n_threads_batch = 2
    context = llama.llama_init_from_model(model, parameters)
    vocabulary = llama.llama_model_get_vocab(model)
    n_vocab = llama.llama_vocab_n_tokens(vocabulary)
    pending = _tokenise(llama, vocabulary, question.prompt)
    pieces, rows = [], []
    for _ in range(question.n_tokens):
        array = (llama.llama_token * len(pending))(*pending)
        assert llama.llama_decode(context, llama.llama_batch_get_one(array, len(pending))) == 0
        rows.append(np.ctypeslib.as_array(llama.llama_get_logits_ith(context, -1), (n_vocab,)).copy())
        token = int(rows[-1].argmax())
        if llama.llama_vocab_is_eog(vocabulary, token):
            break
        pieces.append(_piece(llama, vocabulary, token))
        pending = [token]
    return b"".join(pieces).decode("utf-8", "replace"), np.array(rows, np.float32)


def _tokenise(llama: object, vocabulary: object, text: str) -> list[int]:
    raw = text.encode()
    array = (llama.llama_token * (len(raw) + 8))()
    return list(array[: llama.llama_tokenize(vocabulary, raw, len(raw), array, len(array), True, True)])


def _piece(llama: object, vocabulary: object, token: int) -> bytes:
    buffer = ctypes.create_string_buffer(256)
    n_bytes = llama.llama_token_to_piece(vocabulary, token, buffer, len(buffer), 0, False)
    return buffer.raw[:n_bytes]


if __name__ == "__main__":
    _main()
