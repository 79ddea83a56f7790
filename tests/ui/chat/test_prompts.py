"""Prompts that are kept: their variables, the form, the library, the instructions of models."""

from __future__ import annotations

from contextlib import closing

import pytest
from PySide6.QtCore import Qt

from tools.stand_ins.fake_openai import FakeServer
from ui.chat.prompts.prompt_form import PromptForm
from ui.chat.prompts.prompts_dialog import INSTRUCTIONS, PromptsDialog
from ui.chat.prompts.variables import filled, variables_of
from ui.chat.storage.store import ChatStore
from ui.client.chat_records import Prompt
from ui.client.speeds import Speed
from ui.window.main_window import MainWindow


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Say {{word}} in {{ the language }}, {{word}}!", ["word", "the language"]),
        ("{single} {{}} {{ }} {{two\nlines}}", []),
        ("{{{{nested}}}}", ["nested"]),
    ],
)
def test_variables_stand_between_two_braces(text: str, names: list[str]) -> None:
    assert variables_of(text) == names
    assert filled("{{a}} {{ b }} {{c}}", {"a": "{{b}}", "b": "2"}) == "{{b}} 2 {{c}}", "values are not looked into"


def test_prompts_are_kept(tmp_path) -> None:
    prompt = Prompt(7, "Translate", "Into {{language}}:", True, "ember")
    store = ChatStore(tmp_path / "chats.db")
    store.save_prompt(Prompt(7, "old", "old"))
    store.save_prompt(prompt)
    store.save_prompt(Prompt(8, "b", "c"))
    store.delete_prompt(8)
    store.close()
    again = ChatStore(tmp_path / "chats.db")
    assert again.prompts() == [prompt]
    assert again.highest_id() == 7
    again.close()


def test_a_prompt_asks_for_its_variables_and_goes_into_the_message(qtbot, window: MainWindow) -> None:
    window.chats.prompts.save(Prompt(0, "Translate", "Into {{language}}: {{text}}"))
    window.chats.prompts.save(Prompt(0, "Greet", "Hello!"))
    composer = window.page.composer
    composer.set_text("Please: ")
    menu = window.chats.prompt_menu.offer(composer.prompts, False, composer.insert, composer.text)
    assert [action.text() for action in menu.actions()] == [
        "Greet", "Translate", "", "Keep what is written…", "All prompts…",
    ]  # fmt: skip
    menu.actions()[1].trigger()
    menu.close()
    form = window.findChild(PromptForm)
    qtbot.keyClicks(form.fields["language"], "German")
    qtbot.keyClick(form.fields["language"], Qt.Key.Key_Return)
    qtbot.keyClicks(form.fields["text"], "fox")
    qtbot.keyClick(form.fields["text"], Qt.Key.Key_Return)
    assert composer.text == "Please: Into German: fox"


def test_who_has_no_prompt_yet_is_offered_to_write_one(qtbot, window: MainWindow) -> None:
    composer = window.page.composer
    menu = window.chats.prompt_menu.offer(composer.prompts, False, composer.insert, "")
    assert [action.text() for action in menu.actions()] == ["No prompts yet", "Write a prompt…"]
    menu.actions()[1].trigger()
    menu.close()
    dialog = window.findChild(PromptsDialog)
    assert dialog.focusWidget() is dialog.name


def test_the_first_text_of_a_kind_is_begun_where_there_are_others(qtbot, window: MainWindow) -> None:
    window.chats.prompts.save(Prompt(0, "Pirate", "Speak like a pirate.", True))
    composer = window.page.composer
    menu = window.chats.prompt_menu.offer(composer.prompts, False, composer.insert, "")
    menu.actions()[1].trigger()
    menu.close()
    dialog = window.findChild(PromptsDialog)
    assert (dialog.name.text(), dialog.text.toPlainText()) == ("", "")
    assert dialog.focusWidget() is dialog.name


def test_tab_does_not_stop_at_an_empty_list_of_prompts(qtbot, window: MainWindow) -> None:
    window.chats.prompt_menu.manage()
    dialog = window.findChild(PromptsDialog)
    dialog.new.setFocus()
    qtbot.keyClick(dialog.new, Qt.Key.Key_Tab)
    assert dialog.focusWidget() is dialog.name
    qtbot.keyClicks(dialog.name, "Greet")
    qtbot.keyClicks(dialog.text, "Hello!")
    dialog.save.click()
    dialog.new.setFocus()
    qtbot.keyClick(dialog.new, Qt.Key.Key_Tab)
    assert dialog.focusWidget() is dialog.list


