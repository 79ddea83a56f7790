"""Claude Agent SDK: one question with a tool on offer, through Anthropic's protocol."""

import asyncio
import os

from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, create_sdk_mcp_server, query, tool


@tool("get_weather", "Get the weather in a city.", {"city": str})
async def get_weather(arguments):
    """Answer the call."""
    return {"content": [{"type": "text", "text": "sunny"}]}


async def main() -> None:
    """Ask, and look at the end of the conversation."""
    options = ClaudeAgentOptions(
        model=os.environ["MODEL"],
        system_prompt="You are a helpful assistant.",
        tools=[],
        mcp_servers={"weather": create_sdk_mcp_server("weather", tools=[get_weather])},
        allowed_tools=["mcp__weather__get_weather"],
        max_turns=4,
        env={
            "ANTHROPIC_BASE_URL": os.environ["BASE"],
            "ANTHROPIC_AUTH_TOKEN": os.environ["API_KEY"],
            "ANTHROPIC_SMALL_FAST_MODEL": os.environ["MODEL"],
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CODE_MAX_OUTPUT_TOKENS": "256",
        },
    )
    *_, last = [message async for message in query(prompt="What is the weather in Paris?", options=options)]
    assert isinstance(last, ResultMessage), last
    assert not last.is_error, last
    assert last.usage["output_tokens"], last


asyncio.run(main())
