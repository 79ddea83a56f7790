"""/v1/responses: the chat call in the shapes of OpenAI's Responses API, and the responses that were stored."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import Any, NamedTuple

from fastapi import Request as HttpRequest
from fastapi.responses import JSONResponse, Response

from app.server.batches.file_store import FileStore, is_seen
from app.server.calls.chat_body import ChatCompletionBody, text_of_arguments
from app.server.calls.generation import ChoiceUpdate
from app.server.calls.model_pool import pool_of
from app.server.chat.chat_call import ChatCall, ChatRun
from app.server.chat.images import data_url
from app.server.chat.run import Reply, respond
from app.server.http.body import LISTED, MOST_LISTED, asked_page, not_listed, page, query_number
from app.server.http.errors import ApiError, from_exception, refuse, renamed
from app.server.http.sse import encode_named, while_connected
from app.server.openai.response_body import (
    SENT_FIELDS,
    Item,
    ResponseBody,
    ToolNames,
    object_of_arguments,
    sealed,
)
from app.server.openai.response_store import ResponseStore, StoredResponse, new_number, number_of
from app.server.openai.timings import chat_logprobs, timings, usage
from app.server.replies.pieces import CallArguments, CallBegun, CallEnded, ContentText, Piece, ReasoningText
from core.values.errors import BadRequest


async def create_response(body: ResponseBody, http: HttpRequest) -> Response:
    """Answer the input, as one object or as a stream of events."""
    store: ResponseStore = http.app.state.responses
    earlier = await earlier_items(store, body.previous_response_id)
    await _resolve(store, body)
    tools = body.tool_names(earlier)
    call = ChatCall(await _chat(body, earlier, tools, http), pool_of(http), http.app.state.renderer)
    reply_of = partial(ResponseReply, Asked(body, call, store, tools))
    # With truncation auto the oldest turns of a prompt that is too long are dropped.
    truncates = body.truncation == "auto"
    return await respond(http, call, reply_of, streams=body.stream, truncates=truncates, names=SENT_FIELDS)


async def count_input_tokens(body: ResponseBody, http: HttpRequest) -> Response:
    """Return how many tokens the input is as the model reads it, with what came before it."""
    earlier = await earlier_items(http.app.state.responses, body.previous_response_id)
    await _resolve(http.app.state.responses, body)
    chat = await _chat(body, earlier, body.tool_names(earlier), http)
    call = ChatCall(chat, pool_of(http), http.app.state.renderer)
    with renamed(SENT_FIELDS):
        n_tokens = await while_connected(http.receive, call.count_tokens())
    return JSONResponse({"object": "response.input_tokens", "input_tokens": n_tokens})


async def earlier_items(store: ResponseStore, response_id: str | None) -> list[Item]:
    """Return the items of the conversation that ends with this response; raises ApiError where it is not stored."""
    if response_id is None:
        return []
    chain = await asyncio.to_thread(store.chain, response_id)
    if not chain or chain[0].previous is not None:
        gone = response_id if not chain else chain[0].previous
        raise refuse(
            400,
            f"There is no stored response {str(gone)[:80]!r}: send the whole conversation as input.",
            param="previous_response_id",
            code="previous_response_not_found",
        )
    return [item for one in chain for item in (*one.input, *one.response["output"])]


async def _resolve(store: ResponseStore, body: ResponseBody) -> None:
    """Put stored items in the place of references to them; raises ApiError for those that are not there."""
    for index, item in enumerate(body.input if not isinstance(body.input, str) else ()):
        if item.get("type", None if "role" in item else "item_reference") != "item_reference":
            continue
        found = await asyncio.to_thread(store.item, str(item.get("id")))
        if found is None:
            raise refuse(
                400,
                f"input[{index}] names the item {str(item.get('id'))[:80]!r}, which is not stored here: send the item "
                "itself.",
                param=f"input[{index}]",
                code="item_not_found",
            )
        assert not isinstance(body.input, str)
        body.input[index] = found


async def _chat(body: ResponseBody, earlier: list[Item], tools: ToolNames, http: HttpRequest) -> ChatCompletionBody:
    """Return the chat call's body with the images that were uploaded; raises ApiError for those that are not here."""
    chat, files = body.chat(earlier, tools), http.app.state.files
    for message in chat.messages:
        for part in message.content if isinstance(message.content, list) else ():
            if part.image_url is not None and part.image_url.file_id is not None:
                part.image_url.url = await asyncio.to_thread(_uploaded, files, part.image_url.file_id)
    return chat


