"""Folders of other programs: recognised, listed in place, never followed out of the folder."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from models.catalog.catalog import Catalog
from models.catalog.imported_folders import (
    FolderKind,
    ImportedFolder,
    ImportRefused,
    known_places,
    read_folders,
    recognise,
    write_folders,
)
from tests.support.ordinary_user import ordinary_user
from tools.model_factory.gguf_factory import EMBER_DRAFT

MODEL = EMBER_DRAFT.read_bytes()


def put(path: Path, content: bytes = MODEL) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def listed(folder: Path) -> dict[str, tuple[str, str | None]]:
    catalog = Catalog([], starter=None, imported=[recognise(folder)])
    return {entry.name: (entry.origin, entry.problem) for entry in catalog.entries()}


def ollama(root: Path, name: str, digest: str, media: str = "application/vnd.ollama.image.model") -> Path:
    layers = [{"mediaType": "application/vnd.ollama.image.license", "digest": "sha256:" + "9" * 64}]
    layers.append({"mediaType": media, "digest": digest})
    return put(root / "manifests" / name, json.dumps({"layers": layers}).encode())


def test_a_hugging_face_cache_is_used_through_its_links(tmp_path):
    repo = tmp_path / "hub" / "models--acme--fox-GGUF"
    blob = put(repo / "blobs" / ("a" * 64))
    (repo / "snapshots" / "c0ffee").mkdir(parents=True)
    (repo / "snapshots" / "c0ffee" / "fox-Q8_0.gguf").symlink_to(Path("../../blobs") / blob.name)
    put(repo / "blobs" / ("b" * 64 + ".incomplete"))
    put(tmp_path / "hub" / ".locks" / "x.gguf")
    assert recognise(tmp_path).kind is FolderKind.HUB_CACHE
    assert listed(tmp_path / "hub") == {"fox-Q8_0": ("Hugging Face cache", None)}


def test_a_folder_in_which_one_is_private_is_taken_without_that():
    with ordinary_user() as folder:
        for name in ("private", "models"):
            put(folder / name / "fox.gguf").parent.chmod(0)
        put(folder / "shared" / "fox-Q8_0.gguf")
        assert recognise(folder) == ImportedFolder(folder, FolderKind.FOLDER)
        catalog = Catalog([], starter=None, imported=[recognise(folder)])
        assert [entry.name for entry in catalog.entries()] == ["fox-Q8_0"]
        with pytest.raises(ImportRefused, match="fox cannot be read: Permission denied"):
            recognise(folder / "private" / "fox")
        for name in ("private", "models"):
            (folder / name).chmod(0o700)


def test_ollama_names_come_from_its_manifests(tmp_path):
    root, digest = tmp_path / "models", "sha256:" + "a" * 64
    put(root / "blobs" / ("sha256-" + "a" * 64))
    ollama(root, "registry.ollama.ai/library/llama3.2/3b", digest)
    put(root / "blobs" / ("sha256-" + "b" * 64))
    ollama(root, "hf.co/acme/fox/q8", "sha256:" + "b" * 64)
    assert recognise(tmp_path) == ImportedFolder(root, FolderKind.OLLAMA)
    assert listed(tmp_path) == {"hf.co/acme/fox:q8": ("Ollama", None), "llama3.2:3b": ("Ollama", None)}
    catalog = Catalog([], starter=None, imported=[recognise(root)])
    found = catalog.find("llama3.2:3b")
    assert found is not None
    assert found.title == "Ember draft"
    # Ollama's names for one file, of which one is listed; a name without a tag is the latest.
    ollama(root, "registry.ollama.ai/library/llama3.2/latest", digest)
    for name in ("llama3.2:latest", "Llama3.2", "llama3.2:3B"):
        assert catalog.find(name) == found
    assert catalog.find("llama3.2:1b") is None
    # One of them is given to another file, as by ``ollama pull``.
    ollama(root, "registry.ollama.ai/library/llama3.2/latest", "sha256:" + "b" * 64)
    newer = catalog.find("llama3.2")
    assert newer is not None
    assert newer.path.name.endswith("b" * 64)


def test_a_model_keeps_ollamas_name_where_a_link_to_it_is_listed_or_not_followed(tmp_path):
    root, digest, mine = tmp_path / "models", "sha256:" + "a" * 64, tmp_path / "mine"
    blob = put(root / "blobs" / ("sha256-" + "a" * 64))
    ollama(root, "registry.ollama.ai/library/llama3/8b", digest)
    mine.mkdir()
    (mine / "my-llama.gguf").symlink_to(blob)
    catalog = Catalog([mine], starter=None, imported=[recognise(root)])
    (entry,) = catalog.entries()
    assert [catalog.find(name) for name in ("llama3:8b", "my-llama", blob.name)] == [entry, entry, None]
    # In an imported folder links that lead out of it are not followed.
    for folders, n_problems in (((mine, root), 1), ((root, mine), 0)):
        catalog = Catalog([], starter=None, imported=[recognise(folder) for folder in folders])
        assert [entry.name for entry in catalog.entries()] == ["llama3:8b"]
        assert len(catalog.folder_problems) == n_problems


@pytest.mark.parametrize(
    "manifest",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"layers": 5}',
        b'{"layers": [{}]}',
        b'{"layers": [{"mediaType": "application/vnd.ollama.image.model", "digest": 5}]}',
        b"[" * 100_000,
        b"\xff" * 10,
    ],
)
def test_a_damaged_manifest_names_no_model(manifest, tmp_path):
    put(tmp_path / "blobs" / "x")
    put(tmp_path / "manifests" / "library" / "a" / "b", manifest)
    assert listed(tmp_path) == {}


def test_a_manifest_does_not_lead_out_of_the_folder(tmp_path):
    outside = put(tmp_path / "outside.gguf")
    root = tmp_path / "ollama"
    (root / "blobs").mkdir(parents=True)
    for i, digest in enumerate(("../../outside.gguf", "sha256:../../outside.gguf", "sha256:" + "c" * 63, "sha256:")):
        ollama(root, f"library/evil/{i}", digest)
    (root / "blobs" / ("sha256-" + "d" * 64)).symlink_to(outside)
    ollama(root, "library/evil/link", "sha256:" + "d" * 64)
    assert listed(root) == {}


def test_jan_names_come_from_its_folders(tmp_path):
    root = tmp_path / "Jan" / "data"
    put(root / "llamacpp" / "models" / "fox-8b" / "model.gguf")
    put(root / "llamacpp" / "models" / "fox-8b" / "model.yml", b"model_path: x")
    assert listed(root) == {"fox-8b": ("Jan", None)}


@pytest.mark.parametrize(
    ("place", "kind"),
    [
        (".lmstudio/models", FolderKind.LM_STUDIO),
        (".cache/lm-studio/models", FolderKind.LM_STUDIO),
        ("nomic.ai/GPT4All", FolderKind.GPT4ALL),
        ("things", FolderKind.FOLDER),
    ],
)
def test_other_folders_by_their_place(place, kind, tmp_path):
    put(tmp_path / place / "acme" / "fox" / "fox.gguf")
    assert recognise(tmp_path / place).kind is kind
    assert listed(tmp_path / place) == {"fox": (kind.value, None)}


def test_links_that_lead_out_are_not_followed_and_told(tmp_path):
    outside = put(tmp_path / "outside" / "secret.gguf")
    folder = tmp_path / "folder"
    put(folder / "own.gguf")
    (folder / "out.gguf").symlink_to(outside)
    (folder / "outside").symlink_to(outside.parent, target_is_directory=True)
    (folder / "loop.gguf").symlink_to(folder / "loop.gguf")
    catalog = Catalog([], starter=None, imported=[recognise(folder)])
    assert [entry.name for entry in catalog.entries()] == ["own"]
    (problem,) = catalog.folder_problems
    assert problem.sentence.startswith(("2 links lead out", "A link leads out"))


def test_nothing_is_changed_in_the_folder_and_times_do_not_matter(tmp_path):
    put(tmp_path / "mine" / "own.gguf")
    os.utime(tmp_path / "mine", ns=(1, 1))
    listed(tmp_path / "mine")
    assert (tmp_path / "mine").stat().st_mtime_ns == 1
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["own.gguf"]
    for moment in (0, 4_000_000_000):
        os.utime(tmp_path / "mine" / "own.gguf", (moment, moment))
        assert listed(tmp_path) == {"own": ("folder", None)}


@pytest.mark.parametrize("name", ["nowhere", "file"])
def test_what_is_no_folder_is_refused(name, tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(ImportRefused, match="Give a folder"):
        recognise(tmp_path / name)


def test_the_list_of_folders_is_kept(tmp_path):
    file = tmp_path / "config" / "folders.json"
    assert read_folders(file) == ()
    folders = (
        ImportedFolder(tmp_path / "gone", FolderKind.OLLAMA),
        ImportedFolder(tmp_path / "ü 模", FolderKind.FOLDER),
    )
    write_folders(file, folders)
    assert read_folders(file) == folders
    catalog = Catalog([], starter=None, imported=folders)
    assert catalog.entries() == ()
    for damaged in ("{", "5", '[{"path": 1}]', '[{"path": "x", "kind": "y"}]'):
        file.write_text(damaged)
        assert read_folders(file) == ()


def test_folders_of_other_programs_are_found_where_they_usually_are(tmp_path, monkeypatch):
    for name in ("HF_HUB_CACHE", "HF_HOME", "XDG_DATA_HOME", "LOCALAPPDATA", "APPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.setenv("OLLAMA_MODELS", str(tmp_path / "big" / "ollama"))
    put(tmp_path / ".lmstudio" / "models" / "a" / "b" / "c.gguf")
    put(tmp_path / ".cache" / "huggingface" / "hub" / "models--a--b" / "refs" / "main")
    (tmp_path / "big" / "ollama" / "manifests").mkdir(parents=True)
    (tmp_path / "big" / "ollama" / "blobs").mkdir()
    kinds = {place.kind for place in known_places()}
    assert {FolderKind.HUB_CACHE, FolderKind.LM_STUDIO, FolderKind.OLLAMA} <= kinds


def test_a_thousand_files_are_listed_and_remembered(tmp_path):
    for i in range(1_000):
        (tmp_path / f"{i}.gguf").write_bytes(b"no model")
    catalog = Catalog([], starter=None, imported=[recognise(tmp_path)])
    assert len(catalog.entries()) == 1_000
    assert catalog.find("999") is not None
