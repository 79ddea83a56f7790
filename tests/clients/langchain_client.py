"""LangChain: invoke, stream, tools and structured output."""

import os

from langchain_openai import ChatOpenAI
from pydantic import BaseModel

model = ChatOpenAI(
    model=os.environ["MODEL"],
    base_url=os.environ["BASE_URL"],
    api_key=os.environ["API_KEY"],
    max_tokens=60,
    temperature=0,
)


class Weather(BaseModel):
    """Get the weather."""

    city: str


assert model.invoke("Tell me a story.").content
assert "".join(chunk.content for chunk in model.stream("Tell me a story."))
answer = model.bind_tools([Weather], tool_choice="required").invoke("What is the weather in Paris?")
assert answer.tool_calls[0]["name"] == "Weather"
# Agents send their tools and the form of the answer together.
both = model.bind_tools([Weather], strict=True, response_format=Weather).invoke("What is the weather in Paris?")
assert both.tool_calls[0]["name"] == "Weather"
assert isinstance(model.with_structured_output(Weather).invoke("What is the weather in Paris?"), Weather)
