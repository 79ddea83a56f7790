from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from first_start.stamp import APP, DEVELOPMENT, is_stamped, put, remove
from first_start.venv_folder import LOCK, VenvFolder, can_be_rewritten, is_complete, made_as


@pytest.fixture
def venv(tmp_path: Path) -> VenvFolder:
    """A venv as far as it can be told from its files, made as /old/place/.venv."""
    made = VenvFolder(tmp_path)
    (made.path / "bin").mkdir(parents=True)
    (made.path / "lib" / "python3.12" / "site-packages").mkdir(parents=True)
    (made.path / "pyvenv.cfg").write_text(
        "home = /usr/bin\nversion = 3.12.4\ncommand = python -m venv /old/place/.venv\n"
    )
    (made.path / "bin" / "activate").write_text(
        'deactivate () {\n}\nVIRTUAL_ENV="/old/place/.venv"\nexport VIRTUAL_ENV\n'
    )
    (made.path / "bin" / "pip").write_text("#!/old/place/.venv/bin/python\nimport pip\n")
    (made.path / "bin" / "ruff").write_bytes(b"\x7fELF\0/old/place/.venv")
    (made.path / "bin" / "python").symlink_to(sys.executable)
    return made


def install(venv: VenvFolder, name: str, *, record: bool = True) -> Path:
    (venv.site_packages / name).mkdir()
    (venv.site_packages / name / "code.py").write_text("x = 1\n")
    info = venv.site_packages / f"{name}-1.0.dist-info"
    info.mkdir()
    if record:
        (info / "RECORD").write_text(
            f"{name}/code.py,sha256=abc,6\n{name}/__pycache__/code.pyc,sha256=e,77\n../../../bin/{name},sha256=d,9\n"
            f"{info.name}/RECORD,,\n"
        )
    (venv.path / "bin" / name).write_text("a script of another length")
    return info


def test_a_moved_venv_names_its_new_place_everywhere_but_in_binaries(venv):
    assert made_as(venv.path) == Path("/old/place/.venv")
    assert venv.follow_its_folder()
    here = str(venv.path)
    assert (venv.path / "bin" / "pip").read_text().startswith(f"#!{here}/bin/python")
    assert f'VIRTUAL_ENV="{here}"' in (venv.path / "bin" / "activate").read_text()
    assert f"venv {here}" in (venv.path / "pyvenv.cfg").read_text()
    assert made_as(venv.path) == venv.path
    venv.follow_its_folder()
    assert (venv.path / "bin" / "ruff").read_bytes() == b"\x7fELF\0/old/place/.venv"


@pytest.mark.parametrize("folder", ["/a b/.venv", "/" + "x" * 130 + "/.venv", "/it's/.venv"])
def test_a_place_that_a_first_line_cannot_name_needs_a_new_venv(venv, folder):
    assert not can_be_rewritten(Path(folder))
    (venv.path / "bin" / "activate").write_text(f"export VIRTUAL_ENV={folder}\n")
    assert not venv.follow_its_folder()


@pytest.mark.parametrize(
    "script",
    [
        'VIRTUAL_ENV="/p/.venv"\n',
        "    export VIRTUAL_ENV=/p/.venv\n",
        "    VIRTUAL_ENV=$(cygpath /p/.venv)\n    export VIRTUAL_ENV='/p/.venv'\n",
    ],
)
def test_the_place_is_read_from_every_pythons_activation_script(venv, script):
    (venv.path / "bin" / "activate").write_text(script)
    assert made_as(venv.path) == Path("/p/.venv")


@pytest.mark.parametrize("locale", ["C.UTF-8", "C", "POSIX", "not_INSTALLED.UTF-8"])
def test_python_starts_from_a_folder_of_any_name_in_any_locale(tmp_path, locale):
    venv = VenvFolder(tmp_path / "für 'alle' \\ 工具")
    (venv.path / "lib" / "python3.12" / "site-packages").mkdir(parents=True)
    venv.link_project()
    (venv.root / "of_ours.py").touch()
    reads = f"import os, site; site.addsitedir(os.fsdecode({os.fsencode(venv.site_packages)!r})); import of_ours"
    for more in ({}, {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}):
        variables = {"LC_ALL": locale, **more}
        done = subprocess.run([sys.executable, "-c", reads], env=variables, capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (0, b"")


def test_packages_that_were_cut_off_are_installed_again(venv):
    assert is_complete(install(venv, "whole"))
    assert venv.drop_incomplete() == ()
    install(venv, "lacks_record", record=False)
    install(venv, "lacks_file")
    (venv.site_packages / "lacks_file" / "code.py").unlink()
    install(venv, "short_file")
    (venv.site_packages / "short_file" / "code.py").write_text("x")
    (venv.site_packages / "~ip-23.2.1.dist-info").mkdir()
    assert venv.drop_incomplete() == ("lacks_file-1.0", "lacks_record-1.0", "short_file-1.0")
    assert [info.name for info in venv.site_packages.glob("*.dist-info")] == ["whole-1.0.dist-info"]


def test_a_venv_without_pip_or_of_an_old_python_is_not_kept(venv):
    python = venv.path / "bin" / "python"
    python.unlink()
    assert venv.pip_version() is None
    for script in ("exit 1", "echo 3 10 24.0"):
        python.write_text(f"#!/bin/sh\n{script}\n")
        python.chmod(0o755)
        assert venv.pip_version() is None
    (venv.path / "pyvenv.cfg").unlink()
    assert venv.pip_version() is None


def test_wiping_keeps_the_lock_that_is_held(venv):
    venv.link_project()
    assert repr(os.fsencode(venv.root)) in (venv.site_packages / "slipstream.pth").read_text()
    (venv.path / LOCK).touch()
    venv.wipe()
    assert [entry.name for entry in venv.path.iterdir()] == [LOCK]


def test_a_stamp_holds_for_one_fingerprint_and_one_python(venv):
    assert not is_stamped(venv, "print", (APP,))
    put(venv, "print", (APP,))
    assert is_stamped(venv, "print", (APP,))
    assert not is_stamped(venv, "print", (APP, DEVELOPMENT))
    assert not is_stamped(venv, "other", (APP,))
    put(venv, "print", (APP, DEVELOPMENT))
    assert is_stamped(venv, "print", (APP, DEVELOPMENT))
    (venv.path / "pyvenv.cfg").write_text("version = 3.13.0\n")
    assert not is_stamped(venv, "print", (APP,))
    put(venv, "print", (APP, DEVELOPMENT))
    remove(venv)
    assert not is_stamped(venv, "print", (APP,))
    assert not is_stamped(venv, "print", (DEVELOPMENT,))
