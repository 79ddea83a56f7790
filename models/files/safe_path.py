"""Turns names on the Hub, which are not trusted, into paths below the models' folder."""

from __future__ import annotations

import os
import re
from pathlib import Path

from models.files.errors import UnsafeName
from models.formatting.sentence import Sentence

PARTIAL_FOLDER = ".partial"
# What common file systems hold, with room for the endings of partial files.
_MAX_PART_BYTES, _MAX_PATH_BYTES, _MAX_PARTS = 240, 1024, 12
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)
_FORBIDDEN = re.compile(r'[\x00-\x1f\x7f<>:"|?*\\]')
# Characters that change the direction of writing, so that a name looks like another one.
_MISLEADING = re.compile(r"[\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def safe_parts(path: str) -> tuple[str, ...]:
    """The parts of a repository's file path; raises UnsafeName for one that must not become a path here."""
    parts = tuple(path.split("/"))
    if len(path.encode("utf-8", "surrogatepass")) > _MAX_PATH_BYTES or len(parts) > _MAX_PARTS:
        raise UnsafeName(path, Sentence("is too long"))
    for part in parts:
        why = _why_not(part)
        if why is not None:
            raise UnsafeName(path, why)
    return parts


def target(folder: Path, repo_id: str, path: str) -> Path:
    """Return the place for a file of a repository: ``folder/maker/repository/path``.

    Raises UnsafeName, also if a link below ``folder`` leads out of it.
    """
    found = folder.joinpath(*safe_parts(repo_id), *safe_parts(path))
    if not found.parent.resolve().is_relative_to(folder.resolve()):
        raise UnsafeName(path, Sentence("leads out of {folder} through a link", folder=folder))
    return found


def partial(folder: Path, repo_id: str, path: str, suffix: str) -> Path:
    """The place of an unfinished file and its journal and lock; the catalogue does not look there."""
    found = target(folder / PARTIAL_FOLDER, repo_id, path)
    return found.with_name(found.name + suffix)


def _why_not(part: str) -> str | None:
    if part in ("", ".", ".."):
        return Sentence("leads out of its folder")
    if part.startswith((".", "~")):
        return Sentence("has a hidden or special part")
    if _FORBIDDEN.search(part) or _MISLEADING.search(part) or any("\ud800" <= c <= "\udfff" for c in part):
        return Sentence("has characters that are not allowed")
    if part.endswith((" ", ".")) or part.startswith(" ") or _RESERVED.fullmatch(part):
        return Sentence("has a part that some systems cannot store")
    if len(os.fsencode(part)) > _MAX_PART_BYTES:
        return Sentence("is too long")
    return None
