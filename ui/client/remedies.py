"""What to do about trouble of the library, in the words of the window: one table for what is clicked."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from models.library.values import Remedy, Trouble
from ui.language import tr

# What is missing here is seen in the window anyway.
_CLICKED: Final = {
    Remedy.WORK_OFFLINE: tr("The models of this machine and the suggested ones are there without it."),
    Remedy.LOG_IN: tr("“Hub settings…”, “Log in” logs in."),
    Remedy.SEARCH: tr("A search finds names."),
    Remedy.FORGET: tr("“Import folder…” does that."),
    Remedy.DELETE: tr("Empty the trash and try again, or delete the file in its folder."),
    Remedy.LOOK: tr("Find it again to see what there is."),
}


def clicked(trouble: Trouble) -> Trouble:
    """Return trouble whose sentence says what happened, and what to click against it."""
    said = (_CLICKED[remedy] for remedy in trouble.remedies if remedy in _CLICKED)
    return replace(trouble, sentence=" ".join([trouble.sentence, *said]), remedies=())
