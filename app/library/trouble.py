"""From what went wrong to the sentence that is shown, what may be offered with it, and what it means to a script."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from app.environment.exit_codes import ExitCode
from app.library.errors import LibraryError
from app.library.find_model import UnknownModel
from core.values.errors import SlipstreamError
from models.catalog.imported_folders import ImportRefused
from models.files.errors import ConnectionLost, DownloadError, NothingToChoose, UnsafeName
from models.files.json_store import StoreRefused
from models.formatting.sentence import Sentence
from models.formatting.system_error import system_reason
from models.gguf.errors import GgufError
from models.hub.errors import (
    BadHubSetting,
    BadToken,
    FileNotFound,
    GatedWithoutToken,
    HubError,
    NoAccess,
    NotThere,
    Offline,
    RateLimited,
    RepositoryNotFound,
    Unreachable,
)
from models.library.values import Remedy, Trouble, TroubleKind
from models.quantise.plan import QuantiseCancelled, QuantiseError, QuantiseRefused

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
# The kind of trouble by the exit code of our own errors.
_KIND_OF_CODE: Final[dict[ExitCode | None, TroubleKind]] = {
    ExitCode.USAGE: TroubleKind.REFUSED,
    ExitCode.MODEL: TroubleKind.UNUSABLE,
    ExitCode.UNREACHABLE: TroubleKind.OFFLINE,
    ExitCode.INTERRUPTED: TroubleKind.CANCELLED,
}
# What helps beyond the error's own sentence, and what that is about.
_Remedies = tuple[tuple[Remedy, ...], str]
_REMEDIES: Final[dict[type[Exception], Callable[[Any], _Remedies]]] = {
    Offline: lambda error: ((Remedy.WORK_OFFLINE,), ""),
    RateLimited: lambda error: ((Remedy.LOG_IN,), ""),
    RepositoryNotFound: lambda error: ((Remedy.SEARCH, *(() if error.has_token else (Remedy.LOG_IN,))), ""),
    FileNotFound: lambda error: ((Remedy.LOOK,), error.repo_id),
    BadToken: lambda error: ((Remedy.LOG_IN,), ""),
    GatedWithoutToken: lambda error: ((Remedy.LOG_IN,), ""),
    NothingToChoose: lambda error: ((Remedy.PULL if error.example else Remedy.SEARCH,), error.example),
    QuantiseRefused: lambda error: ((Remedy.ALLOW,) if error.option else (), error.option),
}


def trouble_of(error: Exception) -> Trouble:
    """Return ``error`` as a sentence; what nobody foresaw is named too."""
    if isinstance(error, LibraryError) and error.trouble is not None:
        return error.trouble
    if isinstance(error, _OF_MODELS):
        kind = next((kind for kinds, kind in _KINDS if isinstance(error, kinds)), TroubleKind.OTHER)
        remedies = _REMEDIES.get(type(error))
        return Trouble(str(error), kind, *(remedies(error) if remedies is not None else ()))
    if isinstance(error, UnknownModel):
        return Trouble(str(error), TroubleKind.MISSING)
    if isinstance(error, SlipstreamError):
        return Trouble(str(error), _KIND_OF_CODE.get(getattr(error, "exit_code", ExitCode.ERROR), TroubleKind.OTHER))
    if isinstance(error, OSError):
        sentence = Sentence(
            "{filename} could not be used: {reason}.",
            filename=error.filename or Sentence("A file"),
            reason=system_reason(error),
        )
    else:
        sentence = Sentence(
            "The library failed ({kind}: {error}). Try again, or report it.", kind=type(error).__name__, error=error
        )
    return Trouble(sentence, TroubleKind.FAILED)


@contextmanager
def as_library_errors() -> Iterator[None]:
    """Turn what models/ raises into a LibraryError."""
    try:
        yield
    except _OF_MODELS as error:
        raise library_error(trouble_of(error)) from error


def library_error(trouble: Trouble) -> LibraryError:
    """Return trouble as an error with the exit code that it means."""
    return LibraryError(trouble.sentence, EXIT_CODES[trouble.kind], trouble)
