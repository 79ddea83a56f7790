"""What headers said is kept for other processes, and never believed of another file or from another version."""

from __future__ import annotations

import ast
import json
import os
import shutil
from pathlib import Path

import pytest

from models.catalog import catalog as catalog_module
from models.catalog.catalog import Catalog
from models.facts import facts_cache as facts_file
from models.facts import model_facts
from models.facts.facts_cache import SOURCES, FactsFile
from models.facts.model_facts import read_model
from tools.model_factory import head_factory
from tools.model_factory.gguf_factory import EMBER, EMBER_DRAFT, Recipe, cached


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three models, one of them broken."""
    folder = tmp_path / "models"
    folder.mkdir()
    shutil.copyfile(EMBER, folder / "a.gguf")
    shutil.copyfile(EMBER_DRAFT, folder / "b \udce9.gguf")
    (folder / "broken.gguf").write_bytes(b"GGUF")
    return folder


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "headers.json"


@pytest.fixture
def kept(file: Path) -> FactsFile:
    return FactsFile(file)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files whose headers were read."""
    seen: list[str] = []

    def spy(path: Path) -> model_facts.ModelFacts:
        seen.append(path.name)
        return read_model(path)

    monkeypatch.setattr(catalog_module, "read_model", spy)
    return seen


def look(folder: Path, kept: FactsFile) -> dict[str, catalog_module.ModelEntry]:
    """What the next process finds."""
    return {entry.name: entry for entry in Catalog([folder], starter=None, kept=kept).entries()}


def test_facts_come_back_as_they_were(kept: FactsFile) -> None:
    paths = (EMBER, cached(Recipe(4, n_experts=4, n_experts_used=2)), head_factory.cached_mtp_counter())
    known = {((str(path), 1, 2),): read_model(path) for path in paths}
    kept.write(known)
    assert kept.read() == known


def test_the_next_process_reads_no_header_again(folder: Path, kept: FactsFile, reads: list[str]) -> None:
    first = look(folder, kept)
    assert sorted(reads) == ["a.gguf", "b \udce9.gguf", "broken.gguf"]
    reads.clear()
    assert look(folder, kept) == first
    assert reads == ["broken.gguf"], "why it is broken is asked of the file"


def test_a_file_that_has_changed_is_read_again_and_one_that_is_gone_forgotten(
    folder: Path, kept: FactsFile, reads: list[str]
) -> None:
    look(folder, kept)
    reads.clear()
    shutil.copyfile(EMBER_DRAFT, folder / "a.gguf")
    (folder / "broken.gguf").unlink()
    (folder / "b \udce9.gguf").unlink()
    found = look(folder, kept)
    assert (reads, found["a"].header.n_params) == (["a.gguf"], read_model(EMBER_DRAFT).n_params)
    assert [files for ((files, _, _),) in kept.read()] == [str(folder / "a.gguf")]


@pytest.mark.parametrize("harm", ["other version", "cut", "other shape", "nested"])
def test_what_cannot_be_believed_is_read_from_the_models(
    folder: Path, kept: FactsFile, file: Path, reads: list[str], harm: str
) -> None:
    first = look(folder, kept)
    reads.clear()
    text = file.read_text()
    content = json.loads(text)
    content["models"][0][1]["n_layers"] = "six"
    file.write_text(
        {
            "other version": text.replace(facts_file.made_by(), "of old"),
            "cut": text[: len(text) // 2],
            "other shape": json.dumps(content),
            "nested": "[" * 100_000,
        }[harm]
    )
    assert look(folder, kept) == first
    assert {"a.gguf", "b \udce9.gguf"} <= set(reads)
    reads.clear()
    assert look(folder, kept) == first
    assert reads == ["broken.gguf"]


def test_it_is_written_only_when_something_is_new(folder: Path, kept: FactsFile, file: Path) -> None:
    catalog = Catalog([folder], starter=None, kept=kept)
    catalog.entries()
    os.utime(file, ns=(1, 1))
    catalog.entries()
    look(folder, kept)
    assert file.stat().st_mtime_ns == 1
    # Where it cannot be kept the models are listed all the same.
    assert "a" in look(folder, FactsFile(file / "headers.json"))


def test_its_version_covers_all_the_code_that_works_facts_out() -> None:
    folder = Path(facts_file.__file__).parents[1]
    seen: set[str] = set()
    pending = ["facts/facts_cache.py"]
    while pending:
        name = pending.pop()
        seen.add(name)
        for node in ast.walk(ast.parse((folder / name).read_text())):
            if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("models"):
                continue
            inside = [node.module, *(f"{node.module}.{one.name}" for one in node.names)]
            files = [f"{one.removeprefix('models.').replace('.', '/')}.py" for one in inside if one and "." in one]
            pending += [file for file in files if file not in seen and (folder / file).exists()]
    assert seen == set(SOURCES)
