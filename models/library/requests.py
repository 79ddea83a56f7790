"""Requests to the library, and the table of the server's routes for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from models.hub.repository import Repository
from models.library.values import (
    Bench,
    Download,
    DraftOffer,
    DraftOffers,
    FolderPlace,
    FoundModel,
    HubFacts,
    MachineFacts,
    MeasuringStep,
    ModelFitReport,
    ModelRow,
    ModelRows,
    MoveStep,
    PairStep,
    Partners,
    QuantiseOffer,
    Quantising,
    Recommended,
    RemoteFitReport,
    SettingsSheet,
    SettingText,
    Suggested,
)


@dataclass(frozen=True, slots=True)
class ListModels:
    """List the models of this machine; a long list comes in several parts."""


@dataclass(frozen=True, slots=True)
class ShowModel:
    """Return one row of the list of models."""

    name: str


@dataclass(frozen=True, slots=True)
class GetSettings:
    """Return the settings of one model, with the recommended values."""

    name: str


@dataclass(frozen=True, slots=True)
class ChangeSettings:
    """Change some settings of one model. If one is wrong, none is changed and the answer says why."""

    name: str
    changes: tuple[SettingText, ...]


@dataclass(frozen=True, slots=True)
class OfferQuantise:
    """Return which smaller copies can be made of a model."""

    name: str


@dataclass(frozen=True, slots=True)
class Quantise:
    """Queue a smaller copy of a model. An empty ``output`` is the usual name; ``threads`` None is one per core."""

    name: str
    type: str
    output: str = ""
    may_requantise: bool = False
    threads: int | None = None


@dataclass(frozen=True, slots=True)
class CancelQuantise:
    """Cancel a copy that is being made and remove its file, or remove one that has ended from the list."""

    number: int


@dataclass(frozen=True, slots=True)
class ListCurated:
    """List the models to begin with, judged for this machine; needs no network."""


@dataclass(frozen=True, slots=True)
class SearchHub:
    """Search repositories by words; ``order`` is one of ``models.hub.client.SORTS``."""

    words: str
    order: str = "downloads"


@dataclass(frozen=True, slots=True)
class ShowRepository:
    """Return one repository with its models and their sizes."""

    repo_id: str


@dataclass(frozen=True, slots=True)
class GetRemoteFit:
    """Judge one model of a repository for this machine; reads its header over the network."""

    repo_id: str
    wanted: str


@dataclass(frozen=True, slots=True)
class StartDownload:
    """Download a model, or resume it if it is in the queue. Without a ``revision`` it is the newest version."""

    repo_id: str
    wanted: str
    revision: str | None = None


@dataclass(frozen=True, slots=True)
class RepairModel:
    """Download again what differs in the files of a model that were changed after their download."""

    name: str


@dataclass(frozen=True, slots=True)
class PauseDownload:
    """Pause a download; its partial files are kept."""

    number: int


@dataclass(frozen=True, slots=True)
class ResumeDownload:
    """Resume a paused or failed download."""

    number: int


@dataclass(frozen=True, slots=True)
class CancelDownload:
    """Cancel a download and remove its partial files."""

    number: int


@dataclass(frozen=True, slots=True)
class MoveDownload:
    """Move a download to a position in the queue; 0 is the first."""

    number: int
    position: int


@dataclass(frozen=True, slots=True)
class ClearEnded:
    """Remove the downloads that have ended from the list."""


@dataclass(frozen=True, slots=True)
class RemoveModel:
    """Move a downloaded model to the trash, or delete it ``for_good``. The answer is its files."""

    name: str
    for_good: bool = False


@dataclass(frozen=True, slots=True)
class ImportFolder:
    """Use the models of a folder where they are. The answer names the folder and its program."""

    folder: str


@dataclass(frozen=True, slots=True)
class ImportFile:
    """Use one model file where it is: it is linked into the folder of models. The answer is the model's name."""

    file: str


@dataclass(frozen=True, slots=True)
class ForgetFolder:
    """Stop using an imported folder. The answer is its path."""

    folder: str


@dataclass(frozen=True, slots=True)
class ListPlaces:
    """List the imported folders, and those of other programs that could be imported."""


