"""Folders of other programs whose models are used in place: nothing is copied, moved or changed there."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from models.files.disk import full_path, is_there, read_json, read_value, write_whole
from models.formatting.json_values import plain
from models.formatting.sentence import Sentence, SentenceError
from models.formatting.system_error import system_reason

# Limits far above any real folder of Ollama's.
MAX_MANIFESTS = 5_000
# Where programs keep models below their whole folder; "" is that folder itself.
PLACES_BELOW = ("", "models", "hub", "llamacpp/models")
_MAX_MANIFEST_BYTES = 1 << 20
_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")
_OLLAMA_MODEL = "application/vnd.ollama.image.model"


class FolderKind(StrEnum):
    """The program that a folder belongs to."""

    FOLDER = "folder"
    HUB_CACHE = "Hugging Face cache"
    LM_STUDIO = "LM Studio"
    OLLAMA = "Ollama"
    JAN = "Jan"
    GPT4ALL = "GPT4All"


class ImportRefused(SentenceError):
    """A folder that cannot be imported: the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class ImportedFolder:
    """A folder and its program. Links that lead out of the folder are not followed."""

    path: Path
    kind: FolderKind

    def contains(self, path: Path) -> bool:
        """Whether ``path``, links followed, is inside."""
        try:
            return path.resolve().is_relative_to(self.path.resolve())
        except (OSError, RuntimeError):  # a link to itself
            return False


def recognise(folder: Path) -> ImportedFolder:
    """Recognise the program of ``folder``, which is the program's folder of models or its whole folder.

    Raises ImportRefused.
    """
    folder = full_path(folder)
    try:
        if not os.path.isdir(folder):
            what = Sentence("is no folder") if is_there(folder) else Sentence("does not exist")
            raise ImportRefused(
                "{folder} {what}. Give a folder that has GGUF files somewhere in it.", folder=folder, what=what
            )
        os.listdir(folder)
        kinds = {place: _kind(place) for below in PLACES_BELOW if (place := folder / below)}
    except OSError as error:
        raise ImportRefused(
            "{folder} cannot be read: {reason}. Check its permissions.", folder=folder, reason=system_reason(error)
        ) from error
    known = (ImportedFolder(place, kind) for place, kind in kinds.items() if kind is not FolderKind.FOLDER)
    return next(known, ImportedFolder(folder, FolderKind.FOLDER))


def known_places() -> tuple[ImportedFolder, ...]:
    """Folders of other programs at their usual places on this machine."""
    home = Path.home()
    data = Path(os.environ.get("XDG_DATA_HOME") or home / ".local" / "share")
    local = Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    roaming = Path(os.environ.get("APPDATA") or home / "AppData" / "Roaming")
    support = home / "Library" / "Application Support"
    hub = Path(os.environ.get("HF_HOME") or home / ".cache" / "huggingface") / "hub"
    places = [
        Path(os.environ.get("HF_HUB_CACHE") or hub),
        home / ".lmstudio" / "models",
        home / ".cache" / "lm-studio" / "models",
        Path(os.environ.get("OLLAMA_MODELS") or home / ".ollama" / "models"),
        Path("/usr/share/ollama/.ollama/models"),
        *(base / "Jan" / "data" / "llamacpp" / "models" for base in (data, home / ".config", support, roaming)),
        *(base / "nomic.ai" / "GPT4All" for base in (data, support, local)),
    ]
    found = []
    for place in dict.fromkeys(places):
        try:
            found.append(recognise(place))
        except ImportRefused:
            continue
    return tuple(found)


def ollama_models(folder: ImportedFolder) -> Iterator[tuple[str, Path]]:
    """The name and file of each of Ollama's models: it does not name files after them."""
    manifests = folder.path / "manifests"
    found = (path for path in sorted(manifests.rglob("*"))[:MAX_MANIFESTS] if path.is_file())
    for manifest in found:
        blob = _ollama_blob(folder, manifest)
        if blob is not None:
            yield _ollama_name(manifest.relative_to(manifests)), blob


def read_folders(file: Path) -> tuple[ImportedFolder, ...]:
    """The imported folders, including missing ones; none if the list cannot be read."""
    return read_value(tuple[ImportedFolder, ...], file) or ()


def write_folders(file: Path, folders: tuple[ImportedFolder, ...]) -> None:
    """Keep the list of imported folders; raises OSError."""
    write_whole(file, json.dumps(plain(folders), indent=1))


def _kind(folder: Path) -> FolderKind:
    if not os.path.isdir(folder):
        return FolderKind.FOLDER
    parts = [part.lower() for part in folder.parts]
    # By os.path: a Path raises where a folder lets nobody look into it, and others in /tmp or /srv may be of that kind.
    if os.path.isdir(folder / "manifests") and os.path.isdir(folder / "blobs"):
        return FolderKind.OLLAMA
    if any(path.name.startswith("models--") for path in _folders(folder)):
        return FolderKind.HUB_CACHE
    if parts[-2:] in ([".lmstudio", "models"], ["lm-studio", "models"]):
        return FolderKind.LM_STUDIO
    if parts[-2:] == ["nomic.ai", "gpt4all"]:
        return FolderKind.GPT4ALL
    if any(os.path.isfile(path / "model.yml") for path in _folders(folder)):
        return FolderKind.JAN
    return FolderKind.FOLDER


def _folders(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as found:
            return [Path(item.path) for item in found if item.is_dir()][:1000]
    except OSError:
        return []


def _ollama_blob(folder: ImportedFolder, manifest: Path) -> Path | None:
    """The file of weights that a manifest names, if it is there. The digest is checked, so it cannot be a path."""
    try:
        layers = read_json(manifest, _MAX_MANIFEST_BYTES)["layers"]
        digest = next(layer["digest"] for layer in layers if layer["mediaType"] == _OLLAMA_MODEL)
        match = _DIGEST.fullmatch(digest)
    except (TypeError, KeyError, StopIteration):
        return None
    blob = folder.path / "blobs" / f"sha256-{match[1]}" if match else None
    return blob if blob is not None and blob.is_file() and folder.contains(blob) else None


def _ollama_name(manifest: Path) -> str:
    """As Ollama writes it: "llama3.2:3b", with the maker where it is not Ollama's own library."""
    *owner, model, tag = manifest.parts
    makers = [part for part in owner if part not in ("registry.ollama.ai", "library")]
    return "/".join([*makers, f"{model}:{tag}"])