def test_prompts_are_written_changed_and_deleted(qtbot, window: MainWindow) -> None:
    window.chats.prompt_menu.manage()
    dialog = window.findChild(PromptsDialog)
    assert not dialog.save.isEnabled()
    dialog.name.setText("Brief")
    dialog.text.setPlainText("Answer in {{n}} words.")
    assert "Asks for: n." in dialog.note.text()
    assert dialog.model.isHidden()
    dialog.save.click()
    dialog.name.setText("Briefer")
    dialog.save.click()
    assert [prompt.name for prompt in window.chats.prompts.prompts] == ["Briefer"]
    dialog.new.click()
    assert dialog.name.text() == ""
    dialog.list.setCurrentRow(0)
    dialog.delete.click()
    assert window.chats.prompts.prompts == []
    assert dialog.list.count() == 0
    dialog.undo.click()
    assert [prompt.name for prompt in window.chats.prompts.prompts] == ["Briefer"]
    assert dialog.undo.isHidden()


def test_a_prompt_that_is_left_is_kept(qtbot, window: MainWindow) -> None:
    window.chats.prompt_menu.manage()
    dialog = window.findChild(PromptsDialog)
    dialog.text.setPlainText("Translate what follows into German, and keep the tone of it")
    dialog.new.click()
    (kept,) = window.chats.prompts.prompts
    assert kept.name == "Translate what follows into German, and…"
    qtbot.waitUntil(lambda: dialog.list.count() == 1)
    dialog.name.setText("Second")
    dialog.text.setPlainText("Two")
    dialog.list.setCurrentRow(0)
    assert dialog.text.toPlainText() == kept.text
    qtbot.waitUntil(lambda: dialog.list.count() == 2)
    dialog.text.setPlainText("Into French")
    qtbot.keyClick(dialog, Qt.Key.Key_Escape)
    assert sorted(prompt.text for prompt in window.chats.prompts.prompts) == ["Into French", "Two"]


def test_a_prompt_that_is_being_written_is_kept_when_the_window_closes(window: MainWindow, tmp_path) -> None:
    window.chats.prompt_menu.manage()
    window.findChild(PromptsDialog).text.setPlainText("Into German")
    window.close()
    with closing(ChatStore(tmp_path / "chats.db")) as store:
        assert [prompt.text for prompt in store.prompts()] == ["Into German"]


def test_new_chats_begin_with_the_instructions_of_their_model(qtbot, window: MainWindow, server: FakeServer) -> None:
    window.watch.start()
    qtbot.waitUntil(lambda: len(window.watch.models) == 2)
    window.chats.prompt_menu.manage(Prompt(0, "Brief", "Be brief."))
    dialog = window.findChild(PromptsDialog)
    dialog.kind.setCurrentText(INSTRUCTIONS)
    dialog.model.setCurrentIndex(dialog.model.findData("ember-q8_0"))
    dialog.save.click()
    dialog.accept()
    assert window.chats.tuning.prompt.toPlainText() == "Be brief."
    window.page.choose_model("ember-draft-q8_0")
    assert window.chats.tuning.prompt.toPlainText() == ""
    window.chats.tuning.prompt.setPlainText("Rhyme.")
    window.chats.tuning.take_typed()
    window.page.choose_model("ember-q8_0")
    assert window.chats.tuning.prompt.toPlainText() == "Rhyme."
    window.chats.prompts.save(Prompt(0, "Verse", "In verse.", True, "ember-q8_0"))
    assert [prompt.model for prompt in window.chats.prompts.prompts] == ["", "ember-q8_0"]


def test_model_and_speed_of_a_chat_are_chosen_in_its_panel(qtbot, window: MainWindow, server: FakeServer) -> None:
    window.watch.start()
    qtbot.waitUntil(lambda: window.chats.tuning.model.count() == 2)
    assert window.chats.tuning.model.currentData() == "ember-q8_0"
    window.chats.tuning.model.activated.emit(window.chats.tuning.model.findData("ember-draft-q8_0"))
    window.chats.tuning.speed.activated.emit(window.chats.tuning.speed.findData(Speed.FAST))
    settings = window.desk.current.chat.settings
    assert (settings.model, settings.speed) == ("ember-draft-q8_0", Speed.FAST)
    assert window.page.picker.shown_model == "ember-draft-q8_0"
    assert window.chats.tuning.model.currentData() == "ember-draft-q8_0"
    window.page.composer.speed.chosen.emit(Speed.DEEP)
    assert window.chats.tuning.speed.currentData() == Speed.DEEP
