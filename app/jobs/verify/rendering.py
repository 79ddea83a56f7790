"""Turns prompts as they stand in a file into the texts that the model continues."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from app.jobs.verify.prompt_file import BUILT_IN, BadPromptFile, VerifyPrompt
from app.server.templates.chat_template import TemplateFailed, TemplateRenderer
from core.values.errors import BadRequest
from core.values.messages import LoadedModel


def render(prompts: Sequence[VerifyPrompt], path: Path, model: LoadedModel) -> list[str]:
    """Return a text for each prompt of the file ``path``; raises BadPromptFile, naming the line.

    Messages go through the model's chat template. The built-in ones are continued as they are by a model without one.
    """
    if model.chat_template is None and path == BUILT_IN:
        return [prompt.summary for prompt in prompts]
    if any(prompt.messages for prompt in prompts):
        return asyncio.run(_render_all(prompts, path, model))
    return [prompt.text for prompt in prompts]


async def _render_all(prompts: Sequence[VerifyPrompt], path: Path, model: LoadedModel) -> list[str]:
    renderer = TemplateRenderer()
    try:
        return [await _render(renderer, prompt, path, model) for prompt in prompts]
    finally:
        await renderer.close()


async def _render(renderer: TemplateRenderer, prompt: VerifyPrompt, path: Path, model: LoadedModel) -> str:
    if not prompt.messages:
        return prompt.text
    if model.chat_template is None:
        raise BadPromptFile(
            f'Line {prompt.line} of {path} has messages, but this model has no chat template: give it a "prompt".'
        )
    try:
        return await renderer.render(model, {"messages": list(prompt.messages)})
    except (BadRequest, TemplateFailed) as error:
        raise BadPromptFile(f"Line {prompt.line} of {path} cannot be rendered. {error.message}") from None
