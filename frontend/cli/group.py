"""Common parts of all verbs: showing failures, `-v`, and colour."""

from __future__ import annotations

import difflib
import importlib
import inspect
import logging
import os
import re
import sys
import textwrap
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import IO, TypeVar

import click

from axir._programs.compiled_modules import open_module
from axir.dialect.core.annotations import Options, UserFunction, UserObject
from axir.dialect.core.errors import AxirError
from axir.dialect.text.file_kinds import is_program

Command = TypeVar("Command", bound=UserFunction)

_VERBOSITY = "axir.verbosity"
# `file:line in function` is a line of the program that started the command, not the user's.
_PROGRAM_LINE = re.compile(r":\d+ in \S+")
_NEGATIVE = re.compile(r"-(\.?\d|inf)")


class JobError(click.ClickException):
    """The job failed: exit code 1, and a message without a traceback."""

    exit_code = 1

    def show(self, file: IO[UserObject] | None = None) -> None:
        """Prints the message to stderr."""
        prefix = click.style("error:", fg="red", bold=True)
        click.echo(f"{prefix} {self.message}", err=True, color=_colour())


def _colour() -> bool | None:
    """Returns False where colour is not wanted, None where it depends on the terminal."""
    is_unwanted = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return False if is_unwanted else None


class _AsWritten(click.Command):
    """Shows help texts as they are written, which keeps examples on separate lines."""

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the help text, indented."""
        formatter.write("\n" + textwrap.indent(inspect.cleandoc(self.help or ""), "  ") + "\n")


class Verb(_AsWritten):
    """A verb of the command line; negative numbers among its arguments are no options."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Reads options and arguments."""
        if any(map(_NEGATIVE.match, args)):
            ctx.ignore_unknown_options = True
        return super().parse_args(ctx, args)


class Group(_AsWritten, click.Group):
    """A group of verbs that turns exceptions into messages.

    A verb's file is imported when the verb is asked for: importing all verbs would take a sixteenth
    of the processor time that a command takes to start.

    Args:
        verbs: the names of verbs, and where in this folder they are defined, as in "opt.opt".
        options: the options of a `click.Group`.
    """

    def __init__(self, *, verbs: Mapping[str, str], **options: Options):
        super().__init__(**options)
        self._verbs = verbs

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Returns the names of the verbs, sorted."""
        return sorted({*self._verbs, *self.commands})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Returns a verb, or None if no verb has the name."""
        if cmd_name not in self.commands and cmd_name in self._verbs:
            file, name = self._verbs[cmd_name].split(".")
            module = importlib.import_module(f".{file}", __package__)
            self.add_command(getattr(module, name))
        return super().get_command(ctx, cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Returns the selected verb."""
        word = args[0]
        if self.get_command(ctx, word) is None and not word.startswith("-"):
            near = difflib.get_close_matches(word, self.list_commands(ctx), n=3)
            hint = f"Did you mean {' or '.join(near)}?" if near else "`axir --help` lists them."
            raise click.UsageError(f"There is no verb {word!r}. {hint}", ctx)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> UserObject:
        """Runs a verb."""
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise
        except Exception as error:
            if verbosity() >= 2 or os.environ.get("AXIR_DEBUG"):
                click.echo(traceback.format_exc(), err=True)
            raise JobError(describe(error)) from None


def describe(error: Exception) -> str:
    """Returns an exception's message for the user of the command line."""
    if isinstance(error, AxirError):
        lines = [error.message]
        if error.where and not _PROGRAM_LINE.search(error.where):
            lines.append(f"  at {error.where}")
        if error.way_out:
            lines.append(f"  {error.way_out}")
        return "\n".join(lines)
    if isinstance(error, FileNotFoundError):
        return f"There is no file or folder {error.filename}."
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}."
    if isinstance(error, OSError) and error.strerror:
        return f"The system says: {error.strerror}."
    if isinstance(error, MemoryError):
        return "The machine has not enough memory."
    first = (str(error).splitlines() or [""])[0][:200]
    return (
        f"{type(error).__name__}: {first}\n"
        "  This is a fault of axir itself; the same command with -vv prints where."
    )


def verbosity() -> int:
    """Returns the number of `-v` options."""
    context = click.get_current_context(silent=True)
    return 0 if context is None else context.find_root().meta.get(_VERBOSITY, 0)


def note(message: str) -> None:
    """Prints a message to stderr under `-v`."""
    if verbosity():
        click.echo(message, err=True)


def verbose_option(command: Command) -> Command:
    """Gives a verb the option `-v`."""

    def count(context: click.Context, _: click.Parameter, value: int) -> None:
        meta = context.find_root().meta
        meta[_VERBOSITY] = meta.get(_VERBOSITY, 0) + value
        if meta[_VERBOSITY]:
            logging.basicConfig(format="%(name)s: %(message)s")
            level = logging.INFO if meta[_VERBOSITY] == 1 else logging.DEBUG
            logging.getLogger("axir").setLevel(level)

    return click.option(
        "-v",
        "--verbose",
        count=True,
        expose_value=False,
        callback=count,
        help="Say more on stderr; twice: with tracebacks.",
    )(command)


def module_argument(command: Command) -> Command:
    """Gives a verb the argument FILE."""
    return click.argument("file", metavar="FILE", type=click.Path(path_type=Path))(command)


def read_input(file: Path) -> tuple[UserObject, str]:
    """Reads a module from a file, or from stdin for `-`; returns it and its dialect."""
    if str(file) == "-":
        return open_module("<stdin>", sys.stdin.buffer.read())
    refuse_binary(file)
    return open_module(file)


def refuse_binary(file: Path) -> None:
    """Raises if a file is a compiled program, which only some verbs take."""
    if is_program(file):
        raise JobError(
            f"{file} is a compiled program.\n  Only inspect, run and bench take one; give the "
            ".mlir that it was compiled from."
        )
