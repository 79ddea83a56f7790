"""llama.cpp as it is installed, and the devices that it can use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from core.values.errors import BadOption

if TYPE_CHECKING:
    from models.estimate.speed.machine import Lent


@dataclass(frozen=True, slots=True)
class Device:
    """A device; ``free`` and ``total`` are bytes (the host's memory for the CPU).

    ``kind`` is cpu, gpu, igpu, accelerator or meta (``ggml_backend_dev_type``). llama.cpp calls every device that is
    ``lent`` by another machine a GPU, whatever it is there.
    """

    name: str
    description: str
    kind: str
    free: int = 0
    total: int = 0
    lent: Lent | None = None

    @property
    def is_gpu(self) -> bool:
        """True for discrete and integrated GPUs."""
        return self.kind in ("gpu", "igpu")


@dataclass(frozen=True, slots=True)
class LlamaSystem:
    """Version of the bindings, version of llama.cpp, features it was compiled with, and devices.

    ``heads`` has for each kind of draft head the reason why it cannot be used, or None. ``problem`` says why nothing is
    known.
    """

    package: str | None = None
    version: str | None = None
    features: tuple[str, ...] = ()
    can_offload: bool = False
    devices: tuple[Device, ...] = ()
    heads: Mapping[str, str | None] = field(default_factory=dict)
    problem: str | None = None

    def must_have(self, names: Iterable[str]) -> None:
        """Raise BadOption for the name of a device that is not there."""
        known = [one.name for one in self.devices]
        for name in names:
            if name not in known:
                raise BadOption(f"There is no device called {name!r} (--device). This machine has {', '.join(known)}.")
