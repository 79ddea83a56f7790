"""Default context sizes."""

from __future__ import annotations

from typing import Any

import pytest

from core.sizing import ContextSize, choose_context

DEFAULTS: dict[str, Any] = {
    "n_ctx": None,
    "n_cells": None,
    "n_slots": 4,
    "n_ctx_train": 4096,
    "kv_bytes_per_token": 1000,
    "free_bytes": 10**9,
}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, ContextSize(4096, 16384)),
        ({"n_ctx_train": 131072}, ContextSize(8192, 32768)),
        ({"n_ctx_train": 0}, ContextSize(8192, 32768)),
        ({"n_ctx": 1000}, ContextSize(1000, 4096)),
        ({"n_ctx": 100_000}, ContextSize(100_000, 250_112)),
        ({"n_ctx": 500, "n_cells": 600}, ContextSize(500, 768)),
        ({"n_cells": 512}, ContextSize(512, 512)),
        ({"free_bytes": 8_000_000}, ContextSize(1792, 2048)),
        ({"free_bytes": 0}, ContextSize(256, 256)),
    ],
)
def test_sizes(given: dict[str, Any], expected: ContextSize) -> None:
    assert choose_context(**{**DEFAULTS, **given}) == expected
