"""The command line: every command, and what becomes of an error."""

from __future__ import annotations

import inspect
import io
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated

import typer

from app import __version__
from app.cli.terminal.text import say_on_stderr
from app.environment.exit_codes import ExitCode
from app.environment.standard_streams import drop_output, why_not_written, write_all_texts
from core.values.errors import SlipstreamError
from models.formatting.program import PROGRAM, as_typed

# Each is a function in the module of its name, as app.cli.commands.chat.chat; models and _GROUPS have more below them.
_COMMANDS = (
    "chat",
    "serve",
    "batch",
    "models",
    "keys",
    "remotes",
    "doctor",
    "verify",
    "cache",
    "worker",
    "bench",
    "desktop",
    "test",
)
_GROUPS = ("keys", "remotes")
# Options that these commands do not know are passed to the program behind them.
_PASSES_ON = ("bench", "test")
_PASS_ON = {"allow_extra_args": True, "ignore_unknown_options": True}
_EPILOG = f"{PROGRAM} setup [--fresh] sets Slipstream up again.\n\n\b\nExit codes:\n" + "\n".join(
    f"  {code.value:>3}  {code.meaning}" for code in ExitCode
)


def build(*, is_pretty: bool, typed: Sequence[str] = ()) -> typer.Typer:
    """Return the command line; ``is_pretty`` draws help and usage errors with rich, which takes longer to import.

    Importing all commands takes as long as all the rest: where ``typed`` begins with one, only that one is there.
    """
    app = typer.Typer(
        name="slipstream",
        help="Run local language models as fast as this machine allows, and see why. "
        "Without a command, the desktop app opens.",
        epilog=_EPILOG,
        rich_markup_mode="rich" if is_pretty else None,
        pretty_exceptions_enable=False,
        add_completion=False,
        context_settings={"help_option_names": ["--help", "-h"], "max_content_width": 100},
    )
    app.callback(invoke_without_command=True)(_start)
    for name in typed[:1] if typed and typed[0] in _COMMANDS else _COMMANDS:
        if name == "models":
            from app.cli.models import commands as models

            app.add_typer(models.build(typed[1:]), name=name)
        elif name in _GROUPS:
            app.add_typer(import_module(f"app.cli.commands.{name}").build(), name=name)
        else:
            module = import_module(f"app.cli.commands.{name}")
            settings = _PASS_ON if name in _PASSES_ON else None
            app.command(context_settings=settings, cls=getattr(module, "Command", None))(getattr(module, name))
    _put_into_words(app)
    return app


def _put_into_words(app: typer.Typer) -> None:
    """Give each command its help, with the program called as it was typed.

    Lists of commands show the first sentence of each in full: click cuts what is not given as a short help.
    """
    for command in app.registered_commands:
        command.help = as_typed(inspect.cleandoc(command.callback.__doc__ or ""))
        first, _, _ = command.help.partition("\n\n")
        command.short_help = " ".join(first.split())
    for group in app.registered_groups:
        if group.typer_instance is not None:
            _put_into_words(group.typer_instance)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    write_all_texts()
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="surrogateescape")  # whoever wants text, or a key, says what is wrong with it
    try:
        code = _run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:  # whoever read it has seen enough
        drop_output()
        return ExitCode.ERROR
    except OSError as error:
        problem = why_not_written(error)
        if problem is None:
            raise
        drop_output()
        say_on_stderr(f"Error: {problem}")
        return ExitCode.ERROR
    return code


def _run(arguments: Sequence[str] | None) -> int:
    try:
        typed = sys.argv[1:] if arguments is None else arguments
        build(is_pretty=sys.stdout.isatty(), typed=typed or ["desktop"])(args=typed, prog_name=PROGRAM)
    except SlipstreamError as error:
        from app.cli.terminal.errors import exit_code, told

        code = exit_code(error)
        say_on_stderr(told(error) if code is ExitCode.INTERRUPTED else f"Error: {told(error)}")
        return code
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else ExitCode.OK if end.code is None else ExitCode.ERROR
    return ExitCode.OK


def _show_version(is_asked: bool) -> None:
    if is_asked:
        print(f"slipstream {__version__}")
        raise typer.Exit


def _start(
    context: typer.Context,
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        from app.cli.commands.desktop import desktop

        desktop()
