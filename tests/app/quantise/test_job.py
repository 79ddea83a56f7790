"""Quantising a real model in a process of its own: what comes out, and what is left when it does not."""

from __future__ import annotations

import shutil
import threading
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from app.jobs.quantise.job import QuantiseJob
from app.jobs.quantise.worker import BrokenResult, check_result
from models.catalog.catalog import Catalog
from models.facts.model_facts import read_model
from models.files.errors import DiskFull, FolderRefused, NoSpace
from models.files.provenance import is_verified, read_record
from models.gguf.header import read_header
from models.quantise.plan import TARGETS, QuantiseCancelled, QuantiseFailed, QuantisePlan, QuantiseRefused, make_plan
from models.quantise.progress import QuantisePhase, QuantiseProgress
from tests.support.disks import remount, small_disk
from tests.support.quantised import ember_f16, split_ember
from tools.model_factory.gguf_factory import EMBER, EMBER_DRAFT, Recipe, cached

pytestmark = pytest.mark.usefixtures("forked_children")


def plan(folder: Path, type_name: str = "Q4_0", source: Path | None = None, **options) -> QuantisePlan:
    return make_plan(read_model(source or ember_f16()), name="ember-f16", type_name=type_name, folder=folder, **options)


def files_of(folder: Path) -> list[str]:
    """Everything below the folder but locks."""
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file() and p.suffix != ".lock")


def models_of(folder: Path) -> list[str]:
    return [entry.name for entry in Catalog([folder], starter=None).entries()]


def test_the_result_is_a_model_like_any_other(tmp_path):
    seen: list[QuantiseProgress] = []
    done = QuantiseJob(plan(tmp_path), tmp_path, n_threads=1).run(seen.append)
    facts = read_model(done.path)
    assert (facts.quantisation, facts.problem, facts.n_params) == ("Q4_0", None, read_model(ember_f16()).n_params)
    assert done.n_bytes == done.path.stat().st_size < 0.4 * ember_f16().stat().st_size
    assert models_of(tmp_path) == [done.name] == ["ember-Q4_0"]
    assert files_of(tmp_path) == [".verified/quantised/ember-Q4_0.gguf.json", "quantised/ember-Q4_0.gguf"]
    assert is_verified(tmp_path, done.path)
    record = read_record(tmp_path, done.path)
    assert record is not None
    assert record.made_from == "ember-f16 (F16)"
    assert list(dict.fromkeys(progress.phase for progress in seen)) == [
        QuantisePhase.SIZING,
        QuantisePhase.QUANTISING,
        QuantisePhase.VERIFYING,
        QuantisePhase.DONE,
    ]
    n_done = [progress.n_done for progress in seen]
    assert n_done == sorted(n_done)
    assert n_done[-1] == seen[-1].n_total == read_model(ember_f16()).weight_bytes
    assert any(progress.eta is not None for progress in seen)


def test_tensors_get_the_types_that_makers_give_them(tmp_path):
    done = QuantiseJob(plan(tmp_path, "Q8_0"), tmp_path).run()
    ours, theirs = read_header(done.path), read_header(EMBER)
    assert {(t.name, t.type.name) for t in ours.tensors} == {(t.name, t.type.name) for t in theirs.tensors}


@pytest.mark.parametrize("target", TARGETS[2::3], ids=lambda target: target.name)
def test_types_of_every_size_that_are_offered_can_be_made(target, tmp_path):
    # The small model has, as Ember, rows that blocks of 256 fit into and rows that they do not.
    small = cached(Recipe(tensor_type="F16", source=EMBER_DRAFT))
    done = QuantiseJob(plan(tmp_path, target.name, small), tmp_path).run()
    assert read_model(done.path).quantisation == target.name


def test_experts_are_quantised_too(tmp_path):
    source = cached(Recipe(tensor_type="F16", n_experts=4, n_experts_used=2))
    done = QuantiseJob(plan(tmp_path, source=source), tmp_path).run()
    facts = read_model(done.path)
    assert (facts.n_experts, facts.quantisation) == (4, "Q4_0")
    assert done.n_bytes < 0.4 * source.stat().st_size


def test_a_model_in_parts_becomes_one_file(tmp_path):
    parts = split_ember(tmp_path)
    done = QuantiseJob(plan(tmp_path / "models", source=parts[0]), tmp_path / "models").run()
    assert read_model(done.path).n_params == read_model(ember_f16()).n_params
    assert read_header(done.path).integer("split.count") is None


@pytest.mark.parametrize("type_name", ["Q4_K_S", "Q3_K_L"])
def test_a_type_that_would_save_nothing_is_refused_before_it_is_written(tmp_path, type_name):
    """Ember's rows hold no blocks of 256: as Q4_K_S most of a Q4_1 would grow, as Q3_K_L as much as shrinks."""
    small = QuantiseJob(plan(tmp_path, "Q4_1"), tmp_path).run()
    again = plan(tmp_path, type_name, small.path, may_requantise=True)
    with pytest.raises(QuantiseRefused, match="less than 5 % smaller than the Q4_1"):
        QuantiseJob(again, tmp_path).run()
    assert models_of(tmp_path) == ["ember-Q4_1"]
    done = QuantiseJob(plan(tmp_path, "Q4_K_M"), tmp_path).run()
    assert 0 < done.n_fallback < done.n_tensors
    assert done.notice is not None, "rows that the type cannot hold are told"


