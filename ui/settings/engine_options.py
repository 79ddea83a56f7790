"""Options of ``slipstream serve`` that the window offers for its private server. No Qt here."""

from __future__ import annotations

from dataclasses import dataclass

from ui.language import tr

PROCESSOR = "processor"
RESTARTING = tr("The server restarts with the new settings. What you send now waits for it.")


@dataclass(frozen=True, slots=True)
class EngineOption:
    """One option: its words, its option of ``serve``, and choices as (value, words). "" is what is recommended.

    ``is_open``: other values than those listed can be chosen where the machine has them.
    """

    label: str
    help: str
    option: str
    choices: tuple[tuple[str, str], ...]
    is_open: bool = False

    def knows(self, value: str) -> bool:
        """Return whether a value can be chosen."""
        is_listed = any(value == known for known, _ in self.choices)
        # A name of a device; what begins with a dash would be another option.
        return is_listed or (self.is_open and value.isprintable() and not value.startswith("-"))

    def arguments(self, value: str) -> list[str]:
        """Return what the command line gets for a choice."""
        if not value:
            return []
        return ["--gpu-layers", "0"] if value == PROCESSOR else [self.option, value]


def _sizes(*sizes: str) -> tuple[tuple[str, str], ...]:
    return (("", tr("Automatic")), ("0", tr("None")), *((size, tr("{size} GB", size=size[:-1])) for size in sizes))


ENGINE_OPTIONS = {
    "slots": EngineOption(
        tr("Replies at once"),
        tr("How many requests are written at the same time; others wait. More need more memory for their texts."),
        "--parallel",
        (("", tr("4 (recommended)")), *((str(number), str(number)) for number in (1, 2, 8, 16, 32))),
    ),
    "context": EngineOption(
        tr("Context"),
        tr(
            "How much of a chat the model sees, in tokens: a token is about three quarters of a word. "
            "A model's own settings hold where this is automatic."
        ),
        "--ctx",
        (
            ("", tr("Automatic")),
            *((str(size), tr("{size:,} tokens", size=size)) for size in (4096, 8192, 16384, 32768, 65536, 131072)),
        ),
    ),
    "device": EngineOption(
        tr("Runs on"),
        tr("Automatic uses every GPU there is and keeps the rest of a model on the processor."),
        "--device",
        (("", tr("Automatic")), (PROCESSOR, tr("Processor only"))),
        is_open=True,
    ),
    "drafting": EngineOption(
        tr("Drafting"),
        tr("Guesses the next words and checks them in one step. It switches itself off where it would be slower."),
        "--speculation",
        (("", tr("Automatic")), ("draft", tr("With a draft model")), ("off", tr("Never"))),
    ),
    "cache_ram": EngineOption(
        tr("Texts kept in memory"),
        tr("So that a chat goes on without being read again. Automatic takes a share of what is free."),
        "--cache-ram",
        _sizes("1G", "2G", "4G", "8G", "16G", "32G"),
    ),
    "cache_disk": EngineOption(
        tr("Texts kept on disk"),
        tr("The same after a restart. These files hold what was written in your chats; None writes nothing."),
        "--cache-disk",
        _sizes("2G", "4G", "8G", "16G", "32G"),
    ),
}
