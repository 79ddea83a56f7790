"""What can stop the set-up, each with the sentence that the user is told."""

from __future__ import annotations


class SetupError(Exception):
    """The set-up cannot go on; the text says what happened and what to do."""

    exit_code = 1


class PackagesMissing(SetupError):
    """Only the user can install what is missing; the text holds the command to type."""

    exit_code = 3


class CommandFailed(SetupError):
    """A command of the set-up failed. ``tail`` holds the last lines of its output."""

    def __init__(self, what: str, code: int, tail: tuple[str, ...]) -> None:
        super().__init__(f"{what} failed (exit code {code}).")
        self.tail = tail
