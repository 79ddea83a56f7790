"""From what went wrong to the sentence that a client shows, and what it may offer with it."""

from __future__ import annotations

from app.library.find_model import UnknownModel
from app.library.remedies import told
from core.values.errors import SlipstreamError
from models.catalog.imported_folders import ImportRefused
from models.files.errors import DownloadError
from models.files.json_store import StoreRefused
from models.gguf.errors import GgufError
from models.hub.errors import BadHubSetting, HubError, NoAccess, NotThere, Offline, Unreachable
from models.library.values import Trouble, TroubleKind
from models.quantise.errors import QuantiseError

KINDS = (
    (Offline | Unreachable, TroubleKind.OFFLINE),
    (NoAccess, TroubleKind.ACCESS),
    (BadHubSetting, TroubleKind.SETTING),
    (NotThere | UnknownModel, TroubleKind.MISSING),
)
_WITH_REMEDY = HubError | DownloadError | GgufError | ImportRefused | StoreRefused | QuantiseError


def trouble_of(error: Exception) -> Trouble:
    """Return ``error`` as a sentence; what nobody foresaw is named too."""
    if isinstance(error, _WITH_REMEDY | SlipstreamError):
        sentence = told(error) if isinstance(error, _WITH_REMEDY) else str(error)
        return Trouble(sentence, next((kind for errors, kind in KINDS if isinstance(error, errors)), TroubleKind.OTHER))
    if isinstance(error, OSError):
        sentence = f"{error.filename or 'A file'} could not be used: {error.strerror or error}."
    else:
        sentence = f"The library failed ({type(error).__name__}: {error}). Try again, or report it."
    return Trouble(sentence, TroubleKind.FAILED)
