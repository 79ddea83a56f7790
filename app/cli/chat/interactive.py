"""An interactive chat on a terminal: a loop of prompt and reply, and a few commands that begin with a slash."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from app.cli.chat.chat_server import ChatTarget, wait_ready
from app.cli.chat.conversation import Conversation, checked, read_file
from app.cli.chat.reply import CollectedReply
from app.cli.terminal.progress_line import LoadingLine
from app.cli.terminal.text import printable
from app.cli.terminal.text import say_on_stderr as _say
from app.client.http_client import Client, ServerUnreachable
from core.values.errors import SlipstreamError
from models.formatting.figures import size

if TYPE_CHECKING:
    from ui.client.attachments import Attachment

_HELP = """\
/help            this list
/new             start over; the system prompt stays
/file PATH       send a file with the next message: text, PDF, docx, or an image; /file - sends none
/model [NAME]    show the models, or change to one
/system [TEXT]   show the system prompt, or set it and start over; /system - removes it
/quit            leave (also Ctrl-D)
End a line with \\ to go on in the next one, or put \"\"\" before and after several lines.
Ctrl-C stops a reply."""
_HISTORY_LENGTH = 1_000  # prompts
_BLOCK = '"""'


class TerminalChat:
    """Reads prompts until the user leaves. Text of replies goes to stdout, everything else to stderr."""

    def __init__(
        self,
        connect: Callable[[], ChatTarget],
        conversation: Conversation,
        history: Path,
        attached: Sequence[Attachment],
    ) -> None:
        """``connect`` returns a server that is ready, in place of the one before.

        ``attached`` are files that go with the first message.
        """
        self._connect, self._conversation, self._history = connect, conversation, history
        self._attached = list(attached)
        self._client = self._connected()
        self._commands: dict[str, Callable[[str], None]] = {
            "/help": lambda _: _say(_HELP),
            "/new": self._new,
            "/file": self._attach,
            "/model": self._model,
            "/system": self._system,
        }

    def run(self) -> None:
        """Chat until /quit, Ctrl-D, or Ctrl-C twice at the prompt."""
        with _line_history(self._history):
            while (prompt := _read_patiently()) is not None:
                if prompt.split(maxsplit=1)[:1] in (["/quit"], ["/exit"]):
                    return
                self._take(prompt)

    def _take(self, prompt: str) -> None:
        command, _, argument = prompt.strip().partition(" ")
        try:
            checked(prompt)
            if command in self._commands:
                self._commands[command](argument.strip())
            elif command.startswith("/") and command.count("/") == 1 and "\n" not in prompt:
                _say(f"There is no command {command}; /help lists them.")
            elif prompt.strip():
                self._reply(prompt)
        except SlipstreamError as error:
            _say(error.message)
            if getattr(error, "code", None) == "context_length_exceeded" and not self._conversation.is_empty:
                _say("/new starts over and has room again.")
        except KeyboardInterrupt:
            _say("")

    def _reply(self, prompt: str) -> None:
        reply = CollectedReply()
        self._conversation.ask(prompt, self._attached)
        try:
            self._collect(reply)
            _print("\n")
            _say(f"[{reply.receipt(self._conversation.model)}]")
        except KeyboardInterrupt:
            _say("\n[stopped]")
        except SlipstreamError:
            _print("\n" if reply.text else "")
            raise
        finally:
            self._keep(reply)

    def _collect(self, reply: CollectedReply) -> None:
        """Get a reply; from a new server where the one that answered until now is gone."""
        note = LoadingLine(sys.stderr).note
        try:
            reply.collect(self._client.stream_chat(self._conversation.body()), _print, note)
        except ServerUnreachable:
            self._client = self._connected()
            reply.collect(self._client.stream_chat(self._conversation.body()), _print, note)

    def _connected(self) -> Client:
        target = self._connect()
        self._conversation.model = self._conversation.model or target.model
        _say(target.greeting)
        return target.client

    def _keep(self, reply: CollectedReply) -> None:
        if reply.text:
            self._conversation.answer(reply.text)
            self._attached.clear()
        else:
            self._conversation.take_back()

    def _new(self, _: str) -> None:
        self._conversation.clear()
        _say("A new chat.")

    def _attach(self, path: str) -> None:
        if path and path != "-":
            self._attached.append(read_file(_dropped(path)))
        elif path:
            self._attached.clear()
        names = ", ".join(f"{one.name} ({size(one.n_bytes)})" for one in self._attached)
        _say(f"With your next message: {names}." if names else "No file goes with your next message.")

    def _model(self, name: str) -> None:
        if not name:
            current = self._conversation.model or self._client.state().model
            _say("\n".join(f"{'*' if model == current else ' '} {model}" for model in self._client.models()))
            return
        if "/" in name and name in self._client.models():  # of another server: there is nothing to load
            self._conversation.model = name
            _say(f"{name} answers from here on.")
            return
        self._client.load(name)
        state = wait_ready(self._client, LoadingLine(sys.stderr))
        self._conversation.model = state.model
        _say(f"{state.model} answers from here on.")

    def _system(self, text: str) -> None:
        if not text:
            _say(self._conversation.system or "There is no system prompt.")
            return
        self._conversation.system = None if text == "-" else text
        self._conversation.clear()
        _say("The system prompt is removed." if text == "-" else "The system prompt is set; a new chat.")


def _read_patiently() -> str | None:
    """Read a prompt; None when the user leaves. One Ctrl-C is forgiven."""
    for is_last in (False, True):
        try:
            return _read_prompt()
        except EOFError:
            _say("")
            return None
        except KeyboardInterrupt:
            _say("" if is_last else "\n(Ctrl-C again or Ctrl-D to leave)")
    return None


def _read_prompt() -> str:
    line = _read_line("> ")
    if line.lstrip().startswith(_BLOCK):
        return _read_block(line.lstrip().removeprefix(_BLOCK))
    lines = []
    while line.endswith("\\"):
        lines.append(line[:-1])
        line = _read_line(". ")
    return "\n".join([*lines, line])


def _read_line(mark: str) -> str:
    if not sys.stdout.isatty():  # replies go into a file or to a program, and nothing but them
        print(mark, end="", file=sys.stderr, flush=True)
        mark = ""
    return input(mark)


def _read_block(line: str) -> str:
    lines = []
    while not line.rstrip().endswith(_BLOCK):
        lines.append(line)
        line = _read_line(". ")
    return "\n".join([*lines, line.rstrip().removesuffix(_BLOCK)]).strip("\n")


@contextlib.contextmanager
def _line_history(path: Path) -> Iterator[None]:
    """Line editing with a history that outlives the chat, where the system has it and the folder can be written."""
    try:
        import readline
    except ImportError:
        yield
        return
    readline.set_history_length(_HISTORY_LENGTH)
    with contextlib.suppress(OSError):
        readline.read_history_file(path)
    n_before = readline.get_current_history_length()
    try:
        yield
    finally:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch(0o600)
            # Only what is new: a chat in another terminal may have added to it.
            readline.append_history_file(readline.get_current_history_length() - n_before, path)
        except OSError as error:
            _say(f"The history of prompts was not kept: {path} cannot be written ({error.strerror}).")


def _dropped(text: str) -> Path:
    """Return the path that was typed, or dropped on a terminal, which quotes it for a shell."""
    try:
        words = shlex.split(text)
    except ValueError:  # an open quotation
        words = []
    is_quoted = len(words) == 1 and not os.path.exists(os.path.expanduser(text))
    return Path(words[0] if is_quoted else text)


def _print(text: str) -> None:
    sys.stdout.write(printable(text))
    sys.stdout.flush()
