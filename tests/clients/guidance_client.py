"""guidance: a text, a form, and one of two words by its grammar, as from vLLM."""

import os

import guidance
from guidance import assistant, gen, select, user
from guidance.models.experimental import VLLMModel
from pydantic import BaseModel, ConfigDict


class City(BaseModel):
    """A city."""

    model_config = ConfigDict(extra="forbid")
    city: str


where = {"base_url": os.environ["BASE_URL"], "api_key": os.environ["API_KEY"], "echo": False}
model = guidance.models.OpenAI(os.environ["MODEL"], **where)
with user():
    model += "Hello"
with assistant():
    model += gen("text", max_tokens=20)
    assert model["text"]
with user():
    model += "Name a city."
with assistant():
    model += guidance.json("form", schema=City)
    assert City.model_validate_json(model["form"])
model = VLLMModel(os.environ["MODEL"], **where)
with user():
    model += "Yes or no?"
with assistant():
    model += select(["yes", "no"], name="word")
    assert model["word"] in ("yes", "no")