@dataclass(frozen=True, slots=True)
class ShowHub:
    """Return how the Hub is reached."""


@dataclass(frozen=True, slots=True)
class ChangeHub:
    """Change the Hub's address and proxy; empty means the default, None leaves it as it is."""

    address: str | None = None
    proxy: str | None = None


@dataclass(frozen=True, slots=True)
class LogIn:
    """Keep an access token in the system's keyring."""

    token: str

    def __repr__(self) -> str:
        """Keep the token out of logs and tracebacks."""
        return "LogIn(token=...)"


@dataclass(frozen=True, slots=True)
class LogOut:
    """Remove the access token from the keyring."""


@dataclass(frozen=True, slots=True)
class GetModelFit:
    """Judge a model of this machine: does it fit, and how fast is it."""

    name: str


@dataclass(frozen=True, slots=True)
class ShowPartners:
    """Return which draft model or head a model uses, which others could draft, and why others cannot."""

    name: str


@dataclass(frozen=True, slots=True)
class FindOffers:
    """Find draft models and heads to download for a model; searches the Hub for some seconds."""

    name: str


@dataclass(frozen=True, slots=True)
class FindDraft:
    """Find a draft model or head to download along with a model of the Hub; ``wanted`` is the model's first file.

    Reads headers over the network and searches the Hub for some seconds.
    """

    repo_id: str
    wanted: str


@dataclass(frozen=True, slots=True)
class ChoosePartner:
    """Choose the draft of a model; ``way`` is a ``Choosing``, ``partner`` the name if that is NAMED."""

    name: str
    way: str
    partner: str = ""


@dataclass(frozen=True, slots=True)
class MoveModels:
    """Move the folder of models to another place. Answered in parts, which say how far it is.

    Refused without enough space or permission, and while anything is downloaded or quantised. If it fails, is
    cancelled, or its client leaves, nothing has changed. Programs that use the old folder have to be restarted
    afterwards.
    """

    folder: str


@dataclass(frozen=True, slots=True)
class CancelMove:
    """Cancel the move of the models."""


@dataclass(frozen=True, slots=True)
class TestPair:
    """Measure the most promising drafts of a model here, or the one named, and choose the fastest; takes minutes.

    Answered in parts, which say how far it is; it ends when its client leaves. It waits while a server on this machine
    is busy, unless ``now``.
    """

    name: str
    partner: str = ""
    now: bool = False


@dataclass(frozen=True, slots=True)
class BeginPairTest:
    """Start a test of pairs now that waits for other work to end."""


@dataclass(frozen=True, slots=True)
class StopPairTest:
    """Stop the running test of pairs."""


@dataclass(frozen=True, slots=True)
class Recommend:
    """Recommend a model of a repository for this machine; reads one header over the network."""

    repo_id: str


@dataclass(frozen=True, slots=True)
class ShowMachine:
    """Return this machine's hardware, and its memory bandwidth if it was measured."""


@dataclass(frozen=True, slots=True)
class MeasureMachine:
    """Measure memory and processor again, which takes about ten seconds. Refused beside other work.

    ``is_first`` measures only missing values of the memory, in a few seconds; the processor follows when it is idle.
    """

    is_first: bool = False


@dataclass(frozen=True, slots=True)
class Verify:
    """Verify that drafting changes no text of a model, and measure its gain, as ``./slipstream verify`` does.

    ``partner`` "" is the draft that the model is loaded with. Answered in parts; it ends when its client leaves.
    Refused beside other work.
    """

    name: str
    partner: str = ""
    max_tokens: int = 64
    seeds: int = 1


@dataclass(frozen=True, slots=True)
class ListBenches:
    """List the benchmarks that can be run here."""


@dataclass(frozen=True, slots=True)
class RunBench:
    """Run a benchmark with its default options; answered in parts, refused beside other work.

    It ends when its client leaves.
    """

    name: str


@dataclass(frozen=True, slots=True)
class StopMeasuring:
    """Stop the running verification or benchmark."""


@dataclass(frozen=True, slots=True)
class DismissNotice:
    """Drop a notice about a file."""

    path: str


