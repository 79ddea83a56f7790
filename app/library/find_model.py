"""Finds the model that a user names: by name, title or path. If there is none, a sentence lists the models."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from typing import TYPE_CHECKING

from app.environment.exit_codes import ExitCode
from app.environment.paths import cache_folder, folders_file, models_folder
from core.values.errors import SlipstreamError
from models.formatting.program import PROGRAM, advice, command
from models.formatting.sentence import Sentence, joined
from models.formatting.system_error import system_reason

if TYPE_CHECKING:
    from models.catalog.catalog import Catalog, ModelEntry

_MOST_NAMED = 12  # names in a sentence; more are not read


class UnknownModel(SlipstreamError):
    """No model has this name."""

    exit_code = ExitCode.MODEL


class UnusableModel(SlipstreamError):
    """The model's file is broken."""

    exit_code = ExitCode.MODEL


def catalog() -> Catalog:
    """Return the models of this machine: the bundled ones, those downloaded, and those of imported folders."""
    from models.catalog.catalog import Catalog
    from models.catalog.imported_folders import read_folders
    from models.facts.facts_cache import FactsFile

    kept = FactsFile(cache_folder() / "headers.json")
    return Catalog(lambda: [models_folder()], imported=lambda: read_folders(folders_file()), kept=kept)


def find_model(name: str, models: Catalog | None = None) -> ModelEntry:
    """Return the model that ``name`` stands for; raises UnknownModel or UnusableModel. As for ``find_entry``."""
    return usable(find_entry(name, models))


def usable(entry: ModelEntry) -> ModelEntry:
    """Return a model; raises UnusableModel for one that cannot be used."""
    if entry.problem:
        raise UnusableModel("{name} cannot be used: {problem}", name=entry.name, problem=entry.problem)
    return entry


def last_chosen(models: Catalog) -> ModelEntry | None:
    """Return the usable model that the user chose last, of those that have run; else the one that was used last.

    What other programs ask for, and a race, is use and no choice: no toy takes the starter's place by it. None where
    none of them is there.
    """
    from app.settings.model_settings_store import model_usage

    used = model_usage().all()
    if not used.is_known:
        return None
    usable = [entry for entry in models.entries() if entry.problem is None]
    writing = [entry for entry in usable if entry.facts is None or not entry.facts.is_for_vectors]
    real = [entry for entry in writing if not entry.is_toy]
    for when, among in ((used.choice_of, writing), (used.of, real)):
        times = [(when(entry.path) or 0.0, entry) for entry in among]
        newest, entry = max(times, key=lambda known: known[0], default=(0.0, None))
        if newest > 0:
            return entry
    return None


def find_draft(name: str, models: Catalog) -> ModelEntry:
    """Return the model or the drafting head that ``name`` stands for; raises UnknownModel or UnusableModel.

    Whether a head belongs to the model is seen when both are loaded.
    """
    entry = find_entry(name, models)
    return entry if entry.facts is not None and entry.facts.is_head else usable(entry)


def find_entry(name: str, models: Catalog | None = None) -> ModelEntry:
    """Return the model that ``name`` stands for, usable or not; raises UnknownModel.

    A catalogue that is there already is not read again: give it as ``models``.
    """
    models = models if models is not None else catalog()
    entry = models.find(name)
    if entry is None:
        titled = [one.name for one in models.entries() if one.facts and one.title.casefold() == name.casefold()]
        if titled:
            raise UnknownModel(
                Sentence("{name} is the title of {names}: name one of them.", name=repr(name), names=", ".join(titled))
            )
        names = _likeliest(name, [entry.name for entry in models.entries() if entry.problem is None])
        hint = "" if _is_path(name) else Sentence("A path to a .gguf file works as well.")
        if hint and may_be_repository(name):
            hint = advice(f"`{command('models pull', name)}` downloads it if it is on the Hub.", hint)
        raise UnknownModel(joined((no_model(name), Sentence("Models: {names}.", names=names), hint)))
    return entry


def no_model(name: str) -> Sentence:
    """Return why a name leads to no model."""
    if not _is_path(name):
        return Sentence("There is no model called {name}.", name=repr(name))
    try:
        mode = os.stat(os.path.expanduser(name)).st_mode
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return Sentence("There is no file {path}.", path=name)
    except OSError as error:
        return Sentence("{path} cannot be read: {reason}.", path=name, reason=system_reason(error))
    if stat.S_ISDIR(mode):
        return Sentence("{path} is a folder: name a .gguf file in it.", path=name)
    return Sentence("{path} is no .gguf file.", path=name)


def _is_path(name: str) -> bool:
    """Whether a name that no model has can only mean a file."""
    return name.lower().endswith(".gguf") or os.path.expanduser(name).startswith(("/", "./", "../"))


def may_be_repository(name: str) -> bool:
    """Whether a name that no model has is one of the Hub: maker/repository or its address, with or without a choice."""
    from models.hub.repository import parsed_name

    maker, slash, repository = parsed_name(name)[0].partition("/")
    return bool(slash and maker and repository) and "/" not in repository and not maker.startswith((".", "~"))


def downloaded_from(repo_id: str, wanted: str) -> ModelEntry | None:
    """Return the model that came from a repository of the Hub, without asking the Hub.

    ``wanted`` is in its name, as a quantisation; None where no usable model is such a one, or several are.
    """
    from models.files.provenance import read_record

    folder, found = models_folder(), []
    for entry in catalog().entries():
        record = read_record(folder, entry.path) if entry.problem is None else None
        if record is not None and record.repo_id.casefold() == repo_id.casefold():
            name = record.path.casefold()
            if wanted.casefold() in name and "mmproj" not in name:
                found.append(entry)
    return found[0] if len(found) == 1 else None


def _likeliest(typed: str, names: Sequence[str]) -> str:
    """All names where they are few, else those most like what was typed."""
    if len(names) <= _MOST_NAMED:
        return ", ".join(names)
    from difflib import get_close_matches

    by_folded = {name.casefold(): name for name in names}
    close = [by_folded[found] for found in get_close_matches(typed.casefold(), by_folded, _MOST_NAMED, 0.4)]
    shown = close or list(names[:_MOST_NAMED])
    more = advice(f" (`{PROGRAM} models list`)", "")
    n_more = len(names) - len(shown)
    return Sentence("{shown} and {n_more:,} more{more}", shown=", ".join(shown), n_more=n_more, more=more)
