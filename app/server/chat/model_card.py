"""What is told of a model of the list, loaded or not: the facts of its file, and what it can do here."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from app.server.calls.model_pool import ModelPool
from app.server.http.errors import ApiError
from app.server.templates.chat_template import TemplateRenderer
from core.values.messages import EnginePhase, LoadedModel
from models.catalog.catalog import ModelEntry
from models.facts.model_facts import ModelFacts, read_model
from models.facts.projector import projector_beside
from models.gguf.errors import GgufError
from models.gguf.header import read_header

# Texts of the token before a prefix, as llama_vocab::impl::load finds it where the file does not name it.
_PREFIX_TOKENS = frozenset(
    ["<|fim_prefix|>", "<fim-prefix>", "<fim_prefix>", "<PRE>", "▁<PRE>", "<｜fim▁begin｜>", "<|code_prefix|>"]
)
_PREFIX_KEYS = ("tokenizer.ggml.fim_pre_token_id", "tokenizer.ggml.prefix_token_id")
# As llama-server's router has it in its list of models; of one that failed it says "unloaded", and that it failed.
STATUS = {
    EnginePhase.READY: "loaded",
    EnginePhase.LOADING: "loading",
    EnginePhase.RESTARTING: "loading",
    EnginePhase.FAILED: "failed",
    EnginePhase.EMPTY: "unloaded",
}


@dataclass(frozen=True, slots=True)
class ModelCard:
    """One model. ``modified`` is seconds since 1970; ``loaded`` is the model in memory, None where it is not there.

    ``capabilities`` have Ollama's names: completion, tools, thinking, vision, embedding, insert.
    """

    name: str
    path: Path
    facts: ModelFacts
    modified: float
    template: str
    capabilities: tuple[str, ...]
    loaded: LoadedModel | None


async def cards_of(pool: ModelPool, renderer: TemplateRenderer) -> list[ModelCard]:
    """Return the cards of all models that can be used."""
    entries = await asyncio.to_thread(pool.entries)
    found = [await card_of(entry, pool, renderer, is_quick=True) for entry in entries if entry.problem is None]
    return [card for card in found if card is not None]


def facts_of(entry: ModelEntry) -> ModelFacts | None:
    """Return the facts of a model's file, which may be read for it; None where it cannot be read."""
    if entry.facts is not None:
        return entry.facts
    file = _file_of(entry)
    return file.facts if file is not None else None


async def card_of(
    entry: ModelEntry, pool: ModelPool, renderer: TemplateRenderer, *, is_quick: bool = False
) -> ModelCard | None:
    """Return the card of a model; None where its file cannot be read.

    What a template can is found by rendering it, which takes up to half a second the first time; with ``is_quick``, for
    lists of many models, by the words in it where the model is not loaded.
    """
    file = await asyncio.to_thread(_file_of, entry)
    if file is None:
        return None
    loaded = loaded_of(entry, pool)
    template = loaded.chat_template if loaded is not None else file.chat_template
    can: list[str] = []
    if file.facts.is_for_vectors or (loaded is not None and not loaded.can_write):
        can.append("embedding")
    else:
        can.append("completion")
        if is_quick and loaded is None:
            can += _by_words(template or "")
        else:
            can += await template_capabilities(loaded or file, renderer)
        if loaded.mmproj if loaded is not None else await asyncio.to_thread(_will_see, entry, pool):
            can.append("vision")
        if loaded.fim is not None if loaded is not None else file.can_insert:
            can.append("insert")
    return ModelCard(entry.name, entry.path, file.facts, file.modified, template or "", tuple(can), loaded)


def loaded_of(entry: ModelEntry, pool: ModelPool) -> LoadedModel | None:
    """Return the loaded model of an entry; None where it is not in memory."""
    for host in pool.hosts:
        if host.entry is not None and host.entry.path == entry.path and host.state.phase is EnginePhase.READY:
            return host.model
    return None


def _by_words(template: str) -> list[str]:
    thinks = any(word in template for word in ("reasoning_content", "enable_thinking", "<think>"))
    return [name for name, can in (("tools", "tools" in template), ("thinking", thinks)) if can]


async def template_capabilities(model: LoadedModel | _File, renderer: TemplateRenderer) -> list[str]:
    """Return which of tools and thinking a template can; nothing where there is none, or it cannot be rendered."""
    if model.chat_template is None:
        return []
    try:
        form = await renderer.reply_format(model)
    except ApiError:  # whoever chats with it is told what is wrong with its template
        return []
    return [name for name, can in (("tools", form.has_calls), ("thinking", form.has_thoughts)) if can]


@dataclass(frozen=True, slots=True)
class _File:
    """What a model's file says; neither the texts of first and last token nor the context shape replies."""

    facts: ModelFacts
    modified: float
    chat_template: str | None
    can_insert: bool
    bos: str = ""
    eos: str = ""
    n_ctx: int = 0


def _will_see(entry: ModelEntry, pool: ModelPool) -> bool:
    return pool.settings.uses_projector and projector_beside(entry.path) is not None


def _file_of(entry: ModelEntry) -> _File | None:
    try:
        status = entry.path.stat()
        return _read(entry.path, status.st_mtime, status.st_size)
    except (OSError, GgufError):
        return None


@lru_cache(maxsize=256)
def _read(path: Path, modified: float, _size: int) -> _File:
    """Read a file's header; kept until the file changes."""
    header = read_header(path)
    tokens = header.strings("tokenizer.ggml.tokens") or ()
    return _File(
        facts=read_model(path),
        modified=modified,
        chat_template=header.text("tokenizer.chat_template"),
        can_insert=any(key in header.metadata for key in _PREFIX_KEYS) or not _PREFIX_TOKENS.isdisjoint(tokens),
    )
