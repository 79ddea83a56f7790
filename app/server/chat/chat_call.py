"""The call behind every protocol's chat: messages become a prompt, and replies pieces."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from itertools import accumulate

from app.server.calls.chat_body import ChatCompletionBody
from app.server.calls.generation import ChoiceUpdate, Updates, tokens_of
from app.server.calls.model_pool import ModelPool
from app.server.chat.call import Call
from app.server.chat.deep import DeepReply
from app.server.chat.images import image_marks, placed, read_images
from app.server.chat.run import Choice, EngineRun
from app.server.http.errors import refuse
from app.server.replies.pieces import DraftedText
from app.server.replies.reply_format import ReplyFormat
from app.server.replies.reply_parser import ReplyParser
from app.server.replies.tool_grammar import tool_grammar
from app.server.templates.chat_template import MAX_CHARS, TemplateRenderer, Turn
from core.values.errors import BadRequest
from core.values.messages import LoadedModel
from core.values.request import PromptImage, ReplySpeed, Request, ThinkingBudget

# A budget that no thoughts spend: they can be ended by the client.
ENDLESS = 2**31 - 1


class ChatCall(Call[ChatCompletionBody]):
    """One call for replies to messages."""

    PROMPT_FIELD = "messages"
    ID_PREFIX = "chat"

    must_think = ""
    """The field that asks for thoughts, where a model without any is refused for it."""
    tells_stages = False
    """Whether updates say how far a deep reply is before its answer begins."""

    def __init__(self, body: ChatCompletionBody, pool: ModelPool, renderer: TemplateRenderer) -> None:
        super().__init__(body, pool)
        self.renderer = renderer
        self._form = ReplyFormat()
        self._thinks = False
        self._goes_on_thinking = False
        self._images: tuple[PromptImage, ...] = ()

    def check(self) -> None:
        """Raise BadRequest for what cannot be answered, whatever the model is."""
        if self.body.wanted_speed is ReplySpeed.DEEP:
            self.body.check_deep()

    async def count_tokens(self) -> int:
        """Return how many tokens the messages are as the model reads them, with the rows of their images."""
        return len(await self.tokens())

    async def tokens(self) -> Sequence[int]:
        """Return the messages' tokens as the model reads them; those of images' rows are below 0."""
        async with self.begun() as (_, requests):
            prompt, images = requests[0].prompt, requests[0].images
            if not isinstance(prompt, str):
                return prompt
            return await tokens_of(self.host.bridge, prompt, add_special=True, images=images)

    async def prompts(self, model: LoadedModel) -> Sequence[str]:
        """Return the messages as the model's template renders them."""
        self._form = await self.renderer.reply_format(model)
        if self.must_think and not self._form.has_thoughts:
            message = f"{self.host.name} does not support thinking: leave {self.must_think} out."
            raise refuse(400, message, param=self.must_think)
        body, goes_on = self.body, self.body.continues
        if goes_on == "reasoning_content" and self._form.thinking is None:
            goes_on = "content"
        turn = Turn(goes_on) if goes_on else Turn.NONE if body.add_generation_prompt is False else Turn.NEW
        sent = body.images
        files = await read_images(sent, model, allows_remote=self.pool.settings.allows_remote_images) if sent else ()
        marks = image_marks(len(files))
        prompt = await self.renderer.render(model, body.template_variables(marks), turn)
        prompt, self._images = placed(prompt, marks, files)
        thoughts = body.messages[-1].reasoning_content or ""
        self._goes_on_thinking = turn is Turn.THINKING and prompt.endswith(thoughts.lstrip())
        if body.continue_final_message == "reasoning_content" and not self._goes_on_thinking:
            message = "The chat template of this model shows no thoughts that could be continued."
            raise BadRequest(message, param="continue_final_message")
        self._thinks = self._goes_on_thinking or self._form.opens_thinking(prompt)
        return [prompt]

    def completed(self, request: Request) -> Request:
        """Return the request in the model's form of reply; what it thinks before the answer is free but for its budget.

        It has the images at their places in the prompt.
        """
        form, binding, constraint = self._form, self.body.binding, request.constraint
        thought = form.thought_after(str(request.prompt), goes_on=self._goes_on_thinking)
        if binding is not None:
            constraint = tool_grammar(form, binding, thought)
        elif constraint is not None:
            constraint = replace(constraint, thought=thought)
        n_tokens, thinking = self.body.thinking_budget, None
        if n_tokens is None:
            n_tokens = self.pool.settings.reasoning_budget
        if n_tokens < 0 and self.body.reasoning_control:
            n_tokens = ENDLESS
        if n_tokens >= 0 and form.thinking is not None and thought is not None:
            markers = form.thinking
            thinking = ThinkingBudget(n_tokens, markers.open, markers.close, markers.then, begins_inside=self._thinks)
        return replace(
            request,
            constraint=constraint,
            markers=form.markers,
            thinking=thinking,
            images=self._images,
            speculates=self.body.speculation is not False,
        )

    def choice(self) -> Choice:
        """Return what keeps one choice; asked once there are prompts."""
        body, parser = self.body, None
        if body.uses_tools or not self._form.is_plain:
            tools = {tool.function.name: tool.function.parameters or {} for tool in body.tools or ()}
            told = (body.reasoning_format or self.pool.settings.reasoning_format) == "none"
            parser = ReplyParser(
                self._form,
                tools if body.uses_tools else None,
                thinks=self._thinks,
                goes_on=self._goes_on_thinking,
                tells_thoughts=told,
            )
        return Choice(parser, body.parallel_tool_calls is False, DraftedText() if body.drafted_spans else None)

    def drop_oldest(self, share: float) -> bool:
        """Leave out the oldest turns, up to something that the user said; False where only the last one is left."""
        messages = self.body.messages
        n_system = next((i for i, message in enumerate(messages) if message.role not in ("system", "developer")), 0)
        turns = [i for i, message in enumerate(messages) if message.role == "user" and i > n_system]
        if not turns:
            return False
        before = list(accumulate((message.n_chars for message in messages), initial=0))
        # Without what can never be written, messages would go one by one, and all be counted again each time.
        most = before[n_system] + max(share * before[-1], before[-1] - MAX_CHARS)
        first = next((turn for turn in reversed(turns) if before[turn] <= most), turns[0])
        self.body = self.body.model_copy(update={"messages": [*messages[:n_system], *messages[first:]]})
        return True

    @asynccontextmanager
    async def run(self, *, streams: bool) -> AsyncIterator[ChatRun]:
        """Hold the model while the call runs."""
        async with self.begun() as (model, requests):
            yield ChatRun(self, model, requests, streams=streams)


