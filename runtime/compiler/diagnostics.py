"""Turns the compiler's diagnostics into an error that a user can act on.

IREE prints the operation that it failed on, often pages of IR; the helpful parts are the first
line, the source line that its location names, and the files that reproduce the failure. Elsewhere:
calling the compiler (`compiler/`).
"""

from __future__ import annotations

import linecache
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from axir.runtime.errors import CompileError, CompilerCrashError

_LOCATION = re.compile(r'^(?:loc\()?"?(?P<file>[^":\n]+)"?:(?P<line>\d+):(?P<column>\d+)\)?: ')
# IREE's name of a module that is passed in memory.
_MODULE_FILE = "source.mlir"
# Everything from here on is IR.
_IR_START = re.compile(r': (%\S+ = |")|\n')
_SHOWN_LENGTH = 200
_SHOWN_COUNT = 3


@dataclass(frozen=True)
class Diagnostic:
    """One message of the compiler.

    >>> diagnostic = Diagnostic.parse('model.py:7:3: cannot legalize: %0 = "a.b"() : () -> ()')
    >>> diagnostic.file, diagnostic.line, diagnostic.summary
    ('model.py', 7, 'cannot legalize')
    """

    text: str
    file: str | None
    line: int
    summary: str

    @staticmethod
    def parse(text: str) -> Diagnostic:
        """Splits the location from the message, and the message from the IR after it."""
        match = _LOCATION.match(text)
        message = text[match.end() :] if match else text
        summary = _IR_START.split(message, maxsplit=1)[0].strip().rstrip(":")
        if len(summary) > _SHOWN_LENGTH:
            summary = summary[:_SHOWN_LENGTH] + "…"
        if match is None:
            return Diagnostic(text, None, 0, summary)
        return Diagnostic(text, match["file"], int(match["line"]), summary)


class CompilerEndedError(Exception):
    """The compiler ended its process.

    Args:
        ending: how: the name of the signal, or the exit status.
        output: the last lines that it printed.
    """

    def __init__(self, ending: str, output: str):
        super().__init__(ending, output)
        self.ending = ending
        self.lines = [line.strip() for line in output.splitlines() if line.strip()]


def compile_error(
    diagnostics: Sequence[Diagnostic],
    reproducer: Path | None,
    crash: CompilerEndedError | None = None,
) -> CompileError:
    """Returns the error for a failed compilation.

    Args:
        diagnostics: the compiler's diagnostics, first cause first.
        reproducer: the module that was saved, or None when no folder could be written.
        crash: how the compiler ended its process, if it did.
    """
    summaries = list(dict.fromkeys(d.summary for d in diagnostics if d.summary))[:_SHOWN_COUNT]
    message = "IREE could not compile the program"
    error_class = CompileError
    if crash is not None:
        error_class = CompilerCrashError
        message = f"IREE's compiler crashed ({crash.ending})"
        if crash.ending == "SIGKILL":
            message += ", as when the system has no memory left"
        summaries += [line[:_SHOWN_LENGTH] for line in crash.lines[-_SHOWN_COUNT:]]
    message += ": " + "\n  then: ".join(summaries or ["it gave no reason."])
    if reproducer is None:
        way_out = "The module could not be saved: set axir_dump_dir to a folder to have it."
    else:
        way_out = (
            f"The module is saved as {reproducer}; the command that reproduces this stands beside "
            "it. Evaluate the function without jit, as axir_on_compile_failure='evaluate' does, or "
            "replace the named operation."
        )
    line = _user_line(diagnostics)
    # A compiler that crashes names no line; the error then names the line that called for the
    # program.
    where = line if line or crash is not None else ""
    error = error_class(message, way_out, where)
    error.diagnostics = tuple(d.text for d in diagnostics)
    return error


def _user_line(diagnostics: Sequence[Diagnostic]) -> str | None:
    for diagnostic in diagnostics:
        if diagnostic.file is None:
            continue
        if diagnostic.file == _MODULE_FILE:
            return f"line {diagnostic.line} of the module"
        source = linecache.getline(diagnostic.file, diagnostic.line).strip()
        return f"{diagnostic.file}:{diagnostic.line}" + (f": {source}" if source else "")
    return None
