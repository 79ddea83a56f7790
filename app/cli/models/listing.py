"""What is kept of the models here: the facts that ``models list`` and ``models show`` print."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.cli.terminal.text import table
from models.formatting.figures import parameters, rate, size
from models.formatting.program import PROGRAM, command
from models.formatting.safe_text import one_line

if TYPE_CHECKING:
    from app.settings.model_settings_store import LastUsed
    from models.catalog.catalog import ModelEntry
    from models.files.integrity import GoneFile, MovedFile
    from models.files.provenance import FileOrigin

_HEAD = ["NAME", "PARAMETERS", "TYPE", "SIZE", "TOK/S", "CONTEXT", "ARCHITECTURE", "LICENCE", "LAST USED", "FROM"]


@dataclass(frozen=True, slots=True)
class Known:
    """What was read once for all models."""

    folder: Path
    last_used: LastUsed
    changes: tuple[MovedFile | GoneFile, ...] = ()


def known() -> Known:
    """Read what is kept of models; what is known of a file that was moved goes with it."""
    from app.environment.paths import models_folder, usage_file
    from app.settings.model_settings_store import UsageStore
    from models.files.integrity import MovedFile, look_for_changes

    changes = look_for_changes(models_folder())
    _settle([change for change in changes if isinstance(change, MovedFile)])
    return Known(models_folder(), UsageStore(usage_file()).all(), changes)


def facts(entry: ModelEntry, known: Known) -> dict[str, Any]:
    """One model as JSON says it; what is not known is None."""
    from models.facts.split_files import parts
    from models.files.integrity import IntegrityState, integrity_of
    from models.files.provenance import read_record

    record = read_record(known.folder, entry.path)
    stands = integrity_of(known.folder, parts(entry.path))
    used = known.last_used.of(entry.path)
    header = entry.header
    return {
        "name": entry.name,
        "title": entry.title,
        "path": str(entry.path),
        "architecture": header.architecture,
        "quantisation": header.quantisation,
        "n_params": header.n_params,
        "n_active_params": header.n_active_params,
        "n_bytes": entry.n_bytes,
        "n_ctx_train": header.n_ctx_train,
        "licence": header.licence,
        "source": _source(entry, record),
        "is_verified": stands is IntegrityState.VERIFIED,
        "verified": stands.value,
        "last_used": datetime.fromtimestamp(used, UTC).isoformat(timespec="seconds") if used is not None else None,
        "is_toy": entry.is_toy,
        "problem": entry.problem,
    }


def rate_fields(expected: float | None, measured: float | None) -> dict[str, float | None]:
    """Speeds as JSON has them; None is not known."""
    known = {"predicted_tokens_per_s": expected, "measured_tokens_per_s": measured}
    return {name: round(value, 2) if value is not None else None for name, value in known.items()}


class Rates:
    """How fast models are here, in tokens per second: measured, and expected if ``expects``, which judges each."""

    def __init__(self, *, expects: bool) -> None:
        from app.environment.paths import cache_folder
        from app.fit_reports.fit_reports import current_machine
        from app.library.measured_rates import MeasuredRates

        self._measured = MeasuredRates(cache_folder())
        self._here = current_machine() if expects else None

    def measured(self, entry: ModelEntry) -> float | None:
        """What a model reached lately."""
        return self._measured.of(entry)

    def expected(self, entry: ModelEntry) -> float | None:
        """What is predicted at an empty context."""
        from app.fit_reports.fit_reports import report_file

        if self._here is None or entry.facts is None or entry.problem is not None:
            return None
        speed = report_file(entry.facts, entry.path, self._here, is_quick=True).speed
        return speed.empty if speed is not None else None

    def as_fields(self, entry: ModelEntry) -> dict[str, float | None]:
        """Both as JSON has them."""
        return rate_fields(self.expected(entry), self.measured(entry))

    def as_text(self, entry: ModelEntry) -> str:
        """The measured one, else the expected one with a tilde; empty where neither is known."""
        measured = self.measured(entry)
        if measured is not None:
            return rate(measured)
        expected = self.expected(entry)
        return f"~{rate(expected)}" if expected is not None else ""


def described(facts: dict[str, Any]) -> list[list[str]]:
    """One model's facts as rows of label and text, without what is not known."""
    active = facts["n_active_params"]
    n_params = parameters(facts["n_params"])
    n_params += f", {parameters(active)} active" if 0 < active < facts["n_params"] else ""
    rows = [
        ("name", facts["name"]),
        ("title", facts["title"]),
        ("file", facts["path"]),
        ("architecture", facts["architecture"]),
        ("type", facts["quantisation"]),
        ("parameters", n_params),
        ("size", size(facts["n_bytes"]) if facts["n_bytes"] else ""),
        ("context", f"{facts['n_ctx_train']:,} tokens" if facts["n_ctx_train"] else ""),
        ("licence", facts["licence"]),
        ("from", "a toy to try everything with" if facts["is_toy"] else facts["source"]),
        ("verified", facts["verified"]),
        ("last used", _local_time(facts["last_used"])),
        ("problem", facts["problem"]),
    ]
    return [[label, text] for label, text in rows if text]


