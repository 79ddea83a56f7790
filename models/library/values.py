"""Answers of the library about models, repositories and downloads. Unknown values are None, 0 or empty."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from models.download.progress import AT_REST, Downloaded, DownloadPhase, DownloadProgress
from models.estimate.fit.summary import FitSummary, FitVerdict
from models.facts.header_facts import HeaderFacts
from models.hub.repository import FileRole, FoundRepository, role_of
from models.quantise.progress import Quantised, QuantisePhase, QuantiseProgress

_QUEUED = QuantiseProgress(QuantisePhase.QUEUED, 0, 0)


@dataclass(frozen=True, slots=True)
class ModelRow:
    """One model of this machine. ``header`` is empty if it cannot be read.

    ``source`` is the repository and version it was downloaded from, ``origin`` the program whose folder it is used
    from; ``problem`` says why it cannot be used, ``has_changed`` that its files are not what was downloaded.
    ``mending`` is then a sentence about what to do, and ``repo_id`` and ``wanted`` are the download that repairs it, or
    empty. ``last_used`` is seconds since 1970; speeds are tokens per second. ``partners``, ``predicted_rate`` and
    ``verdict`` come later, in a RowReport.
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
    """Facts of a row that come after the list: possible drafts, best first, tokens per second, and the fit."""

    name: str
    path: str
    partners: tuple[str, ...]
    predicted_rate: float | None
    verdict: FitVerdict | None = None


@dataclass(frozen=True, slots=True)
class Notice:
    """A downloaded file that another program has moved or deleted, until the notice is dismissed.

    ``repo_id`` and ``wanted`` are the download that brings it back; empty if not needed or not possible.
    """

    path: str
    sentence: str
    repo_id: str = ""
    wanted: str = ""


@dataclass(frozen=True, slots=True)
class ModelRows:
    """A part of a list of rows; the last part has the other fields.

    ``folders`` were scanned, ``problems`` are about folders that could not be, ``notices`` about files gone or moved.
    """

    rows: tuple[ModelRow, ...]
    folders: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    notices: tuple[Notice, ...] = ()


@dataclass(frozen=True, slots=True)
class RemoteFitReport:
    """The verdict on a model on the Hub for this machine, from its header."""

    repo_id: str
    name: str
    n_bytes: int
    header: HeaderFacts
    fit: FitSummary


@dataclass(frozen=True, slots=True)
class ModelFitReport:
    """The verdict on a model of this machine. With ``draft`` it is ``gain`` times as fast."""

    name: str
    fit: FitSummary
    draft: str | None = None
    gain: float | None = None
    is_gain_measured: bool = False


class Choosing(StrEnum):
    """How the draft of a model is chosen. SETTINGS: the model's own settings name it, which overrides the others."""

    SETTINGS = "settings"
    AUTOMATIC = "automatic"
    NONE = "none"
    NAMED = "named"


@dataclass(frozen=True, slots=True)
class PartnerRow:
    """A draft model or head that could draft for a model; gains are speeds over plain decoding.

    ``n_bytes`` is its size on disk, ``memory`` its bytes of memory. ``problem`` says why it cannot draft.
    ``drafted_nothing``: it was tested here and never drafted.
    """

    name: str
    kind: str
    n_bytes: int
    memory: int | None
    predicted: float | None
    measured: float | None
    problem: str | None
    drafted_nothing: bool = False


@dataclass(frozen=True, slots=True)
class Partners:
    """The draft that a model uses and ``why``, how it was chosen, and all candidates, best first.

    ``has_worthy``: at least one is expected to be worth its memory.
    """

    name: str
    used: str | None
    why: str
    choosing: Choosing
    has_worthy: bool
    notices: tuple[str, ...]
    partners: tuple[PartnerRow, ...]


@dataclass(frozen=True, slots=True)
class OfferRow:
    """A draft model or head to download; ``is_checked``: its tokens were compared.

    ``wanted`` is its quantisation or file in the repository, ``kind`` its kind in words.
    """

    repo_id: str
    wanted: str
    n_bytes: int
    gain: float
    is_checked: bool
    kind: str


