"""Sizes, speeds and times of models and downloads as people read them. No Qt here."""

from __future__ import annotations

import time

from models.download.progress import DownloadPhase, DownloadProgress
from models.estimate.fit.summary import FitVerdict
from models.estimate.speed.speeds import MeasuredSpeed
from models.formatting import figures
from models.formatting.figures import count, parameters, speed
from models.library.values import (
    Download,
    ModelFitReport,
    ModelRow,
    OfferRow,
    PartnerRow,
    Quantising,
    RemoteFitReport,
    SuggestedRow,
)
from models.quantise.progress import QuantisePhase, QuantiseProgress

DASH = "–"
DOT = "  ·  "
FITS = {
    FitVerdict.GREEN: ("fits", "accent"),
    FitVerdict.TIGHT: ("tight", "warning"),
    FitVerdict.NO: ("does not fit", "danger"),
    FitVerdict.UNUSABLE: ("", "warning"),
}
Facts = list[tuple[str, str]]


def joined(*parts: str) -> str:
    """Return what is known, with dots between."""
    return DOT.join(part for part in parts if part)


def size(n_bytes: float) -> str:
    """Return bytes as 4.9 GB, 12 MB or 4 KB; "" for none."""
    return figures.size(n_bytes) if n_bytes > 0 else ""


def n_parameters(total: int, active: int) -> str:
    """Return parameters, with the active ones where a token reads only some; "" for none."""
    if not total:
        return ""
    is_mixture = 0 < active < 0.9 * total
    return f"{parameters(total)}, {parameters(active)} active" if is_mixture else parameters(total)


def day(seconds: float | None) -> str:
    """Return when it was, as a day; "" for never."""
    if not seconds:
        return ""
    at = time.localtime(seconds)
    return f"{at.tm_mday} {time.strftime('%B %Y', at)}"


def model_line(row: ModelRow) -> str:
    """Return the second line of a model in a list."""
    header = row.header
    n_params = n_parameters(header.n_params, header.n_active_params)
    return joined(header.architecture, n_params, header.quantisation, size(row.n_bytes))


def model_speed(row: ModelRow) -> str:
    """Return a model's speed: measured, else what is expected, marked as such; "" where neither is known."""
    if row.measured_rate:
        return speed(row.measured_rate)
    return about(row.predicted_rate)


def fit_and_speed(row: ModelRow) -> str:
    """Return in a few words whether a model fits here, and its speed; "" where neither is known."""
    return joined(FITS[row.verdict][0] if row.verdict is not None else "", model_speed(row))


def about(rate: float | None) -> str:
    """Return a predicted speed, marked as one; "" where it is not known."""
    return f"≈ {speed(rate)}" if rate else ""


def suggested_line(row: SuggestedRow) -> str:
    """Return the second line of a model to begin with: what for, how large, what else is known."""
    n_bytes = f"≈ {size(row.n_bytes)}" if row.is_size_estimate else size(row.n_bytes)
    what = (n_parameters(row.n_params, row.n_active_params), row.quantisation, n_bytes)
    return joined(row.use.capitalize(), *what, row.good_for, row.drafting)


def model_facts(row: ModelRow) -> Facts:
    """Return what a row says of a model, a dash where it does not."""
    header = row.header
    facts = [
        ("Architecture", header.architecture),
        ("Parameters", n_parameters(header.n_params, header.n_active_params)),
        ("Quantisation", header.quantisation),
        ("Size", size(row.n_bytes)),
        ("Context", f"{count(header.n_ctx_train)} tokens" if header.n_ctx_train else ""),
        ("Licence", header.licence or ""),
        ("Source", row.source or row.origin or ("comes with Slipstream" if row.is_toy else "")),
        ("Verified", _verified(row)),
        ("Last used", day(row.last_used)),
    ]
    return [(label, value or DASH) for label, value in facts]


def _verified(row: ModelRow) -> str:
    if row.is_verified:
        return "yes, against the Hub's SHA-256"
    return "no, changed since download" if row.has_changed else "" if row.is_toy else "no"


def machine_facts(judged: ModelFitReport) -> Facts:
    """Return how fast a model is here: expected, with drafts, and measured."""
    predicted = judged.fit.speed
    facts = [
        ("Memory", FITS[judged.fit.verdict][0]),
        ("Expected", speed(predicted.empty) if predicted is not None else "not known yet"),
    ]
    if predicted is not None:
        facts.append(("At full context", f"{speed(predicted.full)} behind {count(predicted.n_ctx)} tokens"))
        if judged.gain is not None:
            known = "measured" if judged.is_gain_measured else "expected"
            facts.append(("With drafts", f"{speed(predicted.empty * judged.gain)} ({judged.gain:.2f}× {known})"))
    facts.append(("Measured", _measured(judged.fit.measured)))
    return [(label, value or DASH) for label, value in facts]


def _measured(found: MeasuredSpeed | None) -> str:
    if found is None:
        return "not yet: it is when you chat with it"
    without = f", {speed(found.plain_rate)} without drafts" if found.rate > 1.05 * found.plain_rate > 0 else ""
    return f"{speed(found.rate)}{without}, behind {count(found.n_past)} tokens"


