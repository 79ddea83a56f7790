from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from bootstrap import usable_folder
from first_start.amx import NO_AMX, Amx
from first_start.llama_build import SOURCES, plan_build, source_files
from first_start.machine import BuildMachine, Compiler, Family
from first_start.wheel_cache import WheelCache, build_key, cache_folder

from tests.support.ordinary_user import ordinary_user

GCC = Compiler("gcc", "g++", Family.GCC, 12, "gcc 12.2.0-14")
PC = BuildMachine("Linux", "x86_64", "glibc 2.36", frozenset({"avx2", "fma"}), compiler=GCC)
PLAN = plan_build(PC, Amx.ABSENT)
KEY = build_key("0.3.36", PLAN, PC, {})


@pytest.mark.parametrize(
    "other",
    [
        build_key("0.3.37", PLAN, PC, {}),
        build_key("0.3.36", replace(PLAN, compiler_flags=NO_AMX), PC, {}),
        build_key("0.3.36", replace(PLAN, cmake_args=("-DGGML_CUDA=on",)), PC, {}),
        build_key("0.3.36", replace(PLAN, compiler=replace(GCC, version="gcc 12.2.0-15")), PC, {}),
        build_key("0.3.36", PLAN, replace(PC, cpu_flags=frozenset({"avx2"})), {}),
        build_key("0.3.36", PLAN, replace(PC, libc="glibc 2.41"), {}),
        build_key("0.3.36", PLAN, PC, {"CMAKE_ARGS": "-DGGML_VULKAN=on"}),
        build_key("0.3.36", PLAN, PC, {"CXXFLAGS": "-O1"}),
    ],
)
def test_whatever_makes_another_wheel_makes_another_key(other):
    assert other != KEY


def test_other_changes_to_the_sources_make_another_wheel(tmp_path, monkeypatch):
    here = tmp_path / "first_start"
    files = source_files()
    assert {file.suffix for file in files} == {".cmake", ".py", ".patch", ".h"}
    for file in files:
        copy = here / file.relative_to(SOURCES.parent)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(file.read_bytes())
    monkeypatch.setattr("first_start.llama_build.SOURCES", here / SOURCES.name)
    assert build_key("0.3.36", PLAN, PC, {}) == KEY, "wherever they are written down"
    for copy in source_files():
        before = copy.read_bytes()
        copy.write_bytes(before + b"\n")
        assert build_key("0.3.36", PLAN, PC, {}) != KEY
        copy.write_bytes(before)


def test_what_does_not_change_the_wheel_keeps_the_key():
    more_flags = replace(PC, cpu_flags=PC.cpu_flags | {"constant_tsc", "ibrs"})
    assert build_key("0.3.36", PLAN, more_flags, {"HOME": "/elsewhere"}) == KEY
    # Without CUDA the GPU plays no part.
    assert build_key("0.3.36", PLAN, replace(PC, nvidia_gpus=("H200",)), {}) == KEY


def test_a_cuda_build_is_for_one_kind_of_gpu_and_toolkit():
    machine = replace(PC, nvidia_gpus=("H200, 9.0",), nvcc="/usr/bin/nvcc", nvcc_version="13.0")
    plan = plan_build(machine, Amx.ABSENT)
    keys = {
        build_key("0.3.36", plan, each, {})
        for each in (machine, replace(machine, nvidia_gpus=("RTX 3090, 8.6",)), replace(machine, nvcc_version="12.4"))
    }
    assert len(keys) == 3


def build_in(cache: WheelCache, key: str) -> Path:
    work = cache.work_folder(key)
    work.mkdir(parents=True)
    wheel = work / "llama_cpp_python-0.3.36-py3-none-linux_x86_64.whl"
    wheel.write_text(key)
    return cache.keep(key, wheel)


def test_a_build_is_found_again_under_its_key_until_it_is_forgotten(tmp_path):
    cache = WheelCache(tmp_path)
    assert cache.find("a") is None
    kept = build_in(cache, "a")
    assert cache.find("a") == kept
    assert kept.read_text() == "a"
    assert cache.find("b") is None
    cache = WheelCache(tmp_path)
    build_in(cache, "a")
    build_in(cache, "b")
    cache.forget("a")
    cache.forget("")
    assert cache.find("a") is None
    assert cache.find("b") is not None
    cache = WheelCache(tmp_path)
    cache.note_failure("a")
    assert cache.has_failed("a")
    build_in(cache, "a")
    assert not cache.has_failed("a")


def test_the_oldest_builds_and_abandoned_ones_go(tmp_path):
    cache = WheelCache(tmp_path)
    for age, key in enumerate("abcdefgh"):
        build_in(cache, key)
        os.utime(tmp_path / key, (1e9 - age, 1e9 - age))
    abandoned, running = cache.work_folder("old"), tmp_path / ".building-new-1"
    for folder in (abandoned, running):
        folder.mkdir()
    os.utime(abandoned, (1e9, 1e9))
    build_in(cache, "new")
    assert [key for key in "abcdefgh" if cache.find(key)] == list("abcde")
    assert not abandoned.exists()
    assert running.exists()


def test_the_cache_lies_where_caches_lie():
    home = Path.home()
    assert cache_folder({}, "linux") == home / ".cache/slipstream/wheels"
    assert cache_folder({"XDG_CACHE_HOME": "/c"}, "linux") == Path("/c/slipstream/wheels")
    assert cache_folder({"XDG_CACHE_HOME": "c"}, "linux") == home / ".cache/slipstream/wheels"
    assert cache_folder({}, "darwin") == home / "Library/Caches/slipstream/wheels"
    assert cache_folder({"SLIPSTREAM_HOME": "/s"}, "linux") == Path("/s/cache/wheels")
    assert cache_folder({"SLIPSTREAM_CACHE": "/k", "SLIPSTREAM_HOME": "/s"}, "linux") == Path("/k/wheels")


@pytest.mark.parametrize("platform", ["linux", "darwin"])
def test_builds_of_a_user_without_a_home_are_kept_in_the_project(platform, monkeypatch):
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # as where the system does not know the user
    folder = cache_folder({}, platform)
    assert (folder.is_absolute(), "~" in folder.parts) == (True, False)
    with ordinary_user() as project:
        assert usable_folder(folder, project) == project / ".cache" / "wheels"
