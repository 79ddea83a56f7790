"""What is said of models, repositories and downloads. What is not known is None, 0 or empty."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from models.download.progress import AT_REST, Downloaded, DownloadPhase, DownloadProgress
from models.estimate.fit.summary import FitSummary, FitVerdict
from models.facts.header_facts import HeaderFacts
from models.hub.repository import FoundRepository
from models.quantise.progress import QuantisePhase, QuantiseProgress

_QUEUED = QuantiseProgress(QuantisePhase.QUEUED, 0, 0)


@dataclass(frozen=True, slots=True)
class ModelRow:
    """One model of this machine. Of one that cannot be read, ``header`` is empty.

    ``source`` is the repository and version it was downloaded from, ``origin`` the program whose folder it is used
    from; ``problem`` says why it cannot be used, ``has_changed`` that its files are not what was downloaded.
    ``mending`` is then a sentence about what to do, and ``repo_id`` and ``wanted`` are what is downloaded for it, empty
    where that is not possible.
    ``last_used`` is seconds since 1970; speeds are tokens per second. ``partners`` and ``predicted_rate`` are judged
    after the list is there, as ``verdict`` is: a RowReport brings them.
    """

    name: str
    path: str
    title: str
    n_bytes: int
    header: HeaderFacts
    files: tuple[str, ...]
    source: str | None
    origin: str
    is_toy: bool
    is_verified: bool
    can_remove: bool
    problem: str | None
    partners: tuple[str, ...] = ()
    last_used: float | None = None
    predicted_rate: float | None = None
    measured_rate: float | None = None
    verdict: FitVerdict | None = None
    has_changed: bool = False
    mending: str = ""
    repo_id: str = ""
    wanted: str = ""


@dataclass(frozen=True, slots=True)
class RowReport:
    """What was found of a row after it was listed: who could draft, best first, tokens per second, and the fit."""

    name: str
    path: str
    partners: tuple[str, ...]
    predicted_rate: float | None
    verdict: FitVerdict | None = None


@dataclass(frozen=True, slots=True)
class Notice:
    """What happened to a downloaded file behind our back, until it is dismissed.

    ``repo_id`` and ``wanted`` are what to download to have it back, empty where that is not needed or not possible.
    """

    path: str
    sentence: str
    repo_id: str = ""
    wanted: str = ""


@dataclass(frozen=True, slots=True)
class ModelRows:
    """Some rows of a list; the last part has the rest.

    ``folders`` were looked through, ``problems`` say what could not be, ``notices`` what is gone or was moved.
    """

    rows: tuple[ModelRow, ...]
    folders: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    notices: tuple[Notice, ...] = ()


@dataclass(frozen=True, slots=True)
class RemoteFitReport:
    """What a model on the Hub would be on this machine, from its header."""

    repo_id: str
    name: str
    n_bytes: int
    header: HeaderFacts
    fit: FitSummary


@dataclass(frozen=True, slots=True)
class ModelFitReport:
    """What a model of this machine is here. ``draft`` drafts for it, which makes it ``gain`` times as fast."""

    name: str
    fit: FitSummary
    draft: str | None = None
    gain: float | None = None
    is_gain_measured: bool = False


class Choosing(StrEnum):
    """How it is decided who drafts; SETTINGS: the model's own settings name it, which goes before the others."""

    SETTINGS = "settings"
    AUTOMATIC = "automatic"
    NONE = "none"
    NAMED = "named"


@dataclass(frozen=True, slots=True)
class PartnerRow:
    """One that could draft for a model; gains are speeds over plain decoding.

    ``n_bytes`` is its size on disk, ``memory`` what it takes beside the model. ``problem`` says why it cannot draft.
    """

    name: str
    kind: str
    n_bytes: int
    memory: int | None
    predicted: float | None
    measured: float | None
    problem: str | None


@dataclass(frozen=True, slots=True)
class Partners:
    """Who drafts for a model and ``why``, how that was chosen, and all that were looked at, the best first.

    ``by_test`` says that a test has chosen. ``has_worthy`` says that one is expected to be worth its memory.
    """

    name: str
    used: str | None
    why: str
    choosing: Choosing
    by_test: bool
    has_worthy: bool
    notices: tuple[str, ...]
    partners: tuple[PartnerRow, ...]


