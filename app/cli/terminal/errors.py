"""Errors in a terminal: the sentence that is shown, the command that helps, and the exit code for scripts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from app.environment.exit_codes import ExitCode
from core.values.errors import BadOption, BadRequest, LoadFailed, SlipstreamError, WorkerUnavailable
from models.formatting.program import PROGRAM, command
from models.library.values import Remedy, Trouble

# The first that fits counts. Errors of the app carry their own.
_CODES: Final[tuple[tuple[type[SlipstreamError], ExitCode], ...]] = (
    (BadOption, ExitCode.USAGE),
    (BadRequest, ExitCode.USAGE),
    (WorkerUnavailable, ExitCode.UNREACHABLE),
    (LoadFailed, ExitCode.MODEL),
)
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


def told(error: SlipstreamError) -> str:
    """Return what happened, and where more is known what to type against it."""
    trouble = getattr(error, "trouble", None)
    return error.message if trouble is None else typed(trouble)


def exit_code(error: SlipstreamError) -> ExitCode:
    """Return what an error means to a script."""
    own = getattr(error, "exit_code", None)
    if isinstance(own, ExitCode):
        return own
    return next((code for kind, code in _CODES if isinstance(error, kind)), ExitCode.ERROR)


def typed(trouble: Trouble) -> str:
    """Return what happened, and what to type against it."""
    return " ".join([trouble.sentence, *(_TYPED[remedy](trouble.about) for remedy in trouble.remedies)])
