"""The command line: every command, and what becomes of an error."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from app import __version__
from app.cli.commands import batch, bench, cache, chat, desktop, doctor, serve, test, verify
from app.cli.models import commands as models
from app.cli.terminal.text import say_on_stderr
from app.environment.exit_codes import ExitCode
from app.environment.standard_streams import drop_output, why_not_written
from core.values.errors import BadOption, BadRequest, LoadFailed, SlipstreamError
from models.formatting.program import PROGRAM, as_typed

_CODES: tuple[tuple[type[SlipstreamError], ExitCode], ...] = (
    (BadOption, ExitCode.USAGE),
    (BadRequest, ExitCode.USAGE),
    (LoadFailed, ExitCode.MODEL),
)
# What these commands do not know goes to the program behind them.
_PASS_ON = {"allow_extra_args": True, "ignore_unknown_options": True}
_EPILOG = f"{PROGRAM} setup [--fresh] sets Slipstream up again.\n\n\b\nExit codes:\n" + "\n".join(
    f"  {code.value:>3}  {code.meaning}" for code in ExitCode
)


def build(*, is_pretty: bool) -> typer.Typer:
    """Return the command line; ``is_pretty`` draws help and usage errors with rich, which takes longer to import."""
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
    app.command()(chat.chat)
    app.command()(serve.serve)
    app.command()(batch.batch)
    app.add_typer(models.build(), name="models")
    app.command()(doctor.doctor)
    app.command()(verify.verify)
    app.command()(cache.cache)
    app.command(context_settings=_PASS_ON)(bench.bench)
    app.command()(desktop.desktop)
    app.command(context_settings=_PASS_ON)(test.test)
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
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]
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
        build(is_pretty=sys.stdout.isatty())(args=arguments, prog_name=PROGRAM)
    except SlipstreamError as error:
        say_on_stderr(f"Error: {error.message}")
        return exit_code(error)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else ExitCode.OK if end.code is None else ExitCode.ERROR
    return ExitCode.OK


def exit_code(error: SlipstreamError) -> ExitCode:
    """Return what an error means to a script."""
    own = getattr(error, "exit_code", None)
    if isinstance(own, ExitCode):
        return own
    return next((code for kind, code in _CODES if isinstance(error, kind)), ExitCode.ERROR)


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
        desktop.desktop()
