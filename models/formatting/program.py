"""Where this program is, and how a user starts it, for sentences that name one of its commands."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Final

# Our processes run here: in the folder of the user they would import the modules there.
PROGRAM_FOLDER: Final = Path(__file__).resolve().parents[2]
_VARIABLE = "SLIPSTREAM_PROGRAM"
_USUAL = "./slipstream"
# Set for the window and for the processes that speak through it.
IN_WINDOW = "SLIPSTREAM_IN_WINDOW"


def program_typed(environment: Mapping[str, str]) -> str:
    """Return the program as the user typed it; the start script passes that on in the environment."""
    typed = environment.get(_VARIABLE, "")
    return shlex.quote(typed) if typed and typed.isprintable() else _USUAL


PROGRAM: Final = program_typed(os.environ)


def with_our_modules(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a process that finds our modules wherever it runs."""
    path = os.pathsep.join(part for part in (str(PROGRAM_FOLDER), environment.get("PYTHONPATH")) if part)
    return {**environment, "PYTHONPATH": path}


def advice(typed: str, clicked: str) -> str:
    """Return the advice ``clicked`` in the window, ``typed`` elsewhere."""
    return clicked if os.environ.get(IN_WINDOW) else typed


def as_typed(text: str) -> str:
    """Return ``text`` with ``./slipstream`` replaced by the program as the user typed it."""
    return text.replace(_USUAL, PROGRAM)


def command(words: str, name: str, options: str = "") -> str:
    """Return a command with the argument ``name``, quoted for a shell."""
    quoted = shlex.quote(name)
    parts = [words, options, "--", quoted] if name.startswith("-") else [words, quoted, options]
    return " ".join([PROGRAM, *(part for part in parts if part)])
