"""What stored keys and values depend on, as a short hash: they are of use to nothing else."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

KEY_BYTES = 16
_HEAD_BYTES = 1 << 20
_N_SAMPLES, _SAMPLE_BYTES = 64, 4096


def model_key(paths: Sequence[Path], *options: object) -> bytes:
    """Return the key of a model's files and of the options that change what is computed. Raises OSError.

    Of each file count its size, the time it was changed, its first megabyte (metadata and the first tensors), and 64
    samples of 4 KiB at equal distances: reading all of a large file would take longer than what is saved.
    """
    digest = hashlib.blake2b(repr(options).encode(), digest_size=KEY_BYTES)
    for path in paths:
        status = path.stat()
        digest.update(f"{status.st_size} {status.st_mtime_ns}".encode())
        with path.open("rb") as file:
            digest.update(file.read(_HEAD_BYTES))
            for index in range(_N_SAMPLES):
                file.seek(status.st_size * index // _N_SAMPLES)
                digest.update(file.read(_SAMPLE_BYTES))
    return digest.digest()
