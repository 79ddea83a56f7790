"""Agno: an agent's reply, stream, tool and form, by chats, responses and as from llama.cpp."""

import os
from typing import Literal

from agno.agent import Agent
from agno.models.llama_cpp import LlamaCpp
from agno.models.openai import OpenAIResponses
from agno.models.openai.like import OpenAILike
from pydantic import BaseModel


class Choice(BaseModel):
    """A size."""

    size: Literal["small", "large"]


called = []


def get_weather(city: str) -> str:
    """Get the weather in a city."""
    called.append(city)
    return "sunny"


for kind in (OpenAILike, LlamaCpp, OpenAIResponses):
    model = kind(id=os.environ["MODEL"], base_url=os.environ["BASE_URL"], api_key=os.environ["API_KEY"], temperature=0)
    assert Agent(model=model, telemetry=False).run("Hello").content
    assert list(Agent(model=model, telemetry=False).run("Hello", stream=True))
    assert isinstance(Agent(model=model, telemetry=False, output_schema=Choice).run("Choose one.").content, Choice)
    called.clear()
    assert Agent(model=model, telemetry=False, tools=[get_weather]).run("What is the weather in Paris?").content
    assert called[:1] == ["Paris"], (kind, called)
