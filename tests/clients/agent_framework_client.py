"""Microsoft's Agent Framework: an agent with a tool, three turns, a stream, a form, by chats and responses; vectors."""

import asyncio
import os
from typing import Literal

from agent_framework import Agent
from agent_framework.openai import OpenAIChatClient, OpenAIChatCompletionClient, OpenAIEmbeddingClient
from pydantic import BaseModel

where = {"model": os.environ["MODEL"], "base_url": os.environ["BASE_URL"], "api_key": os.environ["API_KEY"]}
few = {"max_tokens": 80, "temperature": 0}
called = []


class Choice(BaseModel):
    """A size."""

    size: Literal["small", "large"]


def get_weather(city: str) -> str:
    """Get the weather in a city."""
    called.append(city)
    return f"sunny in {city}"


async def main() -> None:
    for client in (OpenAIChatClient(**where), OpenAIChatCompletionClient(**where)):
        await Agent(client, "Tell the weather.", tools=[get_weather], default_options=few).run(
            "What is the weather in Paris?"
        )
        assert called.pop() == "Paris", client
        agent = Agent(client, "Be brief.", default_options=few)
        talk = agent.create_session()
        for said in ("Hello", "And you?", "Thank you."):
            assert (await agent.run(said, session=talk)).text, client
        assert "".join([part.text async for part in agent.run("Hello", stream=True)]), client
        form = await agent.run("Choose one.", options={"response_format": Choice})
        assert isinstance(form.value, Choice), client
    vectors = await OpenAIEmbeddingClient(**where).get_embeddings(["a fox", "a boat"])
    assert len(vectors) == 2


asyncio.run(main())