def listing(entries: Sequence[ModelEntry], rates: Rates) -> str:
    """All models as a table, below it those that cannot be used and why, and what happened behind the app's back."""
    read = known()
    rows = [_row(entry, facts(entry, read), rates.as_text(entry)) for entry in entries if entry.problem is None]
    broken = [[entry.name, entry.problem] for entry in entries if entry.problem is not None]
    blocks = [table([_HEAD, *rows]) if rows else f"There are no models yet. `{PROGRAM} models search` finds some."]
    if broken:
        blocks.append(f"Cannot be used as models:\n{table(broken)}")
    if read.changes:
        blocks.append("\n".join(one_line(_told(change)) for change in read.changes))
        _settle(read.changes)  # it is said once
    return "\n\n".join(blocks)


def _told(change: MovedFile | GoneFile) -> str:
    from models.files.integrity import GoneFile

    record = change.record
    if not isinstance(change, GoneFile) or not record.repo_id:
        return change.sentence
    return f"{change.sentence} `{command('models pull', f'{record.repo_id}:{record.path}')}` downloads it again."


def _settle(changes: Sequence[MovedFile | GoneFile]) -> None:
    from app.environment.paths import models_folder
    from models.files.integrity import accept_changes

    try:
        accept_changes(models_folder(), changes)
    except OSError as error:
        print(f"{models_folder()} cannot be written: {error.strerror}.", file=sys.stderr)


def _row(entry: ModelEntry, known: dict[str, Any], speed: str) -> list[str]:
    header = entry.header
    is_sparse = 0 < header.n_active_params < header.n_params
    used = known["last_used"]
    origin = "a toy to try everything with" if entry.is_toy else known["source"] or ""
    checked = "" if known["verified"] == "not downloaded here" else f"{known['verified']}, "
    return [
        entry.name,
        parameters(header.n_params) + (f", {parameters(header.n_active_params)} active" if is_sparse else ""),
        header.quantisation,
        size(entry.n_bytes),
        speed,
        f"{header.n_ctx_train:,}",
        header.architecture,
        header.licence or "",
        _local_time(used),
        f"{checked}{origin}".rstrip(", "),
    ]


def _local_time(used: str | None) -> str:
    return datetime.fromisoformat(used).astimezone().strftime("%Y-%m-%d %H:%M") if used else ""


def _source(entry: ModelEntry, record: FileOrigin | None) -> str | None:
    """Where a model came from, as far as is known."""
    if record is not None and record.made_from:
        return f"quantised here from {record.made_from}"
    if record is not None:
        return f"{record.repo_id}@{record.commit[:12]}"
    return entry.origin or None
