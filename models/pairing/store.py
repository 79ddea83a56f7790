"""What pairs of models have gained here, and which partner was chosen for a model: one small file.

Models are known by ``identity.file_id``, so that a moved file keeps what is known of it and a changed one loses it.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from models.whole_file import write_whole

By = Literal["user", "test"]
_VERSION = 1
# A file that is larger is none of ours.
_MOST_BYTES = 16 << 20
_LOCK_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Gain:
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
class Choice:
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
    """Reads the file once and writes it as a whole. A file that cannot be read is set aside when something is kept."""

    def __init__(self, path: Path) -> None:
        """``path`` need not exist."""
        self._path = path
        self.problem: str | None = None
        self._gains: dict[tuple[str, str, str], Gain] = {}
        self._choices: dict[str, Choice] = {}
        self._read()

    @property
    def is_empty(self) -> bool:
        """Whether nothing is kept."""
        return not (self._gains or self._choices)

    def gain(self, target: str, draft: str, machine: str) -> Gain | None:
        """What a pair gained on a machine, or None."""
        return self._gains.get((target, draft, machine))

    def gains(self, machine: str) -> tuple[Gain, ...]:
        """All that was measured on a machine."""
        return tuple(gain for gain in self._gains.values() if gain.machine == machine)

    def choice(self, target: str, machine: str) -> Choice | None:
        """What was chosen for a model, or None."""
        choice = self._choices.get(target)
        return None if choice is None or (choice.by == "test" and choice.machine != machine) else choice

    def keep(self, gain: Gain) -> None:
        """Remember a measurement in place of an earlier one of the pair; raises OSError."""
        with self._changing():
            self._gains[gain.target, gain.draft, gain.machine] = gain

    def choose(self, choice: Choice) -> None:
        """Remember a choice in place of an earlier one for the model; raises OSError."""
        with self._changing():
            self._choices[choice.target] = choice

    def forget_choice(self, target: str) -> bool:
        """Forget what was chosen for a model; says whether there was something. Raises OSError."""
        with self._changing():
            return self._choices.pop(target, None) is not None

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Read what others have written meanwhile, let the block change it, and write it all."""
        from filelock import FileLock  # not for those who only read: loading a model is one of them

        self._path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(self._path.with_suffix(".lock"), timeout=_LOCK_SECONDS):
            self._read()
            if self.problem is not None and self._path.exists():
                os.replace(self._path, self._path.with_suffix(".unreadable"))
            yield
            self._write()
            self.problem = None

    def _write(self) -> None:
        listed = {
            "version": _VERSION,
            "gains": [asdict(gain) for gain in self._gains.values()],
            "choices": [asdict(choice) for choice in self._choices.values()],
        }
        write_whole(self._path, json.dumps(listed, indent=1))

    def _read(self) -> None:
        self._gains, self._choices, self.problem = {}, {}, None
        try:
            with open(self._path, "rb") as file:
                kept = json.loads(file.read(_MOST_BYTES))
            if not isinstance(kept, dict) or kept.get("version") != _VERSION:
                raise ValueError("it was not written by this version")
        except FileNotFoundError:
            return
        except (OSError, ValueError, RecursionError):
            self.problem = (
                f"{self._path} cannot be read, so what was measured and chosen of pairs is not known. "
                "`slipstream models pair NAME --test` measures again."
            )
            return
        gains = [gain for item in _items(kept, "gains") if (gain := _gain(item)) is not None]
        choices = [choice for item in _items(kept, "choices") if (choice := _choice(item)) is not None]
        self._gains = {(gain.target, gain.draft, gain.machine): gain for gain in gains}
        self._choices = {choice.target: choice for choice in choices}


def _items(kept: dict[str, Any], name: str) -> list[Any]:
    items = kept.get(name)
    return items if isinstance(items, list) else []


def _gain(item: Any) -> Gain | None:
    try:
        gain = Gain(**item)
    except TypeError:
        return None
    return gain if gain._is_sane else None


def _choice(item: Any) -> Choice | None:
    try:
        choice = Choice(**item)
    except TypeError:
        return None
    return choice if choice._is_sane else None