def _uploaded(files: FileStore, file_id: str) -> str:
    found = files.get(file_id)
    if found is None or not is_seen(found):
        message = f"There is no file {file_id[:80]!r} here: upload it to /v1/files, with purpose vision."
        raise refuse(400, message, param="input", code="file_not_found")
    try:
        return data_url(files.path(file_id))
    except BadRequest as error:
        raise refuse(400, error.message, param="input", code="invalid_image") from None


class Asked(NamedTuple):
    """One request for a response."""

    body: ResponseBody
    call: ChatCall
    store: ResponseStore
    tools: ToolNames


async def _keep(asked: Asked, response: Item) -> bool:
    """Store a response where it shall be; return whether it is."""
    body = asked.body
    if body.store is False:
        return False
    number = number_of(response["id"])
    items = [_kept(item, f"{number}_i{index}") for index, item in enumerate(body.items)]
    stored = StoredResponse(response, items, body.previous_response_id)
    return await asyncio.to_thread(asked.store.put, stored)


def _kept(item: Item, number: str) -> Item:
    """Return an item of the input as it is listed later: with an id and its parts."""
    is_message = item.get("type", "message") == "message"
    kept: Item = {"id": f"msg_{number}", "type": "message"} | item if is_message else {"id": f"item_{number}"} | item
    if isinstance(kept.get("content"), str):
        kind = "output_text" if kept.get("role") == "assistant" else "input_text"
        part: Item = {"type": kind, "text": kept["content"]}
        kept["content"] = [part | {"annotations": []} if kind == "output_text" else part]
    return kept


