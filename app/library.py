"""The model library as the commands use it: the Hub with the user's settings, folders, and errors as exit codes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from app.exit_codes import ExitCode
from app.paths import config_folder
from core.errors import SlipstreamError

if TYPE_CHECKING:
    from models.hub.client import Hub


class LibraryError(SlipstreamError):
    """Something about the library that the user is told, with the exit code it means."""

    def __init__(self, message: str, exit_code: ExitCode) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def hub() -> Hub:
    """The Hub as the environment and the saved settings say; raises BadHubSetting."""
    from models.hub.client import Hub
    from models.hub.settings import read_settings

    return Hub(read_settings(hub_file()))


def hub_file() -> Path:
    """Where the Hub's address and proxy are kept."""
    return config_folder() / "hub.json"


def folders_file() -> Path:
    """Where the list of imported folders is kept."""
    return config_folder() / "folders.json"


@contextmanager
def told() -> Iterator[None]:
    """Turn what the library raises into a LibraryError."""
    from models.download import errors as download
    from models.gguf_errors import GgufError
    from models.hub import errors as hub
    from models.imported import ImportRefused
    from models.quantise import errors as quantise

    try:
        yield
    except (hub.BadHubSetting, ImportRefused, quantise.QuantiseRefused) as error:
        raise LibraryError(error.message, ExitCode.USAGE) from error
    except (hub.NotThere, hub.NoAccess, download.NothingToChoose, download.UnsafeName, GgufError) as error:
        raise LibraryError(error.message, ExitCode.MODEL) from error
    except (hub.Unreachable, hub.Offline, download.ConnectionLost) as error:
        raise LibraryError(error.message, ExitCode.UNREACHABLE) from error
    except quantise.QuantiseCancelled as error:
        raise LibraryError(error.message, ExitCode.INTERRUPTED) from error
    except (hub.HubError, download.DownloadError, quantise.QuantiseError) as error:
        raise LibraryError(error.message, ExitCode.ERROR) from error
