"""One reply while it grows, and what it cost once it is complete."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from app.client.http_client import AnsweringModel, Finished, ReplyEvent, ReplyProgress, TextDelta, Usage
from core.values.engine_options import DEFAULT_KV_TYPE
from core.values.errors import SlipstreamError
from core.values.messages import FinishReason
from models.formatting.figures import how_many, speed


class CollectedReply:
    """Collects the events of one reply."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self.finish_reason: str | None = None
        self.model: str | None = None
        self.timings: dict[str, Any] = {}
        self.usage: dict[str, Any] = {}

    @property
    def text(self) -> str:
        """The text that has come so far."""
        return "".join(self._parts)

    def collect(
        self,
        events: Iterable[ReplyEvent],
        show: Callable[[str], None],
        show_progress: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Take events until they end, and hand each piece of text to ``show`` as it comes.

        ``show_progress`` gets a line about a reply that is thought over first, and "" when that is over.
        """
        for event in events:
            match event:
                case ReplyProgress(fields):
                    show_progress(progress_line(fields))
                case TextDelta(text):
                    if not self._parts:
                        show_progress("")
                    self._parts.append(text)
                    show(text)
                case Finished(reason, timings):
                    self.finish_reason, self.timings = reason, dict(timings)
                case Usage(fields):
                    self.usage = dict(fields)
                case AnsweringModel(model):
                    self.model = model

    def as_json(self, broken_by: BaseException | None = None) -> dict[str, Any]:
        """Return the reply as the object that ``--json`` prints; ``broken_by`` is what ended it too early.

        ``finish_reason`` is then ``failed``, with the sentence in ``error``, or ``cancelled`` for Ctrl-C.
        """
        broken: dict[str, Any] = {}
        if isinstance(broken_by, SlipstreamError):
            broken = {"finish_reason": FinishReason.FAILED, "error": broken_by.message}
        elif broken_by is not None:
            broken = {"finish_reason": FinishReason.CANCELLED}
        return {
            "text": self.text,
            "finish_reason": self.finish_reason,
            "usage": self.usage,
            "timings": self.timings,
            "model": self.model,
            **broken,
        }

    def receipt(self, asked: str | None) -> str:
        """Return one line: tokens and their speed, time to first token, prompt, drafts if there were any.

        What they brought is said where the engine knows what plain decoding takes.
        The KV cache is named where it is not of the usual type, and the model where another one was ``asked``.
        """
        timings = self.timings
        # Only for models of remotes, whose names begin with the remote's: a remote says its model's name without that.
        # Models of this machine answer by names that may differ from what was asked, as from an alias.
        wanted, name = (asked or "").casefold(), (self.model or "").casefold()
        is_other = "/" in wanted and bool(name) and wanted != name and not wanted.endswith(f"/{name}")
        answered = [f"answered by {self.model}"] if is_other else []
        if not timings:
            return " · ".join([f"{self.usage.get('completion_tokens', '?')} tokens", *answered])
        parts = [
            *answered,
            f"{_count(timings, 'decode_tokens')} at {speed(timings.get('decode_per_second') or 0)}",
            f"first token after {(timings.get('ttft_ms') or 0) / 1000:.2f} s",
            f"prompt {_count(timings, 'prefill_tokens')} at {speed(timings.get('prefill_per_second') or 0)}"
            + (f", {cached:,} cached" if (cached := timings.get("cached_tokens")) else ""),
        ]
        if drafted := int(timings.get("drafted_tokens") or 0):
            parts.append(f"{int(timings.get('accepted_tokens') or 0):,} of {drafted:,} drafts accepted")
            if speedup := timings.get("speedup"):
                parts.append(f"{speedup:.1f}× plain")
        if (kv_type := timings.get("kv_type") or DEFAULT_KV_TYPE) != DEFAULT_KV_TYPE:
            parts.append(f"{kv_type} cache")
        if deep := timings.get("deep"):
            n_drafts = int(deep.get("drafts") or 0)
            parts.append(f"from {n_drafts} drafts" if n_drafts > 1 else f"no drafts: {deep.get('reason')}")
        if self.finish_reason == "length":
            parts.append("cut at the token limit")
        return " · ".join(parts)


def progress_line(fields: Mapping[str, Any]) -> str:
    """Return one line about how far a deep reply is."""
    stage, n_drafts = str(fields.get("stage") or "working"), int(fields.get("drafts") or 0)
    if stage == "plain":
        return f"Answering without drafts: {fields.get('reason') or 'there is no room for them'}."
    n_done = f" ({int(fields.get('drafts_done') or 0)} of {n_drafts} drafts)" if stage == "drafting" else ""
    return (
        f"{stage.capitalize()}{n_done}: {int(fields.get('tokens') or 0):,} tokens in {fields.get('seconds') or 0:.1f} s"
    )


def _count(timings: dict[str, Any], name: str) -> str:
    return how_many(int(timings.get(name) or 0), "token")
