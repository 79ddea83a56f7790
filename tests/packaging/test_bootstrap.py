from __future__ import annotations

import re
import shutil
import tarfile
from dataclasses import dataclass, field, replace
from pathlib import Path

import bootstrap
import pytest
from bootstrap import SetupRequest, describe_pip, main, parse_wish, usable_folder
from first_start import cuda_toolkit, qt_libraries, stamp
from first_start.advice import advise_on_refusal
from first_start.command import pip_environment
from first_start.errors import CommandFailed, PackagesMissing
from first_start.llama_build import Backend
from first_start.machine import BuildMachine, Compiler, Family
from first_start.qt_libraries import parse_missing
from first_start.venv_folder import VenvFolder

from tests.support.ordinary_user import ordinary_user

ROOT = Path(__file__).resolve().parents[2]

PC = BuildMachine("Linux", "x86_64", compiler=Compiler("gcc", "g++", Family.GCC, 12, "gcc 12"))
NEW_DRIVER = {"nvidia_gpus": ("RTX 4090, 8.9",), "nvidia_driver": 580}
GPU_PC = BuildMachine("Linux", "x86_64", nvidia_gpus=("H200",), nvcc="/usr/bin/nvcc", compiler=PC.compiler)


@dataclass
class Commands:
    """Stands in for everything that the set-up runs: venv makes a folder, pip a wheel or a package's traces."""

    root: Path
    fails: dict[str, CommandFailed] = field(default_factory=dict)
    fails_once: dict[str, CommandFailed] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)  # the build's
    ran: list[str] = field(default_factory=list)

    def __call__(self, what, command, log, environment=None, on_line=lambda line: None, folder=None) -> None:
        text = " ".join(command)
        self.ran.append(what)
        for needle, error in self.fails.items():
            if needle in text + str((environment or {}).get("CMAKE_ARGS")):
                raise error
        for needle in self.fails_once:
            if needle in text:
                raise self.fails_once.pop(needle)
        if "-m venv" in text:
            self.make_venv()
        elif "pip wheel" in text:
            self.environment = environment
            (Path(command[command.index("--wheel-dir") + 1]) / "llama_cpp_python-0.3.36-py3-none-any.whl").touch()
        elif "pip download" in text:
            self.make_sources(Path(command[command.index("--dest") + 1]))
        elif ".whl" in text:
            self.place("llama_cpp_python-0.3.36")
            for name in (f"{folder}/libllama.{end}" for folder in ("llama_cpp/lib", "lib") for end in ("so", "so.0")):
                (self.site_packages / name).parent.mkdir(parents=True, exist_ok=True)
                (self.site_packages / name).write_text("a library")
            (self.site_packages / "lib/libllama-common.so").write_text("another")
        elif "nvidia-cuda-nvcc" in text:
            lib = self.site_packages / "nvidia/cu13/lib"
            lib.mkdir(parents=True, exist_ok=True)
            for name in ("cudart", "cublas", "cublasLt"):
                (lib / f"lib{name}.so.13").touch()

    def make_sources(self, folder: Path) -> None:
        """Make a source distribution with a chat template and another file."""
        top = folder / "llama_cpp_python-0.3.36"
        templates = top / "vendor/llama.cpp/models/templates"
        templates.mkdir(parents=True)
        (templates / "Some-Model.jinja").write_text("{{ messages }}")
        (top / "vendor/llama.cpp/README.md").write_text("")
        with tarfile.open(folder / f"{top.name}.tar.gz", "w:gz") as archive:
            archive.add(top, top.name)

    def make_venv(self) -> None:
        (self.root / ".venv" / "bin").mkdir(parents=True, exist_ok=True)
        self.site_packages.mkdir(parents=True)
        (self.root / ".venv" / "pyvenv.cfg").write_text("version = 3.12.4\n")
        (self.root / ".venv" / "bin" / "python").write_text("#!/bin/sh\necho 3 12 26.3\n")
        (self.root / ".venv" / "bin" / "python").chmod(0o755)

    @property
    def site_packages(self) -> Path:
        return self.root / ".venv" / "lib" / "python3.12" / "site-packages"

    def place(self, package: str) -> None:
        info = self.site_packages / f"{package}.dist-info"
        info.mkdir(exist_ok=True)
        (info / "RECORD").touch()


