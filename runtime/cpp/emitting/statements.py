"""Statements that run kernels and call callbacks, broken into lines."""

from __future__ import annotations

from collections.abc import Sequence

from axir.runtime.cpp.program.host_program import Operand
from axir.runtime.cpp.program.interface import Callback

from .arithmetic import unsigned_type
from .names import identifier
from .types import element, view

_WIDTH = 96
_UNSIGNED = {"f32": "std::uint32_t", "f64": "std::uint64_t", "f16": "std::uint16_t"}


def dispatch_statement(
    kernel: str, spans: Sequence[tuple[str, str]], constants: Sequence[str]
) -> list[str]:
    """Returns the statement that runs a kernel on pointers and lengths, or leaves the function."""
    items = [f"{{{pointer}, {length}}}" for pointer, length in spans]
    words = ", ".join(f"static_cast<std::uint32_t>({c})" for c in constants)
    rest = f", {{{words}}}" if constants else ""
    start, end = f"if (!run(kernels_[kernel::{identifier(kernel)}], {{", f"}}{rest})) {{"
    body = ["  return axir::Code::kernel_failed;", "}"]
    line = f"{start}{', '.join(items)}{end}"
    if len(line) <= _WIDTH:
        return [line, *body]
    wrapped = [f"    {item}," for item in items[:-1]] + [f"    {items[-1]}"]
    return [start, *wrapped, f"  {end}", *body]


def call_statement(
    callback: Callback, operands: Sequence[str], results: Sequence[str]
) -> list[str]:
    """Returns the statement that calls a callback, or leaves the function if it is not set.

    One without results, which only looks, need not be set.
    """
    arguments = [
        f"{view(t, True)}(reinterpret_cast<const {element(t)}*>({pointer}))"
        for t, pointer in zip(callback.operands, operands, strict=True)
    ] + [
        f"{view(t, False)}(reinterpret_cast<{element(t)}*>({pointer}))"
        for t, pointer in zip(callback.results, results, strict=True)
    ]
    function = f"callbacks_.{callback.name}"
    lines = [f"  {argument}," for argument in arguments]
    if lines:
        lines[-1] = lines[-1].removesuffix(",")
    called = [f"{function}(", *lines, ");"] if lines else [f"{function}();"]
    moment = "const axir::Moment moment_of_part_("
    told = [moment, f'    profiler(), axir::Part::callback, "{callback.name}");', *called]
    told = [f"  {line}" for line in told]
    if not callback.results:
        return [f"if ({function}) {{", *told, "}"]
    return [f"if (!{function}) return axir::Code::callback_failed;", "{", *told, "}"]


def fill_statement(pointer: str, length: str, value: Operand, text: str) -> str:
    """Returns the statement that fills memory with a number."""
    kind = _UNSIGNED.get(value.kind) or unsigned_type(value.kind)
    return f"fill<{kind}>({pointer}, {length}, static_cast<{kind}>({text}));"
