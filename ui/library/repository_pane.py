"""One repository of the Hub: its quantisations, what one would be here, and the button that downloads it."""

from __future__ import annotations

import time
from collections.abc import Iterable

from PySide6.QtCore import Qt, QUrl, Signal
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton, QStackedWidget, QVBoxLayout, QWidget

from models.download.progress import DownloadPhase
from models.estimate.fit.summary import FitVerdict
from models.formatting.figures import count, parameters
from models.formatting.safe_text import one_line
from models.hub.repository import Access, FileRole, HubModel, Repository
from models.library.values import Download, DraftOffer, OfferRow, Recommended, RemoteFitReport, Trouble, TroubleKind
from ui.language import dotted, tr
from ui.library.downloads_view import UNMEANT_SECONDS
from ui.library.labels import FITS, downloads_of, judged_facts, offer_line, size_of
from ui.theme.layouts import fill
from ui.theme.tokens import Space
from ui.widgets.elided_label import in_tip, on_button
from ui.widgets.facts_grid import FactsGrid
from ui.widgets.fields import CheckField
from ui.widgets.icon_button import TextButton
from ui.widgets.page_layout import ScrollColumn, plain_label, style_as
from ui.widgets.row_list import ListRow, RowList
from ui.widgets.state_pane import StatePane

USUAL = ("Q4_K_M", "Q4_K_S", "Q5_K_M", "Q8_0")  # chosen first where nothing better is known
USE = tr("Use this model")
SIDE_ROLES = {
    FileRole.PROJECTOR: tr("for images, beside a model"),
    FileRole.DRAFT: tr("drafts for a model"),
    FileRole.OTHER: tr("no model"),
}

FAILED = tr("Download failed: see why")


