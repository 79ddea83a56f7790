"""Sizes, speeds and times of models and downloads as people read them. No Qt here."""

from __future__ import annotations

from models.download.progress import DownloadPhase, DownloadProgress
from models.estimate.fit.summary import FitVerdict
from models.estimate.speed.speeds import MeasuredSpeed
from models.formatting import figures
from models.formatting.figures import count, expected_speed, parameters, speed
from models.formatting.safe_text import one_line
from models.library.values import (
    Download,
    FolderPlace,
    ModelFitReport,
    ModelRow,
    OfferRow,
    PartnerRow,
    Quantising,
    RemoteFitReport,
    SuggestedRow,
)
from models.quantise.progress import QuantisePhase, QuantiseProgress
from ui.language import DOT, day, dotted, of_data, tr

DASH = "–"
HUB_CACHE = "Hugging Face cache"  # the kind of that folder
FITS = {
    FitVerdict.GREEN: (tr("fits"), "accent"),
    FitVerdict.TIGHT: (tr("tight"), "warning"),
    FitVerdict.NO: (tr("does not fit"), "danger"),
    FitVerdict.UNUSABLE: ("", "warning"),
}
Facts = list[tuple[str, str]]


def unbroken(line: str) -> str:
    """Return a line with dots as one that wraps at them alone."""
    return DOT.join(part.replace(" ", "\N{NO-BREAK SPACE}") for part in line.split(DOT))


def size_of(n_bytes: float) -> str:
    """Return bytes as 4.9 GB, 12 MB or 4 KB; "" for none."""
    return figures.size(n_bytes) if n_bytes > 0 else ""


def place_line(place: FolderPlace) -> str:
    """Return that another program has models on this machine."""
    kind = tr("The Hugging Face cache") if place.kind == HUB_CACHE else place.kind
    return tr("{kind} has models on this machine, in {path}.", kind=kind, path=place.path)


def n_parameters(total: int, active: int) -> str:
    """Return parameters, with the active ones where a token reads only some; "" for none."""
    if not total:
        return ""
    is_mixture = 0 < active < 0.9 * total
    return (
        tr("{total}, {active} active", total=parameters(total), active=parameters(active))
        if is_mixture
        else parameters(total)
    )


def model_line(row: ModelRow) -> str:
    """Return the second line of a model in a list."""
    header = row.header
    n_params = n_parameters(header.n_params, header.n_active_params)
    return dotted(n_params, size_of(row.n_bytes), header.quantisation, header.architecture)


def model_speed(row: ModelRow) -> str:
    """Return a model's speed: measured, else what is expected, marked as such; "" where neither is known."""
    if row.measured_rate:
        return speed(row.measured_rate)
    return about(row.predicted_rate)


def fit_and_speed(row: ModelRow) -> str:
    """Return in a few words whether a model fits here, and its speed; "" where neither is known."""
    return dotted(FITS[row.verdict][0] if row.verdict is not None else "", model_speed(row))


def about(rate: float | None) -> str:
    """Return a predicted speed, marked as one; "" where it is not known."""
    return expected_speed(rate) if rate else ""


def suggested_line(row: SuggestedRow) -> str:
    """Return the second line of a model to begin with: what for, how large, what else is known."""
    n_bytes = f"≈ {size_of(row.n_bytes)}" if row.is_size_estimate else size_of(row.n_bytes)
    what = (n_parameters(row.n_params, row.n_active_params), n_bytes, row.quantisation)
    use = of_data(row.use)
    return dotted(use[:1].upper() + use[1:], *what, of_data(row.good_for), row.drafting)


def model_facts(row: ModelRow) -> Facts:
    """Return what is known of a model."""
    header = row.header
    facts = [
        (tr("Architecture"), header.architecture),
        (tr("Parameters"), n_parameters(header.n_params, header.n_active_params)),
        (tr("Quantisation"), header.quantisation),
        (tr("Size"), size_of(row.n_bytes)),
        (
            tr("Context"),
            tr("{n_ctx_train} tokens", n_ctx_train=count(header.n_ctx_train)) if header.n_ctx_train else "",
        ),
        (tr("Licence"), header.licence or ""),
        (tr("Source"), row.source or row.origin or (tr("comes with Slipstream") if row.is_toy else "")),
        (tr("Verified"), _verified(row)),
        (tr("Last used"), day(row.last_used) if row.last_used else ""),
    ]
    return [(label, value) for label, value in facts if value]


