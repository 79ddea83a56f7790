"""What is done about an error is said in the words of the place: typed in a terminal, clicked in the window."""

from __future__ import annotations

import pytest

from app.library.remedies import told
from models.files.errors import NothingToChoose, WrongContent
from models.formatting.program import IN_WINDOW
from models.hub.errors import BadToken, FileNotFound, GatedWithoutToken, Offline, RateLimited, RepositoryNotFound

_LOGIN = "`./slipstream models login`"
_BUTTONS = "“Hub settings…”, “Log in”"


@pytest.mark.parametrize(
    ("error", "typed", "clicked"),
    [
        (Offline(), "`./slipstream models list`", "suggested ones"),
        (RateLimited(3), _LOGIN, _BUTTONS),
        (RepositoryNotFound("a/b", has_token=False), _LOGIN, _BUTTONS),
        (RepositoryNotFound("a/b", has_token=True), "`./slipstream models search NAME`", "A search"),
        (FileNotFound("a/b c", "x"), "`./slipstream models show 'a/b c'`", "Find it again"),
        (BadToken(), _LOGIN, _BUTTONS),
        (GatedWithoutToken("a/b", "https://hub"), _LOGIN, _BUTTONS),
        (NothingToChoose("Say which.", "a/b:Q8_0"), "`./slipstream models pull a/b:Q8_0`", "Say which."),
        (NothingToChoose("It has none."), "`./slipstream models search NAME`", "It has none."),
        (WrongContent("x"), "try again later", "try again later"),
    ],
)
def test_both_places_have_their_words(error, typed, clicked, monkeypatch):
    assert typed in told(error)
    monkeypatch.setenv(IN_WINDOW, "1")
    assert clicked in told(error)
    assert "./slipstream" not in told(error)
