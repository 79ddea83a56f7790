"""Strands: an agent with a tool, three turns and a form, by its providers for OpenAI, Anthropic, Ollama, llama.cpp."""

import asyncio
import os
from typing import Literal

from pydantic import BaseModel
from strands import Agent, tool
from strands.models.anthropic import AnthropicModel
from strands.models.llamacpp import LlamaCppModel
from strands.models.ollama import OllamaModel
from strands.models.openai import OpenAIModel

BASE, BASE_URL, KEY, MODEL = (os.environ[name] for name in ("BASE", "BASE_URL", "API_KEY", "MODEL"))
HEADERS = {"Authorization": f"Bearer {KEY}"}
few = {"max_tokens": 80, "temperature": 0}
by_llama_cpp = LlamaCppModel(BASE, model_id=MODEL, params=dict(few))
by_llama_cpp.client.headers.update(HEADERS)
models = (
    by_llama_cpp,
    OpenAIModel(client_args={"base_url": BASE_URL, "api_key": KEY}, model_id=MODEL, params=dict(few)),
    AnthropicModel(client_args={"base_url": BASE, "api_key": KEY}, model_id=MODEL, max_tokens=80),
    OllamaModel(BASE, ollama_client_args={"headers": HEADERS}, model_id=MODEL, max_tokens=80, temperature=0.0),
)


class Colour(BaseModel):
    """A colour."""

    name: Literal["red", "blue"]


@tool
def get_weather(city: str) -> str:
    """Get the weather in a city."""
    called.append(city)
    return f"sunny in {city}"


called: list[str] = []


async def main() -> None:
    for model in models:
        await Agent(model, tools=[get_weather], callback_handler=None).invoke_async("What is the weather in Paris?")
        assert called.pop() == "Paris", model
        talk = Agent(model, callback_handler=None)
        for said in ("Hello", "And you?", "Thank you."):
            assert str(await talk.invoke_async(said)), model
        asked = Agent(model, callback_handler=None).structured_output_async(Colour, "Name a colour.")
        assert isinstance(await asked, Colour), model


asyncio.run(main())
