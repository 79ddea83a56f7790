"""The jobs page: files of requests and hard questions that are answered in the background, and their results."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from PySide6.QtCore import QDir, QMimeData, QTemporaryFile, QTimer, Signal
from PySide6.QtGui import QDragEnterEvent, QDragLeaveEvent, QDropEvent, QHideEvent, QShowEvent
from PySide6.QtWidgets import QFileDialog, QHBoxLayout, QPlainTextEdit, QPushButton

from models.formatting.figures import duration
from models.formatting.json_values import fitting
from models.formatting.system_error import system_reason
from ui.chat.exchange.chat_text import file_name
from ui.chat.markdown.text_tools import TextTools
from ui.client.api import Api
from ui.client.server_watch import ServerWatch
from ui.client.speeds import DeepReceipt
from ui.jobs.drafts_dialog import DraftsDialog, texts_behind
from ui.jobs.job import (
    AGAIN,
    CANCEL,
    DRAFTS,
    OPEN_CHAT,
    PAUSE,
    REMOVE,
    RESUME,
    SAVE,
    SAVE_ANSWER,
    SAVE_ERRORS,
    TRY_AGAIN,
    answer_in,
    count_lines,
    is_question,
    job_row,
    job_title,
    problem_in,
    question_in,
    url_in,
)
from ui.language import of_data, tr
from ui.theme.colours import Dressed
from ui.theme.layouts import STRETCH, fill
from ui.theme.text_size import scaled
from ui.widgets.action_rows import ActionRow, ActionRows
from ui.widgets.page_layout import PageColumn, ProblemLabel, announce, ask_first, file_dialog, plain_label, style_as

LOOK_MS = 1_000
CHATS = "/v1/chat/completions"
QUESTION_HEIGHT = 74  # pixels: three lines
_FIRST_BYTES = 1 << 16  # of a file: where its first line is
_MOVING = "moving "  # before a number: the key of a row for a file that is sent or saved
_REFUSED = "refused "  # before a path: that of a row for a file that could not be run
_TITLE = 60  # letters of a question
DROP, LET_GO = tr("or drop one here"), tr("Let go to run it")
FILES = tr(
    "A .jsonl file with a request in each line, as OpenAI's batches have it. It uses the time that chats and other "
    "programs leave, and goes on after a restart."
)
DEEP = tr(
    "Several drafts are written at once and distilled into one answer. That takes minutes; here it happens beside "
    "everything else."
)


class JobsPage(Dressed, PageColumn):
    """Looks at the server's batches each second while it is seen; files can be dropped anywhere on it."""

    chat_wanted = Signal(str, object, str)  # a question, the server's answer, the job

    def __init__(self, api: Api, watch: ServerWatch, tools: TextTools) -> None:
        super().__init__()
        self._api, self._watch, self._tools = api, watch, tools
        self._found: dict[str, dict[str, Any]] = {}
        # When a job was first seen at work, and how many lines were over: its pace since then.
        self._began: dict[str, tuple[float, int]] = {}
        # Files on their way to the server or from it: their row, and what ends that.
        self._moving: dict[str, ActionRow] = {}
        self._ends: dict[str, Callable[[], object]] = {}
        self._why: dict[str, str] = {}  # questions that have no answer, with the reason
        self._refused: dict[Path, str] = {}  # files that could not be run, with the reason
        self._problems: dict[str, str] = {}  # jobs on which what was wanted last could not be done, with the reason
        self._undrafted: dict[str, str] = {}  # questions without drafts, with the reason
        self._taken = set[str]()  # jobs whose results were saved or opened
        self._saved: dict[str, list[str]] = {}  # jobs of which something was saved, with the names of the files
        self.setAccessibleName(tr("Jobs"))
        self.setAcceptDrops(True)
        section = self.add_section(tr("A hard question"), DEEP)
        self.question = QPlainTextEdit()
        self.question.setProperty("kind", "field")
        self.question.setAccessibleName(tr("Question"))
        self.question.setPlaceholderText(tr("Ask what is worth a few minutes of thought"))
        self.question.setTabChangesFocus(True)
        self.question.setAcceptDrops(False)  # files are for the page
        self.ask = QPushButton(tr("Answer it deeply"))
        self.ask.setToolTip(tr("Answer this question in the background"))
        self.ask.clicked.connect(self._on_ask)
        foot = fill(QHBoxLayout(), self.ask, STRETCH)
        self.question_problem = ProblemLabel()
        self.question.textChanged.connect(self.question_problem.hide)
        for part in (self.question, self.question_problem):
            section.addWidget(part)
        section.addLayout(foot)
        section = self.add_section(tr("A file of requests"), FILES)
        self.choose = QPushButton(tr("Choose a file…"))
        self.choose.setToolTip(tr("Choose a .jsonl file; one can also be dropped anywhere on this page"))
        self.choose.clicked.connect(self._on_choose)
        self.drop_hint = plain_label(DROP, "caption")
        section.addLayout(fill(QHBoxLayout(), self.choose, (self.drop_hint, 1)))
        section = self.add_section(tr("Jobs"))
        self.rows = ActionRows(tr("Jobs"), tr("No jobs yet: ask a hard question, or choose a file."))
        self.rows.wanted.connect(self._on_wanted)
        section.addWidget(self.rows)
        self._timer = QTimer(self, interval=LOOK_MS)
        self._timer.timeout.connect(self.look)
        api.connected.connect(self.look)
        self.dress()

    def dress(self) -> None:
        """Leave room for three lines of the question."""
        self.question.setFixedHeight(scaled(QUESTION_HEIGHT))

    def showEvent(self, event: QShowEvent) -> None:
        """Follow the jobs."""
        super().showEvent(event)
        self.look()
        self._timer.start()

    def hideEvent(self, event: QHideEvent) -> None:
        """Let them be."""
        super().hideEvent(event)
        self._timer.stop()

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Take files."""
        if _files_in(event.mimeData()):
            event.acceptProposedAction()
            self._show_drop(LET_GO, "accent")
            self.ensureWidgetVisible(self.drop_hint)

    def dragLeaveEvent(self, event: QDragLeaveEvent) -> None:
        """They went elsewhere."""
        self._show_drop(DROP, "caption")

    def dropEvent(self, event: QDropEvent) -> None:
        """Run each file that was dropped."""
        self._show_drop(DROP, "caption")
        for file in _files_in(event.mimeData()):
            self.run_file(file)
        event.acceptProposedAction()

    def _show_drop(self, words: str, tone: str) -> None:
        self.drop_hint.setText(words)
        style_as(self.drop_hint, "tone", tone)

    def look(self) -> None:
        """Ask how far the jobs are."""
        if self._api.is_connected and self.isVisible():
            self._api.ask("GET", "/v1/batches?limit=100", None, self._on_jobs, lambda sentence: None)

    # What begins.

    def _on_choose(self) -> None:
        dialog = file_dialog(self, tr("A file of requests"), tr("Requests (*.jsonl);;All files (*)"))
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        dialog.fileSelected.connect(lambda name: self.run_file(Path(name)))
        dialog.open()

    def run_file(self, path: Path) -> None:
        """Send a file to the server and run it."""
        self._refused.pop(path, None)
        try:
            # To open a pipe or a terminal would wait for whoever writes into it.
            url = None if path.exists() and not path.is_file() else url_in(_first_line(path))
        except OSError as error:
            self._refuse(path, tr("{name} cannot be read: {strerror}.", name=path.name, strerror=system_reason(error)))
            return
        if url is None:
            self._refuse(
                path,
                tr(
                    "{name} is no file of requests: each line is a JSON object with custom_id, method, url and body.",
                    name=path.name,
                ),
            )
            return
        self._upload(path, url, {"title": path.name}, partial(self._refuse, path))

    def _refuse(self, path: Path, sentence: str) -> None:
        self._refused[path] = sentence
        self._show()
        self._go_to(f"{_REFUSED}{path}")

    def _on_ask(self) -> None:
        self.question_problem.hide()
        question = self.question.toPlainText().strip()
        if not question:
            self.question_problem.say(tr("Write the question first."))
            return
        body = {"messages": [{"role": "user", "content": question}], "speed": "deep"}
        if self._watch.state.model:
            body["model"] = self._watch.state.model
        line = json.dumps({"custom_id": "1", "method": "POST", "url": CHATS, "body": body})
        file = QTemporaryFile(f"{QDir.tempPath()}/question-XXXXXX.jsonl", self)
        if not file.open():
            self.question_problem.say(
                tr(
                    "The question cannot be written to {tempPath}: {problem}.",
                    tempPath=QDir.tempPath(),
                    problem=file.errorString(),
                )
            )
            return
        file.write(line.encode("utf-8", "replace") + b"\n")
        file.close()
        title = question if len(question) <= _TITLE else f"{question[:_TITLE].rstrip()}…"
        self.question.clear()

        def put_back(sentence: str = "") -> None:
            if not self.question.toPlainText():
                self.question.setPlainText(question)
            self.question_problem.say(sentence)
            if sentence:
                self.ensureWidgetVisible(self.question_problem)

        self._upload(Path(file.fileName()), CHATS, {"title": title, "kind": "question"}, put_back, put_back)

    def _upload(
        self,
        path: Path,
        url: str,
        metadata: dict[str, str],
        failed: Callable[[str], object],
        taken_back: Callable[[], object] = lambda: None,
    ) -> None:
        def run(file: dict[str, Any]) -> None:
            if key not in self._moving:  # it was taken back at the last moment
                self._api.ask("DELETE", f"/v1/files/{file['id']}", None, lambda found: None, lambda sentence: None)
                return
            self._ends[key] = taken_back  # the file is there
            body = {"input_file_id": file["id"], "endpoint": url, "completion_window": "24h", "metadata": metadata}
            self._api.ask("POST", "/v1/batches", body, begun, say)

        def begun(job: dict[str, Any]) -> None:
            if key not in self._moving:  # it was taken back meanwhile
                number = str(job["id"])

                def remove(said: object) -> None:  # also where it was over before it could be cancelled
                    self._change(number, REMOVE)

                self._api.ask("POST", f"/v1/batches/{number}/cancel", {}, remove, remove)
            over()

        key, over, say, progressed = self._moved(metadata["title"], tr("is sent to the server"), failed)
        end = self._api.upload("/v1/files", path, {"purpose": "batch"}, run, say, progressed)
        if key in self._moving:
            self._ends[key] = lambda: (end(), taken_back())

    def _moved(
        self, title: str, line: str, failed: Callable[[str], object]
    ) -> tuple[str, Callable[[], None], Callable[[str], None], Callable[[float], None]]:
        """Show a file on its way; return its key, and what is to be called at its end, its failure, and on its way."""
        key = f"{_MOVING}{time.monotonic_ns()}"

        def over() -> None:
            self._moving.pop(key, None)
            self._ends.pop(key, None)
            self._show()
            self.look()

        def say(sentence: str) -> None:
            is_wanted = key in self._moving  # nobody has cancelled it
            over()
            if is_wanted:
                failed(sentence)

        def progressed(share: float) -> None:
            if key in self._moving:
                self._moving[key] = replace(self._moving[key], share=share)
                self._show()

        self._moving[key] = ActionRow(key, title, line, (CANCEL,), 0.0)
        self._show()
        return key, over, say, progressed

    # What is there.

    def _on_jobs(self, found: dict[str, Any]) -> None:
        self._found = {str(job["id"]): job for job in found.get("data") or ()}
        self._problems = {key: sentence for key, sentence in self._problems.items() if key in self._found}
        for key, job in self._found.items():
            if is_question(job) and job.get("error_file_id") and key not in self._why:
                self._ask_why(key, job)
        self._show()

    def _show(self) -> None:
        refused = [
            ActionRow(f"{_REFUSED}{path}", path.name, "", (TRY_AGAIN, REMOVE), problem=why)
            for path, why in self._refused.items()
        ]
        jobs = [
            job_row(
                job,
                self._more(job),
                self._problems.get(key) or self._why.get(key, ""),
                self._undrafted.get(key, ""),
            )
            for key, job in self._found.items()
        ]
        self.rows.show_rows([*refused, *self._moving.values(), *jobs])

    def _ask_why(self, key: str, job: dict[str, Any]) -> None:
        self._why[key] = ""  # asked for

        def heard(line: dict[str, Any]) -> None:
            self._why[key] = problem_in(line)
            self.look()

        self._api.ask("GET", f"/v1/files/{job['error_file_id']}/content", None, heard, lambda sentence: None)

    def _more(self, job: dict[str, Any]) -> str:
        """Return what was saved of a job, or how long it still takes."""
        saved = self._saved.get(str(job["id"]))
        return tr("saved as {name}", name=", ".join(saved)) if saved else self._time_left(job)

    def _time_left(self, job: dict[str, Any]) -> str:
        """Return about how long the rest takes, at the pace that was seen."""
        key, (n_over, total) = str(job["id"]), count_lines(job)
        if job.get("status") != "in_progress" or job.get("paused"):
            self._began.pop(key, None)
            return ""
        began, n_before = self._began.setdefault(key, (time.monotonic(), n_over))
        if n_over == n_before:
            return ""
        seconds = (time.monotonic() - began) / (n_over - n_before) * (total - n_over)
        return tr("≈ {duration} left", duration=duration(max(1.0, seconds)))

    def _on_wanted(self, key: str, action: str) -> None:
        if key.startswith(_REFUSED):
            path = Path(key.removeprefix(_REFUSED))
            self._refused.pop(path, None)
            if action == TRY_AGAIN:
                self.run_file(path)
            self._show()
            return
        self._problems.pop(key, None)
        if key in self._moving:
            self._moving.pop(key)
            self._ends.pop(key, lambda: None)()
            self._show()
            return
        if action in (SAVE, SAVE_ANSWER, SAVE_ERRORS):
            self._choose_place(key, action)
            return
        job = self._found.get(key) or {}
        if action == OPEN_CHAT:
            self._open_chat(key, job)
            return
        if action == DRAFTS:
            self._show_drafts(key, job)
            return
        if action == AGAIN:
            again = {name: job.get(name) for name in ("input_file_id", "endpoint", "completion_window", "metadata")}
            self._api.ask("POST", "/v1/batches", again, lambda found: self.look(), partial(self._say, key))
            return
        if action == REMOVE and job.get("output_file_id") and key not in self._taken:
            self._ask_before_removal(key, job)
            return
        self._change(key, action)

    def _ask_before_removal(self, key: str, job: dict[str, Any]) -> None:
        lost = tr("Its results were not saved, and go with it.")
        ask_first(self, tr("Remove {name}?", name=job_title(job)), lost, REMOVE, lambda: self._change(key, REMOVE))

    def _change(self, key: str, action: str) -> None:
        method, path = {
            PAUSE: ("POST", f"/slipstream/batches/{key}/pause"),
            RESUME: ("POST", f"/slipstream/batches/{key}/resume"),
            CANCEL: ("POST", f"/v1/batches/{key}/cancel"),
            REMOVE: ("DELETE", f"/slipstream/batches/{key}"),
        }[action]
        body: dict[str, Any] | None = {} if method == "POST" else None
        self._api.ask(method, path, body, lambda found: self.look(), partial(self._say, key))

    def _show_drafts(self, key: str, job: dict[str, Any]) -> None:
        def answered(line: dict[str, Any]) -> None:
            answer = (line.get("response") or {}).get("body") or {}
            if texts := texts_behind(answer):
                DraftsDialog(job_title(job), texts, self._tools, self).open()
                return
            receipt = fitting(DeepReceipt, (answer.get("timings") or {}).get("deep"))
            why = receipt.reason if receipt is not None else None
            self._undrafted[key] = (
                tr("It was answered without drafts: {reason}.", reason=of_data(why))
                if why
                else tr("The drafts of this answer were not kept.")
            )
            self._show()
            self._go_to(key)

        self._ask_for(key, job.get("output_file_id"), answered)

    def _open_chat(self, key: str, job: dict[str, Any]) -> None:
        def answered(line: dict[str, Any]) -> None:
            answer = (line.get("response") or {}).get("body") or {}

            def opened(line: dict[str, Any]) -> None:
                self._taken.add(key)
                self.chat_wanted.emit(question_in(line), answer, key)

            self._ask_for(key, job.get("input_file_id"), opened)

        self._ask_for(key, job.get("output_file_id"), answered)

    def _ask_for(self, key: str, file_id: object, done: Callable[[dict[str, Any]], object]) -> None:
        """Ask for the one line of a file of a job."""
        self._api.ask("GET", f"/v1/files/{file_id}/content", None, done, partial(self._say, key))

    def _choose_place(self, key: str, action: str) -> None:
        job = self._found.get(key) or {}
        ending = "md" if action == SAVE_ANSWER else "jsonl"
        title = job_title(job) if is_question(job) else Path(job_title(job)).stem
        name = f"{file_name(title)}-{'errors' if action == SAVE_ERRORS else 'answers'}.{ending}"
        dialog = file_dialog(self, action)
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setDefaultSuffix(ending)
        dialog.selectFile(name)
        dialog.fileSelected.connect(lambda chosen: self.save(key, action, Path(chosen)))
        dialog.open()

    def save(self, key: str, action: str, path: Path) -> None:
        """Write what an action of a job is about to ``path``."""
        job = self._found.get(key) or {}
        file_id = job.get("error_file_id" if action == SAVE_ERRORS else "output_file_id")

        def write(line: dict[str, Any]) -> None:
            try:
                path.write_text(answer_in(line), encoding="utf-8")
                self._on_saved(key, action, path)
            except OSError as error:
                self._say(
                    key,
                    tr(
                        "{path} cannot be written: {strerror}. Choose another place.",
                        path=path,
                        strerror=system_reason(error),
                    ),
                )

        if action == SAVE_ANSWER:
            self._ask_for(key, file_id, write)
        else:
            moving, over, say, progressed = self._moved(path.name, tr("is being saved"), partial(self._say, key))

            def saved() -> None:
                over()
                self._on_saved(key, action, path)

            end = self._api.download(f"/v1/files/{file_id}/content", path, saved, say, progressed)
            if moving in self._moving:
                self._ends[moving] = end

    def _on_saved(self, key: str, action: str, path: Path) -> None:
        if action != SAVE_ERRORS:
            self._taken.add(key)
        names = self._saved.setdefault(key, [])
        if path.name not in names:
            names.append(path.name)
        self._show()

    def _say(self, key: str, sentence: str) -> None:
        """Say beside a job what could not be done."""
        self._problems[key] = sentence
        self._show()
        self._go_to(key)

    def _go_to(self, key: str) -> None:
        if (row := self.rows.rows.get(key)) is not None:
            announce(row, row.problem.text())
            QTimer.singleShot(0, row, lambda: self.ensureWidgetVisible(row))  # where it is, the layout says later


def _first_line(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.readline(_FIRST_BYTES)


def _files_in(dragged: QMimeData) -> list[Path]:
    """Return the files of this machine among what is dragged."""
    return [Path(url.toLocalFile()) for url in dragged.urls() if url.isLocalFile()] if dragged.hasUrls() else []
