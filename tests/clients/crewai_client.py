"""CrewAI: a call, a stream, a form, and a crew of one."""

import os
from typing import Literal

os.environ |= {"CREWAI_DISABLE_TELEMETRY": "true", "OTEL_SDK_DISABLED": "true"}

from crewai import LLM, Agent, Crew, Task
from pydantic import BaseModel


class Choice(BaseModel):
    """A size."""

    size: Literal["small", "large"]


where = {"model": f"openai/{os.environ['MODEL']}", "base_url": os.environ["BASE_URL"], "api_key": os.environ["API_KEY"]}
assert LLM(**where, max_tokens=40).call("Hello")
assert LLM(**where, max_tokens=40, stream=True).call("Hello")
assert isinstance(LLM(**where, response_format=Choice).call("Choose one."), Choice)
agent = Agent(role="a poet", goal="a line", backstory="none", llm=LLM(**where, max_tokens=40), max_iter=1)
task = Task(description="Say hello.", expected_output="a word", agent=agent)
assert str(Crew(agents=[agent], tasks=[task]).kickoff())