@dataclass(frozen=True, slots=True)
class ListDownloads:
    """List the queue of downloads."""


@dataclass(frozen=True, slots=True)
class ListQuantisings:
    """List the smaller copies that are being made, wait or have ended."""


class Route(NamedTuple):
    """A route of the server. The fields of ``request`` are in the query of a GET, or in the JSON body of a POST.

    ``answer`` is the type of the answer; None if it only confirms the request. ``needs_key``: a server without an API
    key refuses it, because other users of the machine could otherwise have the user's token sent elsewhere.
    """

    method: str
    path: str
    request: type
    answer: Any = None
    needs_key: bool = False


PREFIX = "/slipstream/library/"
EVENTS = PREFIX + "events"
_ROUTES = (
    Route("GET", "models", ListModels, ModelRows),
    Route("GET", "models/one", ShowModel, ModelRow),
    Route("GET", "models/fit", GetModelFit, ModelFitReport),
    Route("POST", "models/repair", RepairModel),
    Route("POST", "models/remove", RemoveModel, tuple[str, ...]),
    Route("GET", "models/settings", GetSettings, SettingsSheet),
    Route("POST", "models/settings", ChangeSettings, SettingsSheet),
    Route("GET", "models/partners", ShowPartners, Partners),
    Route("POST", "models/partners", ChoosePartner, Partners),
    Route("GET", "models/partners/offers", FindOffers, DraftOffers),
    Route("POST", "models/partners/test", TestPair, PairStep),
    Route("POST", "models/partners/test/begin", BeginPairTest),
    Route("POST", "models/partners/test/stop", StopPairTest),
    Route("GET", "models/quantise", OfferQuantise, QuantiseOffer),
    Route("POST", "models/quantise", Quantise, Quantising),
    Route("GET", "quantisings", ListQuantisings, tuple[Quantising, ...]),
    Route("POST", "quantisings/cancel", CancelQuantise),
    Route("GET", "downloads", ListDownloads, tuple[Download, ...]),
    Route("POST", "downloads", StartDownload, Download),
    Route("POST", "downloads/pause", PauseDownload),
    Route("POST", "downloads/resume", ResumeDownload),
    Route("POST", "downloads/cancel", CancelDownload),
    Route("POST", "downloads/move", MoveDownload),
    Route("POST", "downloads/clear", ClearEnded),
    Route("POST", "models/move", MoveModels, MoveStep, needs_key=True),
    Route("POST", "models/move/cancel", CancelMove, needs_key=True),
    Route("GET", "folders", ListPlaces, tuple[FolderPlace, ...]),
    Route("POST", "folders/import", ImportFolder, FolderPlace),
    Route("POST", "folders/import-file", ImportFile, str),
    Route("POST", "folders/forget", ForgetFolder, str),
    Route("POST", "notices/dismiss", DismissNotice),
    Route("GET", "machine", ShowMachine, MachineFacts),
    Route("POST", "machine/measure", MeasureMachine),
    Route("POST", "verify", Verify, MeasuringStep),
    Route("GET", "benches", ListBenches, tuple[Bench, ...]),
    Route("POST", "benches", RunBench, MeasuringStep),
    Route("POST", "measuring/stop", StopMeasuring),
    Route("GET", "suggestions", ListCurated, Suggested),
    Route("GET", "hub", ShowHub, HubFacts),
    Route("POST", "hub", ChangeHub, HubFacts, needs_key=True),
    Route("POST", "hub/log-in", LogIn, HubFacts, needs_key=True),
    Route("POST", "hub/log-out", LogOut, HubFacts, needs_key=True),
    Route("GET", "hub/search", SearchHub, tuple[FoundModel, ...]),
    Route("GET", "hub/repository", ShowRepository, Repository),
    Route("GET", "hub/fit", GetRemoteFit, RemoteFitReport),
    Route("GET", "hub/recommend", Recommend, Recommended),
    Route("GET", "hub/draft", FindDraft, DraftOffer),
)
ROUTES = tuple(route._replace(path=PREFIX + route.path) for route in _ROUTES)
