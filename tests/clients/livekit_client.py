"""LiveKit's agents: a stream and a tool by its client for OpenAI, by chats and responses, these without a websocket."""

import asyncio
import os

from livekit.agents import function_tool
from livekit.agents.llm import ChatContext
from livekit.agents.utils import http_context
from livekit.plugins import openai

where = {"model": os.environ["MODEL"], "base_url": os.environ["BASE_URL"], "api_key": os.environ["API_KEY"]}


@function_tool
async def get_weather(city: str) -> str:
    """Get the weather in a city.

    Args:
        city: The city.
    """
    return f"sunny in {city}"


async def main() -> None:
    """Ask as an agent does: all is streamed."""
    chats = openai.LLM(**where, temperature=0, max_completion_tokens=80)
    for llm in (chats, openai.responses.LLM(**where, use_websocket=False)):
        context = ChatContext.empty()
        context.add_message(role="system", content="You are a helpful assistant.")
        context.add_message(role="user", content="Hello")
        chunks = [chunk async for chunk in llm.chat(chat_ctx=context)]
        assert any(chunk.delta and chunk.delta.content for chunk in chunks), llm
        assert chunks[-1].usage.completion_tokens, llm
        context = ChatContext.empty()
        context.add_message(role="user", content="What is the weather in Paris?")
        chunks = [chunk async for chunk in llm.chat(chat_ctx=context, tools=[get_weather])]
        (call,) = [call for chunk in chunks if chunk.delta for call in chunk.delta.tool_calls]
        assert call.arguments == '{"city": "Paris"}', call
        await llm.aclose()


async def in_context() -> None:
    """Give it what it has in a worker."""
    async with http_context.open():
        await main()


asyncio.run(in_context())