def partner_gain(partner: PartnerRow) -> str:
    """Return what a partner gains: measured with what was expected, or expected."""
    expected = f"{partner.predicted:.2f}× expected" if partner.predicted else ""
    if partner.measured is None:
        return expected
    return f"{partner.measured:.2f}× measured" + (f" ({expected})" if expected else "")


def offer_line(offer: OfferRow) -> str:
    """Return what could be downloaded to draft, and what that would bring."""
    name = f"{offer.repo_id}:{offer.wanted}" if offer.wanted else offer.repo_id
    doubt = "" if offer.is_checked else ". Its vocabulary is compared once it is here"
    return f"{name} ({offer.kind}, {size(offer.n_bytes)}) would draft: {offer.gain:.1f}× expected{doubt}."


def header_facts(row: ModelRow) -> Facts:
    """Return what else a model's header says, and which files it has."""
    header, files = row.header, row.files
    facts = [
        ("Layers", count(header.n_layers) if header.n_layers else ""),
        ("Experts", f"{header.n_experts_used} of {header.n_experts} for each token" if header.n_experts else "none"),
        ("Read per token", size(header.bytes_per_token)),
        ("Cache per token", size(header.kv_bytes_per_token)),
        ("Vocabulary", f"{count(header.n_vocab)} tokens" if header.n_vocab else ""),
        ("Tokenizer", header.tokenizer or ""),
        ("Chat template", "yes" if header.has_chat_template else "no"),
        ("Files" if len(files) > 1 else "File", "\n".join(files)),
    ]
    return [(label, value or DASH) for label, value in facts]


def judged_facts(judged: RemoteFitReport) -> Facts:
    """Return what is known of a model before it is downloaded."""
    header, predicted = judged.header, judged.fit.speed
    facts = [
        ("Parameters", n_parameters(header.n_params, header.n_active_params)),
        ("Context", f"{count(header.n_ctx_train)} tokens" if header.n_ctx_train else ""),
        ("Read per token", size(header.bytes_per_token)),
        ("Cache per token", size(header.kv_bytes_per_token)),
        ("Memory", FITS[judged.fit.verdict][0]),
        ("Expected speed", speed(predicted.empty) if predicted is not None else ""),
    ]
    if predicted is not None:
        facts.append((f"At {count(predicted.n_ctx)} tokens", speed(predicted.full)))
    return [(label, value or DASH) for label, value in facts]


_PHASES = {
    DownloadPhase.QUEUED: "Waits for its turn",
    DownloadPhase.OTHER_INSTANCE: "Another Slipstream downloads it",
    DownloadPhase.CHECKING: "Checking what is there",
    DownloadPhase.DOWNLOADING: "",
    DownloadPhase.VERIFYING: "Verifying",
    DownloadPhase.PAUSED: "Paused",
    DownloadPhase.FAILED: "Failed",
    DownloadPhase.CANCELLED: "Cancelled",
    DownloadPhase.DONE: "Downloaded and verified",
}


_QUANTISE_PHASES = {
    QuantisePhase.QUEUED: "Waits for its turn",
    QuantisePhase.WAITING: "Another Slipstream makes it",
    QuantisePhase.SIZING: "Looking at the model",
    QuantisePhase.QUANTISING: "Quantising",
    QuantisePhase.VERIFYING: "Loading the result, to see that it works",
    QuantisePhase.FAILED: "Failed",
}


def quantise_line(quantising: Quantising) -> str:
    """Return how the making of a copy goes: what it does, how much is done, how long still."""
    made_of = f"{quantising.type} of {quantising.source}"
    if quantising.phase is QuantisePhase.DONE:
        return joined("Made, and it loads", made_of, size(quantising.n_bytes))
    progress = quantising.progress
    phase = _QUANTISE_PHASES[progress.phase]
    is_going = progress.phase is QuantisePhase.QUANTISING
    done = f"{share(progress):.0%} of {size(progress.n_total)}" if is_going else ""
    left = f"{figures.duration(max(1.0, progress.eta))} left" if is_going and progress.eta is not None else ""
    return joined(phase, done, left, "" if is_going else made_of)


def download_line(download: Download) -> str:
    """Return how a download goes: what it does, how much is there, how fast, how long still."""
    progress = download.progress
    phase = _PHASES[progress.phase]
    if progress.phase is DownloadPhase.DONE:
        return joined(phase, size(progress.n_total))
    there = f"{size(progress.n_done) or '0 MB'} of {size(progress.n_total)}" if progress.n_total else ""
    pace = f"{size(progress.bytes_per_second)}/s" if progress.bytes_per_second > 0 else ""
    left = f"{figures.duration(progress.eta)} left" if progress.eta is not None and pace else ""
    return joined(phase, there, pace, left)


def share(progress: DownloadProgress | QuantiseProgress) -> float:
    """Return how much is done, from 0 to 1."""
    return min(1.0, progress.n_done / progress.n_total) if progress.n_total else 0.0
