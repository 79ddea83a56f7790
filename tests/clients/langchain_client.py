"""LangChain: invoke, stream, tools and structured output, by OpenAI's protocol and Anthropic's."""

import os

from langchain_anthropic import ChatAnthropic
from langchain_openai import ChatOpenAI
from pydantic import BaseModel

said = {"model": os.environ["MODEL"], "api_key": os.environ["API_KEY"], "max_tokens": 60, "temperature": 0}
by_openai = ChatOpenAI(base_url=os.environ["BASE_URL"], **said)
by_anthropic = ChatAnthropic(base_url=os.environ["BASE"], **said)


class Weather(BaseModel):
    """Get the weather."""

    city: str


for model, forced in ((by_openai, "required"), (by_anthropic, "any")):
    assert model.invoke("Tell me a story.").content
    assert "".join(chunk.text for chunk in model.stream("Tell me a story."))
    answer = model.bind_tools([Weather], tool_choice=forced).invoke("What is the weather in Paris?")
    assert answer.tool_calls[0]["name"] == "Weather"
    assert isinstance(model.with_structured_output(Weather).invoke("What is the weather in Paris?"), Weather)
# Agents send their tools and the form of the answer together.
both = by_openai.bind_tools([Weather], strict=True, response_format=Weather).invoke("What is the weather in Paris?")
assert both.tool_calls[0]["name"] == "Weather"
