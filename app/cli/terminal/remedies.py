"""What to do about trouble of the library, in the words of a terminal: one table for what is typed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from models.formatting.program import PROGRAM, command
from models.library.values import Remedy, Trouble

_TYPED: Final[Mapping[Remedy, Callable[[str], str]]] = {
    Remedy.WORK_OFFLINE: lambda about: (
        f"`{PROGRAM} models list` and `{PROGRAM} models search` without words work offline."
    ),
    Remedy.LOG_IN: lambda about: f"`{PROGRAM} models login` logs in.",
    Remedy.SEARCH: lambda about: f"`{PROGRAM} models search NAME` finds names.",
    Remedy.LOOK: lambda about: f"`{command('models show', about)}` lists what there is.",
    Remedy.PULL: lambda about: f"`{command('models pull', about)}` downloads one.",
    Remedy.FORGET: lambda about: f"`{PROGRAM} models import FOLDER --forget` does that.",
    Remedy.DELETE: lambda about: f"`{command('models rm', about, '--delete')}` deletes it for good.",
    Remedy.ALLOW: lambda about: f"The option for that is {about}.",
}


def typed(trouble: Trouble) -> str:
    """Return what happened, and what to type against it."""
    return " ".join([trouble.sentence, *(_TYPED[remedy](trouble.about) for remedy in trouble.remedies)])
