"""What can be asked of the library, each with what answers it."""

from __future__ import annotations

from dataclasses import dataclass

from models.hub.repository import FoundRepository, Repository
from models.library.values import (
    DraftOffer,
    DraftOffers,
    FolderPlace,
    HubFacts,
    ModelDetails,
    ModelFitReport,
    ModelRows,
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
    """One model in full."""

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
    """Download a model; one that is in the queue goes on."""

    repo_id: str
    wanted: str


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
    """Move a downloaded model to the trash."""

    name: str


@dataclass(frozen=True, slots=True)
class ImportFolder:
    """Use the models of a folder where they are."""

    folder: str


@dataclass(frozen=True, slots=True)
class ForgetFolder:
    """No longer look through an imported folder."""

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
class MeasureMachine:
    """Measure anew how fast memory and processor are, which takes some twenty seconds. Refused beside other work."""


@dataclass(frozen=True, slots=True)
class DismissNotice:
    """No longer say what happened to a file."""

    path: str


LibraryRequest = (
    ListModels | ShowModel | GetSettings | ChangeSettings | OfferQuantise | Quantise | CancelQuantise | ListCurated
    | SearchHub | ShowRepository | GetRemoteFit | StartDownload | RepairModel | PauseDownload | ResumeDownload
    | CancelDownload | MoveDownload | ClearEnded | RemoveModel | ImportFolder
    | ForgetFolder | GetModelFit | ShowPartners | FindOffers | FindDraft | ChoosePartner | TestPair | BeginPairTest
    | StopPairTest | Recommend | MeasureMachine | DismissNotice | ListPlaces | ShowHub | ChangeHub | LogIn | LogOut
)  # fmt: skip

# Requests that are answered with nothing more than that it was done are not listed.
ANSWERS: dict[type, object] = {
    ListModels: ModelRows,
    ShowModel: ModelDetails,
    GetSettings: SettingsSheet,
    ChangeSettings: SettingsSheet,
    OfferQuantise: QuantiseOffer,
    Quantise: Quantising,
    GetModelFit: ModelFitReport,
    ShowPartners: Partners,
    FindOffers: DraftOffers,
    FindDraft: DraftOffer,
    ChoosePartner: Partners,
    TestPair: PairStep,
    Recommend: Recommended,
    ListCurated: Suggested,
    SearchHub: tuple[FoundRepository, ...],
    ShowRepository: Repository,
    GetRemoteFit: RemoteFitReport,
    ListPlaces: tuple[FolderPlace, ...],
    ShowHub: HubFacts,
    ChangeHub: HubFacts,
    LogIn: HubFacts,
    LogOut: HubFacts,
}
KINDS: dict[str, type] = {kind.__name__: kind for kind in LibraryRequest.__args__}
