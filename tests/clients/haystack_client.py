"""Haystack: a chat, a stream, a form, an agent with a tool, and a vector."""

import os
from typing import Literal

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"

from haystack.components.agents import Agent
from haystack.components.embedders import OpenAITextEmbedder
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.tools import Tool
from haystack.utils import Secret
from pydantic import BaseModel


class Choice(BaseModel):
    """A size."""

    size: Literal["small", "large"]


where = {"api_base_url": os.environ["BASE_URL"], "api_key": Secret.from_token(os.environ["API_KEY"])}
where["model"] = os.environ["MODEL"]
hello = [ChatMessage.from_user("Hello")]
generator = OpenAIChatGenerator(**where, generation_kwargs={"max_tokens": 80, "temperature": 0})
assert generator.run(hello)["replies"][0].text
pieces = []
generator.run(hello, streaming_callback=pieces.append)
assert any(piece.content for piece in pieces)
(reply,) = generator.run(hello, generation_kwargs={"response_format": Choice})["replies"]
assert Choice.model_validate_json(reply.text)
city = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
called = []
tool = Tool(
    name="get_weather",
    description="Get the weather in a city.",
    parameters=city,
    function=lambda city: called.append(city) or "sunny",
)
agent = Agent(chat_generator=generator, tools=[tool], max_agent_steps=2)
agent.run(messages=[ChatMessage.from_user("What is the weather in Paris?")])
assert len(OpenAITextEmbedder(**where).run("fox")["embedding"]) > 1
assert called == ["Paris"]
