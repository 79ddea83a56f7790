"""What to do about an error of models/: one table for what is typed in a terminal, one for what is clicked."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, Final

from models.files.errors import NothingToChoose
from models.formatting.program import IN_WINDOW, PROGRAM, command
from models.hub.errors import BadToken, FileNotFound, GatedWithoutToken, Offline, RateLimited, RepositoryNotFound

_Table = Mapping[type[Exception], Callable[[Any], str]]

_TYPE_LOGIN = f"`{PROGRAM} models login` logs in."
_CLICK_LOGIN = "“Hub settings…”, “Log in” logs in."

TYPED: Final[_Table] = {
    Offline: lambda error: f"`{PROGRAM} models list` and `{PROGRAM} models search` without words work offline.",
    RateLimited: lambda error: _TYPE_LOGIN,
    RepositoryNotFound: lambda error: f"`{PROGRAM} models search NAME` finds names.{_login(error, _TYPE_LOGIN)}",
    FileNotFound: lambda error: f"`{command('models show', error.repo_id)}` lists what there is.",
    BadToken: lambda error: _TYPE_LOGIN,
    GatedWithoutToken: lambda error: _TYPE_LOGIN,
    NothingToChoose: lambda error: (
        f"`{command('models pull', error.example)}` downloads one."
        if error.example
        else f"`{PROGRAM} models search NAME` finds others."
    ),
}
CLICKED: Final[_Table] = {
    Offline: lambda error: "The models of this machine and the suggested ones are there without it.",
    RateLimited: lambda error: _CLICK_LOGIN,
    RepositoryNotFound: lambda error: f"A search finds names.{_login(error, _CLICK_LOGIN)}",
    FileNotFound: lambda error: "Find it again to see what there is.",
    BadToken: lambda error: _CLICK_LOGIN,
    GatedWithoutToken: lambda error: _CLICK_LOGIN,
}


def told(error: Exception) -> str:
    """Return what went wrong, and what to do about it in the words of the place where it is read."""
    remedy = (CLICKED if os.environ.get(IN_WINDOW) else TYPED).get(type(error))
    return f"{error} {remedy(error)}" if remedy is not None else str(error)


def _login(error: RepositoryNotFound, how: str) -> str:
    return "" if error.has_token else f" {how}"
