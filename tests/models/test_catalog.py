"""The catalogue lists what is there, tells what is wrong with the rest, and knows a model again wherever it lies."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from models.catalog import catalog as catalog_module
from models.catalog.catalog import Catalog
from models.files.integrity import identity
from tests.support.broken_gguf import header, number
from tools.model_factory.gguf_factory import EMBER, EMBER_DRAFT


@pytest.fixture
def copy(tmp_path):
    """Puts the small draft model under a name below the folder, which is made."""

    def put(name: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(EMBER_DRAFT, path)
        return path

    return put


@pytest.fixture
def reads(monkeypatch):
    """The paths that were really read."""
    seen: list[Path] = []
    read_model = catalog_module.read_model

    def spy(path: Path):
        seen.append(path)
        return read_model(path)

    monkeypatch.setattr(catalog_module, "read_model", spy)
    return seen


def names(catalog: Catalog) -> list[str]:
    return [entry.name for entry in catalog.entries()]


def test_a_name_that_is_not_utf8_is_text_all_the_same(copy, tmp_path):
    files = [copy(os.fsdecode(name)) for name in (b"m\xff.gguf", b"a\xe9/m.gguf", b"m.gguf", b"m%FF.gguf")]
    catalog = Catalog([tmp_path], starter=None)
    found = {entry.name: entry for entry in catalog.entries()}
    assert {name: entry.path.name for name, entry in found.items()} == {
        "m": "m.gguf",
        "m%FF": "m%FF.gguf",
        f"{tmp_path.name}/m%FF": "m\udcff.gguf",
        "a%E9/m": "m.gguf",
    }
    for entry in found.values():
        assert catalog.find(entry.name) == entry
    assert [catalog.find(str(file)).path for file in files] == files


def test_the_bundled_pair_comes_last(copy, tmp_path):
    copy("a-model.gguf")
    entries = Catalog([tmp_path]).entries()
    assert [entry.name for entry in entries] == ["a-model", "ember-q8_0", "ember-draft-q8_0"]
    assert [entry.is_toy for entry in entries] == [False, True, True]
    ember = entries[1]
    header = ember.header
    assert (ember.title, header.architecture, header.quantisation, header.licence) == ("Ember", "llama", "Q8_0", "MIT")
    assert (header.n_params, ember.n_bytes, header.n_ctx_train) == (11_309_952, EMBER.stat().st_size, 1024)
    assert ember.problem is None
    assert ember.facts is not None
    assert names(Catalog([EMBER.parent, EMBER.parent])) == ["ember-q8_0", "ember-draft-q8_0"]


@pytest.mark.parametrize("name", ["ember-q8_0", "EMBER-Q8_0", "ember-q8_0.gguf", "ember", "Ember", str(EMBER)])
def test_find_takes_name_title_and_path(name):
    found = Catalog([]).find(name)
    assert found is not None
    assert found.path == EMBER


@pytest.mark.parametrize("name", ["", "llama", "ember-q4_0", "/nowhere/x.gguf", "models", "\0", "a" * 5000 + ".gguf"])
def test_find_knows_what_is_not_there(name):
    assert Catalog([]).find(name) is None


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("fox-Q8_0:latest", "fox-Q8_0"), ("fox-GGUF:Q8_0", "fox-Q8_0"), ("FOX-gguf:q4_k_m", "fox-Q4_K_M"),
        ("bear-GGUF", "bear-Q8_0"), ("bear-GGUF:latest", "bear-Q8_0"), ("fox-GGUF", None), ("fox-GGUF:Q5_K_M", None),
        ("acme", None), ("fox:7b", None), ("hf.co/ACME/fox-GGUF:Q8_0", "fox-Q8_0"), ("acme/bear-GGUF", "bear-Q8_0"),
        ("other/fox-GGUF:Q8_0", None),
    ],
)  # fmt: skip
def test_find_takes_tags_as_ollamas_names_have(copy, tmp_path, name, found):
    for file in ("fox-GGUF/fox-Q8_0", "fox-GGUF/Q4_K_M/fox-Q4_K_M", "bear-GGUF/bear-Q8_0"):
        copy(f"acme/{file}.gguf")
    entry = Catalog([tmp_path], starter=None).find(name)
    assert (entry.name if entry is not None else None) == found


def test_one_repository_of_two_makers_is_told_apart(copy, tmp_path):
    paths = [copy(f"{maker}/fox-GGUF/fox-Q8_0.gguf") for maker in ("acme", "other")]
    catalog = Catalog([tmp_path], starter=None)
    assert catalog.find("fox-GGUF:Q8_0") is None, "it could be either"
    assert [catalog.find(f"{maker}/fox-GGUF:Q8_0").path for maker in ("acme", "other")] == paths
    assert [entry.path for entry in catalog.entries()] == [catalog.find(entry.name).path for entry in catalog.entries()]
    assert catalog.find(str(paths[0])).path == paths[0]
    assert catalog.find(str(paths[0]), takes_paths=False) is None


def test_find_takes_a_path_outside_the_folders_and_a_title_that_one_model_has(copy, tmp_path):
    path = copy("one.gguf")
    found = Catalog([]).find(str(path))
    assert found is not None
    assert (found.name, found.path, found.problem, found.is_toy) == ("one", path, None, False)
    catalog = Catalog([tmp_path], starter=None)
    assert catalog.find("ember draft") is not None
    copy("two.gguf")
    assert catalog.find("ember draft") is None


def test_equal_names_are_told_apart_by_folder(copy, tmp_path):
    for name in ("a/model.gguf", "b/model.gguf", "b/c/a/model.gguf", "d/Model.gguf"):
        copy(name)
    found = names(Catalog([tmp_path], starter=None))
    assert found == ["model", "b/model", "a/model", "d/Model"]
    copy("e/b/model.gguf")
    found = names(Catalog([tmp_path], starter=None))
    assert found[-1] == "e/b/model"
    assert len({name.casefold() for name in found}) == 5


def test_broken_files_are_listed_with_their_problem(copy, tmp_path):
    copy("good.gguf")
    (tmp_path / "bad.gguf").write_text("no model")
    (tmp_path / "empty.gguf").touch()
    (tmp_path / "partial.gguf.part").write_bytes(b"GGUF")
    bad, empty, good = Catalog([tmp_path], starter=None).entries()
    assert (bad.name, bad.n_bytes, bad.facts) == ("bad", 8, None)
    assert "is not a GGUF model" in (bad.problem or "")
    assert "is empty" in (empty.problem or "")
    assert good.problem is None


def test_a_file_is_read_again_only_when_it_changes(copy, tmp_path, reads):
    path = copy("model.gguf")
    catalog = Catalog([tmp_path], starter=None)
    catalog.entries()
    catalog.entries()
    assert reads == [path]
    path.write_bytes(b"")
    assert "is empty" in (catalog.entries()[0].problem or "")
    assert len(reads) == 2
    path.unlink()
    assert catalog.entries() == ()
    copy("model.gguf")
    assert catalog.entries()[0].problem is None


def test_a_name_that_is_known_is_found_without_a_scan(copy, tmp_path, monkeypatch):
    path, other = copy("model.gguf"), copy("other.gguf")
    link = tmp_path / "newest.gguf"
    link.symlink_to(path)
    catalog = Catalog([tmp_path], starter=None)
    catalog.entries()
    scans: list[object] = []
    scandir = os.scandir
    monkeypatch.setattr(os, "scandir", lambda folder: scans.append(folder) or scandir(folder))
    assert catalog.find("model") is catalog.find("newest") is not None
    assert scans == []
    link.unlink()
    link.symlink_to(other)
    found = catalog.find("newest")
    assert found is not None
    assert found.path.resolve() == other, "the link leads to another one since"
    assert len(scans) == 1
    path.unlink()
    assert catalog.find("model") is None
    assert len(scans) == 2


def test_folders_are_searched_below_but_not_hidden_or_too_deep(copy, tmp_path):
    copy("a/b/c/deep.gguf")
    copy(".hidden/x.gguf")
    copy("/".join("123456789") + "/far.gguf")
    copy("LOUD.GGUF")
    copy("model.gguf/inner.gguf")
    assert sorted(names(Catalog([tmp_path], starter=None))) == ["LOUD", "deep", "inner"]
    catalog = Catalog([tmp_path / "nothing"], starter=None)
    assert (catalog.entries(), catalog.folder_problems) == ((), ())
    catalog = Catalog([tmp_path / "LOUD.GGUF"], starter=None)
    assert catalog.entries() == ()
    assert "cannot be read" in catalog.folder_problems[0].sentence


def test_links_in_a_circle_end(copy, tmp_path):
    copy("a/model.gguf")
    (tmp_path / "a" / "up").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "again").symlink_to(tmp_path / "a", target_is_directory=True)
    (tmp_path / "same.gguf").symlink_to(tmp_path / "a" / "model.gguf")
    (tmp_path / "self.gguf").symlink_to(tmp_path / "self.gguf")
    (tmp_path / "gone.gguf").symlink_to(tmp_path / "nowhere.gguf")
    catalog = Catalog([tmp_path], starter=None)
    assert len(catalog.entries()) == 1
    assert catalog.folder_problems == ()


def test_a_folder_that_cannot_be_read_is_told(copy, tmp_path, monkeypatch):
    copy("closed/model.gguf")
    copy("open/model.gguf")
    scandir = os.scandir

    def refuse(folder):
        # Those who remove folders look into them by their number.
        if not isinstance(folder, int) and Path(folder).name == "closed":
            raise PermissionError(13, "Permission denied", str(folder))
        return scandir(folder)

    monkeypatch.setattr(os, "scandir", refuse)
    catalog = Catalog([tmp_path], starter=None)
    assert names(catalog) == ["model"]
    (problem,) = catalog.folder_problems
    assert problem.folder == tmp_path / "closed"
    assert "Permission denied" in problem.sentence


def test_too_many_folders_are_told(tmp_path, monkeypatch):
    monkeypatch.setattr(catalog_module, "MAX_FOLDERS", 3)
    for i in range(6):
        (tmp_path / str(i)).mkdir()
    catalog = Catalog([tmp_path], starter=None)
    catalog.entries()
    assert ["more than 3 folders" in problem.sentence for problem in catalog.folder_problems] == [True]


@pytest.mark.parametrize("place", ["/proc", "/sys", "/dev"])
def test_what_the_system_shows_as_folders_is_not_looked_through(place, copy, tmp_path, monkeypatch):
    if not os.path.exists(place) or os.stat(place).st_dev == os.stat("/").st_dev:
        pytest.skip(f"needs a {place}")
    copy("model.gguf")
    (tmp_path / "link").symlink_to(place)
    monkeypatch.setattr(catalog_module, "MAX_FOLDERS", 3)
    catalog = Catalog([tmp_path], starter=None)
    assert (names(catalog), catalog.folder_problems) == (["model"], ())


@pytest.mark.skipif(not os.path.ismount("/dev/shm"), reason="needs a disk beside the one of temporary files")
def test_models_on_a_disk_that_tells_no_size_are_listed(copy, tmp_path, monkeypatch):
    # A network disk through FUSE may tell nothing of its blocks.
    monkeypatch.setattr(os, "statvfs", lambda _path: os.statvfs_result([0] * 10))
    with tempfile.TemporaryDirectory(dir="/dev/shm") as other:
        shutil.copyfile(EMBER_DRAFT, Path(other, "model.gguf"))
        (tmp_path / "link").symlink_to(other)
        assert names(Catalog([tmp_path], starter=None)) == ["model"]


def test_split_files_are_one_entry_with_the_size_of_all(tmp_path):
    for i in (1, 2):
        (tmp_path / f"big-0000{i}-of-00002.gguf").write_bytes(header((number("split.count", 2),)))
    catalog = Catalog([tmp_path], starter=None)
    (entry,) = catalog.entries()
    assert entry.name == "big"
    assert entry.n_bytes == sum(path.stat().st_size for path in tmp_path.iterdir())
    found = catalog.find(str(tmp_path / "big-00002-of-00002.gguf"))
    assert found == entry
    (tmp_path / "big-00001-of-00002.gguf").unlink()
    (entry,) = catalog.entries()
    assert "Part 1 of 2 is missing" in (entry.problem or "")


@pytest.mark.parametrize("name", ["mit leerzeichen", "模型", "модель-ё", "🦊", "a.b-c"])
def test_names_in_any_script(name, copy, tmp_path):
    copy(f"{name}.gguf")
    assert names(Catalog([tmp_path], starter=None)) == [name]
    assert Catalog([tmp_path], starter=None).find(name) is not None


def test_a_model_is_known_by_its_content_alone(tmp_path):
    copy = tmp_path / "新しい 名前.gguf"
    shutil.copyfile(EMBER_DRAFT, copy)
    assert identity([copy]) == identity([EMBER_DRAFT]) != identity([EMBER])
    (tmp_path / "a").write_bytes(b"")
    (tmp_path / "b").write_bytes(b"x")
    assert identity([tmp_path / "a"]) != identity([tmp_path / "b"])
    assert identity([EMBER, EMBER_DRAFT]) != identity([EMBER])
    with pytest.raises(OSError, match="No such file"):
        identity([EMBER, tmp_path / "none.gguf"])


@pytest.mark.parametrize("place", [0.0001, 0.2499, 0.4999, 0.7499, 0.9999])
def test_other_weights_make_another_model(tmp_path, place):
    content = bytearray(EMBER.read_bytes())
    content[int(len(content) * place)] ^= 255
    other = tmp_path / "other.gguf"
    other.write_bytes(content)
    assert identity([other]) != identity([EMBER])


def test_a_model_is_found_by_its_own_name_also_where_a_link_to_it_is_listed(tmp_path, copy):
    place = copy("model.gguf")
    (tmp_path / "latest.gguf").symlink_to(place)
    (tmp_path / "zuletzt.gguf").symlink_to(place)
    catalog = Catalog([tmp_path], starter=None)
    assert [entry.name for entry in catalog.entries()] == ["latest"]
    for name in ("latest", "model", "MODEL.gguf", "zuletzt"):
        found = catalog.find(name, takes_paths=False)
        assert found is not None, name
        assert found.path.resolve() == place, name
    assert catalog.find("mode", takes_paths=False) is None
