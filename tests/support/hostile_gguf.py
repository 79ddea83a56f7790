"""Headers that try to cost the reader time and memory, and a process that reads them within bounds."""

from __future__ import annotations

import json
import random
import struct
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from models.gguf import header as gguf
from tests.support.broken_gguf import array, entry, header, number, string, tensor
from tools.model_factory.gguf_factory import EMBER, PROJECT, metadata_of

SEEDS = 300
LONG_NAME = 120_000_000
_LLAMA = entry("general.architecture", 8, string("llama"))
_EDGES = (0, 1, 7, 8, 9, 31, 255, 2**16, 2**31, 2**32 - 1, 2**40, 2**62, 2**63 - 1, 2**63, 2**64 - 1)
_LAYERS = (number("llama.block_count", 512), number("llama.nextn_predict_layers", 511))
_EXPERTS = number("llama.expert_count", 1024)


def at_the_limits() -> Iterator[tuple[str, bytes]]:
    """Headers that have as much of something as is allowed, alone and together."""
    entries = tuple(number(f"k{i}", i) for i in range(gguf.MAX_METADATA - 10))
    tensors = tuple(tensor(f"blk.{i}.ffn_gate_exps.weight", (0,)) for i in range(gguf.MAX_TENSORS))
    texts = gguf.MAX_STRINGS - 2 * gguf.MAX_METADATA
    empty = array("a", 8, texts, bytes(8 * texts))
    yield "entries", header((_LLAMA, *entries))
    yield "tensors", header((_LLAMA, *_LAYERS, _EXPERTS), tensors)
    yield "texts", header((_LLAMA, empty))
    tokens = array("tokenizer.ggml.tokens", 8, 1_000_000, string("x" * 20) * 1_000_000)
    yield "tokens", header((_LLAMA, entry("tokenizer.ggml.model", 8, string("gpt2")), tokens))
    yield "everything", header((_LLAMA, *entries[:-10], empty, *_LAYERS, _EXPERTS), tensors)
    kept = (array(f"k{i}", 8, 64, string("abc") * 64) for i in range(gguf.MAX_METADATA - 2))
    yield "arrays of texts", header((_LLAMA, *kept))
    yield "long keys", header((_LLAMA, *(entry("x" * 60_000 + str(i), 4, b"1234") for i in range(400))))
    yield "long texts", header((_LLAMA, *(entry(f"k{i}", 8, string(b"x" * 250_000)) for i in range(100))))
    yield (
        "a text per layer",
        header((_LLAMA, *_LAYERS, array("llama.attention.head_count", 4, 1 << 20, bytes(4 << 20)))),
    )


def long_names() -> Iterator[tuple[str, bytes]]:
    """Beginnings of headers whose next 120 MB are one text that is no more than a name in real models."""
    for key in ("general.architecture", "general.name", "general.license", "general.type", "tokenizer.ggml.model"):
        before = () if key == "general.architecture" else (_LLAMA, array("tokenizer.ggml.tokens", 8, 1, string("a")))
        whole = header((*before, entry(key, 8, struct.pack("<Q", LONG_NAME))))
        yield key, whole[: whole.rindex(key.encode()) + len(key) + 12]


def nested() -> Iterator[tuple[str, bytes]]:
    """Arrays of arrays, deep and wide."""
    yield "deep", header((_LLAMA, array("a", 9, 1, struct.pack("<IQ", 9, 1) * 100_000)))
    yield "wide", header((_LLAMA, array("a", 9, 2**40, struct.pack("<IQ", 9, 2**40) * 1_000)))


def mutated(seed: int) -> bytes:
    """The start of a real model with bytes, numbers and lengths changed, repeated, or left out; by the seed."""
    choose = random.Random(seed)
    raw = bytearray(EMBER.read_bytes()[: choose.choice([200, 2_000, 60_000, 140_000])])
    for _ in range(choose.randint(1, 12)):
        at = choose.randrange(4, len(raw))
        match choose.randrange(4):
            case 0:
                raw[at] = choose.randrange(256)
            case 1:
                raw[at : at + 8] = choose.choice(_EDGES).to_bytes(8, "little")
            case 2:
                del raw[at : at + choose.randint(1, 64)]
            case _:
                raw[at:at] = raw[at : at + choose.randint(1, 256)]
    return bytes(raw)


def mistyped(seed: int) -> bytes:
    """A header with keys of a real model whose values are of any type; by the seed."""
    choose = random.Random(seed)
    keys = [one.key for one in metadata_of(EMBER) if one.key != "general.architecture"]
    entries = []
    for key in choose.sample(keys, len(keys) // 2):
        kind, value = choose.randrange(9), choose.choice(_EDGES).to_bytes(8, "little")
        item = string("llama") if kind == 8 else value[: struct.calcsize("BbHhIif?"[kind])]
        entries.append(choose.choice([entry(key, kind, item), array(key, kind, 70, item * 70)]))
    return header((_LLAMA, *entries))


@dataclass(frozen=True)
class Cost:
    """What reading a folder of files cost: the slowest file, its CPU seconds, and the memory that was added."""

    n_files: int
    slowest: str
    seconds: float
    n_bytes: int


def write_corpus(folder: Path) -> None:
    """Write the files; of the mutated ones, some are as large as they say they are, with a hole behind."""
    for name, content in [*at_the_limits(), *nested()]:
        (folder / f"{name}.gguf").write_bytes(content)
    for key, content in long_names():
        with open(folder / f"long {key}.gguf", "wb") as file:
            file.write(content)
            file.truncate(len(content) + LONG_NAME + 4_096)
    for seed in range(SEEDS):
        path = folder / f"mutated-{seed}.gguf"
        path.write_bytes(mutated(seed))
        if seed % 3:
            with open(path, "r+b") as file:
                file.truncate([1 << 24, 1 << 40][seed % 2])


def read_within_bounds(folder: Path, n_bytes: int) -> Cost:
    """Read every file in a process that may take ``n_bytes`` more memory than it has; fails where one ends it."""
    done = subprocess.run(
        [sys.executable, "-c", _READER, str(folder), str(n_bytes)],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return Cost(**json.loads(done.stdout))


_READER = """
import json, resource, sys, time
from pathlib import Path

from models.gguf.errors import GgufError
from models.gguf.header import read_header
from models.facts.model_facts import read_model
from models.pairing.vocabulary import FileVocabulary


def high_water() -> int:
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) * 1024


files = sorted(Path(sys.argv[1]).iterdir())
before = high_water()
size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + int(sys.argv[2]),) * 2)
slowest, seconds = "", 0.0
for path in files:
    began = time.process_time()
    try:
        read_model(path)
    except GgufError as error:
        assert str(error)
    taken = time.process_time() - began
    if taken > seconds:
        slowest, seconds = path.name, taken
    try:
        FileVocabulary(read_header(path)).read()  # what pairing reads beyond it
    except GgufError as error:
        assert str(error)
print(json.dumps({"n_files": len(files), "slowest": slowest, "seconds": seconds, "n_bytes": high_water() - before}))
"""
