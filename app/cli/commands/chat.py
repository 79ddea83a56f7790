"""``slipstream chat``: one reply, or a conversation on the terminal."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.chat.chat_server import ServerChoice
from app.cli.chat.sampling_options import SamplingOptions
from app.cli.terminal.option_group import with_groups
from app.cli.terminal.text import say_json
from core.values.errors import BadRequest, SlipstreamError
from core.values.request import ReplySpeed

if TYPE_CHECKING:
    from collections.abc import Callable

    from app.cli.chat.chat_server import ChatTarget
    from app.cli.chat.conversation import Conversation
    from app.cli.chat.reply import CollectedReply
    from ui.client.attachments import Attachment

_SPEEDS = tuple(ReplySpeed)


@with_groups
def chat(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="PROMPT", help="What to say; - stands for standard input.", show_default=False),
    ] = None,
    *,
    server: ServerChoice,
    files: Annotated[
        list[Path] | None,
        typer.Option(
            "--file",
            "-f",
            metavar="FILE",
            help="Send this with the prompt: text, PDF, docx, or an image; may be given more than once.",
        ),
    ] = None,
    system: Annotated[str | None, typer.Option("--system", "-s", metavar="TEXT", help="System prompt.")] = None,
    max_tokens: Annotated[
        int | None, typer.Option("--max-tokens", "-n", min=1, metavar="N", help="Longest reply in tokens.")
    ] = None,
    stop: Annotated[
        list[str] | None, typer.Option(metavar="TEXT", help="Text that ends the reply; may be given more than once.")
    ] = None,
    speed: Annotated[
        str | None,
        typer.Option(
            metavar="SPEED", help=f"{', '.join(_SPEEDS[:-1])} or {_SPEEDS[-1]}: how soon, or how well, it is answered."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object: the reply and its figures.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No receipt on stderr.")] = False,
    sampling: SamplingOptions,
) -> None:
    """Chat with a model in the terminal.

    With a PROMPT, the reply streams to stdout and a one-line receipt follows on stderr. Text that is piped in is the
    prompt; to put it below a PROMPT, end with a dash: git diff | ./slipstream chat "Write a commit message:" -

    Without either, the chat is interactive; /help there lists what it understands.

    A server that runs already is used if it has the model; otherwise one is started for the call.
    """
    from app.cli.chat.conversation import AnswerSettings, Conversation, checked, read_file, read_prompt

    if speed is not None and speed not in _SPEEDS:
        raise BadRequest(f"--speed must be one of {', '.join(_SPEEDS)}, not {speed!r}.")
    settings = AnswerSettings(sampling.fields(), max_tokens, tuple(stop or ()), speed)
    conversation = Conversation(settings, system=checked(system) if system else None)
    prompt = read_prompt(words or ())
    if prompt is None and as_json:
        raise BadRequest("--json is for one reply: type a PROMPT behind it.")
    attached = [read_file(path) for path in files or ()]
    if prompt is None:
        _converse(conversation, server, attached)
        return
    conversation.ask(prompt, attached)
    _answer(conversation, server, as_json=as_json, quiet=quiet)


def _answer(conversation: Conversation, choice: ServerChoice, *, as_json: bool, quiet: bool) -> None:
    """Print one reply: as JSON when it has ended, else as it comes, with the receipt on stderr."""
    from app.cli.chat.chat_server import chat_server
    from app.cli.chat.reply import CollectedReply
    from app.cli.terminal.progress_line import LoadingLine

    reply = CollectedReply()
    with chat_server(choice, LoadingLine(sys.stderr), n_slots=conversation.settings.n_slots) as target:
        conversation.model = target.model
        show = _ignore if as_json else _writer()
        note = _ignore if quiet else LoadingLine(sys.stderr).note
        try:
            reply.collect(target.client.stream_chat(conversation.body()), show, note)
        except (KeyboardInterrupt, SlipstreamError) as broken_by:
            if reply.text and as_json:
                say_json(reply.as_json(broken_by))
            elif reply.text:
                _end_line(reply)  # what is said of it begins on a line of its own
            raise
        # Before the server is ended, which takes a while.
        _finish(reply, target.model, as_json=as_json, quiet=quiet)


def _finish(reply: CollectedReply, asked: str | None, *, as_json: bool, quiet: bool) -> None:
    if as_json:
        say_json(reply.as_json())
        return
    _end_line(reply)
    if not quiet:
        print(reply.receipt(asked), file=sys.stderr, flush=True)


def _end_line(reply: CollectedReply) -> None:
    if not reply.text.endswith("\n"):
        print(flush=True)


def _writer() -> Callable[[str], None]:
    from app.cli.terminal.text import printable

    is_terminal = sys.stdout.isatty()

    def write(text: str) -> None:
        sys.stdout.write(printable(text) if is_terminal else text)
        sys.stdout.flush()

    return write


def _ignore(_: str) -> None:
    pass


def _converse(conversation: Conversation, choice: ServerChoice, attached: list[Attachment]) -> None:
    from app.cli.chat.chat_server import chat_server
    from app.cli.chat.interactive import TerminalChat
    from app.cli.terminal.progress_line import LoadingLine
    from app.environment.paths import data_folder

    with ExitStack() as server:

        def connect() -> ChatTarget:
            server.close()
            n_slots = conversation.settings.n_slots
            return server.enter_context(chat_server(choice, LoadingLine(sys.stderr), n_slots=n_slots))

        TerminalChat(connect, conversation, data_folder() / "prompt_history", attached).run()
