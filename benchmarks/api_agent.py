"""An agent's conversation with tools, in each protocol: how much of the earlier text each turn computes again.

For each task of the user, the model must call a tool several times and gets the results. Then it answers.
"""

from __future__ import annotations

import itertools
import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.api_client import ApiClient, Json

_REPLY_TOKENS = 96
_TURNS_OF_A_TASK = 5  # calls, and an answer at the end
_TASKS = ("Look at the files of this project.", "Now the tests, please.", "Is anything left to do?", "Go on.")
_DESCRIPTION = "Runs a command in the project's folder and returns its output as text."
_SCHEMA: Json = {
    "type": "object",
    "properties": {
        "command": {"enum": ["ls -l src", "grep -n fox src", "pytest -q", "git diff"], "description": "What to run."},
        "seconds": {"type": "integer", "enum": [1, 10], "description": "How long to wait for it."},
        "paths": {"type": "array", "items": {"enum": ["src", "tests"]}, "minItems": 1, "maxItems": 2},
    },
    "required": ["command", "seconds", "paths"],
    "additionalProperties": False,
}
_FUNCTION: Json = {"name": "run_command", "description": _DESCRIPTION, "parameters": _SCHEMA}
_RULES = (
    "Use the tools, and say what you found.",
    "Read a file before you change it, and change no more than you were asked for.",
    "When a command fails, look at its output, say in a sentence what was wrong, and try once more.",
    "Write short sentences. Name files by their path from the project's folder.",
    "Ask before you delete anything.",
    "Run the tests after each change, and end when all of them pass.",
)
# As long as the system prompts of small agents: about 2,500 of Ember's tokens, with the tool.
_SYSTEM = "\n".join(
    ["You are an agent that works on a project."] + [f"{i + 1}. {rule}" for i, rule in enumerate(_RULES * 15)]
)


@dataclass(frozen=True)
class AgentTurn:
    """The tokens of one request: read, of which cached, and written."""

    n_prompt: int
    n_cached: int
    n_generated: int