class ResponseReply(Reply):
    """Builds a response's output items from the pieces of a chat, and tells of each step as an event."""

    def __init__(self, asked: Asked, run: ChatRun) -> None:
        self._asked, self._run = asked, run
        self.is_stored = asked.body.store is not False
        self._number, self._created = new_number(), int(time.time())
        self._id = f"resp_{self._number}"
        self._output: list[Item] = []
        self._is_open = False  # the last item still grows
        self._text: list[str] = []  # of the item that grows
        self._n_events = 0
        self._logprobs: list[Item] = []
        self._untold: list[Item] = []  # log probabilities of text that is held back
        self._status = "in_progress"
        self._error: Item | None = None

    def opening(self) -> bytes:
        """Return the events that begin the stream."""
        begun = self.response()
        kinds = ("response.created", "response.in_progress")
        return self._encoded([{"type": kind, "response": begun} for kind in kinds])

    def take(self, update: ChoiceUpdate) -> None:
        """Keep what is new."""
        self.events(update)

    def chunk(self, update: ChoiceUpdate) -> bytes:
        """Keep what is new, and return the events that tell of it."""
        return self._encoded(self.events(update))

    def events(self, update: ChoiceUpdate) -> list[Item]:
        """Keep what is new, and return what is to be told of it."""
        logprobs = self._untold + (chat_logprobs(update.logprobs)["content"] if update.logprobs else [])
        events: list[Item] = []
        for piece in update.pieces:
            events += self._take(piece, logprobs)
            logprobs = [] if isinstance(piece, ContentText) else logprobs
        self._untold = [] if update.pieces else logprobs
        return events

    async def closing(self) -> bytes:
        """Return the last events of a stream that went well; the response is stored before the very last."""
        ends = self._encoded(self._end())
        self.is_stored = await _keep(self._asked, self.response())
        return ends + self._encoded([{"type": f"response.{self._status}", "response": self.response()}])

    async def whole(self) -> Item:
        """Return the response, which is stored."""
        self._end()
        response = self.response()
        return response | {"store": await _keep(self._asked, response)}

    def failed(self, error: Exception) -> bytes:
        """Return the last event of a stream that failed: its status is long sent."""
        told = from_exception(error)
        self._close("incomplete")
        self._status, self._error = "failed", {"code": told.answer.code or "server_error", "message": told.message}
        return self._encoded([{"type": "response.failed", "response": self.response()}])

    def _end(self) -> list[Item]:
        """Close what is open: the call is over."""
        is_cut = self._run.choices[0].finish_reason == "length"
        self._status = "incomplete" if is_cut else "completed"
        return self._close(self._status)

    def response(self) -> Item:
        """Return the response as it stands."""
        body, chat, run = self._asked.body, self._asked.call.body, self._run
        is_over = self._status in ("completed", "incomplete")
        return {
            "id": self._id,
            "object": "response",
            "created_at": self._created,
            "completed_at": int(time.time()) if self._status == "completed" else None,
            "status": self._status,
            "background": False,
            "error": self._error,
            "frequency_penalty": chat.frequency_penalty,
            "incomplete_details": {"reason": "max_output_tokens"} if self._status == "incomplete" else None,
            "instructions": body.instructions,
            "max_output_tokens": body.max_output_tokens,
            "metadata": body.metadata or {},
            "model": self._asked.call.host.name,
            "output": [dict(item) for item in self._output],
            "parallel_tool_calls": chat.parallel_tool_calls is not False,
            "presence_penalty": chat.presence_penalty,
            "previous_response_id": body.previous_response_id,
            "reasoning": {"effort": chat.reasoning_effort, "summary": None},
            "service_tier": chat.service_tier or "default",
            "store": self.is_stored,
            "temperature": chat.temperature,
            "text": {"format": {"type": "text"}} | (body.text or {}),
            "tool_choice": body.tool_choice or "auto",
            "tools": body.tools or [],
            "top_p": chat.top_p,
            "truncation": body.truncation or "disabled",
            "usage": self._usage() if is_over else None,
            **({"timings": timings(run.receipts)} if is_over else {}),
        }

    def _usage(self) -> Item:
        counted = usage(self._run.receipts)
        if self._run.deep is not None:
            counted = self._run.deep.usage(counted)
        n_hidden = counted.get("completion_tokens_details", {}).get("reasoning_tokens", 0)
        n_cached = counted["prompt_tokens_details"]["cached_tokens"]
        return {
            "input_tokens": counted["prompt_tokens"],
            "input_tokens_details": {"cached_tokens": n_cached, "cache_write_tokens": 0},
            "output_tokens": counted["completion_tokens"],
            "output_tokens_details": {"reasoning_tokens": n_hidden + self._run.choices[0].n_reasoning},
            "total_tokens": counted["total_tokens"],
        }

    def _take(self, piece: Piece, logprobs: list[Item]) -> list[Item]:
        if isinstance(piece, CallBegun):
            return [*self._close(), *self._begin_call(piece)]
        if isinstance(piece, CallEnded):
            return self._close()
        kind = "message" if isinstance(piece, ContentText) else "reasoning"
        if isinstance(piece, CallArguments):
            kind = str(self._output[-1]["type"])
        events = [] if self._is_open and self._output[-1]["type"] == kind else [*self._close(), *self._begin(kind)]
        self._text.append(piece.text)
        if kind in ("custom_tool_call", "tool_search_call"):
            return events  # told when the arguments are whole
        if kind == "function_call":
            return [self._of_item("response.function_call_arguments.delta", delta=piece.text)]
        if isinstance(piece, ReasoningText):
            return [*events, self._of_item("response.reasoning_text.delta", content_index=0, delta=piece.text)]
        self._logprobs += logprobs
        told = {"content_index": 0, "delta": piece.text, "logprobs": logprobs}
        return [*events, self._of_item("response.output_text.delta", **told)]

    def _begin(self, kind: str) -> list[Item]:
        if kind == "message":
            item: Item = {"id": self._item_id("msg"), "type": "message", "role": "assistant", "content": []}
        else:
            item = {"id": self._item_id("rs"), "type": "reasoning", "summary": [], "content": []}
        added = self._add(item)
        part = self._of_item("response.content_part.added", content_index=0, part=self._part(kind, ""))
        return [added, part]

    def _begin_call(self, piece: CallBegun) -> list[Item]:
        kind, name, namespace = self._asked.tools.sent(piece.name)
        item: Item = {"id": self._item_id("fc"), "call_id": piece.id}
        if kind == "tool_search":
            item |= {"type": "tool_search_call", "execution": "client", "arguments": {}}
        elif kind == "custom":
            item |= {"type": "custom_tool_call", "name": name, "input": ""}
        else:
            item |= {"type": "function_call", "name": name, "arguments": ""}
        return [self._add(item if namespace is None else item | {"namespace": namespace})]

    def _item_id(self, prefix: str) -> str:
        return f"{prefix}_{self._number}_{len(self._output)}"

    def _add(self, item: Item) -> Item:
        self._output.append(item | {"status": "in_progress"})
        self._is_open = True
        return self._of_output("response.output_item.added")

    def _close(self, status: str = "completed") -> list[Item]:
        """End the item that grows, if there is one."""
        if not self._is_open:
            return []
        item, text = self._output[-1], "".join(self._text)
        events = self._done(item, text)
        item["status"] = status
        self._is_open = False
        self._text.clear()
        self._logprobs = []
        return [*events, self._of_output("response.output_item.done")]

    def _done(self, item: Item, text: str) -> list[Item]:
        kind = item["type"]
        if kind == "function_call":
            item["arguments"] = text
            told = {"arguments": text, "name": item["name"]}
            return [self._of_item("response.function_call_arguments.done", **told)]
        if kind == "tool_search_call":
            item["arguments"] = object_of_arguments(text)
            return []
        if kind == "custom_tool_call":
            item["input"] = text_of_arguments(text)
            return [
                self._of_item("response.custom_tool_call_input.delta", delta=item["input"]),
                self._of_item("response.custom_tool_call_input.done", input=item["input"]),
            ]
        part = self._part(kind, text)
        item["content"] = [part]
        if kind == "reasoning" and self._asked.body.seals_reasoning:
            item["encrypted_content"] = sealed(text)
        told = {"content_index": 0, "text": text} | ({"logprobs": self._logprobs} if kind == "message" else {})
        name = "output_text" if kind == "message" else "reasoning_text"
        return [
            self._of_item(f"response.{name}.done", **told),
            self._of_item("response.content_part.done", content_index=0, part=part),
        ]

    def _part(self, kind: str, text: str) -> Item:
        if kind == "reasoning":
            return {"type": "reasoning_text", "text": text}
        return {"type": "output_text", "text": text, "annotations": [], "logprobs": list(self._logprobs)}

    def _of_item(self, kind: str, **more: Any) -> Item:
        return {"type": kind, "item_id": self._output[-1]["id"], "output_index": len(self._output) - 1, **more}

    def _of_output(self, kind: str) -> Item:
        return {"type": kind, "output_index": len(self._output) - 1, "item": dict(self._output[-1])}

    def _encoded(self, events: list[Item]) -> bytes:
        """Return events as they are sent, numbered."""
        for number, event in enumerate(events, self._n_events):
            event["sequence_number"] = number
        self._n_events += len(events)
        return b"".join(map(encode_named, events))