@pytest.fixture
def project(tmp_path, monkeypatch) -> Commands:
    root = tmp_path / "project"
    (root / "packaging").mkdir(parents=True)
    for name in ("pyproject.toml", "constraints.txt", "packaging/system-packages.txt"):
        shutil.copy(ROOT / name, root / name)
    commands = Commands(root)
    for module in ("bootstrap", "first_start.venv_folder", "first_start.llama_build", "first_start.system_packages"):
        monkeypatch.setattr(f"{module}.run_logged", commands)
    monkeypatch.setattr("first_start.llama_install.look", lambda environment: PC)
    monkeypatch.setattr("first_start.system_packages.missing", lambda needs: ())
    monkeypatch.setattr(bootstrap.signal, "signal", lambda *_: None)
    for name in ("CMAKE_ARGS", "CFLAGS", "CXXFLAGS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SLIPSTREAM_CACHE", str(tmp_path / "cache"))
    return commands


def run(project: Commands, *arguments: str) -> int:
    project.ran.clear()
    return main(["--stamp", "print", *arguments], project.root)


MADE = "The making of .venv"
FETCHED = "Fetching chat templates"
CUDA = "The installation of CUDA"
BUILD = "The build of llama.cpp"
INSTALL = "The installation of llama.cpp"
PACKAGES = "The installation of Python packages"
TEST = "The self-test of llama.cpp"


def test_a_first_start_does_every_step_and_the_next_only_what_changed(project, capsys):
    assert run(project) == 0
    assert project.ran == [MADE, PACKAGES, BUILD, INSTALL, TEST]
    assert stamp.is_stamped(VenvFolder(project.root), "print", (stamp.APP,))
    assert "built (for the CPU with gcc 12)" in capsys.readouterr().out
    run(project)
    assert run(project) == 0
    assert project.ran == []
    run(project)
    assert main(["--stamp", "changed"], project.root) == 0
    assert project.ran[-2:] == [PACKAGES, TEST]
    assert stamp.is_stamped(VenvFolder(project.root), "changed", (stamp.APP,))


def test_the_checks_packages_and_chat_templates_get_a_stamp_of_their_own(project, tmp_path):
    run(project)
    assert not list((tmp_path / "cache").glob("chat-templates-*"))
    assert run(project, "--dev") == 0
    assert project.ran == [PACKAGES, FETCHED, TEST]
    assert stamp.is_stamped(VenvFolder(project.root), "print", (stamp.APP, stamp.DEVELOPMENT))
    (folder,) = (tmp_path / "cache").glob("chat-templates-*")
    assert [file.name for file in folder.iterdir()] == ["Some-Model.jinja"]
    assert run(project, "--dev", "--again") == 0
    assert FETCHED not in project.ran


def test_a_new_venv_takes_llama_cpp_from_the_cache_and_fresh_makes_all_anew(project, capsys):
    run(project)
    shutil.rmtree(project.root / ".venv")
    assert run(project) == 0
    assert project.ran == [MADE, PACKAGES, INSTALL, TEST]
    assert "taken from the cache" in capsys.readouterr().out
    run(project)
    assert run(project, "--fresh") == 0
    assert project.ran == [MADE, PACKAGES, BUILD, INSTALL, TEST]


def test_a_cut_off_set_up_goes_on_where_it_stopped(project, capsys):
    project.fails = {"pip wheel": KeyboardInterrupt()}
    assert run(project) == 130
    assert not stamp.is_stamped(VenvFolder(project.root), "print", (stamp.APP,))
    project.fails = {}
    assert run(project) == 0
    assert project.ran == [PACKAGES, BUILD, INSTALL, TEST]
    assert list((project.root.parent / "cache" / "wheels").glob(".building-*")) == []


