"""The self-test of a build of llama.cpp."""

from __future__ import annotations

from typing import Any

import pytest

from core.llama import build, devices
from core.llama.model import Model
from core.values.engine_options import Device


@pytest.mark.parametrize(("free", "decodes"), [(4 << 30, [0, -1]), (1 << 20, [0])])
def test_a_decode_is_tried_on_the_processor_and_on_a_gpu_with_room(
    monkeypatch: pytest.MonkeyPatch, free: int, decodes: list[int]
) -> None:
    tried: list[int] = []
    load = Model.__init__

    def noted(self: Model, path: str, options: Any = None, *, n_gpu_layers: int = 0, **others: Any) -> None:
        tried.append(n_gpu_layers)
        load(self, path, options, n_gpu_layers=n_gpu_layers, **others)

    monkeypatch.setattr(Model, "__init__", noted)
    monkeypatch.setattr(devices, "list_devices", lambda: (Device("CUDA0", "a GPU", "gpu", free=free),))
    build.check_decode()
    assert tried == decodes