def _verified(row: ModelRow) -> str:
    if row.is_verified:
        return tr("yes, against the Hub's SHA-256")
    return tr("no, changed since download") if row.has_changed else "" if row.is_toy else tr("no")


def machine_facts(judged: ModelFitReport) -> Facts:
    """Return how fast a model is here: expected, with drafts, and measured."""
    predicted = judged.fit.speed
    facts = [
        (tr("Memory"), FITS[judged.fit.verdict][0]),
        (tr("Expected"), expected_speed(predicted.empty) if predicted is not None else tr("not known yet")),
    ]
    if predicted is not None:
        facts.append(
            (
                tr("At full context"),
                tr("{full} after {n_ctx} tokens", full=expected_speed(predicted.full), n_ctx=count(predicted.n_ctx)),
            )
        )
        if judged.gain is not None:
            rate = expected_speed(predicted.empty * judged.gain)
            words = (
                tr("{rate} ({gain:.2f}× measured)", rate=rate, gain=judged.gain)
                if judged.is_gain_measured
                else tr("{rate} ({gain:.2f}× expected)", rate=rate, gain=judged.gain)
            )
            facts.append((tr("With drafts"), words))
    facts.append((tr("Measured"), _measured(judged.fit.measured)))
    return [(label, value or DASH) for label, value in facts]


def _measured(found: MeasuredSpeed | None) -> str:
    if found is None:
        return tr("not yet: chat with it while nothing else is busy")
    without = (
        tr(", {plain_rate} without drafts", plain_rate=speed(found.plain_rate))
        if found.rate > 1.05 * found.plain_rate > 0
        else ""
    )
    return tr(
        "{rate}{without}, after {n_past} tokens", rate=speed(found.rate), without=without, n_past=count(found.n_past)
    )


def downloads_of(number: int) -> str:
    """Return how often a repository was downloaded, in words."""
    return tr("1 download") if number == 1 else tr("{downloads} downloads", downloads=count(number))


def partner_gain(partner: PartnerRow) -> str:
    """Return what a partner gains: what was measured here, else what is expected; "" where neither is known."""
    if partner.drafted_nothing:
        return tr("drafted nothing")
    if partner.measured is not None:
        return tr("{measured:.2f}× measured", measured=partner.measured)
    return tr("{predicted:.2f}× expected", predicted=partner.predicted) if partner.predicted else ""


def offer_line(offer: OfferRow) -> str:
    """Return what could be downloaded to draft, and what that would bring."""
    name = f"{offer.repo_id}:{offer.wanted}" if offer.wanted else offer.repo_id
    doubt = "" if offer.is_checked else tr(". Its vocabulary is compared once it is here")
    return tr(
        "{name} ({kind}, {n_bytes}) would draft: {gain:.1f}× expected{doubt}.",
        name=name,
        kind=offer.kind,
        n_bytes=size_of(offer.n_bytes),
        gain=offer.gain,
        doubt=doubt,
    )


def header_rows(row: ModelRow) -> Facts:
    """Return what else a model's header says, and which files it has."""
    header, files = row.header, row.files
    facts = [
        (tr("Name"), one_line(row.title) if row.title != row.name else ""),
        (tr("Layers"), count(header.n_layers) if header.n_layers else ""),
        (
            tr("Experts"),
            tr(
                "{n_experts_used} of {n_experts} for each token",
                n_experts_used=header.n_experts_used,
                n_experts=header.n_experts,
            )
            if header.n_experts
            else tr("none"),
        ),
        (tr("Read per token"), size_of(header.bytes_per_token)),
        (tr("Cache per token"), size_of(header.kv_bytes_per_token)),
        (tr("Vocabulary"), tr("{n_vocab} tokens", n_vocab=count(header.n_vocab)) if header.n_vocab else ""),
        (tr("Tokenizer"), header.tokenizer or ""),
        (tr("Chat template"), tr("yes") if header.has_chat_template else tr("no")),
        (tr("Files") if len(files) > 1 else tr("File"), "\n".join(files)),
    ]
    return [(label, value or DASH) for label, value in facts]


