"""The models on this machine: scans folders and lists every model file, broken ones with their problem."""

from __future__ import annotations

import contextlib
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from models.catalog.imported_folders import FolderKind, ImportedFolder, ollama_models
from models.facts.architectures import PROJECTORS
from models.facts.facts_cache import FactsFile, Stamp
from models.facts.header_facts import HeaderFacts, header_facts
from models.facts.model_facts import ModelFacts, read_model
from models.facts.split_files import is_listed, model_name, parts
from models.formatting.safe_text import in_utf8
from models.formatting.sentence import Sentence
from models.formatting.system_error import system_reason
from models.gguf.errors import GgufError

STARTER_FOLDER = Path(__file__).resolve().parents[1] / "starter"
# The bundled model, and the smaller one that drafts for it.
STARTER = STARTER_FOLDER / "ember-q8_0.gguf"
# Limits of a scan, far above any real folder of models.
MAX_DEPTH = 8
MAX_FOLDERS = 20_000


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """One model of the catalogue. ``problem`` says why it cannot be used; ``facts`` is None if it was not read.

    ``n_bytes`` is the size of all its files, 0 if that was not looked up; ``origin`` names the program whose folder it
    is used from.
    """

    name: str
    path: Path
    n_bytes: int = 0
    problem: str | None = None
    facts: ModelFacts | None = field(default=None, repr=False)
    is_toy: bool = False
    origin: str = ""

    @property
    def title(self) -> str:
        """The title in its header, else its name."""
        return (self.facts.title if self.facts is not None else None) or self.name

    @property
    def header(self) -> HeaderFacts:
        """The facts of its header that are shown; empty if it cannot be read."""
        return header_facts(self.facts) if self.facts is not None else HeaderFacts()


@dataclass(frozen=True, slots=True)
class FolderProblem:
    """A folder that could not be scanned, and why."""

    folder: Path
    sentence: str


class Catalog:
    """Lists the models in some folders; headers are read again only after a file has changed. Thread-safe."""

    def __init__(
        self,
        folders: Sequence[Path] | Callable[[], Sequence[Path]],
        *,
        starter: Path | None = STARTER_FOLDER,
        imported: Sequence[ImportedFolder] | Callable[[], Sequence[ImportedFolder]] = (),
        kept: FactsFile | None = None,
    ) -> None:
        """``folders`` and ``imported`` may be functions, which are called at each scan.

        ``kept`` shares facts with other processes.
        """
        self._bundled = [starter] if starter else []
        self._folders = folders if callable(folders) else lambda: folders
        self._imported = imported if callable(imported) else lambda: imported
        self._starter = starter.resolve() if starter else None
        self._read: dict[Stamp, ModelFacts | str] = {}
        self._kept, self._on_disk = kept, frozenset[Stamp]()
        # Folders that the last scan could not read. One that does not exist is no problem.
        self.folder_problems: tuple[FolderProblem, ...] = ()
        self._last: tuple[ModelEntry, ...] = ()
        self._aliases: dict[str, tuple[Path, Path]] = {}
        self._lock = threading.Lock()

    def entries(self) -> tuple[ModelEntry, ...]:
        """Scan the folders in their order; the bundled toys come last, though their names are given out first."""
        with self._lock:
            self._remember()
            scan = _Scan()
            folders = (*self._bundled, *self._folders())
            files = {path: "" for folder in folders for path in self._ordered(folder, scan.model_files(folder))}
            origins: dict[Path, str] = {}
            for folder in self._imported():
                found = dict(scan.imported_files(folder))
                files |= found
                origins |= dict.fromkeys(found, folder.kind.value)
            self.folder_problems, self._aliases = tuple(scan.problems), scan.aliases
            stamps = {path: stamp for path in files if (stamp := _stamp(path)) is not None}
            self._read = {stamp: self._known(path, stamp) for path, stamp in stamps.items()}
            names = _unique_names({path: files[path] for path, stamp in stamps.items() if not self._is_beside(stamp)})
            entries = (self._entry(name, path, stamps[path], origins.get(path, "")) for name, path in names)
            self._last = tuple(sorted(entries, key=lambda entry: entry.is_toy))
            self._keep()
            return self._last

    def find(self, name: str, *, takes_paths: bool = True) -> ModelEntry | None:
        """The model with this name, title (if only one has it), path or tag.

        All names of links to it, and all that Ollama has for it, are its names. Tags are as in those: ``NAME:latest``
        or ``NAME`` for it, and ``REPOSITORY:QUANTISATION`` for models from the Hub, also with its maker in front. None
        if there is no such model.

        A name that the last scan found needs no new scan unless its file has changed.
        """
        asked = in_utf8(name)
        known = self._by_name(self._last, asked, is_new=False)
        if known is not None and _stamp(known.path) in self._read:
            return known
        entries = self.entries()
        known = self._by_name(entries, asked, is_new=True) or _by_title(entries, asked)
        if known is None and takes_paths:
            known = self._by_path(entries, name)
        return known or _by_tag(entries, asked)

    def _ordered(self, folder: Path, files: Iterable[Path]) -> list[Path]:
        """The files in their order; of the bundled ones, the model before its smaller draft model."""
        is_starter = self._starter is not None and folder.resolve() == self._starter
        return sorted(files, key=lambda path: -path.stat().st_size) if is_starter else list(files)

    def _remember(self) -> None:
        """Load the facts that other processes have kept."""
        if self._kept is not None and not self._read:
            known = self._kept.read()
            self._read, self._on_disk = {**known}, frozenset(known)

    def _keep(self) -> None:
        """Keep the facts for other processes. Files that could not be read are left out."""
        facts = {stamp: known for stamp, known in self._read.items() if isinstance(known, ModelFacts)}
        if self._kept is not None and facts.keys() != self._on_disk:
            self._kept.write(facts)
            self._on_disk = frozenset(facts)

    def _is_beside(self, stamp: Stamp) -> bool:
        """Whether a file is a projector, which is used beside a model."""
        known = self._read[stamp]
        return isinstance(known, ModelFacts) and known.architecture in PROJECTORS

    def _known(self, path: Path, stamp: Stamp) -> ModelFacts | str:
        known = self._read.get(stamp)
        return _read(path) if known is None else known

    def _entry(self, name: str, path: Path, stamp: Stamp, origin: str = "") -> ModelEntry:
        known = self._read[stamp]
        n_bytes = sum(size for _, _, size in stamp)
        is_toy = self._starter is not None and self._starter in path.resolve().parents
        if isinstance(known, str):
            return ModelEntry(name, path, n_bytes, known, None, is_toy, origin)
        return ModelEntry(name, path, n_bytes, known.problem, known, is_toy, origin)

    def _by_name(self, entries: Iterable[ModelEntry], name: str, *, is_new: bool) -> ModelEntry | None:
        """The model with this name, or else with this further name; one without a tag is the latest.

        Unless ``entries`` are new, further names count only if they are links: Ollama may have given its names to other
        files since then.
        """
        names = (name.casefold().removesuffix(".gguf"), f"{name.casefold()}:latest")
        found = _by_name(entries, names[0]) or _by_name(entries, names[1])
        known = [self._aliases[alias] for alias in names if alias in self._aliases]
        others = [(path, listed) for path, listed in known if is_new or path != listed]
        # A link may lead elsewhere since the scan.
        places = [listed for path, listed in others if os.path.realpath(path) == os.path.realpath(listed)]
        return found or next((entry for entry in entries if entry.path in places), None)

    def _by_path(self, entries: Iterable[ModelEntry], name: str) -> ModelEntry | None:
        path = Path(os.path.expanduser(name))
        if not _is_file(path):
            return None
        path = next(part for part in parts(path) if part.exists())
        real = path.resolve()
        for entry in entries:  # files of other programs may end in anything
            if entry.path.resolve() == real:
                return entry
        if path.suffix.lower() != ".gguf":
            return None
        stamp = _stamp(path)
        if stamp is None:
            return None
        with self._lock:
            self._read[stamp] = self._known(path, stamp)
            return self._entry(in_utf8(model_name(path)), path.absolute(), stamp)


