"""Which MCP servers the chats may use."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QHBoxLayout,
    QLineEdit,
    QPlainTextEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from models.formatting.safe_text import one_line
from ui.chat.tools.tool_box import ToolBox, ToolServer, extra_of, extra_text, has_all_quotes
from ui.language import tr
from ui.theme.layouts import STRETCH, fill
from ui.theme.text_size import scaled
from ui.theme.tokens import Space
from ui.widgets.dialogs import Dialog, primary
from ui.widgets.elided_label import ElidedLabel, on_button
from ui.widgets.fields import CheckField
from ui.widgets.icon_button import TextButton
from ui.widgets.page_layout import ProblemLabel, ScrollColumn, plain_label, style_as

SIZE, EXTRA_HEIGHT = (600, 480), 68
NAME_WIDTH = 240
LEAST_NAME = 120  # of a long name: the buttons behind it stay in sight
EXTRA = tr("One on a line: TOKEN=abc for a command, Authorization: Bearer abc for an address")
NOTE = tr(
    "MCP servers give models tools: files, calendars, searches. A command runs as a program of yours: add only what "
    "you trust. Each call is asked for unless you allow its tool."
)


class ToolsDialog(Dialog):
    """The servers with how they are, and a form for another one."""

    def __init__(self, box: ToolBox, parent: QWidget) -> None:
        super().__init__(tr("Tools"), SIZE, parent)
        self._box = box
        title, note = plain_label(tr("Tools"), "title"), plain_label(NOTE)
        self.unused = plain_label(box.why_unused, "warning")
        self.rows: dict[str, ServerRow] = {}
        body = QWidget()
        self._list = fill(QVBoxLayout(body), spacing=Space.M, margins=(0, 0, Space.S, 0))
        self.empty = plain_label(tr("None yet: add one below, by its command or its address."), "caption")
        self.empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._list.addWidget(self.empty, 1)
        self._list.addStretch()
        area = ScrollColumn(body)
        self.name, self.at, self.add = QLineEdit(), QLineEdit(), primary(tr("Add"))
        self.name.setPlaceholderText(tr("Name"))
        self.name.setAccessibleName(tr("Name of the server"))
        self.name.setMaximumWidth(scaled(NAME_WIDTH))
        self.at.setPlaceholderText(tr("uvx mcp-server-time, or http://…/mcp"))
        self.at.setAccessibleName(tr("Command or address"))
        self.extra = QPlainTextEdit()
        self.extra.setProperty("kind", "field")
        self.extra.setAccessibleName(tr("Environment or headers"))
        self.extra.setPlaceholderText(EXTRA)
        self.extra.setTabChangesFocus(True)
        self.extra.setFixedHeight(scaled(EXTRA_HEIGHT))
        self.extra.hide()
        self.more = TextButton(tr("Environment or headers…"), tr("Environment or headers"))
        self.more.setToolTip(tr("Keys and other values that the server needs"))
        self.close_button = QPushButton(tr("Close"))
        self.problem = ProblemLabel("field problem")
        form, foot = QVBoxLayout(), QHBoxLayout()
        fill(form, self.name, self.at, spacing=Space.S)
        fill(foot, self.more, STRETCH, self.close_button, self.add)
        column = fill(QVBoxLayout(self), spacing=Space.M, margins=(Space.XL, Space.L, Space.XL, Space.L))
        for part in (title, note, self.unused, area, self.problem):
            column.addWidget(part, 1 if part is area else 0)
        fill(column, form, self.extra, foot)
        self.unused.setVisible(bool(box.why_unused))
        self.more.clicked.connect(self._on_more)
        self.add.clicked.connect(self._on_add)
        self.close_button.clicked.connect(self.accept)
        box.changed.connect(self._show)
        self._show()
        self.name.setFocus()

    def _show(self) -> None:
        names = [server.name for server in self._box.servers]
        for name in [known for known in self.rows if known not in names]:
            row = self.rows.pop(name)
            self._list.removeWidget(row)
            row.deleteLater()
        for server in self._box.servers:
            if server.name not in self.rows:
                row = self.rows[server.name] = ServerRow(self._box, server.name)
                row.removed.connect(self._on_removed)
                self._list.insertWidget(self._list.count() - 1, row)
            self.rows[server.name].show_server(server)
        self.empty.setVisible(not names)

    def _on_more(self) -> None:
        self.more.hide()
        self.extra.show()
        self.extra.setFocus()

    def _on_removed(self, server: ToolServer) -> None:
        """Leave in the fields what it was, so that it can be added again."""
        if self.name.text() or self.at.text() or self.extra.toPlainText():
            return
        self.name.setText(server.name)
        self.at.setText(server.at)
        self.extra.setPlainText(extra_text(server))
        if server.extra:
            self.more.hide()
            self.extra.show()
        self.name.setFocus()

    def _on_add(self) -> None:
        self.problem.say(self._add())

    def _add(self) -> str:
        """Add what was typed; return what is wrong with it, "" for nothing."""
        name, at = " ".join(self.name.text().split()), self.at.text().strip()
        if not name or not at:
            (self.at if name else self.name).setFocus()
            return tr("A server needs a name and a command or an address.")
        if any(server.name == name for server in self._box.servers):
            return tr("There is a server called {name}: choose another name.", name=name)
        if not has_all_quotes(at):
            return tr("A quotation mark in the command is not closed.")
        try:
            extra = extra_of(self.extra.toPlainText(), at)
        except ValueError as error:
            return str(error)
        self._box.save(ToolServer(name, at, extra=extra))
        for field in (self.name, self.at, self.extra):
            field.clear()
        self.name.setFocus()
        return ""


class ServerRow(QWidget):
    """One server."""

    removed = Signal(object)  # ToolServer

    def __init__(self, box: ToolBox, name: str) -> None:
        super().__init__()
        self._box, self._server = box, ToolServer(name, "")
        self.is_on = CheckField(on_button(name))
        self.is_on.setToolTip(tr("Offer its tools to models"))
        self.is_on.setMinimumWidth(scaled(LEAST_NAME))
        self.at, self.state = ElidedLabel(), plain_label(tone="caption")
        self.at.setProperty("tone", "caption")
        self.retry = TextButton(tr("Try again"), tr("Try {name} again", name=name))
        self.forget = TextButton(tr("Ask again"), tr("Ask again before {name} is called", name=name))
        self.forget.setToolTip(tr("Take back what you have allowed for good"))
        self.remove = TextButton(tr("Remove"), tr("Remove {name}", name=name))
        head = fill(QHBoxLayout(), self.is_on, (self.at, 1), self.retry, self.forget, self.remove)
        fill(QVBoxLayout(self), head, self.state, spacing=Space.XS, margins=0)
        self.is_on.clicked.connect(lambda is_on: box.save(replace(self._server, is_on=is_on)))
        self.retry.clicked.connect(lambda: box.open(self._server))
        self.forget.clicked.connect(lambda: box.save(replace(self._server, allowed=())))
        self.remove.clicked.connect(self._on_remove)

    def _on_remove(self) -> None:
        self._box.remove(self._server.name)
        self.removed.emit(self._server)

    def show_server(self, server: ToolServer) -> None:
        """Show how it is."""
        self._server = server
        problem, tools = self._box.problems.get(server.name, ""), self._box.tools_of(server.name)
        self.is_on.setChecked(server.is_on)
        names = ", ".join(name for name, _ in server.extra)
        self.at.setText(tr("{at}  ·  with {names}", at=server.at, names=names) if names else server.at)
        self.retry.setVisible(bool(problem) and server.is_on)
        self.forget.setVisible(bool(server.allowed))
        names = ", ".join(one_line(tool.name) for tool in tools or ())
        words = (
            tr("Off.")
            if not server.is_on
            else problem or (tr("Connecting…") if tools is None else tr("Tools: {names}.", names=names))
        )
        if server.is_on and not problem and tools is not None and not tools:
            words = tr("It is connected, and offers no tools.")
        self.state.setText(words)
        style_as(self.state, "tone", "field problem" if problem else "caption")
