"""Inspect: a task with a tool and one with a form, by OpenAI's protocol, its responses, Anthropic's and Ollama's."""

import os

from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.model import GenerateConfig, ResponseSchema, get_model
from inspect_ai.solver import generate, use_tools
from inspect_ai.tool import tool
from inspect_ai.util import JSONSchema


@tool
def get_weather():
    """A tool."""

    async def execute(city: str):
        """Get the weather in a city.

        Args:
            city: A city.
        """
        return f"sunny in {city}"

    return execute


def said(model: str, base_url: str, *solvers, **config) -> list:
    """The messages of a task."""
    made = get_model(
        f"{model}/{os.environ['MODEL']}",
        base_url=base_url,
        api_key=os.environ["API_KEY"],
        config=GenerateConfig(temperature=0, max_tokens=80, **config),
    )
    task = Task(dataset=[Sample("What is the weather in Paris?", target="")], solver=[*solvers, generate()])
    (log,) = eval(task, model=made, display="none", log_dir="logs")
    assert log.status == "success", log.error
    return log.samples[0].messages


for model in ("openai-api/slipstream", "openai", "anthropic", "ollama", "vllm"):
    url = os.environ["BASE" if model == "anthropic" else "BASE_URL"]
    assert any(one.role == "tool" for one in said(model, url, use_tools([get_weather()]))), model
form = ResponseSchema(name="size", json_schema=JSONSchema(type="string", enum=["small", "large"]))
assert said("openai-api/slipstream", os.environ["BASE_URL"], response_schema=form)[-1].text in ('"small"', '"large"')
