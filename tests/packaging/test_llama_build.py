from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from first_start import llama_patches
from first_start.amx import NO_AMX, Amx, flags_for, probe
from first_start.command import Log
from first_start.llama_build import (
    SOURCES,
    Backend,
    WheelBuild,
    build_environment,
    describe_step,
    plan_build,
    with_patches,
    without_gpu,
)
from first_start.llama_patches import PatchError, apply_patches, patch_files, read_patch
from first_start.machine import (
    BuildMachine,
    Compiler,
    Family,
    find_compiler,
    find_nvcc,
    look,
    parse_compiler,
    parse_cpu_flags,
)

from tests.support.disks import remount, small_disk

GCC12 = Compiler("gcc", "g++", Family.GCC, 12, "gcc (Debian 12.2.0-14+deb12u1) 12.2.0")
GCC13 = replace(GCC12, major=13)
CLANG = Compiler("clang", "clang++", Family.CLANG, 14, "Debian clang version 14.0.6")
PC = BuildMachine("Linux", "x86_64", compiler=GCC12, cpu_flags=frozenset({"avx2", "fma"}))
XEON = replace(PC, cpu_flags=frozenset({"avx512f", "amx_tile", "amx_int8", "amx_bf16"}))
WITH_GPU = replace(PC, nvidia_gpus=("NVIDIA H200, 9.0",), nvcc="/opt/cuda/bin/nvcc")


def test_a_plain_machine_builds_for_the_cpu_with_the_defaults():
    plan = plan_build(PC, Amx.ABSENT)
    assert (plan.backend, plan.cmake_args, plan.compiler_flags, plan.note) == (Backend.CPU, (), (), "")
    assert str(plan) == "CPU with gcc 12"


def test_a_gpu_is_built_for_where_its_compiler_is_and_what_is_missing_is_said():
    plan = plan_build(WITH_GPU, Amx.ABSENT)
    assert plan.backend is Backend.CUDA
    assert "-DGGML_CUDA=on" in plan.cmake_args
    assert "-DCMAKE_CUDA_ARCHITECTURES=native" in plan.cmake_args
    assert "-DCMAKE_CUDA_COMPILER=/opt/cuda/bin/nvcc" in plan.cmake_args
    for gpu, driver, words in (
        ("RTX 4090, 8.9", 570, "Update the driver to 580"),
        ("GTX 1080, 6.1", 580, "Install a CUDA toolkit for this GPU"),
    ):
        plan = plan_build(replace(WITH_GPU, nvcc=None, nvidia_gpus=(gpu,), nvidia_driver=driver), Amx.ABSENT)
        assert plan.backend is Backend.CPU
        assert words in plan.note
        assert "nvcc" in plan.note
        assert "./slipstream setup" in plan.note
    plan = plan_build(replace(WITH_GPU, nvcc=None, nvidia_driver=580), Amx.ABSENT)
    assert (plan.backend, plan.fetches_cuda, plan.note) == (Backend.CUDA, True, "")
    assert not any("COMPILER" in argument for argument in plan.cmake_args)
    assert plan_build(replace(PC, nvcc="/usr/bin/nvcc"), Amx.ABSENT).backend is Backend.CPU
    plan = without_gpu(plan_build(replace(WITH_GPU, cpu_flags=XEON.cpu_flags), Amx.BROKEN))
    assert (plan.backend, plan.cmake_args, plan.compiler_flags) == (Backend.CPU, (), NO_AMX)
    assert "CUDA" in plan.note


@pytest.mark.parametrize(
    ("gpu", "version", "needed"),
    [
        ("RTX 5090, 12.0", "12.0", "12.8"),
        ("B200, 10.0", "12.6", "12.8"),
        ("RTX 5090, 12.0", "12.8", ""),
        ("RTX 4090, 8.9", "11.5", "11.8"),
        ("NVIDIA H100, 9.0", "11.5", "11.8"),
        ("NVIDIA H100, 9.0", "12.0", ""),
        ("RTX 3090, 8.6", "11.5", ""),
        ("RTX 2080, 7.5", "11.5", ""),
        ("NVIDIA GPU", "11.5", ""),
    ],
)
def test_a_compiler_too_old_for_the_gpu_does_not_hide_pips(gpu, version, needed):
    text = f"nvcc: NVIDIA (R) Cuda compiler driver\nCuda compilation tools, release {version}, V{version}.119"
    machine = replace(WITH_GPU, nvidia_gpus=(gpu,), nvcc="/usr/bin/nvcc", nvcc_version=text, nvidia_driver=580)
    plan, on_old_driver = (plan_build(each, Amx.ABSENT) for each in (machine, replace(machine, nvidia_driver=570)))
    if not needed:
        assert (plan.backend, plan.fetches_cuda, plan.note) == (Backend.CUDA, False, "")
        assert on_old_driver == plan
        return
    assert (plan.backend, plan.fetches_cuda) == (Backend.CUDA, True)
    assert plan.note == f"/usr/bin/nvcc is too old for {gpu}, which needs CUDA {needed}: CUDA 13.0 comes from pip."
    assert not any("COMPILER" in argument for argument in plan.cmake_args)
    assert on_old_driver.backend is Backend.CPU
    assert "Update the driver to 580" in on_old_driver.note
    assert needed in on_old_driver.note


