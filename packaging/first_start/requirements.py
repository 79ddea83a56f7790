"""What is installed: the requirements in pyproject.toml, held to the versions in constraints.txt."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

from first_start.errors import SetupError
from first_start.llama_build import PROJECT

_NAME = re.compile(r"^[A-Za-z0-9._-]+")


@dataclass(frozen=True)
class Requirements:
    """Requirements by purpose. llama-cpp-python is separate: it is built here, and pip never resolves it."""

    app: tuple[str, ...]
    development: tuple[str, ...]
    cuda: tuple[str, ...]
    llama_version: str


def normalise(name: str) -> str:
    """Return a project's name in the normalised form in which names are compared."""
    return re.sub(r"[-_.]+", "-", name).lower()


def name_of(requirement: str) -> str:
    """Return the normalised project name of a requirement."""
    match = _NAME.match(requirement)
    if not match:
        raise SetupError(f"pyproject.toml holds a requirement that cannot be read: {requirement!r}.")
    return normalise(match.group())


def parse_requirements(pyproject: str) -> Requirements:
    """Return the requirements in pyproject.toml's text."""
    project = tomllib.loads(pyproject)["project"]
    pins = [item for item in project["dependencies"] if name_of(item) == PROJECT]
    if len(pins) != 1 or "==" not in pins[0]:
        raise SetupError(f"pyproject.toml must pin {PROJECT} to one version.")
    return Requirements(
        app=tuple(item for item in project["dependencies"] if name_of(item) != PROJECT),
        development=tuple(project["optional-dependencies"]["dev"]),
        cuda=tuple(project["optional-dependencies"]["cuda"]),
        llama_version=pins[0].split("==")[1].split(";")[0].strip(),
    )


def pinned_version(constraints: str, name: str) -> str:
    """Return the version to which ``constraints`` pins a project, by a line without markers."""
    match = re.search(rf"^{re.escape(name)}==(\S+)$", constraints, re.MULTILINE)
    if not match:
        raise SetupError(f"constraints.txt must pin {name}.")
    return match.group(1)


def read(root: Path) -> tuple[Requirements, str]:
    """Return the project's requirements and the text of its constraints."""
    constraints = (root / "constraints.txt").read_text(encoding="utf-8")
    return parse_requirements((root / "pyproject.toml").read_text(encoding="utf-8")), constraints
