"""Parsing MLIR text and bytecode, with errors that name the line and the way out.

Elsewhere: the meaning of a module's ops (`module_reader.py`).
"""

from __future__ import annotations

import mmap
import re
import stat
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from iree.compiler import ir

from axir.dialect.core.annotations import HostArray
from axir.dialect.core.context import context, describe_location
from axir.dialect.core.errors import AxirError, ParseError, VerificationError
from axir.dialect.core.quantized_types import quantization

from .bytecode import BYTECODE, Content, embedded_bytecode
from .bytecode_shardings import without_foreign_attributes
from .file_kinds import other_kind
from .resources import remember_resources, split
from .shardings import in_generic_form
from .text_positions import remember_source

# Runs, not characters one by one: constants are strings of many megabytes.
_STRING = rb'"([^"\\\n]*(?:\\.[^"\\\n]*)*)"'
_QUOTED = re.compile(_STRING)
_VALUE_NAME = re.compile(r"%[\w$.-]+")
_COLUMN = re.compile(r":(\d+)\)$")
# The bytes that determine whether a file has another format, which may hold bytecode.
_TOLD_BY = 256
# The bytes of a file that determine whether it is text.
_BEGINNING = 1 << 20
# The part of a line that is shown with an error.
_SHOWN = 90
_ESCAPED = re.compile(rb"\\([0-9A-F]{2})")
# The parser calls itself for each bracket and prefix sign that is open: 5,000 overflow its stack.
_DEEPEST = 1000
_NO_TOKEN = re.compile(_STRING + rb"|//[^\n]*|->")
_NO_BRACKET = bytes(set(range(256)) - set(b"()[]{}<>"))
_STEPS = np.zeros(256, np.int8)
_STEPS[list(b"([{<")], _STEPS[list(b")]}>")] = 1, -1
# The ways out of mistakes of editing, by MLIR's messages.
_WAYS_OUT = {
    "undeclared SSA value": "Define the value above its use, in the same function, or correct its "
    "name.",
    "expects different type": "Write one type wherever the value occurs.",
    "definition of SSA value": "Write one type wherever the value occurs, and define it once.",
    "redefinition of": "Give one of them another name.",
    "integer literal for a floating point": "Write 1.0, not 1.",
    "does not match type": "Write as many elements as the type has.",
    "' is unknown": "Correct the name of the operation, or write it in the generic form.",
    "out of expressed type range": "Scales of quantized types are positive, finite numbers.",
    "illegal storage type": "Their integers have at most 32 bits, and bounds that fit them.",
    "does not reference a valid function": "Correct the name, or add the function.",
    "expected": "Correct the text there: a bracket, a comma or a quote may be missing.",
}
# A type in MLIR's messages.
_QUANTIZED = re.compile(r"'(tensor<[^']*!quant\.[^']*>)'")
# MLIR does not give the name.
_UNDECLARED = "use of undeclared SSA value name"
_WAY_OUT = "Correct the text there, or export the module again."


# Reads bytecode where a crash does no harm; the runtime sets it.
_trial: Callable[[bytes], str | None] | None = None


def set_trial(trial: Callable[[bytes], str | None]) -> None:
    """Sets the function that reads bytecode before this process; it returns a crash, if any."""
    global _trial
    _trial = trial


def parse_module(
    text: str | Content,
    name: str = "<string>",
    file: Path | None = None,
    weights: Mapping[str, HostArray] | None = None,
) -> ir.Module:
    """Parses MLIR text or bytecode.

    Args:
        text: The content of a module.
        name: Its name in errors.
        file: The file that it was mapped from, which MLIR reads if it may read all of it.
        weights: The weights that it names, if the content lacks them.

    Raises:
        ParseError: with the first diagnostic and its line.
        WeightsError: if its weights are damaged.
    """
    content: Content = text.encode(errors="replace") if isinstance(text, str) else text
    inner = embedded_bytecode(content) if b"\0" in content[:_TOLD_BY] else None
    if inner is not None:
        content, file = inner, None
    is_bytecode = content[: len(BYTECODE)] == BYTECODE
    given, resources = split(content, name)
    if is_bytecode:
        given = without_foreign_attributes(given)
    elif given.find(b"sdy.") >= 0:
        given = in_generic_form(given[:])
    _check_readable(given, name)
    if file is not None and given is content:
        module = _parsed(lambda: ir.Module.parseFile(str(file), context=context()), name, given)
    else:
        module = _parsed(lambda: ir.Module.parse(given[:], context=context()), name, given)
        if file is not None and not is_bytecode:
            _name_locations(module, name)
    if resources is not None:
        if weights is not None:
            resources.give(weights)
        remember_resources(module, resources)
    if file is not None and given is content:
        remember_source(module, name, file)
    else:
        remember_source(module, name, "" if is_bytecode else given[:].decode(errors="replace"))
    return module


def _name_locations(module: ir.Module, name: str) -> None:
    """Gives operations the name of their file, because MLIR got the text without its name."""

    def rename(op: ir.Operation) -> ir.WalkResult:
        place = op.location
        if isinstance(place, ir.FileLineColLoc) and place.filename == "-":
            op.location = ir.Location.file(name, place.start_line, place.start_col)
        return ir.WalkResult.ADVANCE

    with context():
        module.operation.walk(rename)


