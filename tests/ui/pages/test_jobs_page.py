"""The jobs page with the real server: files of requests, hard questions, and what becomes of them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import httpx
import pytest
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QApplication, QFileDialog, QMessageBox

from app.client.server_process import ServerProcess
from tests.support.waiting import until
from tests.ui.pages.conftest import agree
from tools.stand_ins.dragging import place
from ui.chat.storage.store import ChatStore
from ui.client.api import Api
from ui.client.speeds import Speed
from ui.jobs.drafts_dialog import DraftsDialog, texts_behind
from ui.jobs.job import AGAIN, DRAFTS, OPEN_CHAT, REMOVE, SAVE, SAVE_ANSWER, job_row
from ui.jobs.jobs_page import DROP, LET_GO, JobsPage
from ui.widgets.action_rows import ActionRow, ActionRows
from ui.widgets.page_layout import PageColumn
from ui.window.main_window import MainWindow

LEFT, NO_KEYS = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier


@pytest.fixture
def page(served: MainWindow) -> JobsPage:
    served.show_page("jobs")
    assert served.jobs is not None
    return served.jobs


def requests(folder: Path, n_lines: int, max_tokens: int = 4) -> Path:
    body = {"prompt": "Tell me.", "max_tokens": max_tokens, "ignore_eos": True}
    line = {"method": "POST", "url": "/v1/completions", "body": body}
    path = folder / f"{n_lines} requests.jsonl"
    path.write_text("\n".join(json.dumps(line | {"custom_id": str(number)}) for number in range(n_lines)))
    return path


def row_of(page: JobsPage, title: str):
    return next((row for row in page.rows.rows.values() if row.title.text() == title), None)


def drop(page: JobsPage, path: Path) -> None:
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path))])
    enter = QDragEnterEvent(place(QPoint(5, 5)), Qt.DropAction.CopyAction, data, LEFT, NO_KEYS)
    dropped = QDropEvent(QPointF(5, 5), Qt.DropAction.CopyAction, data, LEFT, NO_KEYS)
    QApplication.sendEvent(page.viewport(), enter)
    assert page.drop_hint.text() == LET_GO
    QApplication.sendEvent(page.viewport(), dropped)
    assert page.drop_hint.text() == DROP


def test_a_dropped_file_is_run_and_its_results_saved(qtbot, page: JobsPage, tmp_path: Path) -> None:
    drop(page, requests(tmp_path, 3))
    qtbot.waitUntil(lambda: (row := row_of(page, "3 requests.jsonl")) is not None and SAVE in row.buttons)
    row = row_of(page, "3 requests.jsonl")
    assert row.line.text() == "done  ·  3 of 3"
    key = next(key for key, view in page.rows.rows.items() if view is row)
    answers = tmp_path / "answers.jsonl"
    page.save(key, SAVE, answers)
    qtbot.waitUntil(lambda: row.line.text() == "done  ·  3 of 3  ·  saved as answers.jsonl")
    assert {json.loads(line)["custom_id"] for line in answers.read_text().splitlines()} == {"0", "1", "2"}
    page.save(key, SAVE, tmp_path / "no folder" / "answers.jsonl")
    assert "Choose another place" in row.problem.text()
    page.look()
    page.save(key, SAVE, tmp_path / "again.jsonl")
    qtbot.waitUntil(lambda: row.line.text().endswith("saved as answers.jsonl, again.jsonl"))
    row.buttons["Remove"].click()
    qtbot.waitUntil(lambda: row_of(page, "3 requests.jsonl") is None)


def test_a_job_is_paused_goes_on_and_is_cancelled(qtbot, page: JobsPage, tmp_path: Path) -> None:
    page.run_file(requests(tmp_path, 60, 400))
    name = "60 requests.jsonl"
    qtbot.waitUntil(lambda: (row := row_of(page, name)) is not None and "at work" in row.line.text())
    row_of(page, name).buttons["Pause"].click()
    qtbot.waitUntil(lambda: "paused" in row_of(page, name).line.text())
    row_of(page, name).buttons["Resume"].click()
    qtbot.waitUntil(lambda: "at work" in row_of(page, name).line.text())
    # What was answered before it is cancelled is kept, and its removal is asked for first.
    qtbot.waitUntil(lambda: not row_of(page, name).line.text().startswith("at work  ·  0 of"))
    row_of(page, name).buttons["Cancel"].click()
    qtbot.waitUntil(lambda: "Remove" in row_of(page, name).buttons)
    assert row_of(page, name).line.text().startswith("cancelled  ·  ")
    row_of(page, name).buttons["Remove"].click()
    agree(page)
    qtbot.waitUntil(lambda: row_of(page, name) is None)


def test_a_hard_question_is_answered_and_its_answer_saved(qtbot, page: JobsPage, tmp_path: Path) -> None:
    question = "What is a fox/hen?"
    assert page.question.y() < page.choose.y(), "first what anybody understands"
    page.ask.click()
    assert page.question_problem.text() == "Write the question first."
    page.question.setPlainText(question)
    assert not page.question_problem.isVisible(), "it is written"
    page.ask.click()
    qtbot.waitUntil(lambda: (row := row_of(page, question)) is not None and SAVE_ANSWER in row.buttons)
    (key,) = page.rows.rows
    page.rows.rows[key].buttons[SAVE_ANSWER].click()
    dialog = page.window().findChild(QFileDialog)
    assert [Path(name).name for name in dialog.selectedFiles()] == ["What is a fox hen-answers.md"]
    dialog.reject()
    answer = tmp_path / "answer.md"
    page.save(key, SAVE_ANSWER, answer)
    qtbot.waitUntil(lambda: page.rows.rows[key].line.text().endswith("saved as answer.md"))
    assert len(answer.read_text().split()) > 2
    window = page.window()
    for _ in range(2):  # the chat is made once
        page.rows.rows[key].buttons[OPEN_CHAT].click()
        qtbot.waitUntil(lambda: len(window.desk.current.tree) == 2)
        assert window.desk.current.chat.settings.speed == Speed.AUTO, "the next question is another one"
        window.desk.new_chat()
        page.setFocus()
    listed: list = []
    window.chats.archive.ask(ChatStore.chats, listed.extend, [])
    qtbot.waitUntil(lambda: bool(listed))
    assert [chat.title for chat in listed] == [question]
    page.rows.rows[key].buttons["Remove"].click()


def test_a_question_that_reaches_no_server_stays_in_its_field(qtbot, page: JobsPage, api: Api) -> None:
    page.question.setPlainText("What is a fox?")
    page.ask.click()
    next(iter(page.rows.rows.values())).buttons["Cancel"].click()
    assert page.question.toPlainText() == "What is a fox?"
    api.connect_to("http://127.0.0.1:9", None)
    page.ask.click()
    qtbot.waitUntil(page.question_problem.isVisible)
    assert page.question.toPlainText() == "What is a fox?"


def test_a_question_without_an_answer_says_why_and_can_be_asked_again(
    qtbot, page: JobsPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    page.question.setPlainText("fox " * 60_000)  # more than any context has room for
    page.ask.click()
    qtbot.waitUntil(lambda: any(AGAIN in row.buttons and row.problem.text() for row in page.rows.rows.values()))
    row = next(row for row in page.rows.rows.values() if AGAIN in row.buttons)
    assert row.line.text() == "failed"
    assert "context" in row.problem.text()
    n_before = len(page.rows.rows)
    row.buttons[AGAIN].click()
    qtbot.waitUntil(lambda: len(page.rows.rows) > n_before)


def test_a_file_on_its_way_can_be_taken_back(qtbot, page: JobsPage, tmp_path: Path) -> None:
    path = requests(tmp_path, 20_000)
    page.run_file(path)
    row = row_of(page, path.name)
    assert row.line.text() == "is sent to the server"
    row.buttons["Cancel"].click()
    qtbot.waitUntil(lambda: row_of(page, path.name) is None)


@pytest.mark.parametrize("is_over", [False, True])
def test_a_file_that_is_taken_back_as_it_arrives_leaves_no_job(
    qtbot,
    page: JobsPage,
    api: Api,
    real_server: ServerProcess,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    is_over,
) -> None:
    """Also where the job is over before its cancel arrives."""
    path, ask, asked = requests(tmp_path, 1), api.ask, list[str]()
    url, headers = real_server.wait_listening(), {"Authorization": f"Bearer {real_server.api_key}"}

    def jobs() -> list[dict]:
        listed = httpx.get(f"{url}/v1/batches", headers=headers, timeout=60).json()["data"]
        return [job for job in listed if job["metadata"]["title"] == path.name]

    def ask_late(method: str, path_: str, *more: object) -> None:
        if path_.endswith("/cancel") and is_over:
            until(lambda: jobs()[0]["status"] == "completed")
        ask(method, path_, *more)
        asked.append(method)
        if (method, path_) == ("POST", "/v1/batches"):
            row_of(page, path.name).buttons["Cancel"].click()

    monkeypatch.setattr(api, "ask", ask_late)
    page.run_file(path)
    qtbot.waitUntil(lambda: "DELETE" in asked)
    qtbot.waitUntil(lambda: jobs() == [])
    qtbot.waitUntil(lambda: row_of(page, path.name) is None)


def test_results_on_their_way_to_a_file_can_be_given_up(qtbot, page: JobsPage, tmp_path: Path) -> None:
    page.run_file(requests(tmp_path, 3))
    qtbot.waitUntil(lambda: (row := row_of(page, "3 requests.jsonl")) is not None and SAVE in row.buttons)
    row = row_of(page, "3 requests.jsonl")
    key = next(key for key, view in page.rows.rows.items() if view is row)
    answers = tmp_path / "answers.jsonl"
    page.save(key, SAVE, answers)
    saving = row_of(page, "answers.jsonl")
    assert saving.line.text() == "is being saved"
    saving.buttons["Cancel"].click()
    qtbot.waitUntil(lambda: row_of(page, "answers.jsonl") is None)
    assert row.problem.text() == ""
    assert not answers.exists()
    for answer, is_there in ((QMessageBox.ButtonRole.RejectRole, True), (QMessageBox.ButtonRole.AcceptRole, False)):
        row.buttons["Remove"].click()
        (box,) = page.window().findChildren(QMessageBox)
        next(button for button in box.buttons() if box.buttonRole(button) is answer).click()
        qtbot.waitUntil(lambda: not page.window().findChildren(QMessageBox))
        assert (row_of(page, "3 requests.jsonl") is not None) or not is_there
    qtbot.waitUntil(lambda: row_of(page, "3 requests.jsonl") is None)


def test_the_drafts_behind_an_answer_can_be_read(qtbot, page: JobsPage) -> None:
    page.question.setPlainText("Who is the fox?")
    page.ask.click()
    qtbot.waitUntil(lambda: (row := row_of(page, "Who is the fox?")) is not None and DRAFTS in row.buttons)
    row_of(page, "Who is the fox?").buttons[DRAFTS].click()
    # On this machine a second draft may cost as much as another reply: then there are none, and the page says so.
    row = row_of(page, "Who is the fox?")
    qtbot.waitUntil(lambda: page.findChild(DraftsDialog) is not None or "without drafts: " in row.problem.text())
    if row.problem.text():
        assert row.problem.property("tone") == "muted", "nothing went wrong"
        assert list(row.buttons) == [OPEN_CHAT, SAVE_ANSWER, REMOVE]
    for dialog in page.findChildren(DraftsDialog):
        dialog.reject()
    stages = [
        {"stage": "drafting", "texts": ["A **red** one.", "A grey one."]},
        {"stage": "distilling", "texts": ["Red or grey."]},
        {"stage": "refining"},
    ]
    texts = texts_behind({"timings": {"deep": {"stages": stages}}})
    assert texts_behind({"timings": {"deep": {"reason": "no slot is free", "stages": []}}}) == texts_behind({}) == []
    dialog = DraftsDialog("Who is the fox?", texts, page.window().tools, page)
    dialog.show()
    assert [view.toPlainText() for view in dialog.views] == ["A red one.", "A grey one.", "Red or grey."]
    assert [view.accessibleName() for view in dialog.views] == ["Draft 1", "Draft 2", "Notes on the drafts"]
    dialog.reject()


def test_many_buttons_stand_below_the_words_where_it_is_narrow(qtbot) -> None:
    rows = ActionRows("Jobs", "None")
    qtbot.addWidget(rows)
    actions = (OPEN_CHAT, DRAFTS, SAVE_ANSWER, "Remove")
    rows.show_rows([ActionRow("1", "A question that is rather long for a row like this", "done", actions)])
    rows.resize(900, 100)
    rows.show()
    view = rows.rows["1"]
    first = view.buttons[OPEN_CHAT]

    def beside() -> bool:
        return first.mapTo(rows, QPoint(0, 0)).y() < view.line.mapTo(rows, QPoint(0, 0)).y()

    qtbot.waitUntil(beside)
    rows.resize(420, 200)
    qtbot.waitUntil(lambda: not beside())
    assert view.title.width() > 300


def test_the_keyboard_stays_where_a_button_was_pressed(qtbot) -> None:
    rows = ActionRows("Jobs", "None")
    qtbot.addWidget(rows)

    def show(*shown: tuple[str, tuple[str, ...]]) -> None:
        rows.show_rows([ActionRow(key, key, "at work", actions) for key, actions in shown])

    show(("one", ("Pause", "Cancel")), ("two", ("Pause", "Cancel")))
    rows.show()
    rows.activateWindow()
    qtbot.waitUntil(rows.isActiveWindow)
    rows.rows["one"].buttons["Pause"].setFocus()
    show(("one", ("Resume", "Cancel")), ("two", ("Pause", "Cancel")))
    assert rows.focusWidget() is rows.rows["one"].buttons["Resume"]
    show(("two", ("Pause", "Cancel")))
    assert rows.focusWidget() is rows.rows["two"].buttons["Pause"]
    page = PageColumn()
    qtbot.addWidget(page)
    page.add_section("Jobs").addWidget(rows)
    page.show()
    page.activateWindow()
    qtbot.waitUntil(page.isActiveWindow)
    rows.rows["two"].buttons["Pause"].setFocus()
    show()
    assert page.hasFocus(), "the last is gone: its keys scroll"


def test_a_deep_answer_shows_its_stages() -> None:
    job = {"id": "b", "status": "in_progress", "request_counts": {"total": 1}, "metadata": {"kind": "question"}}
    progress = {"stage": "drafting", "drafts": 4, "drafts_done": 2, "tokens": 1_340, "seconds": 12.3}
    row = job_row(job | {"deep": [progress]})
    assert row.line == "Drafting  ·  2 of 4 drafts done  ·  1,340 tokens of thought  ·  12.3 s"
    assert row.share == pytest.approx(1 / 6)
    assert row.actions == ("Pause", "Cancel")
    refining = job_row(job | {"deep": [progress | {"stage": "refining", "drafts_done": 4}]})
    assert refining.line.startswith("Writing the answer  ·  ")
    assert refining.share == pytest.approx(2 / 3)
    assert job_row(job | {"paused": True}).line == "paused; it will begin anew"
    done = job | {"status": "completed", "in_progress_at": 100, "completed_at": 165, "output_file_id": "f"}
    assert job_row(done).line == "done  ·  1 min 05 s"
    file = job_row(job | {"metadata": {}, "deep": [progress, progress, progress | {"stage": "refining"}]})
    assert file.line == "at work  ·  0 of 1  ·  Drafting: 2  ·  Writing the answer: 1"


def test_what_is_wrong_with_a_file_is_said_beside_it_until_it_can_be_run(
    qtbot, page: JobsPage, api: Api, real_server: ServerProcess, tmp_path: Path
) -> None:
    path = tmp_path / "wrong at first.jsonl"  # other tests leave jobs on the server
    for text in ("Dear diary,", '{"custom_id": "1"}', ""):
        path.write_text(text)
        page.run_file(path)
        assert row_of(page, path.name).problem.text().startswith(f"{path.name} is no file of requests")
    path.unlink()
    os.mkfifo(path)
    page.run_file(path)  # nobody writes into it: to open it would wait for ever
    assert row_of(page, path.name).problem.text().startswith(f"{path.name} is no file of requests")
    path.unlink()
    writing, terminal = os.openpty()
    path.symlink_to(os.ttyname(terminal))
    os.write(writing, b'{"custom_id": "1", "method": "POST", "url": "/v1/chat/completions", "body": {}}\n')
    page.run_file(path)  # what it says first does not make it a file: after that it waits for ever too
    assert row_of(page, path.name).problem.text().startswith(f"{path.name} is no file of requests")
    os.close(terminal)
    os.close(writing)
    path.unlink()
    page.run_file(tmp_path / "gone.jsonl")
    assert "cannot be read" in row_of(page, "gone.jsonl").problem.text()
    row_of(page, "gone.jsonl").buttons["Remove"].click()
    assert row_of(page, "gone.jsonl") is None
    api.connect_to("http://127.0.0.1:9", None)
    requests(tmp_path, 1).replace(path)
    row_of(page, path.name).buttons["Try again"].click()
    # It does not answer, or is noticed to be gone first, which ends what is asked of it.
    qtbot.waitUntil(lambda: row_of(page, path.name).problem.text().startswith("The server "))
    api.connect_to(real_server.wait_listening(), real_server.api_key)
    row_of(page, path.name).buttons["Try again"].click()
    qtbot.waitUntil(lambda: (row := row_of(page, path.name)) is not None and SAVE in row.buttons)
    assert row_of(page, path.name).problem.text() == ""
    row_of(page, path.name).buttons["Remove"].click()
    agree(page)


def test_addresses_that_are_dragged_are_no_files(page: JobsPage) -> None:
    data = QMimeData()
    data.setUrls([QUrl("https://example.org/requests.jsonl")])  # from elsewhere
    event = QDragEnterEvent(place(QPoint(5, 5)), Qt.DropAction.CopyAction, data, LEFT, NO_KEYS)
    event.ignore()
    QApplication.sendEvent(page.viewport(), event)
    assert not event.isAccepted()