class RepositoryPane(QWidget):
    """Shows a repository once it is known; asks for what it needs by signals."""

    judge_wanted = Signal(str, str)  # repository, file
    recommendation_wanted = Signal(str)  # repository
    draft_wanted = Signal(str, str)  # what drafts for this file of a repository
    pull_wanted = Signal(str, str)
    downloads_wanted = Signal()
    use_wanted = Signal(str)  # the file of a model that has arrived
    login_wanted = Signal()
    again_wanted = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.repository: Repository | None = None
        self._wanted = ""
        self._judged: dict[str, RemoteFitReport] = {}
        self._drafts: dict[str, DraftOffer | None] = {}  # None: it was asked for
        self._recommended, self._first_key, self._waits = "", "", False
        self._downloads: tuple[Download, ...] = ()
        self._offered_use = 0.0  # when that took the place of another button
        self._address = ""
        self.title, self.line = plain_label(tone="title"), plain_label(tone="caption")
        self.note, self.recommendation = plain_label(tone=""), plain_label(tone="")
        self.page_button = TextButton(tr("Open its page"))
        self.page_button.clicked.connect(self._on_page)
        self.list = RowList(tr("Quantisations"))
        self.list.chosen.connect(self._on_chosen)
        self.card = QFrame()
        self.card.setObjectName("judgeCard")
        self.facts = FactsGrid(can_halve=True)
        self.advice = plain_label(tone="")
        self.draft = CheckField()
        self.draft.hide()
        self.draft.toggled.connect(lambda on: self._show_card())
        self.download = QPushButton(tr("Download"))
        self.download.setProperty("kind", "primary")
        self.download.clicked.connect(self._on_download)
        self.list.confirmed.connect(self.download.click)
        self.state = StatePane()
        self.stack = QStackedWidget()
        self.setFocusProxy(self.list)
        self._lay_out()

    def _lay_out(self) -> None:
        inner = QVBoxLayout(self.card)
        inner.setContentsMargins(Space.L, Space.M, Space.L, Space.M)
        inner.setSpacing(Space.S)
        inner.addWidget(self.facts)
        inner.addWidget(self.advice)
        inner.addWidget(self.draft)
        inner.addWidget(self.download)
        body = QWidget()
        column = fill(QVBoxLayout(body), spacing=Space.XS, margins=(0, Space.L, 0, 0))
        head = fill(QVBoxLayout(), spacing=Space.XS, margins=(Space.L, 0, Space.L, Space.XS))
        row = fill(QHBoxLayout(), (self.title, 1), (self.page_button, 0, Qt.AlignmentFlag.AlignTop))
        fill(head, row, self.line, self.note)
        head.addSpacing(Space.XS)
        head.addWidget(self.recommendation)
        fill(column, head, (self.list, 1), self.card)
        self._body = ScrollColumn(body)  # large text in a low window has no room for all of it
        self.stack.addWidget(self._body)
        self.stack.addWidget(self.state)
        fill(QVBoxLayout(self), self.stack, margins=0)

    def show_loading(self, repo_id: str, wanted: str = "") -> None:
        """Say that a repository is on its way; ``wanted`` is the quantisation to begin with."""
        self.repository, self._wanted = None, wanted
        if self.state.button.hasFocus():  # which goes away
            self.list.setFocus()
        self.state.say_loading(tr("Asking the Hub about {repo_id}…", repo_id=repo_id))
        self.stack.setCurrentWidget(self.state)

    def show_repository(self, repository: Repository) -> None:
        """Show what it has."""
        self.repository = repository
        self._judged.clear()
        self._drafts.clear()
        self.title.setText(one_line(repository.repo_id))
        made_from = tr("made from {names}", names=", ".join(repository.base_models)) if repository.base_models else ""
        facts = (
            repository.architecture or "",
            tr("{n_params} parameters", n_params=parameters(repository.n_params)) if repository.n_params else "",
            tr("{n_ctx_train} tokens of context", n_ctx_train=count(repository.n_ctx_train))
            if repository.n_ctx_train
            else "",
            tr("licence {licence}", licence=repository.licence) if repository.licence else "",
            downloads_of(repository.downloads),
            made_from,
        )
        self.line.setText(one_line(dotted(*facts)))
        self._show_note(repository)
        self.list.show_rows([self._row(model) for model in repository.models])
        self.card.setVisible(bool(repository.models))
        if repository.models:
            self.stack.setCurrentWidget(self._body)
            self._first_key, self._waits = self._first(repository), True
            self._recommended = ""
            self._say_recommendation(tr("Which of these suits this machine?"))
            self.list.choose(self._first_key)
            self.recommendation_wanted.emit(repository.repo_id)
        else:
            text = tr("This repository has no GGUF files, which is what Slipstream runs. Search for one that has.")
            self.state.say("search", tr("Nothing to run here"), text)
            self.stack.setCurrentWidget(self.state)

    def show_trouble(self, trouble: Trouble) -> None:
        """Say why there is nothing to show."""
        can_log_in = trouble.kind in (TroubleKind.ACCESS, TroubleKind.SETTING)
        action = (
            (tr("Hub settings…"), self.login_wanted.emit) if can_log_in else (tr("Try again"), self.again_wanted.emit)
        )
        self.state.say("alert", tr("This cannot be shown"), trouble.sentence, action, "danger")
        self.stack.setCurrentWidget(self.state)
        if self.list.hasFocus():  # it was given the keyboard before it could be shown
            self.state.button.setFocus()

    def show_recommendation(self, found: Recommended) -> None:
        """Mark the one to take and say why; choose it unless another was wished for or chosen by hand."""
        repository = self.repository
        if repository is None or found.repo_id != repository.repo_id or not self._waits:
            return
        models = [model for model in repository.models if model.name == found.name and model.role is FileRole.MODEL]
        self._recommended = _key(models[0]) if models else ""
        self._say_recommendation(
            tr("Recommended here: {sentence}", sentence=found.sentence) if models else found.sentence
        )
        self.list.show_rows([self._row(model) for model in repository.models])
        self._judge_first(self._recommended if models and not self._wanted else "")

    def show_no_recommendation(self, trouble: Trouble) -> None:
        """Go on without: what went wrong is said of the chosen one."""
        if self._waits:
            self._say_recommendation("")
            self._judge_first("")

    def _judge_first(self, key: str) -> None:
        """Judge what was chosen meanwhile, or ``key`` where the choice was not the user's."""
        self._waits = False
        if key and self.list.key == self._first_key != key:
            self.list.choose(key)
        else:
            self._on_chosen(self.list.key or "")

    def _say_recommendation(self, words: str) -> None:
        self.recommendation.setText(words)
        self.recommendation.setVisible(bool(words))
        style_as(self.recommendation, "tone", "" if self._recommended else "muted")

    def show_judgement(self, judged: RemoteFitReport) -> None:
        """Show what a model would be here, if it is still of interest."""
        repository = self.repository
        if repository is None or judged.repo_id != repository.repo_id:
            return
        for model in repository.models:
            if model.name == judged.name and model.n_bytes == judged.n_bytes:
                self._judged[_key(model)] = judged
        self.list.show_rows([self._row(model) for model in repository.models])
        self._show_card()

    def show_draft(self, found: DraftOffer) -> None:
        """Offer what would draft for a model, if it is still of interest."""
        if self.repository is not None and found.repo_id == self.repository.repo_id:
            self._drafts[found.wanted] = found
            self._show_card()

    def show_judge_trouble(self, repo_id: str, path: str, trouble: Trouble) -> None:
        """Say why nothing is known of a file beyond its size, if it is still of interest."""
        model = self._chosen()
        if model is None or self.repository is None or (self.repository.repo_id, _key(model)) != (repo_id, path):
            return
        self.facts.hide()
        self._say(trouble.sentence, "problem")

    def show_downloads(self, downloads: tuple[Download, ...]) -> None:
        """Follow the downloads: the button says what is on its way already."""
        self._downloads = downloads
        if self.repository is not None:
            self._show_card()

    def set_address(self, address: str) -> None:
        """Know where the Hub's pages are."""
        self._address = address
        self.page_button.setVisible(bool(address))

    def _show_note(self, repository: Repository) -> None:
        words = ""
        if repository.access is Access.GATED:
            words = tr("Gated: its makers ask you to accept their conditions on its page before you can download it.")
        elif repository.was_renamed:
            words = tr("{asked_as} has been renamed to this.", asked_as=repository.asked_as)
        self.note.setText(words)
        self.note.setVisible(bool(words))

    def _first(self, repository: Repository) -> str:
        models = [model for model in repository.models if model.role is FileRole.MODEL and not model.missing]
        wishes: Iterable[str] = (self._wanted, *USUAL) if self._wanted else USUAL
        for wish in wishes:
            for model in models:
                if wish.casefold() in (model.quantisation.casefold(), model.name.casefold()):
                    return _key(model)
        return _key((models or list(repository.models))[0])

    def _row(self, model: HubModel) -> ListRow:
        judged = self._judged.get(_key(model))
        badge, tone = FITS[judged.fit.verdict] if judged is not None else ("", "warning")
        if _key(model) == self._recommended:
            badge, tone = tr("recommended"), "accent"
        parts = tr("{n_files} files", n_files=len(model.files)) if len(model.files) > 1 else ""
        missing = tr("{missing} of its files are missing", missing=model.missing) if model.missing else ""
        missing = tr("1 of its files is missing") if model.missing == 1 else missing
        is_model = model.role is FileRole.MODEL
        title = model.quantisation if is_model and model.quantisation else model.name
        line = dotted(missing, SIDE_ROLES.get(model.role, ""), model.name if title != model.name else "", parts)
        return ListRow(_key(model), title, line, size_of(model.n_bytes), badge, tone, bool(model.missing))

    def _chosen(self) -> HubModel | None:
        models = self.repository.models if self.repository is not None else ()
        return next((model for model in models if _key(model) == self.list.key), None)

    def _on_chosen(self, key: str) -> None:
        model = self._chosen()
        if model is None or self.repository is None:
            return
        self._show_card()
        if key not in self._judged and model.role is FileRole.MODEL and not model.missing:
            self.facts.hide()
            self._say(tr("Reading its header…"), "muted")
            if key == self._first_key and self._waits:
                return  # the recommendation may choose another
            self.judge_wanted.emit(self.repository.repo_id, model.files[0].path)

    def _show_card(self) -> None:
        model = self._chosen()
        if model is None:
            return
        judged = self._judged.get(_key(model))
        self.facts.setVisible(judged is not None)
        if judged is not None:
            self.facts.show_facts(judged_facts(judged))
            is_unusable = judged.fit.verdict is FitVerdict.UNUSABLE
            self._say(judged.fit.sentence, "problem" if is_unusable else "muted")
            self._ask_for_draft(model, judged)
        elif model.role is not FileRole.MODEL:
            self._say("", "muted")
        self._show_draft(model)
        self._show_button(model)

    def _ask_for_draft(self, model: HubModel, judged: RemoteFitReport) -> None:
        if judged.fit.fits and _key(model) not in self._drafts:
            self._drafts[_key(model)] = None
            self.draft_wanted.emit(judged.repo_id, _key(model))

    def _show_draft(self, model: HubModel) -> None:
        offer = self._offer_for(model)
        self.draft.setVisible(offer is not None)
        if offer is not None:
            self.draft.setText(
                on_button(
                    tr(
                        "With its draft ({n_bytes}), about {gain:.1f}× as fast",
                        n_bytes=size_of(offer.n_bytes),
                        gain=offer.gain,
                    )
                )
            )
            self.draft.setToolTip(in_tip(offer_line(offer)))

    def _offer_for(self, model: HubModel) -> OfferRow | None:
        """What can be downloaded along with a model; nothing once the model or that is on its way."""
        found = self._drafts.get(_key(model))
        offer = found.offer if found is not None else None
        if offer is None or self._download_of(model) is not None:
            return None
        on_its_way = ((one.repo_id, one.wanted) for one in self._downloads)
        return None if (offer.repo_id, offer.wanted) in on_its_way else offer

    def _show_button(self, model: HubModel) -> None:
        going, before = self._download_of(model), self.download.text()
        if going is None:
            offer = self._offer_for(model) if self.draft.isChecked() else None
            what = model.quantisation or model.name
            if offer is not None:
                what = tr("{name} and its draft", name=what)
            n_bytes = model.n_bytes + (offer.n_bytes if offer is not None else 0)
            self.download.setText(on_button(tr("Download  {what}  ({n_bytes})", what=what, n_bytes=size_of(n_bytes))))
            self.download.setEnabled(not model.missing)
        else:
            is_there = going.phase is DownloadPhase.DONE
            words = USE if going.model_file else tr("Downloaded") if is_there else tr("Show in downloads")
            self.download.setText(FAILED if going.phase is DownloadPhase.FAILED else words)
            self.download.setEnabled(True)
        if self.download.text() == USE != before:
            self._offered_use = time.monotonic()

    def _download_of(self, model: HubModel) -> Download | None:
        if self.repository is None:
            return None
        mine = (one for one in self._downloads if one.repo_id == self.repository.repo_id)
        return next((one for one in mine if one.wanted == model.files[0].path), None)

    def _say(self, words: str, tone: str) -> None:
        self.advice.setText(words)
        self.advice.setVisible(bool(words))
        style_as(self.advice, "tone", tone)

    def _on_download(self) -> None:
        model = self._chosen()
        if model is None or self.repository is None:
            return
        going = self._download_of(model)
        if going is not None and going.model_file:
            if time.monotonic() - self._offered_use > UNMEANT_SECONDS:
                self.use_wanted.emit(going.model_file)
            return
        if going is not None:
            self.downloads_wanted.emit()
            return
        offer = self._offer_for(model) if self.draft.isChecked() else None
        self.pull_wanted.emit(self.repository.repo_id, model.files[0].path)
        if offer is not None:
            self.pull_wanted.emit(offer.repo_id, offer.wanted)

    def _on_page(self) -> None:
        if self.repository is not None and self._address.startswith(("https://", "http://")):
            QDesktopServices.openUrl(QUrl(f"{self._address}/{self.repository.repo_id}"))


def _key(model: HubModel) -> str:
    return model.files[0].path