class AgentConversation(ABC):
    """The client's side of an agent. It keeps what its protocol must send again with each request."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client
        self._calls: list[Any] = []  # of the last reply
        self.start()

    @abstractmethod
    def start(self) -> None:
        """Begin with the system prompt."""

    @abstractmethod
    def say(self, text: str) -> None:
        """Add what the user says."""

    @abstractmethod
    def return_results(self, text: str) -> None:
        """Add the result of each call of the last reply."""

    @abstractmethod
    def ask(self, *, must_call: bool) -> AgentTurn:
        """Send it, and keep the reply."""


class ChatConversation(AgentConversation):
    """POST /v1/chat/completions."""

    def start(self) -> None:
        self._messages: list[Json] = [{"role": "system", "content": _SYSTEM}]

    def say(self, text: str) -> None:
        self._messages.append({"role": "user", "content": text})

    def return_results(self, text: str) -> None:
        self._messages += [{"role": "tool", "tool_call_id": call["id"], "content": text} for call in self._calls]

    def ask(self, *, must_call: bool) -> AgentTurn:
        body = {
            "messages": self._messages,
            "tools": [{"type": "function", "function": _FUNCTION}],
            "tool_choice": "required" if must_call else "auto",
            "max_tokens": _REPLY_TOKENS,
            "temperature": 0,
        }
        answer = self._client.post("/v1/chat/completions", body)
        message = answer["choices"][0]["message"]
        self._messages.append(message)
        self._calls = message.get("tool_calls") or []
        return _cost_of(answer["usage"])


class ResponsesConversation(AgentConversation):
    """POST /v1/responses, with the whole input each time."""

    def start(self) -> None:
        self._items: list[Json] = []

    def say(self, text: str) -> None:
        self._items.append({"role": "user", "content": text})

    def return_results(self, text: str) -> None:
        self._items += [
            {"type": "function_call_output", "call_id": call["call_id"], "output": text} for call in self._calls
        ]

    def ask(self, *, must_call: bool) -> AgentTurn:
        answer = self._client.post("/v1/responses", self._body(must_call) | self._input())
        self._keep(answer)
        self._calls = [item for item in answer["output"] if item["type"] == "function_call"]
        usage = answer["usage"]
        return AgentTurn(usage["input_tokens"], usage["input_tokens_details"]["cached_tokens"], usage["output_tokens"])

    def _body(self, must_call: bool) -> Json:
        return {
            "instructions": _SYSTEM,
            "tools": [{"type": "function", "strict": True, **_FUNCTION}],
            "tool_choice": "required" if must_call else "auto",
            "max_output_tokens": _REPLY_TOKENS,
            "temperature": 0,
        }

    def _input(self) -> Json:
        return {"input": self._items, "store": False, "include": ["reasoning.encrypted_content"]}

    def _keep(self, answer: Json) -> None:
        self._items += answer["output"]


class StoredConversation(ResponsesConversation):
    """POST /v1/responses, with ``previous_response_id`` and what is new."""

    _previous: str | None = None

    def _input(self) -> Json:
        return {"input": self._items, "previous_response_id": self._previous}

    def _keep(self, answer: Json) -> None:
        self._previous, self._items = answer["id"], []


class MessagesConversation(AgentConversation):
    """POST /v1/messages."""

    def start(self) -> None:
        self._messages: list[Json] = []

    def say(self, text: str) -> None:
        self._messages.append({"role": "user", "content": text})

    def return_results(self, text: str) -> None:
        results = [{"type": "tool_result", "tool_use_id": call["id"], "content": text} for call in self._calls]
        self._messages.append({"role": "user", "content": results})

    def ask(self, *, must_call: bool) -> AgentTurn:
        body = {
            "system": _SYSTEM,
            "messages": self._messages,
            "tools": [{"name": _FUNCTION["name"], "description": _DESCRIPTION, "input_schema": _SCHEMA}],
            "tool_choice": {"type": "any" if must_call else "auto"},
            "max_tokens": _REPLY_TOKENS,
            "temperature": 0,
        }
        answer = self._client.post("/v1/messages", body)
        self._messages.append({"role": "assistant", "content": answer["content"]})
        self._calls = [block for block in answer["content"] if block["type"] == "tool_use"]
        usage = answer["usage"]
        cached = usage["cache_read_input_tokens"]
        return AgentTurn(usage["input_tokens"] + cached, cached, usage["output_tokens"])


class CompletionConversation(AgentConversation):
    """POST /completion: the client has a template of its own (here Ember's) and reads calls out of the text."""

    def start(self) -> None:
        self._prompt = f"<|im_start|>system\n{_SYSTEM}\n{json.dumps(_FUNCTION)}<|im_end|>\n"

    def say(self, text: str) -> None:
        self._prompt += f"<|im_start|>user\n{text}<|im_end|>\n<|im_start|>assistant\n"

    def return_results(self, text: str) -> None:
        self._prompt += f"<|im_start|>tool\n{text}<|im_end|>\n<|im_start|>assistant\n"

    def ask(self, *, must_call: bool) -> AgentTurn:
        body = {"prompt": self._prompt, "n_predict": _REPLY_TOKENS, "temperature": 0}
        if must_call:
            body["json_schema"] = _SCHEMA
        answer = self._client.post("/completion", body)
        self._prompt += f"{answer['content']}<|im_end|>\n"
        timings = answer["timings"]
        return AgentTurn(answer["tokens_evaluated"], timings["cached_tokens"], answer["tokens_predicted"])


def _cost_of(usage: Json) -> AgentTurn:
    cached = usage["prompt_tokens_details"]["cached_tokens"]
    return AgentTurn(usage["prompt_tokens"], cached, usage["completion_tokens"])


CONVERSATIONS: dict[str, type[AgentConversation]] = {
    "chat completions": ChatConversation,
    "responses": ResponsesConversation,
    "responses, stored": StoredConversation,
    "messages": MessagesConversation,
    "llama.cpp": CompletionConversation,
}


def converse(conversation: AgentConversation, n_turns: int, topic: str) -> list[AgentTurn]:
    """Return the cost of each turn; no other conversation has the topic."""
    turns = []
    for index in range(n_turns):
        if index % _TURNS_OF_A_TASK == 0:
            task = _TASKS[index // _TURNS_OF_A_TASK % len(_TASKS)]
            conversation.say(f"{topic}: {task}")
        is_last = index % _TURNS_OF_A_TASK == _TURNS_OF_A_TASK - 1
        turns.append(conversation.ask(must_call=not is_last))
        if not is_last:
            conversation.return_results(f"{index} files were found.\nsrc/fox_{index}.py: 12 lines, no problems.")
    return turns


def shares(turns: Sequence[AgentTurn], *, drops_thoughts: bool) -> tuple[list[float], list[float]]:
    """Return for each turn the share of the earlier text found in the cache: of all of it, and of the part kept.

    The earlier text is the prompt and the reply of the turn before. When the user gives a new task, a template that
    ``drops_thoughts`` leaves out the reasoning of the last task, so everything after it must be computed again. At
    least the prompt of the last task is kept: the shares of such turns are of that, in the second list.
    """
    of_all, of_kept = [], []
    for index in range(1, len(turns)):
        before, now = turns[index - 1], turns[index]
        if drops_thoughts and index % _TURNS_OF_A_TASK == 0:
            of_kept.append(min(1.0, now.n_cached / turns[index - _TURNS_OF_A_TASK].n_prompt))
        else:
            of_all.append(now.n_cached / (before.n_prompt + before.n_generated))
    return of_all, of_kept


def reread(turns: Sequence[AgentTurn]) -> list[int]:
    """Return for each turn how many tokens of the earlier text were computed again or left out."""
    return [before.n_prompt + before.n_generated - now.n_cached for before, now in itertools.pairwise(turns)]


def drops_thoughts(client: ApiClient) -> bool:
    """Return whether the loaded model's template leaves out the reasoning before the user's last message."""
    thought = "A thought to look for."
    messages = [
        {"role": "user", "content": "One."},
        {"role": "assistant", "content": "Two.", "reasoning_content": thought},
        {"role": "user", "content": "Three."},
    ]
    return thought not in client.post("/apply-template", {"messages": messages})["prompt"]