def has_models(imported: ImportedFolder) -> bool:
    """Whether there is a model file in another program's folder."""
    return any(_Scan().imported_files(imported))


class _Scan:
    """One walk over folders. Each is visited once, even if several links lead to it."""

    def __init__(self) -> None:
        self.problems: list[FolderProblem] = []
        # Further names in small letters, each with its file or link, and with the listed one that leads to the same.
        self.aliases: dict[str, tuple[Path, Path]] = {}
        self._visited: set[tuple[int, int]] = set()
        self._seen_files: dict[Path, Path] = {}  # by where links lead, as they are listed

    def model_files(self, root: Path) -> Iterator[Path]:
        """Model files of a folder of ours, each once."""
        return (path for path in self._files(root) if self._is_new(path))

    def _files(self, root: Path) -> Iterator[Path]:
        pending: list[tuple[Path, int, int | None]] = [(root, 0, None)]
        while pending:
            folder, depth, around = pending.pop()
            files, below, disk = self._look(folder, around)
            yield from files
            if depth < MAX_DEPTH:
                pending.extend((path, depth + 1, disk) for path in reversed(below))

    def imported_files(self, imported: ImportedFolder) -> Iterator[tuple[Path, str]]:
        """Model files of another program's folder, with the program's names for them ("": the name of the file)."""
        if imported.kind is FolderKind.OLLAMA:
            for name, path in ollama_models(imported):
                if self._is_new(path, name):
                    yield path, name
            return
        n_outside = 0
        for path in self._files(imported.path):
            if not imported.contains(path):
                n_outside += path.resolve() not in self._seen_files
            elif self._is_new(path):
                yield path, path.parent.name if imported.kind is FolderKind.JAN else ""
        if n_outside:
            one = Sentence("A link leads out of this folder and is not followed. Import the folder it leads to.")
            several = Sentence(
                "{n_outside} links lead out of this folder and are not followed. Import the folder they lead to.",
                n_outside=n_outside,
            )
            sentence = one if n_outside == 1 else several
            self.problems.append(FolderProblem(imported.path, sentence))

    def _look(self, folder: Path, around: int | None) -> tuple[list[Path], list[Path], int]:
        """Return the model files and sub-folders of a folder, sorted by name, and its disk; ``around`` is its parent's.

        None of them where the folder was looked into already, or leads to where the system shows its devices.
        """
        disk = 0
        try:
            status = os.stat(folder)
            disk = status.st_dev
            if not self._enter(folder, status) or (around not in (None, disk) and disk in _system_disks()):
                return [], [], disk
            with os.scandir(folder) as found:
                items = sorted(found, key=lambda item: item.name.lower())
            files = [Path(item.path) for item in items if item.name.lower().endswith(".gguf")]
            below = [Path(item.path) for item in items if not item.name.startswith(".") and _is_folder(item)]
            return [path for path in files if _is_file(path) and is_listed(path)], below, disk
        except FileNotFoundError:
            return [], [], disk
        except OSError as error:
            sentence = Sentence(
                "The folder {folder} cannot be read: {reason}. Check its permissions.",
                folder=folder,
                reason=system_reason(error),
            )
            self.problems.append(FolderProblem(folder, sentence))
            return [], [], disk

    def _enter(self, folder: Path, status: os.stat_result) -> bool:
        key = (status.st_dev, status.st_ino)
        if key in self._visited:
            return False
        if len(self._visited) == MAX_FOLDERS:
            sentence = Sentence(
                "There are more than {max_folders:,} folders to look through. Choose a folder with only models.",
                max_folders=MAX_FOLDERS,
            )
            self.problems.append(FolderProblem(folder, sentence))
        self._visited.add(key)
        return len(self._visited) <= MAX_FOLDERS

    def _is_new(self, path: Path, name: str = "") -> bool:
        listed = self._seen_files.setdefault(path.resolve(), path)
        if listed is not path:
            self.aliases.setdefault((name or in_utf8(model_name(path))).casefold(), (path, listed))
        return listed is path


