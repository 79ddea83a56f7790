"""POST /infill: what stands between a prefix and a suffix, as llama.vim and llama.vscode ask for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastapi import Request as HttpRequest
from fastapi.responses import Response
from pydantic import Field

from app.server.calls.generation import tokens_of
from app.server.calls.model_pool import pool_of
from app.server.calls.schemas import PromptInput, Text
from app.server.http.body import LenientBody
from app.server.llama_cpp.completion import LlamaBody, LlamaCall, reply_to
from core.values.errors import BadRequest
from core.values.messages import FillInTheMiddle, LoadedModel

# Tokens around the cursor that are read, as many as llama-server reads (``format_prompt_infill``): three quarters of
# them before it. Each key that is pressed reads them anew, so more would not be there in time.
_AROUND = 2_048
_MOST_FILES = 1_024  # each is tokenized, and few fit into a context
# Stands between files if a model has no token for that, as at llama-server.
_SNIPPET = "\n\n--- snippet ---\n\n"


class ExtraFile(LenientBody):
    """A part of another file."""

    text: Text = ""
    filename: Text = "tmp"


class InfillBody(LlamaBody):
    """The body of POST /infill; ``prompt`` is what the middle begins with."""

    prompt: Any = ""
    input_prefix: Text = ""
    input_suffix: Text = ""
    input_extra: list[ExtraFile] = Field(default_factory=list, max_length=_MOST_FILES)


async def infill(body: InfillBody, http: HttpRequest) -> Response:
    """Fill in the middle, as one object or as a stream."""
    return await reply_to(InfillCall(body, pool_of(http)), http)


class InfillCall(LlamaCall):
    """One call of the route."""

    body: InfillBody

    async def prompts(self, model: LoadedModel) -> Sequence[PromptInput]:
        """Return the prompt: other files, then what stands before and behind the cursor, cut to what has room."""
        body = self.body
        if model.fim is None:
            raise BadRequest("This model cannot fill in the middle: choose a model for code.", param="input_prefix")
        if not isinstance(body.prompt, str):
            raise BadRequest("prompt must be text: it begins the middle.", param="prompt")
        begun = await self._tokens(body.prompt)
        room = min(_AROUND, model.n_ctx - len(begun) - max(body.token_limit or 0, 0) - 8)
        if room < 16:
            raise BadRequest("n_predict leaves no room for the text around: send a smaller one.", param="n_predict")
        prefix, suffix = await self._tokens(body.input_prefix), await self._tokens(body.input_suffix)
        prefix = prefix[-(3 * room // 4) :]
        suffix = suffix[: max(room // 4, room - len(prefix)) - 2]
        marks = [await self._marker(text) for text in model.fim[:3]]
        around = [*marks[0], *prefix, *begun, *marks[1], *suffix, *marks[2]]
        left = model.n_ctx - len(around) - max(body.token_limit or 0, 0) - 8
        files = await self._files(model.fim) if body.input_extra else []
        first = await self._tokens("", add_special=True)
        return [(*first, *files[len(files) - min(len(files), max(left, 0)) :], *around)]

    async def _files(self, fim: FillInTheMiddle) -> list[int]:
        """Return the other files, after the pattern of arXiv 2409.12186 where the model has tokens for it."""
        repository = await self._marker(fim.repository)
        separator = await self._marker(fim.separator)
        found = [*repository, *await self._tokens("myproject\n")] if repository else []
        for extra in self.body.input_extra:
            name = await self._tokens(f"{extra.filename}\n") if separator else []
            found += [*(separator or await self._tokens(_SNIPPET)), *name, *await self._tokens(extra.text)]
        return [*found, *separator, *await self._tokens("filename\n")] if separator else found

    async def _marker(self, text: str) -> list[int]:
        return await self._tokens(text, parse_special=True) if text else []

    async def _tokens(self, text: str, *, add_special: bool = False, parse_special: bool = False) -> list[int]:
        """Return the tokens of a text; a file may have special tokens written out, which are no tokens there."""
        if not text and not add_special:
            return []
        found = await tokens_of(self.host.bridge, text, add_special=add_special, parse_special=parse_special)
        return list(found)
