"""The error of the library, whose sentence is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.environment.exit_codes import ExitCode
from core.values.errors import SlipstreamError

if TYPE_CHECKING:
    from models.library.values import Trouble


class LibraryError(SlipstreamError):
    """Something about the library that the user is told, with the exit code it means.

    ``trouble`` has what else is known of it, as what helps.
    """

    def __init__(self, text: str, /, exit_code: ExitCode, trouble: Trouble | None = None, **facts: object) -> None:
        super().__init__(text, **facts)
        self.exit_code, self.trouble = exit_code, trouble
