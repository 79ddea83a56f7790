"""outlines: texts, streams and forms by OpenAI's protocol, vLLM's, SGLang's and Ollama's."""

import os
from typing import Literal

import ollama
import openai
import outlines
from outlines.types import Regex
from pydantic import BaseModel, ConfigDict


class Choice(BaseModel):
    """A size. The toy would add what is not forbidden."""

    model_config = ConfigDict(extra="forbid")
    size: Literal["small", "large"]


client = openai.OpenAI(base_url=os.environ["BASE_URL"], api_key=os.environ["API_KEY"])
for connect in (outlines.from_openai, outlines.from_vllm, outlines.from_sglang):
    model = connect(client, os.environ["MODEL"])
    assert model("Hello", max_tokens=20)
    assert "".join(model.stream("Hello", max_tokens=20))
    assert Choice.model_validate_json(model("Choose one.", Choice, max_tokens=60))
    if connect is not outlines.from_openai:  # where it knows only JSON
        assert model("Yes or no?", Literal["yes", "no"]) in ("yes", "no")
        assert model("A number.", Regex("[0-9]{3}")).isdigit()
key = {"Authorization": f"Bearer {os.environ['API_KEY']}"}
model = outlines.from_ollama(ollama.Client(os.environ["BASE"], headers=key), os.environ["MODEL"])
assert Choice.model_validate_json(model("Choose one.", Choice, options={"num_predict": 60}))