def test_the_toolkits_own_folder_comes_before_a_distributions_compiler(tmp_path):
    for folder in ("usr/bin", "cuda/bin"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "nvcc").write_text("#!/bin/sh\n")
        (tmp_path / folder / "nvcc").chmod(0o755)
    found = find_nvcc({"PATH": str(tmp_path / "usr/bin"), "CUDA_HOME": str(tmp_path / "cuda")})
    assert found == str(tmp_path / "cuda/bin/nvcc")


def test_the_gpu_its_driver_and_compiler_are_found(tmp_path, monkeypatch):
    tool = tmp_path / "nvidia-smi"
    tool.write_text('#!/bin/sh\ncase "$1" in *driver*) echo 580.95.05;; *) echo "RTX 4090, 8.9";; esac\n')
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    nvcc = tmp_path / "my-nvcc"
    nvcc.write_text("#!/bin/sh\n")
    nvcc.chmod(0o755)
    found = look({"CUDACXX": str(nvcc)})
    assert (found.nvidia_gpus, found.nvidia_driver, found.nvcc) == (("RTX 4090, 8.9",), 580, str(nvcc))
    left_out = look({"CMAKE_ARGS": "-DGGML_NATIVE=on -DGGML_CUDA=OFF"})
    assert (left_out.nvidia_gpus, left_out.nvidia_driver, left_out.nvcc) == ((), 0, None)