def test_a_build_that_fails_shows_its_end_the_log_and_advice(project, capsys):
    project.fails = {"pip wheel": CommandFailed(BUILD, 1, ("g++ ...", "No space left on device"))}
    assert run(project) == 1
    told = capsys.readouterr().out
    assert "The build of llama.cpp failed" in told
    assert "    No space left on device" in told
    assert str(project.root / ".venv" / ".slipstream-setup.log") in told
    assert "The disk is full" in told


def test_a_build_that_fails_for_the_gpu_is_made_for_the_cpu_and_not_tried_at_every_change(project, monkeypatch, capsys):
    monkeypatch.setattr("first_start.llama_install.look", lambda environment: GPU_PC)
    project.fails = {"GGML_CUDA=on": CommandFailed(BUILD, 1, ("nvcc fatal",))}
    assert run(project) == 0
    assert project.ran.count(BUILD) == 2
    assert "The build for CUDA failed" in capsys.readouterr().out
    assert main(["--stamp", "changed"], project.root) == 0
    assert project.ran.count(BUILD) == 2
    # Asked for by name, it is tried again.
    assert run(project, "--again") == 0
    assert project.ran.count(BUILD) == 1


def test_copies_of_a_library_share_one_file(project, monkeypatch):
    assert run(project) == 0
    found = {path: path.stat() for path in project.site_packages.glob("**/libllama*")}
    assert len(found) == 5
    assert len({stat.st_ino for stat in found.values()}) == 2
    assert (project.site_packages / "lib/libllama-common.so").read_text() == "another"
    assert run(project) == 0, "and again"

    def refuse(*_: object) -> None:
        raise OSError(95, "no hard links on this disk")

    shutil.rmtree(project.root / ".venv")
    monkeypatch.setattr("first_start.llama_install.os.link", refuse)
    assert run(project) == 0
    assert len({path.stat().st_ino for path in project.site_packages.glob("**/libllama*")}) == 5


def test_cuda_comes_from_pip_where_a_gpu_has_no_toolkit(project, monkeypatch, tmp_path, capsys):
    driver = tmp_path / "libcuda.so.1"
    known = f"\tlibcuda.so.1 (libc6,x86-64) => {driver}\n"
    monkeypatch.setattr("first_start.llama_install.look", lambda environment: replace(GPU_PC, nvcc=None, **NEW_DRIVER))
    monkeypatch.setattr("first_start.cuda_toolkit.output_of", lambda *command: known)
    assert run(project) == 0
    assert project.ran == [MADE, PACKAGES, CUDA, BUILD, INSTALL, TEST]
    assert "built (for the CUDA with gcc 12)" in capsys.readouterr().out
    toolkit = project.site_packages / "nvidia/cu13"
    assert project.environment["CUDACXX"] == str(toolkit / "bin/nvcc")
    assert (toolkit / "lib64/libcublas.so").resolve() == toolkit / "lib/libcublas.so.13"
    assert (toolkit / "lib/stubs/libcuda.so").readlink() == driver
    own = project.site_packages / "llama_cpp/lib"
    links = [path for path in own.iterdir() if path.is_symlink()]
    assert {link.name for link in links} == {"libcudart.so.13", "libcublas.so.13", "libcublasLt.so.13"}
    assert all(link.resolve() == toolkit / "lib" / link.name for link in links)
    # Another folder takes the wheel from the cache, and has the libraries too.
    shutil.rmtree(project.root / ".venv")
    assert run(project) == 0
    assert project.ran == [MADE, PACKAGES, CUDA, INSTALL, TEST]


