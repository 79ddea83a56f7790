"""What can be asked of the library, and the table of routes by which it is asked."""

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
    """The models of this machine, in several parts where there are many."""


@dataclass(frozen=True, slots=True)
class ShowModel:
    """One model of the list."""

    name: str


@dataclass(frozen=True, slots=True)
class GetSettings:
    """What is set for one model, and what is recommended."""

    name: str


@dataclass(frozen=True, slots=True)
class ChangeSettings:
    """Set some for one model; the others stay. Where one of them is wrong, none is changed and the answer says why."""

    name: str
    changes: tuple[SettingText, ...]


@dataclass(frozen=True, slots=True)
class OfferQuantise:
    """What smaller copies can be made of a model."""

    name: str


@dataclass(frozen=True, slots=True)
class Quantise:
    """Make a smaller copy when it is its turn; an empty ``output`` is the usual name."""

    name: str
    type: str
    output: str = ""
    may_requantise: bool = False


@dataclass(frozen=True, slots=True)
class CancelQuantise:
    """End the making of a copy and leave nothing of it; one that has ended leaves the list."""

    number: int


@dataclass(frozen=True, slots=True)
class ListCurated:
    """The models to begin with, judged for this machine; needs no network."""


@dataclass(frozen=True, slots=True)
class SearchHub:
    """Repositories by words; ``order`` is one of ``models.hub.client.SORTS``."""

    words: str
    order: str = "downloads"


@dataclass(frozen=True, slots=True)
class ShowRepository:
    """One repository with its models and their sizes."""

    repo_id: str


@dataclass(frozen=True, slots=True)
class GetRemoteFit:
    """What one model of a repository would be here; reads its header over the network."""

    repo_id: str
    wanted: str


@dataclass(frozen=True, slots=True)
class StartDownload:
    """Download a model, of the newest version where no ``revision`` is named; one that is in the queue goes on."""

    repo_id: str
    wanted: str
    revision: str | None = None


@dataclass(frozen=True, slots=True)
class RepairModel:
    """Download again what differs in the files of a model that were changed after their download."""

    name: str


@dataclass(frozen=True, slots=True)
class PauseDownload:
    """Stop a download and keep what has arrived."""

    number: int


@dataclass(frozen=True, slots=True)
class ResumeDownload:
    """Let a paused or failed download go on."""

    number: int


@dataclass(frozen=True, slots=True)
class CancelDownload:
    """End a download and remove what has arrived."""

    number: int


@dataclass(frozen=True, slots=True)
class MoveDownload:
    """Put a download at a place of the queue, 0 being first."""

    number: int
    position: int


@dataclass(frozen=True, slots=True)
class ClearEnded:
    """Take the downloads that have ended off the list."""


@dataclass(frozen=True, slots=True)
class RemoveModel:
    """Move a downloaded model to the trash, or delete it ``for_good``. The answer is its files."""

    name: str
    for_good: bool = False


@dataclass(frozen=True, slots=True)
class ImportFolder:
    """Use the models of a folder where they are. The answer is that folder, and whose it is."""

    folder: str


@dataclass(frozen=True, slots=True)
class ImportFile:
    """Use one model file where it is: it is linked into the folder of models. The answer is the model's name."""

    file: str


@dataclass(frozen=True, slots=True)
class ForgetFolder:
    """No longer look through an imported folder. The answer is its path."""

    folder: str


@dataclass(frozen=True, slots=True)
class ListPlaces:
    """Folders that are imported, and those of other programs that could be."""


@dataclass(frozen=True, slots=True)
class ShowHub:
    """How the Hub is reached."""


@dataclass(frozen=True, slots=True)
class ChangeHub:
    """Reach the Hub differently; empty means the usual way."""

    address: str
    proxy: str


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
    """What a model of this machine would be here: does it fit, how fast is it."""

    name: str


@dataclass(frozen=True, slots=True)
class ShowPartners:
    """Who drafts for a model, who else could, and why others cannot."""

    name: str


@dataclass(frozen=True, slots=True)
class FindOffers:
    """What could be downloaded to draft for a model; asks the Hub for some seconds."""

    name: str


@dataclass(frozen=True, slots=True)
class FindDraft:
    """What to download along with a model of the Hub, so that it drafts for it; ``wanted`` is the model's first file.

    Reads headers over the network and asks the Hub for some seconds.
    """

    repo_id: str
    wanted: str


@dataclass(frozen=True, slots=True)
class ChoosePartner:
    """Choose who drafts for a model; ``way`` is a ``Choosing``, ``partner`` a name where one is chosen by it."""

    name: str
    way: str
    partner: str = ""


@dataclass(frozen=True, slots=True)
class MoveModels:
    """Move the folder of models to another place. Answered in parts, which say how far it is.

    Refused where there is no room or nothing can be written, and while anything is downloaded or made smaller. Where it
    fails or is cancelled, all is as before. What runs with the old folder has to start again afterwards.
    """

    folder: str


@dataclass(frozen=True, slots=True)
class CancelMove:
    """Leave the move of the models."""


@dataclass(frozen=True, slots=True)
class TestPair:
    """Measure the most promising partners of a model here, or the one named, and keep the winner; takes minutes.

    Answered in parts, which say how far it is. It waits while a server of this machine is at work.
    """

    name: str
    partner: str = ""


@dataclass(frozen=True, slots=True)
class BeginPairTest:
    """Let the test of pairs begin that waits for other work to end."""


@dataclass(frozen=True, slots=True)
class StopPairTest:
    """End the test of pairs that runs."""


@dataclass(frozen=True, slots=True)
class Recommend:
    """Which model of a repository to take here; reads one header over the network."""

    repo_id: str


@dataclass(frozen=True, slots=True)
class ShowMachine:
    """What this machine has, and how fast its memory is where that was measured."""


@dataclass(frozen=True, slots=True)
class MeasureMachine:
    """Measure anew how fast memory and processor are, which takes about ten seconds. Refused beside other work.

    ``is_first`` takes only a few: what is not known of the memory. The processor follows when nothing else is at work.
    """

    is_first: bool = False


@dataclass(frozen=True, slots=True)
class Verify:
    """Verify that drafting changes no text of a model, and see what it gains, as ``./slipstream verify`` does.

    ``partner`` "" is the one that drafts when the model is loaded. Answered in parts; refused beside other work.
    """

    name: str
    partner: str = ""
    max_tokens: int = 64
    seeds: int = 1


@dataclass(frozen=True, slots=True)
class ListBenches:
    """The benchmarks that can be run here."""


@dataclass(frozen=True, slots=True)
class RunBench:
    """Run a benchmark as it is without options; answered in parts, refused beside other work."""

    name: str


@dataclass(frozen=True, slots=True)
class StopMeasuring:
    """End the verification or benchmark that runs."""


@dataclass(frozen=True, slots=True)
class DismissNotice:
    """No longer say what happened to a file."""

    path: str


@dataclass(frozen=True, slots=True)
class ListDownloads:
    """The queue of downloads."""


@dataclass(frozen=True, slots=True)
class ListQuantisings:
    """The smaller copies that are made, wait or have ended."""


class Route(NamedTuple):
    """How the server is asked: what ``request`` holds is in the query of a GET, or in the JSON body of a POST.

    ``answer`` is the type of what comes back, None where that is only that it was done. ``needs_key``: a server without
    an API key refuses it, since others who use the machine could otherwise have the user's token sent elsewhere.
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