def test_the_cxx_compiler_beside_the_one_that_cc_names_is_taken(tmp_path, monkeypatch):
    for name in ("clang-19", "clang++-19", "x86_64-linux-gnu-gcc-13", "x86_64-linux-gnu-g++-13", "cc", "c++", "icx"):
        (tmp_path / name).write_text("#!/bin/sh\necho 19.1.7\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    named = ("clang-19", f"{tmp_path}/clang-19", "x86_64-linux-gnu-gcc-13", "cc", "icx")
    found = [compiler.cxx for c in named if (compiler := find_compiler({"CC": c})) is not None]
    assert found == ["clang++-19", f"{tmp_path}/clang++-19", "x86_64-linux-gnu-g++-13", "c++", "icx"]
    chosen = find_compiler({"CC": "clang-19", "CXX": "icx"})
    assert chosen is not None
    assert (chosen.c, chosen.cxx) == ("clang-19", "icx")


@pytest.mark.parametrize(("architecture", "backend"), [("arm64", Backend.METAL), ("x86_64", Backend.CPU)])
def test_a_mac_builds_for_metal_where_its_chip_is_apples(architecture, backend):
    plan = plan_build(BuildMachine("Darwin", architecture, compiler=CLANG), Amx.ABSENT)
    assert plan.backend is backend
    assert plan.cmake_args == (f"-DGGML_METAL={'on' if backend is Backend.METAL else 'off'}",)


@pytest.mark.parametrize(
    ("amx", "compiler", "flags"),
    [
        (Amx.ABSENT, GCC12, ()),
        (Amx.WORKS, GCC12, ()),
        (Amx.BROKEN, GCC12, NO_AMX),
        (Amx.BROKEN, CLANG, NO_AMX),
        (Amx.UNKNOWN, GCC12, NO_AMX),
        (Amx.UNKNOWN, GCC13, ()),
        (Amx.UNKNOWN, CLANG, ()),
        # It knows neither the instructions nor the options to leave them out.
        (Amx.UNKNOWN, replace(GCC12, major=10), ()),
    ],
)
def test_amx_is_left_out_where_the_compiler_gets_it_wrong(amx, compiler, flags):
    assert flags_for(amx, compiler) == flags
    assert plan_build(replace(XEON, compiler=compiler), amx).compiler_flags == flags


def test_the_amx_probe_compiles_and_a_processor_without_amx_does_not_pass_it():
    assert probe(replace(GCC12, c="/nowhere/gcc")) is Amx.UNKNOWN
    compiler = find_compiler({})
    if compiler is None or (compiler.family is Family.GCC and compiler.major < 11) or "amx_tile" in _flags_here():
        pytest.skip("needs a compiler that knows AMX on a processor without it")
    assert probe(compiler) is Amx.BROKEN


def test_the_users_own_settings_come_last_and_flags_are_joined():
    plan = replace(plan_build(WITH_GPU, Amx.ABSENT), compiler_flags=NO_AMX)
    environment = build_environment(plan, {"CMAKE_ARGS": "-DGGML_CUDA=off '-DX=a b'", "CFLAGS": "-g", "HOME": "/h"})
    arguments = shlex.split(environment["CMAKE_ARGS"])
    assert arguments[-2:] == ["-DGGML_CUDA=off", "-DX=a b"]
    assert "-DCMAKE_C_FLAGS=-g -mno-amx-tile -mno-amx-int8 -mno-amx-bf16" in arguments
    assert "-DCMAKE_CXX_FLAGS=-mno-amx-tile -mno-amx-int8 -mno-amx-bf16" in arguments
    assert (environment["CC"], environment["CXX"], environment["HOME"]) == ("gcc", "g++", "/h")


def test_every_build_can_use_devices_of_other_machines_over_the_connection_that_was_proved():
    for machine in (PC, WITH_GPU, BuildMachine("Darwin", "arm64", compiler=CLANG)):
        arguments = shlex.split(build_environment(plan_build(machine, Amx.ABSENT), {})["CMAKE_ARGS"])
        assert {"-DGGML_RPC=on", "-DGGML_RPC_RDMA=off"} <= set(arguments)


PYTHON = Path("/home/ada b/.venv/bin/python")


def test_sources_are_changed_before_anything_else_is_said(monkeypatch):
    folder = Path("/home/ada b/it's here/llama_sources.cmake")
    monkeypatch.setattr("first_start.llama_build.SOURCES", folder)
    for others in ("", "-DGGML_CUDA=off '-DX=a b'"):
        arguments = shlex.split(with_patches({"CMAKE_ARGS": others}, PYTHON)["CMAKE_ARGS"])
        own = [f"-DCMAKE_PROJECT_llama_cpp_INCLUDE={folder}", f"-DSLIPSTREAM_PYTHON={PYTHON}"]
        assert arguments == [*own, *shlex.split(others)]
    assert with_patches({"HOME": "/h"}, PYTHON)["HOME"] == "/h"
    assert SOURCES.is_file()


def test_the_builds_steps_are_read_from_its_output():
    assert describe_step("  [12/345] Building CXX object ggml.o") == (12, 345)
    assert describe_step("-- The C compiler identification is GNU 12.2.0") is None


@pytest.mark.parametrize(
    ("version", "dumped", "family", "major"),
    [
        ("gcc (Debian 12.2.0-14+deb12u1) 12.2.0\nCopyright (C) 2022", "12\n", Family.GCC, 12),
        ("gcc (GCC) 14.2.1 20240912 (Red Hat 14.2.1-3)\n", "14\n", Family.GCC, 14),
        ("Debian clang version 14.0.6\nTarget: x86_64-pc-linux-gnu", "14.0.6\n", Family.CLANG, 14),
        ("Apple clang version 15.0.0 (clang-1500.3.9.4)\n", "15.0.0\n", Family.CLANG, 15),
    ],
)
def test_compilers_are_told_apart(version, dumped, family, major):
    assert parse_compiler("cc", "c++", "", "") is None
    found = parse_compiler("cc", "c++", version, dumped)
    assert (found.family, found.major, found.version) == (family, major, version.splitlines()[0])


def test_processor_flags_are_read_and_only_instructions_count():
    assert parse_cpu_flags("processor : 0\nflags\t\t: fpu avx2 amx_tile\nbugs : x\n") == {"fpu", "avx2", "amx_tile"}
    assert parse_cpu_flags("Features\t: fp asimd sve\n") == {"fp", "asimd", "sve"}
    assert parse_cpu_flags("nothing") == frozenset()
    flags = frozenset({"avx2", "amx_int8", "constant_tsc", "ibrs", "hypervisor", "sse4_2"})
    assert replace(PC, cpu_flags=flags).instructions == ("amx_int8", "avx2", "sse4_2")


def _flags_here() -> frozenset[str]:
    try:
        with open("/proc/cpuinfo") as file:
            return parse_cpu_flags(file.read())
    except OSError:
        return frozenset()


TWO_FILES = """Say what it is for

Gain: none

--- a/one.c
+++ b/one.c
@@ -2,3 +2,4 @@
 b
-c
+C
+C
 d
--- a/deep/two.c
+++ b/deep/two.c
@@ -1,2 +1,2 @@
-x
+X
 y
"""
SECOND = """Change it again

--- a/one.c
+++ b/one.c
@@ -4,2 +4,2 @@
 C
-d
+D
"""


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    patches = tmp_path / "patches"
    patches.mkdir()
    (patches / "0001-first.patch").write_text(TWO_FILES)
    (patches / "0002-second.patch").write_text(SECOND)
    (patches / "own.h").write_text("// added\n")
    monkeypatch.setattr(llama_patches, "PATCHES", patches)
    folder = tmp_path / "llama.cpp"
    (folder / "deep").mkdir(parents=True)
    (folder / "ggml" / "src" / "ggml-cpu").mkdir(parents=True)
    (folder / "one.c").write_text("a\nb\nc\nd\n\f\ne\n")
    (folder / "deep" / "two.c").write_text("x\ny\n")
    return folder


def test_patches_are_applied_in_order_and_once(sources: Path) -> None:
    assert apply_patches(sources)
    expected = "a\nb\nC\nC\nD\n\f\ne\n"
    assert (sources / "one.c").read_text() == expected
    assert (sources / "deep" / "two.c").read_text() == "X\ny\n"
    assert (sources / "ggml" / "src" / "ggml-cpu" / "own.h").read_text() == "// added\n"
    assert not apply_patches(sources)
    assert (sources / "one.c").read_text() == expected


def test_lines_that_have_moved_are_found(sources: Path) -> None:
    (sources / "one.c").write_text("new\nnew\na\nb\nc\nd\n")
    apply_patches(sources)
    assert (sources / "one.c").read_text() == "new\nnew\na\nb\nC\nC\nD\n"


def test_a_hunk_has_the_lines_that_its_head_counts() -> None:
    with pytest.raises(PatchError, match=r"@@ -2,3 \+2,3 @@"):
        list(read_patch(TWO_FILES.replace("+2,4", "+2,3")))


@pytest.mark.parametrize("content", ["a\nb\nother\nd\n", "", None])
def test_where_one_file_is_another_nothing_is_changed(sources: Path, content: str | None) -> None:
    two = sources / "deep" / "two.c"
    if content is None:
        two.unlink()
    else:
        two.write_text(content)
    with pytest.raises(PatchError, match=r"two\.c"):
        apply_patches(sources)
    assert (sources / "one.c").read_text() == "a\nb\nc\nd\n\f\ne\n"
    assert not list((sources / "ggml" / "src" / "ggml-cpu").iterdir())
    program = str(Path(llama_patches.__file__))
    said = subprocess.run([sys.executable, program, str(sources)], capture_output=True, text=True, check=False)
    assert said.returncode == 1
    assert said.stdout.startswith("llama.cpp's sources stay as they are: ")


def test_each_patch_says_why_what_it_gains_where_it_was_tried_and_how_to_drop_it() -> None:
    files = patch_files()
    assert len(files) == 12
    for file in files:
        text = file.read_text()
        message = text.partition("\n--- a/")[0]
        assert all(f"\n{word}:" in message for word in ("Gain", "Where", "Tried", "Drop")), file.name
        assert all(hunks for _, hunks in read_patch(text)), file.name
        added = text.count("\n+") - text.count("\n+++ ")
        removed = text.count("\n-") - text.count("\n--- ")
        parts = [hunk for _, hunks in read_patch(text) for hunk in hunks]
        assert sum(len(hunk.new) - len(hunk.old) for hunk in parts) == added - removed, file.name


@pytest.mark.parametrize(("size", "rule"), [(2 << 30, "noexec"), (1 << 20, "exec")])
def test_a_build_finds_a_place_where_the_temporary_folder_is_small_or_lets_no_program_start(
    tmp_path, monkeypatch, size, rule
):
    program = "import os, pathlib, subprocess, tempfile\nmade = pathlib.Path(tempfile.gettempdir(), 'cmake')\n"
    program += "made.write_text('#!/bin/sh\\n')\nmade.chmod(0o755)\nsubprocess.run([made], check=True)\n"
    program += "made.write_bytes(bytes(2_000_000))\nassert 'PIP_NO_BUILD_ISOLATION' not in os.environ\n"
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\ntouch '{tmp_path}/wheels/built.whl'\nexec '{sys.executable}' '{tmp_path}/pip.py'\n")
    python.chmod(0o755)
    (tmp_path / "pip.py").write_text(program)
    build = WheelBuild(python, "1.0", tmp_path / "constraints.txt", plan_build(PC, Amx.ABSENT))
    with small_disk(tmp_path / "disk", size) as disk, Log(tmp_path / "log") as log:
        remount(disk, rule)
        monkeypatch.setattr(tempfile, "tempdir", str(disk))
        environment = {**os.environ, "TMPDIR": str(disk), "PIP_NO_BUILD_ISOLATION": "1"}
        assert build.run(tmp_path / "wheels", environment, log, lambda *_: None) == tmp_path / "wheels" / "built.whl"
    assert os.listdir(tmp_path / "wheels") == ["built.whl"]
