"""A window's chat: what is said in it, and what it shows; and its server's process."""

from __future__ import annotations

from PySide6.QtCore import QProcess, Qt
from PySide6.QtGui import QGuiApplication
from pytestqt.qtbot import QtBot

from ui.chat.markdown.markdown_view import MarkdownView
from ui.chat.messages.assistant_message import AssistantMessage
from ui.client.chat_records import Message
from ui.client.private_server import PrivateServer
from ui.window.main_window import MainWindow


def pid_of(server: PrivateServer) -> int:
    """The id of the server's process, 0 where there is none."""
    return server.findChild(QProcess).processId()


def reply_view(window: MainWindow) -> AssistantMessage:
    """The last reply as it is shown."""
    view = window.page.transcript.view_of(window.desk.current.tree.path[-1].id)
    assert isinstance(view, AssistantMessage)
    return view


def copied_code(qtbot: QtBot, view: MarkdownView) -> str:
    """What the button of the first code block copies."""
    qtbot.waitUntil(lambda: bool(view.copy_buttons))
    view.copy_buttons[0].click()
    return QGuiApplication.clipboard().text()


def ended(qtbot: QtBot, window: MainWindow) -> Message:
    """The last reply, once nothing is written any more."""
    qtbot.waitUntil(lambda: not window.desk.current.is_running)
    return window.desk.current.tree.path[-1]


def say(qtbot: QtBot, window: MainWindow, text: str) -> None:
    """Type a message and send it."""
    window.page.composer.set_text(text)
    qtbot.keyClick(window.page.composer.field, Qt.Key.Key_Return)


def ask(qtbot: QtBot, window: MainWindow, text: str) -> Message:
    """Say ``text``, and return the reply once it has ended."""
    say(qtbot, window, text)
    return ended(qtbot, window)