def _system_disks() -> set[int]:
    """The disks on which the system shows processes and devices, as far as they are disks of their own."""
    disks = set()
    for name in ("/proc", "/sys", "/dev"):
        with contextlib.suppress(OSError):
            disks.add(os.stat(name).st_dev)
    return disks - {os.stat("/").st_dev}


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        # A link to itself, or a name that is too long.
        return False


def _is_folder(item: os.DirEntry[str]) -> bool:
    try:
        return item.is_dir()
    except OSError:
        return False


def _read(path: Path) -> ModelFacts | str:
    try:
        return read_model(path)
    except GgufError as error:
        return str(error)


def _stamp(path: Path) -> Stamp | None:
    """Path, time and size of a model's files; None if there are none. Missing parts are left out."""
    stamp = []
    for part in parts(path):
        try:
            status = part.stat()
        except OSError:
            continue
        stamp.append((str(part), status.st_mtime_ns, status.st_size))
    return tuple(stamp) or None


def _unique_names(paths: Mapping[Path, str]) -> list[tuple[str, Path]]:
    """A unique name for each path: the given one or the stem, with folders in front if it is taken."""
    taken: Counter[str] = Counter()
    named = []
    for path, given in paths.items():
        folders = [in_utf8(parent.name) for parent in path.parents if parent.name]
        name = given or in_utf8(model_name(path))
        while taken[name.casefold()] and folders:
            name = f"{folders.pop(0)}/{name}"
        taken[name.casefold()] += 1
        count = taken[name.casefold()]
        named.append((name if count == 1 else f"{name} ({count})", path))
    return named


def _by_name(entries: Iterable[ModelEntry], name: str) -> ModelEntry | None:
    wanted = name.casefold().removesuffix(".gguf")
    return next((entry for entry in entries if entry.name.casefold() == wanted), None)


def _by_title(entries: Iterable[ModelEntry], name: str) -> ModelEntry | None:
    titled = [entry for entry in entries if entry.facts and entry.title.casefold() == name.casefold()]
    return titled[0] if len(titled) == 1 else None


def _by_tag(entries: Iterable[ModelEntry], name: str) -> ModelEntry | None:
    base, colon, tag = name.casefold().partition(":")
    if not colon and not base.endswith("-gguf"):  # any folder could have such a name
        return None
    if tag == "latest":
        tag = ""
        named = _by_name(entries, base)
        if named is not None:
            return named
    # Downloads are kept in a folder named after their repository, or in a folder below it.
    before, _, repository = base.rpartition("/")
    maker = before.rpartition("/")[2]  # behind the address of the Hub
    there = [entry for entry in entries if _is_from(entry.path, maker, repository)]
    fitting = [entry for entry in there if not tag or entry.name.casefold().endswith(tag)]
    return fitting[0] if len(fitting) == 1 else None


def _is_from(path: Path, maker: str, repository: str) -> bool:
    """Whether a file is in the folder of a repository; any ``maker``'s where that is ""."""
    folders = [folder for folder in path.parents[:2] if folder.name.casefold() == repository]
    return any(maker in ("", folder.parent.name.casefold()) for folder in folders)
