from __future__ import annotations

import itertools
import re
import shutil
import subprocess
import tomllib
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

import pytest
from first_start.errors import SetupError
from first_start.requirements import name_of, normalise, parse_requirements, pinned_version
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]

PYPROJECT = (ROOT / "pyproject.toml").read_text()
CONSTRAINTS = (ROOT / "constraints.txt").read_text()
PINS = [Requirement(line) for line in CONSTRAINTS.splitlines() if line and not line.startswith("#")]
BINARY = re.compile(r"\.(gguf|png|jpg|ico|woff2?|ttf)$")
# Written in pieces: this file must not hold what it looks for.
ADDRESSES = re.compile(
    "|".join(
        (
            "py" + r"pi\.(?:org|python)",
            "python" + "hosted",
            "--(?:extra-)?" + "index-url",
            "(?:extra_)?" + r"index_url\s*=",
            "find-" + "links",
            r"https?://[^\s\"'>]*/" + r"simple/?(?:[\s\"'>]|$)",
            "registry" + r"\.npmjs",
            "--hash=" + "sha",
        )
    ),
    re.IGNORECASE | re.MULTILINE,
)


def pins_for(python: str) -> dict[str, str]:
    """The pinned versions on one Python, by normalised name."""
    there = [pin for pin in PINS if pin.marker is None or pin.marker.evaluate({"python_version": python})]
    names = [normalise(pin.name) for pin in there]
    assert len(names) == len(set(names)), f"pinned twice for Python {python}"
    return {normalise(pin.name): str(pin.specifier).removeprefix("==") for pin in there}


def asked_for(python: str) -> list[Requirement]:
    project = tomllib.loads(PYPROJECT)["project"]
    texts = [*project["dependencies"], *itertools.chain(*project["optional-dependencies"].values())]
    return [
        item for item in map(Requirement, texts) if not item.marker or item.marker.evaluate({"python_version": python})
    ]


def test_llama_cpp_is_apart_and_pinned():
    wanted = parse_requirements(PYPROJECT)
    assert wanted.llama_version == "0.3.36"
    assert "llama-cpp-python" not in {name_of(item) for item in wanted.app}
    assert "pytest" in {name_of(item) for item in wanted.development}
    text = '[project]\ndependencies = ["llama-cpp-python>=0.3"]\noptional-dependencies = {dev = []}\n'
    with pytest.raises(SetupError, match="must pin llama-cpp-python"):
        parse_requirements(text)
    assert name_of("PySide6_Essentials==6.11.3; python_version < '3.12'") == "pyside6-essentials"
    assert pinned_version("a==1\npip==26.3\n", "pip") == "26.3"
    with pytest.raises(SetupError):
        pinned_version("a==1\n", "pip")


@pytest.mark.parametrize("python", ["3.11", "3.12", "3.13", "3.14", "3.15"])
def test_everything_asked_for_is_pinned_to_a_version_that_fits(python):
    pins = pins_for(python)
    for requirement in asked_for(python):
        assert requirement.specifier.contains(pins[normalise(requirement.name)], prereleases=True), requirement


def test_every_pin_is_exact_and_qt_below_what_aborts_on_older_pythons():
    assert pins_for("3.11")["pyside6-essentials"] == "6.11.3"
    assert pins_for("3.12")["pyside6-essentials"] == pins_for("3.13")["pyside6-essentials"] == "6.12.0"
    assert [str(pin) for pin in PINS if not re.fullmatch(r"==[^*,]+", str(pin.specifier))] == []


def test_what_the_requirements_bring_along_is_pinned_too():
    pins = {normalise(pin.name) for pin in PINS}
    seen: set[str] = set()
    queue = [requirement for requirement in asked_for("3.11") if normalise(requirement.name) != "llama-cpp-python"]
    while queue:
        requirement = queue.pop()
        name = normalise(requirement.name)
        for extra in {"", *requirement.extras}:
            if f"{name}[{extra}]" in seen:
                continue
            seen.add(f"{name}[{extra}]")
            assert name in pins, f"{name} is not in constraints.txt"
            queue += brought_by(name, extra)


def brought_by(name: str, extra: str) -> list[Requirement]:
    try:
        texts = requires(name) or []
    except PackageNotFoundError:
        return []
    found = [Requirement(text) for text in texts]
    return [item for item in found if not item.marker or item.marker.evaluate({"extra": extra})]


def test_these_tests_run_on_the_pinned_versions():
    wanted = pins_for(".".join(map(str, __import__("sys").version_info[:2])))
    for name in ("pytest", "ruff", "mypy", "numpy", "PySide6-Essentials", "typer", "fastapi", "llama-cpp-python"):
        assert version(name) == wanted[normalise(name)], name


def tracked_files() -> list[str]:
    """The files of the project, as git lists them."""
    if not shutil.which("git"):
        pytest.skip("git is not installed")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    names = listed.stdout.split("\0")[:-1] if listed.returncode == 0 else []
    if not names:
        pytest.skip("not a git checkout")
    return names


def test_no_file_of_the_project_records_where_packages_come_from():
    for name in tracked_files():
        file = ROOT / name
        if BINARY.search(name) or not file.is_file():
            continue
        found = ADDRESSES.search(file.read_text(encoding="utf-8", errors="replace"))
        assert not found, f"{name} holds {found.group() if found else ''!r}"


def test_the_project_holds_nothing_that_leads_out_of_it_or_that_the_set_up_makes():
    """A link to a folder of one machine would be in the way of the set-up on all others."""
    for name in tracked_files():
        file = ROOT / name
        assert Path(name).parts[0] != ".venv"
        assert not file.is_symlink() or file.resolve().is_relative_to(ROOT), name
