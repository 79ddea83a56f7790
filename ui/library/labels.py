"""Sizes, speeds and times of models and downloads as people read them. No Qt here."""

from __future__ import annotations

import time

from models.download.progress import DownloadPhase, DownloadProgress
from models.formatting import figures
from models.formatting.figures import count, parameters, speed
from models.library.values import (
    Download,
    Fit,
    ModelDetails,
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
    Fit.GREEN: ("fits", "accent"),
    Fit.TIGHT: ("tight", "warning"),
    Fit.NONE: ("does not fit", "danger"),
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
    return joined(
        row.architecture, n_parameters(row.n_params, row.n_active_params), row.quantisation, size(row.n_bytes)
    )


def model_speed(row: ModelRow) -> str:
    """Return a model's speed: measured, else what is expected with a tilde; "" where neither is known."""
    if row.measured_rate:
        return speed(row.measured_rate)
    return f"~{speed(row.predicted_rate)}" if row.predicted_rate else ""


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
    facts = [
        ("Architecture", row.architecture),
        ("Parameters", n_parameters(row.n_params, row.n_active_params)),
        ("Quantisation", row.quantisation),
        ("Size", size(row.n_bytes)),
        ("Context", f"{count(row.n_ctx_train)} tokens" if row.n_ctx_train else ""),
        ("Licence", row.licence or ""),
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
    facts = [
        ("Memory", FITS[judged.fit][0] if judged.fit is not None else ""),
        ("Expected", speed(judged.empty_rate) if judged.empty_rate else "not known yet"),
    ]
    if judged.full_rate:
        facts.append(("At full context", f"{speed(judged.full_rate)} behind {count(judged.n_ctx)} tokens"))
    if judged.gain is not None and judged.empty_rate:
        known = "measured" if judged.is_gain_measured else "expected"
        facts.append(("With drafts", f"{speed(judged.empty_rate * judged.gain)} ({judged.gain:.2f}× {known})"))
    facts.append(("Measured", _measured(judged)))
    return [(label, value or DASH) for label, value in facts]


def _measured(judged: ModelFitReport) -> str:
    if not judged.measured_rate:
        return "not yet: it is when you chat with it"
    plain = judged.measured_plain_rate or 0.0
    without = f", {speed(plain)} without drafts" if judged.measured_rate > 1.05 * plain > 0 else ""
    return f"{speed(judged.measured_rate)}{without}, behind {count(judged.measured_n_past)} tokens"


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


def header_facts(details: ModelDetails) -> Facts:
    """Return what a model's header says."""
    facts = [
        ("Layers", count(details.n_layers) if details.n_layers else ""),
        ("Experts", f"{details.n_experts_used} of {details.n_experts} for each token" if details.n_experts else "none"),
        ("Read per token", size(details.bytes_per_token)),
        ("Cache per token", size(details.kv_bytes_per_token)),
        ("Vocabulary", f"{count(details.n_vocab)} tokens" if details.n_vocab else ""),
        ("Tokenizer", details.tokenizer or ""),
        ("Chat template", "yes" if details.has_chat_template else "no"),
        ("Files" if len(details.files) > 1 else "File", "\n".join(details.files)),
    ]
    return [(label, value or DASH) for label, value in facts]


def judged_facts(judged: RemoteFitReport) -> Facts:
    """Return what is known of a model before it is downloaded."""
    facts = [
        ("Parameters", n_parameters(judged.n_params, judged.n_active_params)),
        ("Context", f"{count(judged.n_ctx_train)} tokens" if judged.n_ctx_train else ""),
        ("Read per token", size(judged.bytes_per_token)),
        ("Cache per token", size(judged.kv_bytes_per_token)),
        ("Memory", FITS[judged.fit][0] if judged.fit is not None else ""),
        ("Expected speed", speed(judged.predicted_rate) if judged.predicted_rate else ""),
    ]
    if judged.full_rate:
        facts.append((f"At {count(judged.n_ctx)} tokens", speed(judged.full_rate)))
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
