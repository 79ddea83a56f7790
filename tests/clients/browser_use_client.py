"""browser-use: a text and its agent's own form, by its models of OpenAI, Anthropic, Ollama, DeepSeek; no browser."""

import asyncio
import os

os.environ["ANONYMIZED_TELEMETRY"] = "false"

from browser_use.agent.views import AgentOutput
from browser_use.llm import ChatAnthropic, ChatDeepSeek, ChatOllama, ChatOpenAI
from browser_use.llm.messages import SystemMessage, UserMessage
from browser_use.tools.service import Tools

BASE, BASE_URL, KEY, MODEL = (os.environ[name] for name in ("BASE", "BASE_URL", "API_KEY", "MODEL"))
FORM = AgentOutput.type_with_custom_actions(Tools().registry.create_action_model())
models = (
    ChatOpenAI(model=MODEL, base_url=BASE_URL, api_key=KEY, max_completion_tokens=2_000),
    ChatAnthropic(model=MODEL, base_url=BASE, api_key=KEY, max_tokens=2_000),
    ChatOllama(model=MODEL, host=BASE, client_params={"headers": {"Authorization": f"Bearer {KEY}"}}),
    ChatDeepSeek(model=MODEL, base_url=BASE_URL, api_key=KEY, max_tokens=2_000),
)
asked = [SystemMessage(content="You are an agent."), UserMessage(content="Go to example.org.")]


async def main() -> None:
    for model in models:
        assert (await model.ainvoke(asked)).completion, model
        assert isinstance((await model.ainvoke(asked, output_format=FORM)).completion, FORM), model


asyncio.run(main())