@pytest.mark.parametrize("hindrance", ["network", "driver", "disk"])
def test_without_cudas_packages_llama_cpp_is_built_for_the_cpu(project, monkeypatch, capsys, hindrance):
    monkeypatch.setattr("first_start.llama_install.look", lambda environment: replace(GPU_PC, nvcc=None, **NEW_DRIVER))
    monkeypatch.setattr("first_start.cuda_toolkit.output_of", lambda *command: "")
    if hindrance == "network":
        project.fails = {"nvidia-cuda-nvcc": CommandFailed(CUDA, 1, ("Network is unreachable",))}
    if hindrance == "disk":
        monkeypatch.setattr(cuda_toolkit.shutil, "disk_usage", lambda folder: type("Usage", (), {"free": 3e9}))
    assert run(project) == 0
    told = capsys.readouterr().out
    assert "CUDA's compiler and libraries could not be installed." in told
    assert {"network": "failed", "driver": "libcuda.so.1", "disk": "3.0 GB is free"}[hindrance] in told
    assert "for the CPU with gcc 12" in told
    assert project.ran.count(BUILD) == 1


def test_a_build_for_the_gpu_that_does_not_run_gives_way_to_the_cpu(project, monkeypatch, capsys):
    monkeypatch.setattr("first_start.llama_install.look", lambda environment: GPU_PC)
    project.fails_once = {"app.doctor.self_test": CommandFailed(TEST, 1, ("libcuda.so.1 cannot be loaded.",))}
    assert run(project) == 0
    assert project.ran == [MADE, PACKAGES, BUILD, INSTALL, TEST, BUILD, INSTALL, TEST]
    told = capsys.readouterr().out
    assert "failed for the CUDA with gcc 12; llama.cpp is built for the CPU instead" in told
    assert "The log says why; ./slipstream setup tries again." in told
    assert "5/5 Self-test             passed" in told
    assert main(["--stamp", "changed"], project.root) == 0
    assert BUILD not in project.ran[-3:]


def test_a_network_failure_is_not_held_against_the_gpu(project, monkeypatch):
    monkeypatch.setattr("first_start.llama_install.look", lambda environment: GPU_PC)
    project.fails = {"pip wheel": CommandFailed(BUILD, 1, ("Network is unreachable",))}
    assert run(project) == 1
    project.fails = {}
    assert run(project) == 0
    assert project.ran.count(BUILD) == 1


def test_a_gpu_that_appears_gets_its_own_build(project, monkeypatch, capsys):
    run(project)
    monkeypatch.setattr("first_start.llama_install.look", lambda environment: GPU_PC)
    assert main(["--stamp", "with a GPU"], project.root) == 0
    assert "built (for the CUDA with gcc 12)" in capsys.readouterr().out.replace(Backend.CUDA.value, "CUDA")


def test_a_failed_self_test_is_told_and_its_build_is_not_kept(project, capsys):
    project.fails = {"app.doctor.self_test": CommandFailed(TEST, 1, ("llama.cpp crashed in a test decode (SIGILL).",))}
    assert run(project) == 1
    assert "llama.cpp crashed in a test decode (SIGILL)." in capsys.readouterr().out
    shutil.rmtree(project.root / ".venv")
    project.fails = {}
    assert run(project) == 0
    assert BUILD in project.ran


def test_packages_that_only_the_user_can_install_stop_it_with_code_3(project, monkeypatch, capsys):
    def refuse(*_):
        raise PackagesMissing("Type this: sudo apt-get install gcc")

    assert run(project) == 0
    monkeypatch.setattr("first_start.system_packages.ensure", refuse)
    assert run(project, "--again") == 3
    assert "sudo apt-get install gcc" in capsys.readouterr().out
    assert run(project) == 0, "what was set up before is left as it was"


