"""LlamaIndex: an agent with a tool, streams, an object and vectors, by OpenAI's protocol and Ollama's; plain texts."""

import asyncio
import os

import ollama
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.embeddings.ollama import OllamaEmbedding
from llama_index.embeddings.openai_like import OpenAILikeEmbedding
from llama_index.llms.ollama import Ollama
from llama_index.llms.openai_like import OpenAILike
from pydantic import BaseModel

MODEL, KEY = os.environ["MODEL"], os.environ["API_KEY"]
HEADERS = {"Authorization": f"Bearer {KEY}"}
BY_OPENAI = {"api_base": os.environ["BASE_URL"], "api_key": KEY}
BY_OLLAMA = {"host": os.environ["BASE"], "headers": HEADERS}
called = []


class Weather(BaseModel):
    """The weather."""

    temperature: int


def get_weather(city: str) -> str:
    """Get the weather in a city."""
    called.append(city)
    return "sunny"


async def main() -> None:
    """Try both protocols."""
    fields = {"is_chat_model": True, "is_function_calling_model": True, "should_use_structured_outputs": True}
    chat = OpenAILike(model=MODEL, **BY_OPENAI, **fields, max_tokens=80, temperature=0)
    clients = {"client": ollama.Client(**BY_OLLAMA), "async_client": ollama.AsyncClient(**BY_OLLAMA)}
    options = {"num_predict": 80, "temperature": 0}
    for model in (chat, Ollama(model=MODEL, context_window=4096, additional_kwargs=options, **clients)):
        assert "".join(part.delta or "" for part in model.stream_complete("Tell me a story."))
        agent = FunctionAgent(tools=[get_weather], llm=model, system_prompt="You tell the weather.")
        assert str(await agent.run("What is the weather in Paris?"))
        assert called.pop() == "Paris"
        assert isinstance(model.as_structured_llm(Weather).complete("How warm is it?").raw, Weather)
    text = OpenAILike(model=MODEL, **BY_OPENAI, max_tokens=8)
    assert "".join(part.delta for part in text.stream_complete("Once"))
    vectors = OpenAILikeEmbedding(model_name=MODEL, **BY_OPENAI).get_text_embedding_batch(["a fox", "a boat"])
    by_ollama = OllamaEmbedding(MODEL, base_url=os.environ["BASE"], client_kwargs={"headers": HEADERS})
    assert len(by_ollama.get_query_embedding("a fox")) == len(vectors[0]) == len(vectors[1])


asyncio.run(main())
