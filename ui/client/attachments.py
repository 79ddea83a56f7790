"""Files that go with a message: what is kept of them, and how a model is given them. No Qt."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from itertools import pairwise
from typing import Any

from models.formatting.json_values import fitting


class SentParts(StrEnum):
    """Which parts of a file are sent."""

    ALL = "all"
    PAGES = "pages"  # chosen by hand
    PASSAGES = "passages"  # to be found when the question is known
    BY_WORDS = "by words"  # found: they share words with the question
    BY_MEANING = "by meaning"  # found: their vectors are near that of the question


FOUND = (SentParts.PASSAGES, SentParts.BY_WORDS, SentParts.BY_MEANING)


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a text, as it follows the one before; several can have one label, as those of a long page."""

    label: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file that was read: a text in parts, or an image as a data URL.

    ``sent`` are the places of the parts that are sent, None for all. ``n_tokens`` is that of the whole text, 0 where
    nobody counted; ``is_counted`` is False where it follows from a part of it.
    """

    name: str
    n_bytes: int = 0
    parts: tuple[Part, ...] = ()
    image: str = ""
    choice: SentParts = SentParts.ALL
    sent: tuple[int, ...] | None = None
    n_tokens: int = 0
    is_counted: bool = False

    @property
    def is_long(self) -> bool:
        """True where a part of it can be sent instead of the whole."""
        return len(self.parts) > 1

    @property
    def labels(self) -> list[str]:
        """The pages or sections, each once."""
        return list(dict.fromkeys(part.label for part in self.parts))

    @property
    def sent_parts(self) -> list[Part]:
        """The parts that are sent."""
        return list(self.parts) if self.sent is None else [self.parts[at] for at in self.sent if at < len(self.parts)]

    @property
    def tokens(self) -> int:
        """About how many tokens are sent; 0 for an image, which only its model can count."""
        whole = sum(len(part.text) for part in self.parts)
        share = sum(len(part.text) for part in self.sent_parts) / whole if whole else 0.0
        return round(share * (self.n_tokens or whole / LETTERS_PER_TOKEN))

    def in_passages(self) -> Attachment:
        """Return the file as it is sent where only the passages that fit the question are; a short one stays whole."""
        return replace(self, choice=SentParts.PASSAGES, sent=None) if self.is_long else self

    def text(self) -> str:
        """Return what a model reads of it: the name and the content between two marks."""
        name = self.name.replace('"', "'")
        if self.sent is None:
            return f'<file name="{name}">\n{"".join(part.text for part in self.parts).rstrip()}\n</file>'
        pieces = "\n".join(f"[{label}]\n{text.rstrip()}" for label, text in self._runs())
        return f'<file name="{name}" shown="{spans(self.sent_labels)} of {_last_place(self.parts)}">\n{pieces}\n</file>'

    @property
    def sent_labels(self) -> list[str]:
        """The pages or sections of which something is sent, each once."""
        return list(dict.fromkeys(part.label for part in self.sent_parts))

    def _runs(self) -> Iterable[tuple[str, str]]:
        """Yield the labels of the parts that are sent, each with its text."""
        texts: dict[str, str] = {}
        for part in self.sent_parts:
            texts[part.label] = texts.get(part.label, "") + part.text
        return texts.items()


def _last_place(parts: Sequence[Part]) -> str:
    """Return the number with which the labels end: that of the last page, section or line."""
    return parts[-1].label.rpartition(" ")[2].rpartition("–")[2]


LETTERS_PER_TOKEN = 4.0  # English in common vocabularies, until the server has counted


def spans(labels: Sequence[str]) -> str:
    """Return labels as people write them: "page 1, 2, 7"."""
    words = [label.rpartition(" ") for label in labels]
    kept = [words[0][2] if not words[0][1] else f"{words[0][0]} {words[0][2]}"] if words else []
    kept += [now[2] if now[0] == before[0] else " ".join(now).strip() for before, now in pairwise(words)]
    return ", ".join(kept)


def content_of(text: str, attachments: Sequence[Attachment]) -> str | list[dict[str, Any]]:
    """Return a message as the chat route takes it: the files, then what was written; images as parts of their own."""
    whole = "\n\n".join([*(one.text() for one in attachments if not one.image), *([text] if text else [])])
    images = [{"type": "image_url", "image_url": {"url": one.image}} for one in attachments if one.image]
    if not images:
        return whole
    return [*images, {"type": "text", "text": whole}] if whole else images


def to_json(attachments: Sequence[Attachment]) -> str:
    """Return attachments as they are kept."""
    return json.dumps([asdict(one) for one in attachments], ensure_ascii=False)


def from_json(text: str) -> tuple[Attachment, ...]:
    """Read what ``to_json`` wrote; what has another form is left out."""
    try:
        found = json.loads(text)
    except ValueError:
        return ()
    return tuple(one for entry in found if (one := from_object(entry)) is not None) if isinstance(found, list) else ()


def from_object(found: object) -> Attachment | None:
    """Read one attachment, None where it is not one."""
    one = fitting(Attachment, found)
    if one is None or one.sent is None:
        return one
    return replace(one, sent=tuple(at for at in one.sent if 0 <= at < len(one.parts)))
