"""Semantic Kernel: a chat, a stream, a form, and an agent with a function."""

import asyncio
import os
from typing import Literal

from openai import AsyncOpenAI
from pydantic import BaseModel
from semantic_kernel.agents import ChatCompletionAgent
from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion, OpenAIChatPromptExecutionSettings
from semantic_kernel.contents import ChatHistory
from semantic_kernel.functions import KernelArguments, kernel_function


class Choice(BaseModel):
    """A size."""

    size: Literal["small", "large"]


class Weather:
    """A plugin."""

    @kernel_function(name="get_weather", description="Get the weather in a city.")
    def get_weather(self, city: str) -> str:
        """Tell it."""
        return f"sunny in {city}"


async def main() -> None:
    """Try all of it."""
    client = AsyncOpenAI(base_url=os.environ["BASE_URL"], api_key=os.environ["API_KEY"])
    service = OpenAIChatCompletion(ai_model_id=os.environ["MODEL"], async_client=client)
    settings = OpenAIChatPromptExecutionSettings(max_tokens=80, temperature=0)
    history = ChatHistory()
    history.add_user_message("Hello")
    assert str(await service.get_chat_message_content(history, settings))
    assert [one async for one in service.get_streaming_chat_message_content(history, settings)]
    form = OpenAIChatPromptExecutionSettings(response_format=Choice, max_tokens=80)
    assert Choice.model_validate_json(str(await service.get_chat_message_content(history, form)))
    agent = ChatCompletionAgent(
        service=service, name="weather", plugins=[Weather()], arguments=KernelArguments(settings)
    )
    async for reply in agent.invoke(messages="What is the weather in Paris?"):
        assert str(reply)


asyncio.run(main())
