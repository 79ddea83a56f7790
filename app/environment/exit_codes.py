"""The exit codes of commands, and what they mean to a script."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit status of every command; the meanings are shown by ``--help``."""

    OK = 0
    ERROR = 1
    USAGE = 2
    SETUP_MISSING = 3
    PORT_TAKEN = 4
    NO_DISPLAY = 5
    MODEL = 6
    UNREACHABLE = 7
    TEXT_CHANGED = 8
    LINES_FAILED = 9
    SLOWER = 10
    INTERRUPTED = 130

    @property
    def meaning(self) -> str:
        """The meaning, in a few words."""
        return _MEANINGS[self]


_MEANINGS = {
    ExitCode.OK: "success",
    ExitCode.ERROR: "something failed; the reason is on stderr",
    ExitCode.USAGE: "the command line or the input cannot be used",
    ExitCode.SETUP_MISSING: "a part of the installation is missing",
    ExitCode.PORT_TAKEN: "the port is taken by another program",
    ExitCode.NO_DISPLAY: "the desktop app needs a display",
    ExitCode.MODEL: "the model is unknown or cannot be loaded",
    ExitCode.UNREACHABLE: "no usable server or worker answers at the address",
    ExitCode.TEXT_CHANGED: "drafting changed a text by more than rounding",
    ExitCode.LINES_FAILED: "some lines of the batch failed; the output says why",
    ExitCode.SLOWER: "drafting made replies slower",
    ExitCode.INTERRUPTED: "interrupted (Ctrl-C)",
}