def test_a_folder_of_somebody_else_is_told_with_what_to_type(monkeypatch, capsys):
    monkeypatch.setattr(bootstrap.signal, "signal", lambda *_: None)
    with ordinary_user() as home:
        theirs, ours = home / "their clone", home / "clone"
        theirs.mkdir(0o555)
        (ours / ".venv").mkdir(0o555, parents=True)
        assert main(["--stamp", "print"], theirs) == 1
        assert f"{theirs}: Permission denied" in (said := capsys.readouterr().out)
        assert f"cp -r '{theirs}' ~" in said
        assert main(["--stamp", "print"], ours) == 1
        assert f"mv {ours}/.venv {ours}/.venv-old" in capsys.readouterr().out


def test_packages_of_somebody_else_are_told_with_what_to_type():
    with ordinary_user() as home:
        package = home / "clone" / ".venv" / "lib" / "numpy"
        package.mkdir(parents=True)
        (package / "RECORD").touch()
        package.chmod(0o555)
        with pytest.raises(PermissionError) as refused:
            shutil.rmtree(package)
        package.chmod(0o755)
        assert f"mv {home}/clone/.venv {home}/clone/.venv-old" in advise_on_refusal(refused.value, home / "clone")
        venv = home / "clone" / ".venv"
        venv.chmod(0)
        with pytest.raises(PermissionError) as refused:
            (venv / "bin" / "python").stat()
        assert f"mv {venv} {venv}-old" in advise_on_refusal(refused.value, home / "clone")
        venv.chmod(0o755)


def test_a_full_disk_is_told_before_anything_is_fetched(project, monkeypatch, capsys):
    monkeypatch.setattr(bootstrap.shutil, "disk_usage", lambda folder: type("Usage", (), {"free": 1_999_900_000}))
    assert run(project) == 1
    assert re.search(r"needs 2,000 MB of disk in .* 1,999 MB are free", capsys.readouterr().out)
    assert project.ran == []


def test_wishes_are_read():
    assert parse_wish(["--stamp", "x", "--dev"]) == SetupRequest("x", development=True, again=False, fresh=False)
    assert parse_wish(["--stamp", "x", "--fresh"]).again


def test_what_pip_is_told_and_tells():
    environment = pip_environment({"PIP_USER": "1", "PIP_TARGET": "/t", "PIP_CERT": "/c", "HOME": "/h"})
    assert environment["PIP_USER"] == "0"
    assert "PIP_TARGET" not in environment
    assert (environment["PIP_CERT"], environment["HOME"]) == ("/c", "/h")
    assert describe_pip("Collecting numpy<3,>=2.1 (from -r x)\n") == "looking for numpy<3,>=2.1"
    assert describe_pip("  Downloading numpy-2.4.6-cp311.whl (16.9 MB)\n") == "fetching numpy-2.4.6 (16.9 MB)"
    assert describe_pip("Installing collected packages: a, b\n") == "installing"
    assert describe_pip("Requirement already satisfied: numpy\n") == ""


def test_a_cache_that_cannot_be_written_is_replaced_by_one_in_the_project(tmp_path):
    (tmp_path / "file").touch()
    assert usable_folder(tmp_path / "file" / "wheels", tmp_path) == tmp_path / ".cache" / "wheels"
    assert usable_folder(tmp_path / "good", tmp_path) == tmp_path / "good"


def test_what_qt_lacks_is_read_from_ldd(tmp_path):
    assert parse_missing("\tlibc.so.6 => /lib/libc.so.6 (0x7f)\n\tlibxcb-cursor.so.0 => not found\n") == {
        "libxcb-cursor.so.0"
    }
    assert qt_libraries.missing_libraries(tmp_path) == ()


def test_the_set_ups_folder_is_no_package():
    # A package here would hide the library "packaging", which others import.
    assert not (ROOT / "packaging" / "__init__.py").exists()


def test_without_a_network_the_chat_templates_are_left_out(project, tmp_path, capsys):
    project.fails["pip download"] = CommandFailed(FETCHED, 1, ("no network",))
    assert run(project, "--dev") == 0
    assert "chat templates" in capsys.readouterr().out
    assert not list((tmp_path / "cache").glob("*chat-templates*"))