@pytest.mark.parametrize("moment", [QuantisePhase.SIZING, QuantisePhase.QUANTISING, QuantisePhase.VERIFYING])
def test_cancelling_leaves_nothing(tmp_path, moment):
    job = QuantiseJob(plan(tmp_path), tmp_path)
    with pytest.raises(QuantiseCancelled):
        job.run(lambda progress: job.cancel() if progress.phase is moment else None)
    with pytest.raises(QuantiseCancelled):
        job.run()
    assert files_of(tmp_path) == []
    assert QuantiseJob(plan(tmp_path), tmp_path).run().name == "ember-Q4_0"


def test_a_process_that_dies_is_reported_and_leaves_nothing(tmp_path):
    job = QuantiseJob(plan(tmp_path), tmp_path)

    def kill(progress: QuantiseProgress) -> None:
        if progress.phase is QuantisePhase.QUANTISING:
            for child in psutil.Process().children():
                with suppress(psutil.ZombieProcess):
                    if "app.jobs.quantise.worker" in child.cmdline():
                        child.kill()

    with pytest.raises(QuantiseFailed, match="could not be quantised to Q4_0"):
        job.run(kill)
    assert files_of(tmp_path) == []


def test_too_little_space_is_said_before_the_first_byte(tmp_path):
    n_disk = shutil.disk_usage(tmp_path).total  # what is free, others change meanwhile
    with pytest.raises(NoSpace, match="are missing") as caught:
        QuantiseJob(plan(tmp_path), tmp_path, reserve_bytes=n_disk).run()
    assert caught.value.args[0].facts["reserve"] == n_disk
    assert files_of(tmp_path) == []


def test_a_disk_that_fills_up_in_the_middle(tmp_path):
    with small_disk(tmp_path / "disk", 8 << 20) as disk:
        other = disk / "other"
        other.write_bytes(bytes(5 << 20))
        with pytest.raises(DiskFull, match="is full"):
            QuantiseJob(plan(disk), disk, reserve_bytes=-(5 << 20)).run()  # as if others had written there since
        assert files_of(disk) == ["other"]
        other.unlink()
        assert QuantiseJob(plan(disk), disk, reserve_bytes=0).run().name == "ember-Q4_0"


def test_a_folder_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / ".partial").write_text("in the way")
    with pytest.raises(FolderRefused):
        QuantiseJob(plan(tmp_path), tmp_path).run()
    with small_disk(tmp_path / "disk", 1 << 20) as disk:
        remount(disk, "ro")
        with pytest.raises(FolderRefused, match="Read-only file system"):
            QuantiseJob(plan(disk), disk).run()


def test_what_a_killed_run_left_is_neither_listed_nor_in_the_way(tmp_path):
    left = tmp_path / ".partial" / "quantised" / "ember-Q4_0.gguf"
    left.parent.mkdir(parents=True)
    left.write_bytes(ember_f16().read_bytes()[:1_000_000])
    assert models_of(tmp_path) == []
    QuantiseJob(plan(tmp_path), tmp_path).run()
    assert not left.exists()
    assert models_of(tmp_path) == ["ember-Q4_0"]


def test_two_at_once_make_it_once(tmp_path):
    outcomes: list[object] = []
    first_writes, second_waits = threading.Event(), threading.Event()

    def second(progress: QuantiseProgress) -> None:
        if progress.phase is QuantisePhase.WAITING:
            second_waits.set()

    def run_second() -> None:
        first_writes.wait()
        try:
            outcomes.append(QuantiseJob(both, tmp_path).run(second))
        except QuantiseRefused as refusal:
            outcomes.append(refusal)

    def first(progress: QuantiseProgress) -> None:
        if progress.phase is QuantisePhase.QUANTISING:
            first_writes.set()
            second_waits.wait(60)

    both = plan(tmp_path)
    thread = threading.Thread(target=run_second)
    thread.start()
    QuantiseJob(both, tmp_path).run(first)
    thread.join()
    assert "already" in str(outcomes[0])


@pytest.mark.parametrize("harm", ["gone", "damaged"])
def test_a_source_that_vanishes_or_has_damaged_weights_does_not_become_a_model(tmp_path, harm):
    source = tmp_path / "bad-f16.gguf"
    shutil.copyfile(ember_f16(), source)
    job = QuantiseJob(plan(tmp_path / "models", source=source), tmp_path / "models")
    if harm == "gone":
        source.unlink()
    else:
        with open(source, "r+b") as file:
            file.seek(read_header(source).data_offset)
            file.write(b"\xff" * 3_000_000)
    with pytest.raises(QuantiseFailed):
        job.run()
    assert files_of(tmp_path / "models") == []


def test_a_result_that_does_not_load_is_seen(tmp_path):
    path = tmp_path / "broken.gguf"
    shutil.copyfile(ember_f16(), path)
    with open(path, "r+b") as file:
        file.seek(read_header(path).data_offset)
        file.write(b"\x00\x7e" * 2_000_000)
    with pytest.raises(BrokenResult, match="no numbers"):
        check_result(path, 1)
