"""From what went wrong to the sentence that is shown, what may be offered with it, and what it means to a script."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from app.environment.exit_codes import ExitCode
from app.library.hub_access import LibraryError
from app.library.remedies import told
from core.values.errors import SlipstreamError
from models.catalog.imported_folders import ImportRefused
from models.files.errors import ConnectionLost, DownloadError, NothingToChoose, UnsafeName
from models.files.json_store import StoreRefused
from models.gguf.errors import GgufError
from models.hub.errors import BadHubSetting, HubError, NoAccess, NotThere, Offline, Unreachable
from models.library.values import Trouble, TroubleKind
from models.quantise.errors import QuantiseCancelled, QuantiseError, QuantiseRefused

_OF_MODELS: Final = (HubError, DownloadError, GgufError, ImportRefused, StoreRefused, QuantiseError)
EXIT_CODES: Final = {
    TroubleKind.OFFLINE: ExitCode.UNREACHABLE,
    TroubleKind.ACCESS: ExitCode.MODEL,
    TroubleKind.SETTING: ExitCode.USAGE,
    TroubleKind.MISSING: ExitCode.MODEL,
    TroubleKind.UNUSABLE: ExitCode.MODEL,
    TroubleKind.REFUSED: ExitCode.USAGE,
    TroubleKind.CANCELLED: ExitCode.INTERRUPTED,
    TroubleKind.FAILED: ExitCode.ERROR,
    TroubleKind.OTHER: ExitCode.ERROR,
}
_KINDS = (
    ((Offline, Unreachable, ConnectionLost), TroubleKind.OFFLINE),
    ((NoAccess,), TroubleKind.ACCESS),
    ((BadHubSetting,), TroubleKind.SETTING),
    ((NotThere, NothingToChoose), TroubleKind.MISSING),
    ((UnsafeName, GgufError), TroubleKind.UNUSABLE),
    ((ImportRefused, QuantiseRefused), TroubleKind.REFUSED),
    ((QuantiseCancelled,), TroubleKind.CANCELLED),
)
# What errors of our own say of themselves.
_KIND_OF_CODE: Final[dict[ExitCode | None, TroubleKind]] = {
    ExitCode.USAGE: TroubleKind.REFUSED,
    ExitCode.MODEL: TroubleKind.UNUSABLE,
    ExitCode.UNREACHABLE: TroubleKind.OFFLINE,
    ExitCode.INTERRUPTED: TroubleKind.CANCELLED,
}


def trouble_of(error: Exception) -> Trouble:
    """Return ``error`` as a sentence; what nobody foresaw is named too."""
    if isinstance(error, _OF_MODELS):
        return Trouble(
            told(error), next((kind for kinds, kind in _KINDS if isinstance(error, kinds)), TroubleKind.OTHER)
        )
    if isinstance(error, SlipstreamError):
        from app.library.find_model import UnknownModel

        code = getattr(error, "exit_code", ExitCode.ERROR)
        is_missing = isinstance(error, UnknownModel)
        kind = TroubleKind.MISSING if is_missing else _KIND_OF_CODE.get(code, TroubleKind.OTHER)
        return Trouble(str(error), kind)
    if isinstance(error, OSError):
        sentence = f"{error.filename or 'A file'} could not be used: {error.strerror or error}."
    else:
        sentence = f"The library failed ({type(error).__name__}: {error}). Try again, or report it."
    return Trouble(sentence, TroubleKind.FAILED)


@contextmanager
def as_library_errors() -> Iterator[None]:
    """Turn what models/ raises into a LibraryError."""
    try:
        yield
    except _OF_MODELS as error:
        option = getattr(error, "option", "")
        trouble = trouble_of(error)
        advice = f" The option for that is {option}." if option else ""
        raise LibraryError(trouble.sentence + advice, EXIT_CODES[trouble.kind]) from error
