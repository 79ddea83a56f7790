"""From what went wrong to the sentence that the window shows, and what it may offer with it."""

from __future__ import annotations

from app.library.remedies import told
from core.values.errors import SlipstreamError
from models.catalog.imported_folders import ImportRefused
from models.files.errors import DownloadError
from models.files.json_store import StoreRefused
from models.gguf.errors import GgufError
from models.hub.errors import BadHubSetting, HubError, NoAccess, Offline, Unreachable
from models.library.values import Trouble, TroubleKind
from models.quantise.errors import QuantiseError


def trouble_of(error: Exception) -> Trouble:
    """Return ``error`` as a sentence; what nobody foresaw is named too."""
    if isinstance(error, Offline | Unreachable):
        return Trouble(told(error), TroubleKind.OFFLINE)
    if isinstance(error, NoAccess):
        return Trouble(told(error), TroubleKind.ACCESS)
    if isinstance(error, BadHubSetting):
        return Trouble(told(error), TroubleKind.SETTING)
    if isinstance(error, HubError | DownloadError | GgufError | ImportRefused | StoreRefused | QuantiseError):
        return Trouble(told(error))
    if isinstance(error, SlipstreamError):
        return Trouble(str(error))
    if isinstance(error, OSError):
        return Trouble(f"{error.filename or 'A file'} could not be used: {error.strerror or error}.")
    return Trouble(f"The library failed ({type(error).__name__}: {error}). Try again, or report it.")