def judged_facts(judged: RemoteFitReport) -> Facts:
    """Return what is known of a model before it is downloaded."""
    header, predicted = judged.header, judged.fit.speed
    facts = [
        (tr("Parameters"), n_parameters(header.n_params, header.n_active_params)),
        (
            tr("Context"),
            tr("{n_ctx_train} tokens", n_ctx_train=count(header.n_ctx_train)) if header.n_ctx_train else "",
        ),
        (tr("Read per token"), size_of(header.bytes_per_token)),
        (tr("Cache per token"), size_of(header.kv_bytes_per_token)),
        (tr("Memory"), FITS[judged.fit.verdict][0]),
        (tr("Expected speed"), expected_speed(predicted.empty) if predicted is not None else tr("not known yet")),
    ]
    if predicted is not None:
        facts.append((tr("At {n_ctx} tokens", n_ctx=count(predicted.n_ctx)), expected_speed(predicted.full)))
    return [(label, value or DASH) for label, value in facts]


_PHASES = {
    DownloadPhase.QUEUED: tr("Waits for its turn"),
    DownloadPhase.OTHER_INSTANCE: tr("Another Slipstream downloads it"),
    DownloadPhase.CHECKING: tr("Checking what is there"),
    DownloadPhase.DOWNLOADING: "",
    DownloadPhase.VERIFYING: tr("Verifying"),
    DownloadPhase.PAUSED: tr("Paused"),
    DownloadPhase.FAILED: tr("Failed"),
    DownloadPhase.CANCELLED: tr("Cancelled"),
    DownloadPhase.DONE: tr("Downloaded and verified"),
}


_QUANTISE_PHASES = {
    QuantisePhase.QUEUED: tr("Waits for its turn"),
    QuantisePhase.WAITING: tr("Another Slipstream makes it"),
    QuantisePhase.SIZING: tr("Looking at the model"),
    QuantisePhase.QUANTISING: tr("Quantising"),
    QuantisePhase.VERIFYING: tr("Loading the result, to see that it works"),
    QuantisePhase.FAILED: tr("Failed"),
}


def quantise_line(quantising: Quantising) -> str:
    """Return how the making of a copy goes: what it does, how much is done, how long still."""
    made_of = tr("{type} of {source}", type=quantising.type, source=quantising.source)
    if quantising.phase is QuantisePhase.DONE:
        return dotted(tr("Made, and it loads"), made_of, size_of(quantising.n_bytes))
    progress = quantising.progress
    phase = _QUANTISE_PHASES[progress.phase]
    is_going = progress.phase is QuantisePhase.QUANTISING
    done = tr("{share:.0%} of {n_total}", share=share(progress), n_total=size_of(progress.n_total)) if is_going else ""
    left = (
        tr("{duration} left", duration=figures.duration(max(1.0, progress.eta)))
        if is_going and progress.eta is not None
        else ""
    )
    return dotted(phase, done, left, "" if is_going else made_of)


def download_line(download: Download) -> str:
    """Return how a download goes: what it does, how much is there, how fast, how long still."""
    progress = download.progress
    phase = _PHASES[progress.phase]
    if progress.is_silent:
        phase = tr("Nothing has arrived for {duration}, still trying", duration=figures.duration(progress.silence))
    if progress.phase is DownloadPhase.DONE:
        return dotted(phase, size_of(progress.n_total))
    there = (
        tr(
            "{value} of {n_total}",
            value=size_of(progress.n_done) or tr("0 MB"),
            n_total=size_of(progress.n_total),
        )
        if progress.n_total
        else ""
    )
    is_coming = progress.bytes_per_second > 0 and not progress.is_silent
    pace = f"{size_of(progress.bytes_per_second)}/s" if is_coming else ""
    left = tr("{duration} left", duration=figures.duration(progress.eta)) if progress.eta is not None and pace else ""
    return dotted(phase, there, pace, left)


def has_bar(download: Download) -> bool:
    """Whether a bar shows how far a download is: not of one that failed before anything came."""
    return download.phase is not DownloadPhase.DONE and (download.trouble is None or share(download.progress) > 0)


def share(progress: DownloadProgress | QuantiseProgress) -> float:
    """Return how much is done, from 0 to 1."""
    return min(1.0, progress.n_done / progress.n_total) if progress.n_total else 0.0


def downloads_at_work(downloads: tuple[Download, ...]) -> int:
    """Return how many downloads have not come to their end."""
    at_rest = (DownloadPhase.DONE, DownloadPhase.FAILED, DownloadPhase.PAUSED)
    return sum(download.phase not in at_rest for download in downloads)
