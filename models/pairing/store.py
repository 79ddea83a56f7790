"""Measured gains of pairs on this machine, and the chosen partner of each model, in one small file.

Models are identified by ``file_id``, so a moved file keeps its entries, and a changed file loses them.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

from models.files.json_store import JsonStore
from models.formatting.json_values import value_of
from models.formatting.sentence import Sentence
from models.formatting.system_error import system_reason
from models.gguf.errors import UnreadableFile

By = Literal["user", "test"]
_Kept = TypeVar("_Kept")
# Bytes that are hashed of a file's beginning.
_HEADER_BYTES = 64 << 10


@dataclass(frozen=True, slots=True)
class MeasuredGain:
    """Speed with a draft over plain decoding, measured on the machine ``machine``; rates in tokens per second.

    ``acceptance`` is None where nothing was drafted: decoding plainly was expected to be faster. ``forecast`` was the
    predicted gain, ``date`` the day of the measurement (YYYY-MM-DD).
    """

    target: str
    draft: str
    machine: str
    gain: float
    plain_rate: float
    drafted_rate: float
    acceptance: float | None
    forecast: float
    date: str

    @property
    def _is_sane(self) -> bool:
        return self.gain > 0 and min(self.plain_rate, self.drafted_rate, self.forecast, self.acceptance or 0.0) >= 0


@dataclass(frozen=True, slots=True)
class PartnerChoice:
    """The partner that a user or a test has chosen for ``target``.

    ``draft`` None means no draft; the rest is empty then.

    A test's choice is valid only on its machine.
    """

    target: str
    draft: str | None
    name: str
    path: str
    by: By
    machine: str = ""


class PairStore:
    """Reads the file once, and again before each change. ``problem`` is a sentence about a damaged file, or None."""

    def __init__(self, path: Path) -> None:
        """``path`` need not exist."""
        self._store = JsonStore(path, what=Sentence("What was measured and chosen of pairs"))
        self._gains: dict[tuple[str, str, str], MeasuredGain] = {}
        self._choices: dict[str, PartnerChoice] = {}
        self._take(self._store.read())
        self.problem = self._store.problem

    @property
    def is_empty(self) -> bool:
        """Whether nothing is kept."""
        return not (self._gains or self._choices)

    def gain(self, target: str, draft: str, machine: str) -> MeasuredGain | None:
        """The measured gain of a pair on a machine, or None."""
        return self._gains.get((target, draft, machine))

    def gains(self, machine: str) -> tuple[MeasuredGain, ...]:
        """All measured gains on a machine."""
        return tuple(gain for gain in self._gains.values() if gain.machine == machine)

    def choice(self, target: str, machine: str) -> PartnerChoice | None:
        """The choice for a model, or None."""
        choice = self._choices.get(target)
        return None if choice is None or (choice.by == "test" and choice.machine != machine) else choice

    def keep(self, gain: MeasuredGain) -> None:
        """Keep a measurement, replacing an earlier one of the pair; raises StoreRefused."""
        self._update(lambda: self._gains.update({(gain.target, gain.draft, gain.machine): gain}))

    def choose(self, choice: PartnerChoice) -> None:
        """Keep a choice, replacing an earlier one for the model; raises StoreRefused."""
        self._update(lambda: self._choices.update({choice.target: choice}))

    def forget_choice(self, target: str) -> None:
        """Remove the choice for a model, if there is one; raises StoreRefused."""
        self._update(lambda: self._choices.pop(target, None))

    def _update(self, change: Callable[[], object]) -> None:
        """Read the file again, apply a change, and write it."""

        def apply(entries: dict[str, Any]) -> None:
            self._take(entries)
            change()
            entries["gains"] = [asdict(gain) for gain in self._gains.values()]
            entries["choices"] = [asdict(choice) for choice in self._choices.values()]

        self._store.update(apply)
        self.problem = None

    def _take(self, entries: dict[str, Any]) -> None:
        gains = [gain for gain in _values(MeasuredGain, entries.get("gains")) if gain._is_sane]
        choices = _values(PartnerChoice, entries.get("choices"))
        self._gains = {(gain.target, gain.draft, gain.machine): gain for gain in gains}
        self._choices = {choice.target: choice for choice in choices}


def _values(kind: type[_Kept], items: Any) -> list[_Kept]:
    """The valid items of a list."""
    found = []
    for item in items if isinstance(items, list) else []:
        with suppress(TypeError, ValueError, KeyError):
            found.append(value_of(kind, item))
    return found


def file_id(path: Path) -> str:
    """Size, modification time and a hash of the file's beginning, as one text; raises UnreadableFile."""
    try:
        with open(path, "rb") as file:
            status = os.fstat(file.fileno())
            start = file.read(_HEADER_BYTES)
    except OSError as error:
        raise UnreadableFile("{path} cannot be read: {reason}.", path=path, reason=system_reason(error)) from error
    return f"{status.st_size}-{status.st_mtime_ns}-{hashlib.sha256(start).hexdigest()[:16]}"
