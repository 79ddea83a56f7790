"""The section of folders: where models and chats are, to open or to move, and the folders of other programs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QUrl, Signal
from PySide6.QtGui import QDesktopServices, QGuiApplication
from PySide6.QtWidgets import QHBoxLayout, QWidget

from models.formatting.figures import size
from models.formatting.system_error import system_reason
from models.library import requests as ask
from models.library.values import FolderPlace, ModelRows, MoveStep, Trouble
from ui.client.library_link import LibraryLink
from ui.language import tr
from ui.settings.setting_line import SettingLine, SettingSection, button
from ui.theme.layouts import fill
from ui.widgets.banner import Banner
from ui.widgets.page_layout import choose_folder


class FolderSection(SettingSection):
    """Folders of the library, and the file of chats. What goes wrong with them is said in the page's banner."""

    moved = Signal()  # the models are in another folder, of which the server does not know
    changed = Signal()  # there are other lines

    def __init__(self, link: LibraryLink, chats: Path, banner: Banner) -> None:
        super().__init__(tr("Folders"))
        self._link, self._chats, self._banner = link, chats, banner
        self._models_folder = ""
        self._imported: list[SettingLine] = []
        self.models_button = button(tr("Open"), self._open_models, tr("Open the folder of models"))
        self.models_button.setEnabled(False)
        self.move_button = button(tr("Move…"), self._on_move, tr("Move the folder of models"))
        self.move_button.setEnabled(False)
        self._is_moving = False
        both = QWidget()
        fill(QHBoxLayout(both), self.move_button, self.models_button, margins=0)
        self._models_line = self.add(SettingLine(tr("Models"), tr("Looking for the folder…"), both))
        self.chats_button = button(
            tr("Open"), lambda: self._open(str(self._chats.parent)), tr("Open the folder of chats")
        )
        self.add(SettingLine(tr("Chats"), tr("In one file, {chats}", chats=self._chats), self.chats_button))
        self.import_button = button(tr("Import folder…"), self._choose_folder)
        self.add(
            SettingLine(
                tr("Models of other programs"),
                tr("Files of Ollama, LM Studio, Jan, GPT4All or your own are used where they are; nothing is copied."),
                self.import_button,
            )
        )

    def look(self) -> None:
        """Ask again where the models are, and which folders are imported."""
        self._link.ask(ask.ListModels(), part=self._on_models_part)
        self._link.ask(ask.ListPlaces(), self._on_places)

    def _open(self, folder: str) -> None:
        if not QDesktopServices.openUrl(QUrl.fromLocalFile(folder)):
            copy = (tr("Copy the path"), lambda: QGuiApplication.clipboard().setText(folder))
            self._banner.say(tr("No program here shows folders. It is {folder}.", folder=folder), action=copy)

    def _open_models(self) -> None:
        try:
            # Before the first download it is not there.
            Path(self._models_folder).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            self._banner.say(
                tr(
                    "{models_folder} cannot be made: {strerror}.",
                    models_folder=self._models_folder,
                    strerror=system_reason(error),
                ),
                "danger",
            )
        else:
            self._open(self._models_folder)

    def _on_move(self) -> None:
        if self._is_moving:
            self.move_button.setEnabled(False)
            self._link.ask(ask.CancelMove())
            return
        choose_folder(self, tr("Move the models to"), self.move_models)

    def move_models(self, folder: str) -> None:
        """Copy the models there and check them; then they are used there and deleted here."""
        self._banner.hide()
        self._show_moving(True)
        self._models_line.explain(tr("Looking at {folder}…", folder=folder))
        self._link.ask(ask.MoveModels(folder), self._on_move_ended, self._on_move_failed, self._on_move_step)

    def _on_move_step(self, step: MoveStep) -> None:
        if step.is_over:
            self._models_folder = step.folder
            left = tr(" {n_left} files could not be deleted in the old folder.", n_left=step.n_left)
            left = tr(" 1 file could not be deleted in the old folder.") if step.n_left == 1 else left
            left = left if step.n_left else ""
            self._banner.say(
                tr("The models are in {folder} now.{left}", folder=step.folder, left=left),
                "warning" if left else "plain",
            )
            return
        self.move_button.setEnabled(True)  # also where a wish to cancel came before the move had begun
        what = tr("Checking the copies in") if step.stage == "checking" else tr("Copying to")
        share = tr("{used} of {total}", used=size(step.n_done), total=size(step.n_total))
        self._models_line.explain(f"{what} {step.folder}: {share}")

    def _on_move_ended(self, done: object) -> None:
        self._show_moving(False)
        self.moved.emit()

    def _on_move_failed(self, trouble: Trouble) -> None:
        self._show_moving(False)
        self._banner.say(trouble.sentence, "danger", (tr("Choose another folder…"), self._on_move))

    def _show_moving(self, is_moving: bool) -> None:
        self._is_moving = is_moving
        self.move_button.setText(tr("Cancel") if is_moving else tr("Move…"))
        self.move_button.setAccessibleName(tr("Cancel the move") if is_moving else tr("Move the folder of models"))
        self.move_button.setEnabled(True)
        self.models_button.setEnabled(not is_moving)
        if not is_moving:
            self._models_line.explain(tr("Downloads go to {models_folder}", models_folder=self._models_folder))

    def _choose_folder(self) -> None:
        choose_folder(self, tr("Import folder"), self.import_folder)

    def import_folder(self, folder: str) -> None:
        """Use the models of a folder where they are."""
        self._link.ask(ask.ImportFolder(folder), self._on_folders, self._on_not_imported)

    def _on_folders(self, done: object) -> None:
        self._banner.hide()
        self.look()

    def _on_not_imported(self, trouble: Trouble) -> None:
        self._banner.say(trouble.sentence, "danger", (tr("Choose another folder…"), self._choose_folder))

    def _on_models_part(self, part: ModelRows) -> None:
        if part.folders:
            self._models_folder = part.folders[0]
            if not self._is_moving:
                self._show_moving(False)

    def _on_places(self, places: tuple[FolderPlace, ...]) -> None:
        for line in self._imported:
            self.take(line)
        self._imported = []
        for place in places:
            if place.is_imported:
                forget = button(tr("Forget"), self._forgets(place.path), tr("Forget {path}", path=place.path))
                line = SettingLine(tr("Models of {kind}", kind=place.kind), place.path, forget)
                self._imported.append(self.add(line))
        self.changed.emit()

    def _forgets(self, folder: str) -> Callable[[], object]:
        def failed(trouble: Trouble) -> None:
            self._banner.say(trouble.sentence, "danger", (tr("Try again"), self._forgets(folder)))

        return lambda: self._link.ask(ask.ForgetFolder(folder), self._on_folders, failed)
