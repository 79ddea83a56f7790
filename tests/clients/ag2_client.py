"""AG2: an agent with a tool and a form, streamed and whole, as from OpenAI (both ways), Anthropic and Ollama."""

import asyncio
import os
from typing import Literal

from ag2 import Agent, tool
from ag2.config import AnthropicConfig, OllamaConfig, OpenAIConfig, OpenAIResponsesConfig
from pydantic import BaseModel

BASE, BASE_URL, KEY, MODEL = (os.environ[name] for name in ("BASE", "BASE_URL", "API_KEY", "MODEL"))
called = []


class Choice(BaseModel):
    """A size."""

    size: Literal["small", "large"]


@tool
def get_weather(city: str) -> str:
    """Get the weather in a city."""
    called.append(city)
    return "sunny"


async def main() -> None:
    """Ask by each protocol, whole and streamed."""
    for streaming in (False, True):
        usual = {"model": MODEL, "temperature": 0, "streaming": streaming}
        for config in (
            OpenAIConfig(base_url=BASE_URL, api_key=KEY, max_tokens=80, **usual),
            OpenAIResponsesConfig(base_url=BASE_URL, api_key=KEY, max_output_tokens=80, **usual),
            AnthropicConfig(base_url=BASE, api_key=KEY, max_tokens=80, **usual),
            OllamaConfig(host=BASE, api_key=KEY, max_tokens=80, **usual),
        ):
            assert (await Agent("a", config=config).ask("Hello")).body, config
            choice = await Agent("a", config=config, response_schema=Choice).ask("Choose one.")
            assert isinstance(await choice.content(), Choice), config
            called.clear()
            assert (await Agent("a", config=config, tools=[get_weather]).ask("What is the weather in Paris?")).body
            assert called[:1] == ["Paris"], (config, called)


asyncio.run(main())
