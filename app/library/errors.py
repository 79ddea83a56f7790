"""The error of the library, whose sentence is shown."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from app.environment.exit_codes import ExitCode
from core.values.errors import SlipstreamError
from models.formatting.system_error import system_reason

if TYPE_CHECKING:
    from models.library.values import Trouble


class LibraryError(SlipstreamError):
    """Something about the library that the user is told, with the exit code it means.

    ``trouble`` has what else is known of it, as what helps.
    """

    def __init__(self, text: str, /, exit_code: ExitCode, trouble: Trouble | None = None, **facts: object) -> None:
        super().__init__(text, **facts)
        self.exit_code, self.trouble = exit_code, trouble


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn the OSError of a block that writes ``path`` into a LibraryError."""
    try:
        yield
    except OSError as error:
        raise LibraryError(
            "{path} cannot be written: {reason}. Check its permissions and the disk's space.",
            ExitCode.ERROR,
            path=path,
            reason=system_reason(error),
        ) from error
