"""Langflow, by its executor without its page: a flow's reply, and its agent with a tool."""

import asyncio
import os

# In a container, it would take this machine's address for that of another one.
os.environ["OPENAI_BASE_URL"] = os.environ["BASE_URL"].replace("127.0.0.1", "127.1")
os.environ |= {"LANGFLOW_SSRF_ALLOWED_HOSTS": "127.1", "OPENAI_API_KEY": os.environ["API_KEY"], "DO_NOT_TRACK": "true"}

from langchain_core.tools import tool
from lfx.components.input_output import ChatInput, ChatOutput
from lfx.components.models_and_agents import AgentComponent, LanguageModelComponent
from lfx.graph import Graph

names = {"model_name_param": "model", "api_key_param": "api_key", "base_url_param": "base_url"}
metadata = {"model_class": "ChatOpenAI", "max_tokens_field_name": "max_tokens", **names}
model = [{"name": os.environ["MODEL"], "provider": "OpenAI", "metadata": metadata}]
called = []


@tool
def get_weather(city: str) -> str:
    """Get the weather in a city."""
    called.append(city)
    return "sunny"


async def said(component, answer, text):
    """Return what a flow says in which a component answers."""
    asked = ChatInput().set(input_value=text, should_store_message=False)
    component.set(input_value=asked.message_response, model=model, max_tokens=60)
    told = ChatOutput().set(input_value=getattr(component, answer), should_store_message=False)
    results = [one async for one in Graph(asked, told).async_start()]
    return [one for one in results if hasattr(one, "vertex")][-1].result_dict.results["message"].text


assert asyncio.run(said(LanguageModelComponent(), "text_response", "Hello"))
agent = AgentComponent().set(tools=[get_weather], system_prompt="You are a helpful assistant.")
assert asyncio.run(said(agent, "message_response", "What is the weather in Paris?"))
assert called == ["Paris"]