async def compact() -> Response:
    """Refuse: OpenAI's models sum up a conversation there."""
    message = 'Conversations are not summed up here: send fewer items, or truncation "auto", which leaves out old ones.'
    raise refuse(501, message)


# The stored ones


async def get_response(response_id: str, http: HttpRequest) -> Response:
    """Return a stored response."""
    if http.query_params.get("stream") == "true":
        raise refuse(400, "A stored response is given as a whole: leave stream out.", param="stream")
    return JSONResponse((await _stored(response_id, http)).response)


async def delete_response(response_id: str, http: HttpRequest) -> Response:
    """Delete a stored response; those that continue it cannot be continued any more."""
    if not await asyncio.to_thread(_store(http).delete, response_id):
        raise _unknown(response_id)
    return JSONResponse({"id": response_id, "object": "response", "deleted": True})


async def list_responses(http: HttpRequest) -> Response:
    """List the stored responses, the newest first, with ``order`` asc the oldest."""
    limit, after = query_number(http, "limit", LISTED, MOST_LISTED), http.query_params.get("after")
    last = None if after is None else await asyncio.to_thread(_store(http).get, after)
    if after is not None and last is None:
        raise not_listed(after)
    oldest_first = http.query_params.get("order") == "asc"
    found = await asyncio.to_thread(_store(http).listed, limit + 1, last, oldest_first=oldest_first)
    return JSONResponse(page([one.response for one in found[:limit]], has_more=len(found) > limit))


async def list_input_items(response_id: str, http: HttpRequest) -> Response:
    """List the items that a stored response answered, those of the conversation before it included."""
    await _stored(response_id, http)
    chain = await asyncio.to_thread(_store(http).chain, response_id)
    items = [item for one in chain[:-1] for item in (*one.input, *one.response["output"])] + chain[-1].input
    if http.query_params.get("order", "desc") != "asc":
        items.reverse()
    return JSONResponse(asked_page(http, items))


async def cancel_response(response_id: str, http: HttpRequest) -> Response:
    """Say that a response that is stored is over."""
    await _stored(response_id, http)
    raise refuse(400, "This response is over. One that streams is cancelled by closing its connection.")


def _store(http: HttpRequest) -> ResponseStore:
    store: ResponseStore = http.app.state.responses
    return store


async def _stored(response_id: str, http: HttpRequest) -> StoredResponse:
    found = await asyncio.to_thread(_store(http).get, response_id)
    if found is None:
        raise _unknown(response_id)
    return found


def _unknown(response_id: str) -> ApiError:
    return refuse(404, f"There is no stored response {response_id[:80]!r} here.", param="response_id")
