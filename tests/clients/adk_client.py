"""Google's ADK: an agent with a tool and three turns, by OpenAI's protocol, Anthropic's and Ollama's."""

import asyncio
import os

from google.adk.agents import Agent
from google.adk.models.lite_llm import LiteLlm
from google.adk.runners import InMemoryRunner
from google.genai import types

MODEL, KEY = os.environ["MODEL"], os.environ["API_KEY"]
called = []


def get_weather(city: str) -> str:
    """Get the weather in a city."""
    called.append(city)
    return f"sunny in {city}"


async def main() -> None:
    openai = LiteLlm(model=f"openai/{MODEL}", api_base=os.environ["BASE_URL"], api_key=KEY)
    anthropic = LiteLlm(model=f"anthropic/{MODEL}", api_base=os.environ["BASE"], api_key=KEY)
    ollama = LiteLlm(model=f"ollama_chat/{MODEL}", api_base=os.environ["BASE"], api_key=KEY)
    few = types.GenerateContentConfig(temperature=0, max_output_tokens=80)
    for model in (openai, anthropic, ollama):
        agent = Agent(
            name="one", model=model, instruction="Tell the weather.", tools=[get_weather], generate_content_config=few
        )
        runner = InMemoryRunner(agent)
        runner.auto_create_session = True
        for said in ("What is the weather in Paris?", "And you?", "Thank you."):
            message = types.Content(role="user", parts=[types.Part(text=said)])
            events = [e async for e in runner.run_async(user_id="me", session_id="1", new_message=message)]
            assert not any(event.error_code for event in events), events
        assert called[0] == "Paris", model
        called.clear()


asyncio.run(main())
