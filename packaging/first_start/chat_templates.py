"""The chat templates of real models that llama.cpp's sources hold: the checks go through all of them.

They come from the source distribution of llama-cpp-python, and are kept beside the cache of its builds, by version.
"""

from __future__ import annotations

import shutil
import tarfile
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath

from first_start.llama_build import PROJECT
from first_start.wheel_cache import cache_folder

_FOLDER = PurePosixPath("vendor/llama.cpp/models/templates")


def templates_folder(version: str, environment: Mapping[str, str]) -> Path:
    """Return the folder that keeps the templates of a release."""
    return beside(cache_folder(environment), version)


def beside(wheels: Path, version: str) -> Path:
    """Return the folder of templates beside a cache of builds."""
    return wheels.with_name(f"chat-templates-{version}")


def keep_templates(wheels: Path, version: str, pip: Callable[..., None]) -> Path:
    """Fetch the source distribution with ``pip``, keep only its templates, and return their folder.

    Fetches nothing if the templates are there already. Raises CommandFailed if it cannot be fetched.
    """
    folder = beside(wheels, version)
    if folder.is_dir():
        return folder
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".chat-templates-") as work:
        source = Path(work)
        options = ("--no-deps", "--no-binary", PROJECT, "--dest", str(source))
        pip("Fetching chat templates", "download", *options, f"{PROJECT}=={version}")
        (archive,) = source.glob("*.tar.gz")
        whole = source / "templates"
        whole.mkdir()
        with tarfile.open(archive) as files:
            for member in files:
                path = PurePosixPath(member.name)
                content = files.extractfile(member) if path.suffix == ".jinja" else None
                if content is not None and path.parent.match(str(_FOLDER)):
                    with content, (whole / path.name).open("wb") as kept:
                        shutil.copyfileobj(content, kept)
        whole.rename(folder)
    return folder