@dataclass(frozen=True, slots=True)
class DraftOffers:
    """Draft models and heads to download for a model, and sentences about others."""

    name: str
    offers: tuple[OfferRow, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DraftOffer:
    """The draft model or head to download along with a model of the Hub; ``why`` is the reason if there is none.

    ``wanted`` is the model's first file in its repository.
    """

    repo_id: str
    wanted: str
    offer: OfferRow | None
    why: str


@dataclass(frozen=True, slots=True)
class PairTrial:
    """The test of one draft; rates are tokens per second, gains are speeds over plain decoding.

    ``problem`` says why it was not measured. ``was_disturbed``: a server of this machine was at work meanwhile.
    """

    name: str
    predicted: float | None
    gain: float | None = None
    plain_rate: float | None = None
    drafted_rate: float | None = None
    acceptance: float | None = None
    was_disturbed: bool = False
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class PairStep:
    """Progress of a test of pairs: ``share`` of a ``stage`` ("loading", "measuring") with a partner.

    In the stages "replies" and "a load" the test waits until a server on this machine has finished those.

    The last step has ``results``: a sentence for each partner, and one about the draft from now on. It has the same as
    values: the ``trials``, and the name of the draft that is ``used`` from now on (None: no draft).
    """

    partner: str
    stage: str
    share: float
    results: tuple[str, ...] = ()
    trials: tuple[PairTrial, ...] = ()
    used: str | None = None


@dataclass(frozen=True, slots=True)
class MeasuringStep:
    """Progress of a verification or benchmark: ``share`` of a ``stage``, in the words of its command.

    The last one has the ``report`` that the command prints with --json.
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
    """The recommended model of a repository and the reason; ``name`` None: none."""

    repo_id: str
    name: str | None
    sentence: str


@dataclass(frozen=True, slots=True)
class GpuFacts:
    """A GPU and its memory in bytes. ``bandwidth`` is bytes of weights read per second, None until measured."""

    name: str
    memory: int
    bandwidth: float | None = None


@dataclass(frozen=True, slots=True)
class FoundModel:
    """A repository found by a search, and the verdict on one of its models, estimated without a header.

    ``quantisation`` is the judged one: the usual one, or the smallest if that does not fit. ``verdict`` is None if too
    little is known, ``rate`` is tokens per second or None.
    """

    repository: FoundRepository
    quantisation: str = ""
    verdict: FitVerdict | None = None
    rate: float | None = None


@dataclass(frozen=True, slots=True)
class MachineFacts:
    """This machine: memory in bytes, physical cores. ``bandwidth`` is bytes read per second, None until measured.

    ``is_estimate``: other programs were busy while it was measured, so it may be more.
    """

    cpu: str
    n_cores: int
    memory: int
    free: int
    gpus: tuple[GpuFacts, ...]
    bandwidth: float | None
    is_estimate: bool = False


class SuggestionTier(StrEnum):
    """The purpose for which a model is offered to newcomers."""

    QUICK = "quick"
    BALANCED = "balanced"
    BEST = "best"


@dataclass(frozen=True, slots=True)
class SuggestedRow:
    """A model to begin with, and the verdict on it.

    ``rate`` and ``drafted_rate`` are predicted tokens per second without and with its draft; None if not known.
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
    choice: SuggestionTier | None = None


@dataclass(frozen=True, slots=True)
class Suggested:
    """The models to begin with; within each use those that fit come first. ``source`` is that of the list."""

    date: str
    source: str
    rows: tuple[SuggestedRow, ...]


@dataclass(frozen=True, slots=True)
class FolderPlace:
    """A folder of models: the program that it belongs to, and whether it is imported."""

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
        """Its phase."""
        return self.progress.phase

    @property
    def is_at_rest(self) -> bool:
        """Whether it is neither running nor queued."""
        return self.phase in AT_REST

    @property
    def model_file(self) -> str:
        """The first file of a model that has arrived; "" while it is on its way, and for what only goes with others."""
        if self.done is None or role_of(self.done.files[0].name) is not FileRole.MODEL:
            return ""
        return str(self.done.files[0])


@dataclass(frozen=True, slots=True)
class MoveStep:
    """Progress of moving the models to ``folder``, in bytes of a ``stage`` ("copying", "checking", "moved").

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
    """One setting of a model. ``text`` is as typed by a user, None if it is not set; ``problem`` says what is wrong."""

    name: str
    text: str | None
    recommended: str
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
        """Whether a setting is wrong: then nothing was saved."""
        return any(setting.problem is not None for setting in self.settings)


@dataclass(frozen=True, slots=True)
class SettingText:
    """A user's text for one setting; None is the recommended value."""

    name: str
    text: str | None


@dataclass(frozen=True, slots=True)
class QuantiseTarget:
    """A type that a model can be quantised to; ``n_bytes`` is its estimated size, ``name`` that of the result."""

    type: str
    n_bytes: int
    quality: str
    name: str
    is_usual: bool


@dataclass(frozen=True, slots=True)
class QuantiseOffer:
    """The smaller copies that can be made of a model, best first; ``problem`` says why there are none.

    ``is_original`` is False if it is quantised already, which the user must allow.
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
    """A smaller copy being made; ``trouble`` is why it failed, ``done`` what came of it."""

    number: int
    source: str
    name: str
    type: str
    progress: QuantiseProgress = _QUEUED
    trouble: Trouble | None = None
    done: Quantised | None = None

    @property
    def phase(self) -> QuantisePhase:
        """Its phase."""
        return self.progress.phase

    @property
    def is_over(self) -> bool:
        """Whether nothing more will happen."""
        return self.phase in (QuantisePhase.FAILED, QuantisePhase.DONE)

    @property
    def problem(self) -> str | None:
        """A sentence about why it failed, or None."""
        return self.trouble.sentence if self.trouble is not None else None

    @property
    def notice(self) -> str | None:
        """A sentence about an unusual result, or None."""
        return self.done.notice if self.done is not None else None

    @property
    def n_bytes(self) -> int:
        """The size of what was made, 0 until then."""
        return self.done.n_bytes if self.done is not None else 0


@dataclass(frozen=True, slots=True)
class HubFacts:
    """How the Hub is reached. ``token`` is the origin of the access token, never the token itself.

    ``user`` is the owner of a token that was just kept.
    """

    address: str
    proxy: str | None
    token: str | None
    is_offline: bool
    user: str = ""


class TroubleKind(StrEnum):
    """The kind of trouble, which decides what the user is offered."""

    OFFLINE = "offline"  # no network, or none is to be used
    ACCESS = "access"  # logging in or accepting conditions helps
    SETTING = "setting"  # the Hub's settings are wrong
    MISSING = "missing"  # there is nothing of that name
    UNUSABLE = "unusable"  # this model or file cannot do it; another one may
    REFUSED = "refused"  # it cannot be done as it was asked for
    CANCELLED = "cancelled"  # the user stopped it
    FAILED = "failed"  # another request would not help
    OTHER = "other"


class Remedy(StrEnum):
    """A way out of trouble. The command line and the window each have their own words for it."""

    WORK_OFFLINE = "work_offline"
    LOG_IN = "log_in"
    SEARCH = "search"
    LOOK = "look"  # at the models of a repository
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
