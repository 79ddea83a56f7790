"""smolagents: a chat, a stream, a form, and an agent with a tool."""

import os

from smolagents import OpenAIModel, ToolCallingAgent, tool

model = OpenAIModel(
    model_id=os.environ["MODEL"],
    api_base=os.environ["BASE_URL"],
    api_key=os.environ["API_KEY"],
    max_tokens=80,
    temperature=0,
)
hello = [{"role": "user", "content": [{"type": "text", "text": "Hello"}]}]
schema = {"type": "object", "properties": {"size": {"enum": ["small", "large"]}}, "required": ["size"]}
form = {"name": "choice", "schema": schema | {"additionalProperties": False}, "strict": True}
assert model.generate(hello).content
assert "".join(delta.content or "" for delta in model.generate_stream(hello))
chosen = model.generate(hello, response_format={"type": "json_schema", "json_schema": form}).content
assert '"small"' in chosen or '"large"' in chosen
called = []


@tool
def get_weather(city: str) -> str:
    """Get the weather in a city.

    Args:
        city: A city.
    """
    called.append(city)
    return "sunny"


assert ToolCallingAgent([get_weather], model, max_steps=2, instructions="Call get_weather.").run(
    "The weather in Paris?"
)
