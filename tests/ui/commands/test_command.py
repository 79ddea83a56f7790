"""How a few letters find a command."""

from __future__ import annotations

import pytest

from ui.commands.command import Command, ranked

NAMES = ("New chat", "Show or hide the chats", "Theme: Dark", "A fox and the moon", "Straße nach Köln", "Rechat")


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("", list(NAMES)),
        ("chat", ["New chat", "Show or hide the chats", "Rechat"]),
        ("CHAT new", ["New chat"]),
        ("thdk", ["Theme: Dark"]),
        ("strasse", ["Straße nach Köln"]),
        ("n", ["New chat", "Straße nach Köln", "A fox and the moon"]),
        ("zzz", []),
    ],
)
def test_every_typed_word_fits_and_the_best_comes_first(typed: str, found: list[str]) -> None:
    commands = [Command(name, lambda: None) for name in NAMES]
    assert [command.name for command in ranked(commands, typed, 10)] == found
    assert [command.name for command in ranked(commands, typed, 2)] == found[:2]