class ChatRun(EngineRun):
    """A chat that holds its model, with the stages before its answer where the reply is deep."""

    def __init__(self, call: ChatCall, model: LoadedModel, requests: list[Request], *, streams: bool) -> None:
        self.deep: DeepReply | None = None
        body = call.body
        # A reply of no tokens only reads its prompt, with which those of the stages begin.
        if body.wanted_speed is ReplySpeed.DEEP and body.token_limit != 0:
            self.deep = DeepReply(body, requests[0], call.host.bridge, call.renderer, model)
        is_followed = self.deep is not None and self.deep.has_listener
        super().__init__(call, model, requests, streams=streams or is_followed)
        self._tells_stages = call.tells_stages

    def updates(self) -> Updates:
        """Yield what is new; raises RequestFailed. What runs when this is closed is cancelled."""
        return super().updates() if self.deep is None else self._thought_over(self.deep)

    async def _thought_over(self, deep: DeepReply) -> Updates:
        told = list[ChoiceUpdate]()
        async with aclosing(deep.think()) as thinking:
            async for progress in thinking:
                told = [ChoiceUpdate(0, progress=progress.wire())] if self._tells_stages else []
                if told and not deep.plan.is_plain:  # the engine may still refuse what is answered plainly
                    yield told
                    told = []
        self.requests = [deep.answer]
        async with aclosing(super().updates()) as batches:
            async for batch in batches:
                if deep.has_listener:
                    deep.note_answer(sum(choice.n_tokens for choice in self.choices))
                yield told + batch
                told = []