@dataclass(frozen=True, slots=True)
class OfferRow:
    """A model or head to download that would draft; ``is_checked`` says that its tokens were compared.

    ``wanted`` is its quantisation or file in the repository, ``kind`` what it is in words.
    """

    repo_id: str
    wanted: str
    n_bytes: int
    gain: float
    is_checked: bool
    kind: str


@dataclass(frozen=True, slots=True)
class DraftOffers:
    """What could be downloaded to draft for a model, and sentences about what else there is."""

    name: str
    offers: tuple[OfferRow, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DraftOffer:
    """What to download along with a model of the Hub, so that it drafts for it; ``why`` is the reason for none.

    ``wanted`` is the model's first file in its repository.
    """

    repo_id: str
    wanted: str
    offer: OfferRow | None
    why: str


@dataclass(frozen=True, slots=True)
class PairStep:
    """How far a test of pairs is: ``share`` of a ``stage`` ("loading", "measuring") with a partner.

    It waits in the stages "replies" and "a load": for what a server of this machine is at work on.

    The last one has ``results``: a sentence for each partner, and who drafts from now on.
    """

    partner: str
    stage: str
    share: float
    results: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MeasuringStep:
    """How far a verification or benchmark is: ``share`` of a ``stage``, in the words of its command.

    The last one has the ``report``: what the command prints with --json.
    """

    stage: str
    share: float
    report: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Bench:
    """A benchmark, and what it measures in a line."""

    name: str
    title: str


@dataclass(frozen=True, slots=True)
class Recommended:
    """Which model of a repository to take here and why; ``name`` None: no one."""

    repo_id: str
    name: str | None
    sentence: str


@dataclass(frozen=True, slots=True)
class GpuFacts:
    """A GPU and its memory in bytes."""

    name: str
    memory: int


@dataclass(frozen=True, slots=True)
class FoundModel:
    """A repository that was found, and what a model of it would be here, estimated before any header is read.

    ``quantisation`` is the one that is judged: the usual one, or the smallest where that does not fit. ``verdict`` is
    None where too little is known, ``rate`` tokens per second, None where it is not known.
    """

    repository: FoundRepository
    quantisation: str = ""
    verdict: FitVerdict | None = None
    rate: float | None = None


@dataclass(frozen=True, slots=True)
class MachineFacts:
    """This machine: memory in bytes, physical cores. ``bandwidth`` is bytes read per second, None until measured."""

    cpu: str
    n_cores: int
    memory: int
    free: int
    gpus: tuple[GpuFacts, ...]
    bandwidth: float | None


class Choice(StrEnum):
    """For what a model is offered to newcomers."""

    QUICK = "quick"
    BALANCED = "balanced"
    BEST = "best"


@dataclass(frozen=True, slots=True)
class SuggestedRow:
    """A model to begin with, and how it would be here.

    ``rate`` and ``drafted_rate`` are predicted tokens per second, alone and with what drafts for it; None if not known.
    ``choice`` is set for the three that are offered to newcomers.
    """

    title: str
    use: str
    repo_id: str
    quantisation: str
    n_params: int
    n_active_params: int
    n_bytes: int
    is_size_estimate: bool
    good_for: str
    drafting: str
    verdict: FitVerdict
    rate: float | None
    drafted_rate: float | None = None
    choice: Choice | None = None


@dataclass(frozen=True, slots=True)
class Suggested:
    """The models to begin with, those that fit best first within each use; ``source`` says where they are from."""

    date: str
    source: str
    rows: tuple[SuggestedRow, ...]


@dataclass(frozen=True, slots=True)
class FolderPlace:
    """A folder that models are used from, or could be: whose it is, and whether it is imported."""

    path: str
    kind: str
    is_imported: bool


@dataclass(frozen=True, slots=True)
class Download:
    """One download of the queue; ``trouble`` is why it failed, ``done`` what came of it."""

    number: int
    repo_id: str
    wanted: str
    progress: DownloadProgress
    trouble: Trouble | None = None
    done: Downloaded | None = None

    @property
    def phase(self) -> DownloadPhase:
        """What it is doing."""
        return self.progress.phase

    @property
    def is_at_rest(self) -> bool:
        """Whether it neither arrives nor waits for its turn."""
        return self.phase in AT_REST


@dataclass(frozen=True, slots=True)
class MoveStep:
    """How far the move of the models to ``folder`` is, in bytes of a ``stage`` ("copying", "checking", "moved").

    ``n_left`` files could not be deleted in the old folder.
    """

    stage: str
    n_done: int
    n_total: int
    folder: str
    n_left: int = 0
    is_over: bool = False


@dataclass(frozen=True, slots=True)
class SettingValue:
    """One setting of a model. ``text`` is as a user types it, None where it is not set; ``problem`` says what is wrong.

    ``counts_at_once`` is false for what a loaded model takes when it is loaded next.
    """

    name: str
    text: str | None
    recommended: str
    counts_at_once: bool
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class SettingsSheet:
    """All settings of one model, in the order in which they are shown; models that can draft for it; known workers."""

    model: str
    settings: tuple[SettingValue, ...]
    drafts: tuple[str, ...] = ()
    workers: tuple[str, ...] = ()

    @property
    def is_refused(self) -> bool:
        """Whether something is wrong: then nothing was kept."""
        return any(setting.problem is not None for setting in self.settings)


@dataclass(frozen=True, slots=True)
class SettingText:
    """What a user typed for one setting; None is the recommended value."""

    name: str
    text: str | None


@dataclass(frozen=True, slots=True)
class QuantiseTarget:
    """A type that a model can be quantised to; ``n_bytes`` is about what it will have, ``name`` what it is called."""

    type: str
    n_bytes: int
    quality: str
    name: str
    is_usual: bool


@dataclass(frozen=True, slots=True)
class QuantiseOffer:
    """What smaller copies can be made of a model, best first; ``problem`` says why none can.

    ``is_original`` is false for what is quantised already: that is to be allowed.
    """

    model: str
    source_type: str
    n_bytes: int
    is_original: bool
    n_free: int
    folder: str
    targets: tuple[QuantiseTarget, ...] = ()
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Quantising:
    """A smaller copy being made. It has ``n_bytes`` when it is done; ``problem`` says why there is none."""

    number: int
    source: str
    name: str
    type: str
    progress: QuantiseProgress = _QUEUED
    problem: str | None = None
    notice: str | None = None
    n_bytes: int = 0

    @property
    def phase(self) -> QuantisePhase:
        """What is being done."""
        return self.progress.phase

    @property
    def is_over(self) -> bool:
        """Whether nothing more will happen."""
        return self.phase in (QuantisePhase.FAILED, QuantisePhase.DONE)


@dataclass(frozen=True, slots=True)
class HubFacts:
    """How the Hub is reached: ``token`` says where the access token comes from, never what it is."""

    address: str
    proxy: str | None
    token: str | None
    is_offline: bool


class TroubleKind(StrEnum):
    """What kind of trouble it is, for what can be offered against it."""

    OFFLINE = "offline"  # no network, or none is to be used
    ACCESS = "access"  # logging in or accepting conditions helps
    SETTING = "setting"  # the Hub's settings are wrong
    MISSING = "missing"  # there is nothing of that name
    UNUSABLE = "unusable"  # this model or file cannot do it; another one may
    REFUSED = "refused"  # it cannot be done as it was asked for
    CANCELLED = "cancelled"  # the user stopped it
    FAILED = "failed"  # nothing that a request could do better
    OTHER = "other"


class Remedy(StrEnum):
    """What helps against trouble. Each place where it is read has its own words for it."""

    WORK_OFFLINE = "work_offline"
    LOG_IN = "log_in"
    SEARCH = "search"
    LOOK = "look"  # at what a repository has
    PULL = "pull"  # a model by its name
    ALLOW = "allow"  # what was refused
    FORGET = "forget"  # an imported folder
    DELETE = "delete"  # a model for good


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why something could not be done: a sentence about what happened, and what else helps.

    ``about`` is the repository, model or option that the remedies are about.
    """

    sentence: str
    kind: TroubleKind = TroubleKind.OTHER
    remedies: tuple[Remedy, ...] = ()
    about: str = ""
