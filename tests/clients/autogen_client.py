"""AutoGen: a chat, a stream with its usage, a form, and an agent with a tool."""

import asyncio
import os
from typing import Literal

from autogen_agentchat.agents import AssistantAgent
from autogen_core.models import ModelInfo, UserMessage
from autogen_ext.models.openai import OpenAIChatCompletionClient
from pydantic import BaseModel


class Choice(BaseModel):
    """A size."""

    size: Literal["small", "large"]


can = ModelInfo(vision=False, function_calling=True, json_output=True, family="unknown", structured_output=True)
called = []


async def get_weather(city: str) -> str:
    """Get the weather in a city."""
    called.append(city)
    return "sunny"


async def main() -> None:
    """Try all of it."""
    client = OpenAIChatCompletionClient(
        model=os.environ["MODEL"],
        base_url=os.environ["BASE_URL"],
        api_key=os.environ["API_KEY"],
        model_info=can,
        temperature=0,
        max_tokens=80,
    )
    hello = [UserMessage(content="Hello", source="user")]
    assert (await client.create(hello)).content
    usage = {"stream_options": {"include_usage": True}}
    *pieces, last = [one async for one in client.create_stream(hello, extra_create_args=usage)]
    assert "".join(pieces) == last.content
    assert last.usage.completion_tokens
    chosen = await client.create(hello, json_output=Choice)
    assert Choice.model_validate_json(chosen.content)
    agent = AssistantAgent("weather", client, tools=[get_weather], reflect_on_tool_use=True, system_message=None)
    assert (await agent.run(task="What is the weather in Paris?")).messages[-1].to_text()
    assert called == ["Paris"]


asyncio.run(main())
