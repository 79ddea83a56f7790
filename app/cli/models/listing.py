"""Facts of the models here: those that ``models list`` and ``models show`` print."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from app.cli.terminal.text import table
from models.formatting.figures import expected_speed, parameters, rounded, size, speed
from models.formatting.program import PROGRAM, command
from models.formatting.safe_text import one_line

if TYPE_CHECKING:
    from models.catalog.catalog import ModelEntry
    from models.files.integrity import IntegrityState
    from models.library.values import ModelRow, Notice

_HEAD = ["NAME", "PARAMETERS", "TYPE", "SIZE", "SPEED", "CONTEXT", "ARCHITECTURE", "LICENCE", "LAST USED", "FROM"]


def facts(row: ModelRow) -> dict[str, Any]:
    """One model as JSON says it; what is not known is None."""
    header, used = row.header, row.last_used
    return {
        "name": row.name,
        "title": row.title,
        "path": row.path,
        "architecture": header.architecture,
        "quantisation": header.quantisation,
        "n_params": header.n_params,
        "n_active_params": header.n_active_params,
        "n_bytes": row.n_bytes,
        "n_ctx_train": header.n_ctx_train,
        "licence": header.licence,
        "source": row.source or row.origin or None,
        "is_verified": row.is_verified,
        "verified": _verified(row).value,
        "last_used": datetime.fromtimestamp(used, UTC).isoformat(timespec="seconds") if used is not None else None,
        "is_toy": row.is_toy,
        "problem": row.problem,
    }


def _verified(row: ModelRow) -> IntegrityState:
    from models.files.integrity import IntegrityState

    if row.is_verified:
        return IntegrityState.VERIFIED
    return IntegrityState.CHANGED if row.has_changed else IntegrityState.UNKNOWN


def rate_fields(expected: float | None, measured: float | None) -> dict[str, float | None]:
    """Speeds as JSON has them; None is not known."""
    return {"predicted_tokens_per_s": rounded(expected, 2), "measured_tokens_per_s": rounded(measured, 2)}


class Rates:
    """How fast models are expected to be here, in tokens per second; nothing unless ``expects``."""

    def __init__(self, *, expects: bool) -> None:
        from app.fit_reports.fit_reports import current_machine

        self._here = current_machine() if expects else None

    def expected(self, entry: ModelEntry) -> float | None:
        """Return the predicted rate at an empty context."""
        from app.fit_reports.fit_reports import report_file

        if self._here is None or entry.facts is None or entry.problem is not None:
            return None
        found = report_file(entry.facts, entry.path, self._here, is_quick=True).speed
        return found.empty if found is not None else None

    def as_text(self, entry: ModelEntry, row: ModelRow) -> str:
        """The measured one, else the expected one, marked as such; empty where neither is known."""
        if row.measured_rate is not None:
            return speed(row.measured_rate)
        expected = self.expected(entry)
        return expected_speed(expected) if expected is not None else ""


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
    """All models as a table; below it those that cannot be used and why, and files that others moved or deleted."""
    from app.library.model_rows import FileChanges, RowReader

    changes = FileChanges()
    notices, known = changes.look(), RowReader()
    usable = [(entry, known.row(entry)) for entry in entries if entry.problem is None]
    rows = [_row(row, rates.as_text(entry, row)) for entry, row in usable]
    broken = [[entry.name, entry.problem] for entry in entries if entry.problem is not None]
    blocks = [table([_HEAD, *rows]) if rows else f"There are no models yet. `{PROGRAM} models search` finds some."]
    if broken:
        blocks.append(f"Cannot be used as models:\n{table(broken)}")
    if notices:
        blocks.append("\n".join(one_line(_told(notice)) for notice in notices))
    for notice in notices:
        changes.dismiss(notice.path)  # it is told once
    return "\n\n".join(blocks)


def _told(notice: Notice) -> str:
    pull = command("models pull", f"{notice.repo_id}:{notice.wanted}")
    return f"{notice.sentence} `{pull}` does that." if notice.repo_id else notice.sentence


def _row(row: ModelRow, pace: str) -> list[str]:
    header = row.header
    is_sparse = 0 < header.n_active_params < header.n_params
    known = facts(row)
    origin = "a toy to try everything with" if row.is_toy else known["source"] or ""
    checked = f"{known['verified']}, " if row.is_verified or row.has_changed else ""
    return [
        row.name,
        parameters(header.n_params) + (f", {parameters(header.n_active_params)} active" if is_sparse else ""),
        header.quantisation,
        size(row.n_bytes),
        pace,
        f"{header.n_ctx_train:,}",
        header.architecture,
        header.licence or "",
        _local_time(known["last_used"]),
        f"{checked}{origin}".rstrip(", "),
    ]


def _local_time(used: str | None) -> str:
    return datetime.fromisoformat(used).astimezone().strftime("%Y-%m-%d %H:%M") if used else ""
