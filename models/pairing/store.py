"""What pairs of models have gained here, and which partner was chosen for a model: one small file.

Models are known by ``file_id``, so that a moved file keeps what is known of it and a changed one loses it.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from models.files.json_store import JsonStore
from models.gguf.errors import UnreadableFile

By = Literal["user", "test"]
_HEADER_BYTES = 64 << 10


@dataclass(frozen=True, slots=True)
class MeasuredGain:
    """Speed with a draft over plain decoding, measured on the machine ``machine``; rates in tokens per second.

    ``forecast`` is what had been predicted, and ``date`` when it was measured (YYYY-MM-DD).
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
        numbers = (self.gain, self.plain_rate, self.drafted_rate, self.forecast, self.acceptance or 0.0)
        texts = (self.target, self.draft, self.machine, self.date)
        return (
            all(isinstance(number, float | int) and math.isfinite(number) and number >= 0 for number in numbers)
            and all(isinstance(text, str) for text in texts)
            and self.gain > 0
        )


@dataclass(frozen=True, slots=True)
class PartnerChoice:
    """The partner that a user or a test has chosen for ``target``; ``draft`` None is none, and then the rest is empty.

    A test's choice holds for the machine it was made on.
    """

    target: str
    draft: str | None
    name: str
    path: str
    by: By
    machine: str = ""

    @property
    def _is_sane(self) -> bool:
        texts = (self.target, self.name, self.path, self.machine)
        is_text = all(isinstance(text, str) for text in texts)
        return is_text and self.by in get_args(By) and (self.draft is None or isinstance(self.draft, str))


class PairStore:
    """Reads the file once, and again before each change. ``problem`` says what was found wrong with it, or is None."""

    def __init__(self, path: Path) -> None:
        """``path`` need not exist."""
        self._store = JsonStore(path, what="what was measured and chosen of pairs")
        self._gains: dict[tuple[str, str, str], MeasuredGain] = {}
        self._choices: dict[str, PartnerChoice] = {}
        self._take(self._store.read())
        self.problem = self._store.problem

    @property
    def is_empty(self) -> bool:
        """Whether nothing is kept."""
        return not (self._gains or self._choices)

    def gain(self, target: str, draft: str, machine: str) -> MeasuredGain | None:
        """What a pair gained on a machine, or None."""
        return self._gains.get((target, draft, machine))

    def gains(self, machine: str) -> tuple[MeasuredGain, ...]:
        """All that was measured on a machine."""
        return tuple(gain for gain in self._gains.values() if gain.machine == machine)

    def choice(self, target: str, machine: str) -> PartnerChoice | None:
        """What was chosen for a model, or None."""
        choice = self._choices.get(target)
        return None if choice is None or (choice.by == "test" and choice.machine != machine) else choice

    def keep(self, gain: MeasuredGain) -> None:
        """Remember a measurement in place of an earlier one of the pair; raises StoreRefused."""
        self._update(lambda: self._gains.update({(gain.target, gain.draft, gain.machine): gain}))

    def choose(self, choice: PartnerChoice) -> None:
        """Remember a choice in place of an earlier one for the model; raises StoreRefused."""
        self._update(lambda: self._choices.update({choice.target: choice}))

    def forget_choice(self, target: str) -> bool:
        """Forget what was chosen for a model; says whether there was something. Raises StoreRefused."""
        forgotten: list[PartnerChoice | None] = []
        self._update(lambda: forgotten.append(self._choices.pop(target, None)))
        return forgotten != [None]

    def _update(self, change: Callable[[], None]) -> None:
        """Read what others have written meanwhile, change it, and write it all."""

        def apply(entries: dict[str, Any]) -> None:
            self._take(entries)
            change()
            entries["gains"] = [asdict(gain) for gain in self._gains.values()]
            entries["choices"] = [asdict(choice) for choice in self._choices.values()]

        self._store.update(apply)
        self.problem = None

    def _take(self, entries: dict[str, Any]) -> None:
        gains = [gain for item in _items(entries, "gains") if (gain := _gain(item)) is not None]
        choices = [choice for item in _items(entries, "choices") if (choice := _choice(item)) is not None]
        self._gains = {(gain.target, gain.draft, gain.machine): gain for gain in gains}
        self._choices = {choice.target: choice for choice in choices}


def _items(kept: dict[str, Any], name: str) -> list[Any]:
    items = kept.get(name)
    return items if isinstance(items, list) else []


def _gain(item: Any) -> MeasuredGain | None:
    try:
        gain = MeasuredGain(**item)
    except TypeError:
        return None
    return gain if gain._is_sane else None


def _choice(item: Any) -> PartnerChoice | None:
    try:
        choice = PartnerChoice(**item)
    except TypeError:
        return None
    return choice if choice._is_sane else None


def file_id(path: Path) -> str:
    """Size, time of change and a hash of the beginning, as one text; raises UnreadableFile."""
    try:
        with open(path, "rb") as file:
            status = os.fstat(file.fileno())
            start = file.read(_HEADER_BYTES)
    except OSError as error:
        raise UnreadableFile(f"{path} cannot be read: {error.strerror or error}.") from error
    return f"{status.st_size}-{status.st_mtime_ns}-{hashlib.sha256(start).hexdigest()[:16]}"
