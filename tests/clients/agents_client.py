"""OpenAI's agents: one with a tool, by their default protocol, responses."""

import os

from agents import Agent, ModelSettings, OpenAIResponsesModel, Runner, function_tool, set_tracing_disabled
from openai import AsyncOpenAI

set_tracing_disabled(True)
called = []


@function_tool
def get_weather(city: str) -> str:
    """Get the weather in a city."""
    called.append(city)
    return "sunny"


client = AsyncOpenAI(base_url=os.environ["BASE_URL"], api_key=os.environ["API_KEY"])
agent = Agent(
    name="Weather",
    instructions="You tell the weather.",
    tools=[get_weather],
    model=OpenAIResponsesModel(os.environ["MODEL"], client),
    model_settings=ModelSettings(temperature=0, max_tokens=80),
)
result = Runner.run_sync(agent, "What is the weather in Paris?", max_turns=4)
assert called
assert result.final_output
