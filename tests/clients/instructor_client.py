"""instructor: an object, by a tool and by a schema, whole and as it grows."""

import os
from typing import Literal

import instructor
import openai
from pydantic import BaseModel, ConfigDict


class Choice(BaseModel):
    """A colour and a size. The toy would add what is not forbidden."""

    model_config = ConfigDict(extra="forbid")
    colour: Literal["red", "green"]
    size: Literal["small", "large"]


plain = openai.OpenAI(base_url=os.environ["BASE_URL"], api_key=os.environ["API_KEY"])
asked = {
    "model": os.environ["MODEL"],
    "messages": [{"role": "user", "content": "Choose one."}],
    "response_model": Choice,
    "max_tokens": 100,
}
for mode in (instructor.Mode.TOOLS, instructor.Mode.JSON_SCHEMA):
    client = instructor.from_openai(plain, mode=mode)
    assert isinstance(client.chat.completions.create(**asked), Choice)
    *_, last = client.chat.completions.create_partial(**asked)
    assert last.size in ("small", "large")