def _check_readable(text: Content, name: str) -> None:
    """Refuses content that would crash the parser: damaged bytecode, text nested too deeply.

    Raises:
        ParseError: for such content.
    """
    if text[: len(BYTECODE)] == BYTECODE:
        crash = None if _trial is None else _trial(text[:])
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
    # A closing bracket without an opening one does not reduce the depth.
    depth = int((level - np.minimum.accumulate(np.minimum(level, 0))).max(initial=0))
    signs = b"-" * _DEEPEST
    if depth > _DEEPEST or (signs in tokens.translate(None, b" \t\r\n")):
        raise ParseError(
            f"{name} nests brackets or signs more than {_DEEPEST:,} deep.",
            "Close brackets that were left open, or take inner regions out into functions.",
            where=name,
        )


def _parsed(parse: Callable[[], ir.Module], name: str, text: Content) -> ir.Module:
    try:
        module = parse()
    except ir.MLIRError as error:
        raise _syntax_error(error, name, text) from None
    except (ValueError, RuntimeError) as error:  # the latter for names that are not UTF-8
        raise ParseError(f"{name} is neither MLIR text nor bytecode: {error}", where=name) from None
    check_names(module)
    return module


def _syntax_error(error: ir.MLIRError, name: str, text: Content = b"") -> ParseError:
    """Returns the first diagnostic, with its notes, the text at its place, and the way out."""
    for diagnostic in error.error_diagnostics:
        message = diagnostic.message.splitlines()[0]
        if message.endswith(_UNDECLARED):
            message = f"{message} {_word(text, diagnostic.location)}".rstrip()
        ways_out = [way_out for part, way_out in _WAYS_OUT.items() if part in message]
        for note in diagnostic.notes:
            line = _line(note.location)
            if line and "see current operation" not in note.message:
                message += f" ({note.message.splitlines()[0]}: line {line})"
        reason = _quantization_fault(message)
        if reason is not None:
            message = reason.message.removesuffix(".")
            ways_out = [reason.way_out or _WAY_OUT]
        line, column = _line(diagnostic.location), _column(diagnostic.location)
        place = ":".join(filter(None, (name, line, line and column)))
        return ParseError(
            f"{name} is not valid MLIR: {f'line {line}: ' if line else ''}{message}."
            + _shown(text, line, column),
            next(iter(ways_out), _WAY_OUT),
            where=place,
        )
    return ParseError(f"{name} is not valid MLIR.", "Export it again.", where=name)


def _quantization_fault(message: str) -> AxirError | None:
    """Returns the fault of a quantized type that MLIR refuses without a reason."""
    for found in _QUANTIZED.findall(message):
        try:
            quantization(ir.Type.parse(found, context()))
        except AxirError as error:
            return error
    return None


def _word(text: Content, location: ir.Location) -> str:
    """Returns the name that stands at a place of a text, in quotes."""
    shown = _shown(text, _line(location), _column(location)).splitlines()
    if not shown:
        return ""
    found = _VALUE_NAME.match(shown[1], len(shown[2]) - 1)
    return repr(found[0]) if found else ""


def _shown(text: Content, line: str | None, column: str | None) -> str:
    """Returns a line of a text, with a mark below a column; nothing for bytecode."""
    if not (line and column) or text[: len(BYTECODE)] == BYTECODE:
        return ""
    begin = 0
    for _ in range(int(line) - 1):
        begin = text.find(b"\n", begin) + 1
        if not begin:
            return ""
    end = text.find(b"\n", begin)
    place = begin + int(column) - 1
    first = max(begin, place - _SHOWN // 2)
    part = text[first : min(len(text) if end < 0 else end, first + _SHOWN)]
    before = text[first:place].decode(errors="replace")
    mark = "".join("\t" if sign == "\t" else " " for sign in before)
    return f"\n{part.decode(errors='replace')}\n{mark}^"


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


def _column(location: ir.Location) -> str | None:
    found = _COLUMN.search(str(location))
    return found[1] if found else None


def check_names(module: ir.Module) -> None:
    """Refuses a module with names that are not valid UTF-8.

    Raises:
        ParseError: if it has such a name.
    """
    # The bindings abort the process if a walk meets an op name that Python cannot represent.
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
    """Reads and parses a file of MLIR text or bytecode, once: it may be a pipe."""
    path = Path(path)
    data, is_mapped = contents(path)
    if not data[:_BEGINNING].strip() and not data[:].strip():
        raise ParseError(
            f"{path} is empty.", "Write modules with axir.export or `axir opt -o`.", str(path)
        )
    refuse_other_kinds(data, str(path))
    is_text = b"\0" not in data[:_TOLD_BY]
    if data[: len(BYTECODE)] != BYTECODE and (is_text or embedded_bytecode(data) is None):
        try:
            data[:_BEGINNING].decode()
        except UnicodeDecodeError as error:
            if error.start < _BEGINNING - 4:  # else a letter is cut in two
                raise ParseError(
                    f"{path} is neither MLIR text nor bytecode.",
                    "Give a module (.mlir, .mlirbc), a bundle (.axir) or a compiled program "
                    "(.vmfb); models of others are read by `axir import`.",
                    str(path),
                ) from None
    return parse_module(data, str(path), path if is_mapped else None)


def refuse_other_kinds(data: Content, name: str) -> None:
    """Raises an error if content is known not to be a module.

    Raises:
        ParseError: for such content, with its kind.
    """
    if data[: len(BYTECODE)] != BYTECODE and (found := other_kind(data, name)) is not None:
        raise found


def contents(path: Path) -> tuple[Content, bool]:
    """Returns the content of a file, mapped if possible, and whether it is mapped."""
    with path.open("rb") as file:
        if stat.S_ISREG(path.stat().st_mode) and path.stat().st_size:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), True
        return file.read(), False
