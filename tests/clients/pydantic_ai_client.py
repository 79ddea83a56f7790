"""pydantic-ai: an agent with a tool, whole and as a stream, and one with a form, by chat and by responses."""

import asyncio
import os
from typing import Literal

from pydantic import BaseModel
from pydantic_ai import Agent, NativeOutput
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

called = []


class Choice(BaseModel):
    """A colour."""

    colour: Literal["red", "green"]


def get_weather(city: str) -> str:
    """Get the weather in a city."""
    called.append(city)
    return "sunny"


async def main() -> None:
    """Try both protocols."""
    provider = OpenAIProvider(base_url=os.environ["BASE_URL"], api_key=os.environ["API_KEY"])
    for kind in (OpenAIChatModel, OpenAIResponsesModel):
        model = kind(os.environ["MODEL"], provider=provider)
        settings = {"temperature": 0, "max_tokens": 80}
        agent = Agent(model, tools=[get_weather], model_settings=settings)
        assert (await agent.run("What is the weather in Paris?")).output
        async with agent.run_stream("What is the weather in Paris?") as stream:
            assert [text async for text in stream.stream_text(delta=True)]
        assert len(called) == 2
        called.clear()
        chooser = Agent(model, output_type=NativeOutput(Choice), model_settings=settings)
        assert isinstance((await chooser.run("Choose one.")).output, Choice)


asyncio.run(main())
