"""What is done about an error is said in the words of the place: typed in a terminal, clicked in the window."""

from __future__ import annotations

import pytest

from app.cli.terminal.errors import typed
from app.library.trouble import trouble_of
from models.files.errors import NothingToChoose, WrongContent
from models.formatting.json_values import plain, value_of
from models.hub.errors import BadToken, FileNotFound, GatedWithoutToken, Offline, RateLimited, RepositoryNotFound
from models.library.values import Trouble
from models.quantise.errors import QuantiseRefused
from ui.client.remedies import clicked

_LOGIN = "`./slipstream models login`"
_BUTTONS = "“Hub settings…”, “Log in”"


@pytest.mark.parametrize(
    ("error", "in_terminal", "in_window"),
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
        (QuantiseRefused("It would lose more.", "--allow"), "The option for that is --allow.", "It would lose more."),
    ],
)
def test_both_places_have_their_words(error, in_terminal, in_window):
    trouble = value_of(Trouble, plain(trouble_of(error)))
    assert in_terminal in typed(trouble)
    assert in_window in clicked(trouble).sentence
    assert "./slipstream" not in clicked(trouble).sentence
