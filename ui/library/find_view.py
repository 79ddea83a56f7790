"""Finding models: those to begin with, and the Hub's by words."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from functools import partial

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QMenu, QStackedWidget, QToolButton, QVBoxLayout, QWidget

from models.formatting.figures import count
from models.hub.repository import Access, Repository
from models.library import requests as ask
from models.library.values import (
    FoundModel,
    HubFacts,
    RemoteFitReport,
    Suggested,
    SuggestedRow,
    Trouble,
    TroubleKind,
)
from ui.client.library_link import LibraryLink
from ui.language import day, dotted, of_data, tr
from ui.library.labels import FITS, about, downloads_of, n_parameters, suggested_line
from ui.library.repository_pane import RepositoryPane
from ui.theme.colours import Dressed, colours
from ui.theme.icons import set_icon
from ui.theme.layouts import against_reading, fill
from ui.theme.tokens import Space
from ui.widgets.elided_label import ElidedLabel
from ui.widgets.fields import SearchField
from ui.widgets.page_layout import add_choices, announce, plain_label, set_menu
from ui.widgets.row_list import ListRow, RowList
from ui.widgets.state_pane import StatePane
from ui.widgets.two_panes import TwoPanes

PAUSE_MS = 400  # typing ends before the Hub is asked
ESTIMATED = tr("Fit and speed are estimates for the quantisation in the row, refined when a model is opened.")
ACCESS = {Access.OPEN: "", Access.GATED: tr("gated"), Access.PRIVATE: tr("private")}
ORDERS = {
    "downloads": tr("Most downloads"),
    "likes": tr("Most likes"),
    "trending": tr("Trending"),
    "updated": tr("Updated last"),
    "newest": tr("Newest"),
}


class FindView(Dressed, QWidget):
    """Searches, shows a repository, and asks for downloads."""

    downloads_wanted = Signal()
    use_wanted = Signal(str)  # the file of a model that has arrived
    settings_wanted = Signal()

    def __init__(self, link: LibraryLink) -> None:
        super().__init__()
        self._link = link
        self._suggested: Suggested | None = None
        self._found: tuple[FoundModel, ...] = ()
        self._read: dict[str, FoundModel] = {}  # by repository what was judged by a header
        self._words, self._order = "", "downloads"
        # The numbers of the questions whose answers are wanted.
        self._search = self._repository = self._recommendation = 0
        self._shown: str | None = None
        self.field = SearchField(tr("Search the Hugging Face Hub"))
        self.order = QToolButton()
        self.order.setProperty("kind", "speed")
        self.order.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.order.setLayoutDirection(against_reading())
        self.order.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        set_menu(self.order, self._order_menu())
        self.head = ElidedLabel()
        self.head.setProperty("tone", "section")
        self.list = RowList(tr("Models to find"))
        self.field.down_pressed.connect(self.list.enter)
        self.foot = plain_label(tone="caption")
        self.state = StatePane()
        self.stack = QStackedWidget()
        self.pane = RepositoryPane()
        self._pause = QTimer(self, singleShot=True, interval=PAUSE_MS)
        self._lay_out()
        self._connect_signals()
        self._show_order()
        self.dress()
        self.look()

    def _lay_out(self) -> None:
        tools = fill(
            QHBoxLayout(), (self.field, 1), self.order, spacing=Space.S, margins=(Space.L, Space.M, Space.L, Space.S)
        )
        self.stack.addWidget(self.list)
        self.stack.addWidget(self.state)
        listed = QWidget()
        column = fill(QVBoxLayout(listed), tools, spacing=0, margins=0)
        self.head.setContentsMargins(Space.L + Space.XS, Space.XS, Space.L, Space.XS)
        column.addWidget(self.head)
        column.addWidget(self.stack, 1)
        self.foot.setContentsMargins(Space.L, Space.XS, Space.L, Space.S)
        column.addWidget(self.foot)
        self.panes = TwoPanes(listed, self.pane, tr("All results"))
        fill(QVBoxLayout(self), self.panes, margins=0)
        listed.setFocusProxy(self.field)
        self.setFocusProxy(self.panes)

    def _connect_signals(self) -> None:
        self.field.textChanged.connect(lambda text: self._pause.start())
        self.field.returnPressed.connect(self._search_now)
        self._pause.timeout.connect(self._search_now)
        self.list.chosen.connect(self._on_chosen)
        self.list.opened.connect(self._on_opened)
        self.panes.left.connect(lambda: self.list.choose(None))
        self.pane.judge_wanted.connect(self._judge)
        self.pane.recommendation_wanted.connect(self._recommend)
        self.pane.draft_wanted.connect(self._find_draft)
        self.pane.pull_wanted.connect(self._pull)
        self.pane.downloads_wanted.connect(self.downloads_wanted)
        self.pane.use_wanted.connect(self.use_wanted)
        self.pane.login_wanted.connect(self.settings_wanted)
        self.pane.again_wanted.connect(self._ask_again)
        self._link.downloads_changed.connect(self.pane.show_downloads)
        self._link.returned.connect(self.look)
        self.pane.show_downloads(self._link.downloads)

    def showEvent(self, event: QShowEvent) -> None:
        """Judge the list again where this machine may have been measured since."""
        super().showEvent(event)
        if not self._words and self._suggested is not None and all(row.rate is None for row in self._suggested.rows):
            self._show_curated()

    def look(self) -> None:
        """Ask for what is to be shown now: the list to begin with, or the search again."""
        self._link.ask(ask.ShowHub(), self._on_hub)
        if self._words:
            self._ask_for_search()
        else:
            self._show_curated()

    def dress(self) -> None:
        """Draw the arrow of the order."""
        set_icon(self.order, "down", colours().muted, size=12)

    # The list.

    def _search_now(self) -> None:
        self._pause.stop()
        words = " ".join(self.field.text().split())
        if words == self._words:
            return
        self._words = words
        self.list.choose(None)
        if words:
            self._ask_for_search()
        else:
            self._show_curated()

    def _ask_for_search(self) -> None:
        self._link.forget(self._search)
        self._say_head(tr("“{words}” on the Hub", words=self._words), "")
        self.state.say_loading(tr("Asking the Hub…"))
        self.stack.setCurrentWidget(self.state)
        self._search = self._link.ask(ask.SearchHub(self._words, self._order), self._on_found, self._on_search_trouble)

    def _on_found(self, found: tuple[FoundModel, ...]) -> None:
        self._found = found
        self._read = {}
        if any(one.verdict is not None for one in found):
            self._say_head(self.head.text(), ESTIMATED)
        self.list.show_rows([_found_row(one) for one in found])
        if found:
            self.stack.setCurrentWidget(self.list)
            announce(self.list, tr("{n} found", n=len(found)))
            return
        text = tr("The Hub has no GGUF models by these words. Try fewer or other words.")
        self.state.say("search", tr("Nothing was found"), text, (tr("Clear the search"), self._clear))
        self.stack.setCurrentWidget(self.state)

    def _clear(self) -> None:
        self.field.clear()
        self._search_now()
        self.field.setFocus()

    def _on_search_trouble(self, trouble: Trouble) -> None:
        title = (
            tr("The Hub cannot be reached") if trouble.kind is TroubleKind.OFFLINE else tr("The search did not work")
        )
        action = (tr("Try again"), self._ask_for_search)
        if trouble.kind in (TroubleKind.ACCESS, TroubleKind.SETTING):
            action = (tr("Hub settings…"), self.settings_wanted.emit)
        self.state.say("alert", title, trouble.sentence, action, "danger")
        self.stack.setCurrentWidget(self.state)

    def _show_curated(self) -> None:
        self._link.forget(self._search)
        self._say_head(tr("To begin with"), "")
        if self._suggested is None:
            self.state.say_loading(tr("Judging the list for this machine…"))
            self.stack.setCurrentWidget(self.state)
        else:
            self._show_suggested(self._suggested)
        # Free memory and what was measured change, so it is judged again each time.
        self._search = self._link.ask(ask.ListCurated(), self._on_suggested, self._on_search_trouble)

    def _on_suggested(self, known: Suggested) -> None:
        self._suggested = known
        self._show_suggested(known)

    def _show_suggested(self, known: Suggested) -> None:
        is_measured = any(row.rate is not None for row in known.rows)
        predicted = tr("predicted for this machine; people read about five tokens a second")
        speeds = predicted if is_measured else tr("not known until this machine was measured")
        self._say_head(
            tr("To begin with"),
            tr(
                "Speeds are {speeds}. {source} As of {date}.",
                speeds=speeds,
                source=of_data(known.source),
                date=day(datetime.fromisoformat(known.date).timestamp()),
            ),
        )
        self.list.show_rows([_suggested_row(row) for row in known.rows])
        self.stack.setCurrentWidget(self.list)

    def _say_head(self, head: str, foot: str) -> None:
        self.head.setText(head)
        self.foot.setText(foot)
        self.foot.setVisible(bool(foot))
        self.order.setVisible(bool(self._words))

    def _order_menu(self) -> QMenu:
        menu = QMenu(self)
        orders = ((words, order == self._order, partial(self._on_order, order)) for order, words in ORDERS.items())
        add_choices(menu, orders)
        return menu

    def _on_order(self, order: str) -> None:
        self._order = order
        self._show_order()
        if self._words:
            self._ask_for_search()

    def _show_order(self) -> None:
        self.order.setText(ORDERS[self._order])
        self.order.setAccessibleName(tr("Order: {words}", words=ORDERS[self._order]))

    # The repository.

    def _on_chosen(self, key: str) -> None:
        if not key:
            self._shown = None
            self.panes.show_details(False)
            return
        repo_id, _, wanted = key.partition(":")
        self._shown = key
        self.panes.show_details(True)
        self.pane.show_loading(repo_id, wanted)
        self._link.forget(self._repository)
        request = ask.ShowRepository(repo_id)
        self._repository = self._link.ask(request, self._on_repository, self.pane.show_trouble)

    def _on_opened(self, key: str) -> None:
        self.panes.show_details(True, by_hand=True)
        if not self.list.underMouse():
            self.pane.setFocus()

    def _on_repository(self, repository: Repository) -> None:
        self.pane.show_repository(repository)

    def _ask_again(self) -> None:
        if self._shown is not None:
            self._on_chosen(self._shown)

    def _recommend(self, repo_id: str) -> None:
        self._link.forget(self._recommendation)
        done, failed = self.pane.show_recommendation, self.pane.show_no_recommendation
        self._recommendation = self._link.ask(ask.Recommend(repo_id), done, failed)

    def _judge(self, repo_id: str, path: str) -> None:
        failed = partial(self.pane.show_judge_trouble, repo_id, path)
        self._link.ask(ask.GetRemoteFit(repo_id, path), self._on_judged, failed)

    def _on_judged(self, judged: RemoteFitReport) -> None:
        """Show what its header says, also in the row of the list."""
        self.pane.show_judgement(judged)
        found = next((one for one in self._found if one.repository.repo_id == judged.repo_id), None)
        if found is not None and judged.repo_id not in self._read:
            rate = judged.fit.speed.empty if judged.fit.speed is not None else None
            known = replace(found, quantisation=judged.header.quantisation, verdict=judged.fit.verdict, rate=rate)
            self._read[judged.repo_id] = known
            self.list.rows.change_rows({judged.repo_id: _found_row(known)})

    def _find_draft(self, repo_id: str, path: str) -> None:
        # Without an answer nothing is offered, and what is wrong with the Hub the judgement has said.
        self._link.ask(ask.FindDraft(repo_id, path), self.pane.show_draft)

    def _pull(self, repo_id: str, path: str) -> None:
        self._link.ask(ask.StartDownload(repo_id, path), failed=partial(self.pane.show_judge_trouble, repo_id, path))

    def _on_hub(self, facts: HubFacts) -> None:
        self.pane.set_address(facts.address)


def _found_row(model: FoundModel) -> ListRow:
    found = model.repository
    line = dotted(
        ACCESS[found.access],
        n_parameters(found.n_params, 0),
        model.quantisation,
        downloads_of(found.downloads),
        found.architecture or "",
        tr("1 like") if found.likes == 1 else tr("{likes} likes", likes=count(found.likes)) if found.likes else "",
        found.licence or "",
    )
    badge, tone = FITS[model.verdict] if model.verdict is not None else ("", "warning")
    return ListRow(found.repo_id, found.repo_id, line, about(model.rate), badge, tone)


def _suggested_row(row: SuggestedRow) -> ListRow:
    badge, tone = FITS[row.verdict]
    key = f"{row.repo_id}:{row.quantisation}"
    return ListRow(key, row.title, suggested_line(row), about(row.rate), badge, tone)
