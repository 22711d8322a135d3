"""Parsing MLIR text and bytecode, with errors that name the line and the way out.

What does not live here: what the ops of a module mean (`module_reader.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
from iree.compiler import ir

from axir.dialect.core.context import context, describe_location
from axir.dialect.core.errors import ParseError, VerificationError

from .bytecode import without_foreign_attributes
from .text_positions import remember_source

_QUOTED = re.compile(rb'"((?:[^"\\\n]|\\.)*)"')
_ESCAPED = re.compile(rb"\\([0-9A-F]{2})")
# The parser calls itself for each bracket and prefix sign that is open: 5,000 overflow its stack.
_DEEPEST = 1000
_NO_TOKEN = re.compile(rb'"(?:[^"\\\n]|\\.)*"|//[^\n]*|->')
_NO_BRACKET = bytes(set(range(256)) - set(b"()[]{}<>"))
_STEPS = np.zeros(256, np.int8)
_STEPS[list(b"([{<")], _STEPS[list(b")]}>")] = 1, -1
_BYTECODE = b"ML\xefR"
# What to do about the mistakes that editing makes, by what MLIR says of them.
_WAYS_OUT = {
    "undeclared SSA value": "Define the value above its use, in the same function, or correct its "
    "name.",
    "expects different type": "Write one type wherever the value occurs.",
    "definition of SSA value": "Write one type wherever the value occurs, and define it once.",
    "redefinition of": "Give one of them another name.",
    "integer literal for a floating point": "Write 1.0, not 1.",
    "does not match type": "Write as many elements as the type has.",
    "does not reference a valid function": "Correct the name, or add the function.",
    "expected": "Correct the text there: a bracket, a comma or a quote may be missing.",
}
_WAY_OUT = "Correct the text there, or export the module again."


# Reads bytecode where a crash does no harm; the runtime sets it.
_trial: Callable[[bytes], str | None] | None = None


def set_trial(trial: Callable[[bytes], str | None]) -> None:
    """Sets what reads bytecode before this process does; it returns how that crashed, if it did."""
    global _trial
    _trial = trial


def parse_module(text: str | bytes, name: str = "<string>") -> ir.Module:
    """Parses MLIR text or bytecode.

    Raises:
        ParseError: with the first diagnostic and its line.
    """
    if isinstance(text, bytes) and text.startswith(_BYTECODE):
        text = without_foreign_attributes(text)
    _check_readable(text.encode(errors="replace") if isinstance(text, str) else text, name)
    module = _parsed(lambda: ir.Module.parse(text, context=context()), name)
    if isinstance(text, bytes):
        text = "" if text.startswith(_BYTECODE) else text.decode()
    remember_source(module, name, text)
    return module


def _check_readable(text: bytes, name: str) -> None:
    """Refuses what the parser would not survive: damaged bytecode, text nested too deeply.

    Raises:
        ParseError: if it is that.
    """
    if text.startswith(_BYTECODE):
        crash = None if _trial is None else _trial(text)
        if crash is not None:
            raise ParseError(
                f"{name} is damaged bytecode: reading it crashes ({crash}).",
                "Export the module again.",
                where=name,
            )
        return
    tokens = _NO_TOKEN.sub(b"", text)
    brackets = np.frombuffer(tokens.translate(None, _NO_BRACKET), np.uint8)
    level = np.cumsum(_STEPS[brackets], dtype=np.int64)
    # A bracket that was never opened makes nothing less deep.
    depth = int((level - np.minimum.accumulate(np.minimum(level, 0))).max(initial=0))
    signs = b"-" * _DEEPEST
    if depth > _DEEPEST or (signs in tokens.translate(None, b" \t\r\n")):
        raise ParseError(
            f"{name} nests brackets or signs more than {_DEEPEST:,} deep.",
            "Close brackets that were left open, or take inner regions out into functions.",
            where=name,
        )


def _parsed(parse: Callable[[], ir.Module], name: str) -> ir.Module:
    try:
        module = parse()
    except ir.MLIRError as error:
        raise _syntax_error(error, name) from None
    except (ValueError, RuntimeError) as error:  # the latter of names that are not UTF-8
        raise ParseError(f"{name} is neither MLIR text nor bytecode: {error}", where=name) from None
    check_names(module)
    return module


def _syntax_error(error: ir.MLIRError, name: str) -> ParseError:
    """Returns the first diagnostic, with its notes and what to do about it."""
    for diagnostic in error.error_diagnostics:
        message = diagnostic.message.splitlines()[0]
        ways_out = (way_out for part, way_out in _WAYS_OUT.items() if part in message)
        for note in diagnostic.notes:
            line = _line(note.location)
            if line and "see current operation" not in note.message:
                message += f" ({note.message.splitlines()[0]}: line {line})"
        line = _line(diagnostic.location)
        return ParseError(
            f"{name} is not valid MLIR: {f'line {line}: ' if line else ''}{message}.",
            next(ways_out, _WAY_OUT),
            where=f"{name}:{line}" if line else name,
        )
    return ParseError(f"{name} is not valid MLIR.", "Export it again.", where=name)


def verify_operations(module: ir.Module, name: str) -> None:
    """Verifies a module of any dialect by MLIR's rules.

    Raises:
        VerificationError: with the first diagnostic and its line.
    """
    try:
        module.operation.verify()
    except ir.MLIRError as error:
        found = _syntax_error(error, name)
        raise VerificationError(found.message, found.way_out, found.where) from None


def _line(location: ir.Location) -> str | None:
    place = describe_location(location)
    return re.split("[ :]", place)[-1] if place else None


def check_names(module: ir.Module) -> None:
    """Refuses a module with names that are not valid UTF-8.

    Raises:
        ParseError: if there is one.
    """
    # The bindings abort the process when a walk meets an op whose name Python cannot represent.
    text = module.operation.get_asm(binary=True, large_elements_limit=1, enable_debug_info=True)
    for quoted in _QUOTED.finditer(text):
        if b"\\" in quoted[1]:
            name = _ESCAPED.sub(lambda match: bytes([int(match[1], 16)]), quoted[1])
            try:
                name.decode()
            except UnicodeDecodeError:
                raise ParseError(
                    f"The module holds a name that is not valid UTF-8: {quoted[1].decode()}.",
                    "It is damaged: export it again.",
                    where="",
                ) from None


def read_file(path: str | Path) -> ir.Module:
    """Reads and parses a file of MLIR text or bytecode."""
    path = Path(path)
    data = path.read_bytes()
    if not data.strip():
        raise ParseError(
            f"{path} is empty.", "Write modules with axir.export or `axir opt -o`.", str(path)
        )
    if data.startswith(_BYTECODE):
        return parse_module(data, str(path))
    try:
        data.decode()
    except UnicodeDecodeError:
        raise ParseError(
            f"{path} is neither MLIR text nor bytecode.",
            "Compiled .vmfb files are run with `axir run`, not read as modules.",
            str(path),
        ) from None
    _check_readable(data, str(path))
    # Not the text read above: parsing the file gives ops locations that name it.
    module = _parsed(lambda: ir.Module.parseFile(str(path), context=context()), str(path))
    remember_source(module, str(path), path)
    return module
