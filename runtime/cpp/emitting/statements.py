"""Expressions of numbers and statements as text of C++.

Integers of MLIR wrap around, like C++'s unsigned integers, which the expressions use. Statements
run kernels and call callbacks, broken into lines.
"""

from __future__ import annotations

from collections.abc import Sequence

from axir.runtime.cpp.program.host_program import Compute, Constant, Operand
from axir.runtime.cpp.program.interface import Callback

from .names import identifier
from .types import element, view

_TYPES = {
    "i1": "bool",
    "i8": "std::int8_t",
    "i16": "std::int16_t",
    "i32": "std::int32_t",
    "i64": "std::int64_t",
    "index": "std::int64_t",
    "f32": "float",
    "f64": "double",
    "f16": "axir::float16",
    "bf16": "axir::bfloat16",
}
_WRAPPING = {
    "arith.addi": "+",
    "arith.subi": "-",
    "arith.muli": "*",
    "arith.andi": "&",
    "arith.ori": "|",
    "arith.xori": "^",
    "arith.shli": "<<",
    "arith.divui": "/",
    "arith.remui": "%",
    "arith.shrui": ">>",
}
_PLAIN = {
    "arith.divsi": "/",
    "arith.remsi": "%",
    "arith.shrsi": ">>",
    "arith.addf": "+",
    "arith.subf": "-",
    "arith.mulf": "*",
    "arith.divf": "/",
    "arith.cmpf oeq": "==",
    "arith.cmpf ogt": ">",
    "arith.cmpf oge": ">=",
    "arith.cmpf olt": "<",
    "arith.cmpf ole": "<=",
    "arith.cmpf une": "!=",
    "arith.cmpi eq": "==",
    "arith.cmpi ne": "!=",
    "arith.cmpi slt": "<",
    "arith.cmpi sle": "<=",
    "arith.cmpi sgt": ">",
    "arith.cmpi sge": ">=",
}
_UNSIGNED = {
    "arith.cmpi ult": "<",
    "arith.cmpi ule": "<=",
    "arith.cmpi ugt": ">",
    "arith.cmpi uge": ">=",
}
# The negations of ordered comparisons: true if an operand is not a number.
_NEGATED = {
    "arith.cmpf ugt": "<=",
    "arith.cmpf uge": "<",
    "arith.cmpf ult": ">=",
    "arith.cmpf ule": ">",
}
_CONVERSIONS = frozenset(
    (
        *("arith.extsi", "arith.trunci", "arith.index_cast", "arith.sitofp", "arith.fptosi"),
        *("arith.extf", "arith.truncf"),
    )
)
_UNSIGNED_CONVERSIONS = frozenset(("arith.extui", "arith.index_castui", "arith.uitofp"))
# Types with the same bits in C++ and in MLIR; values are copied unchanged.
_OF_BITS = frozenset(("i8", "i16", "i32", "i64", "f32", "f64"))
_CHOICES = {
    "arith.maxsi": "({0} > {1} ? {0} : {1})",
    "arith.minsi": "({0} < {1} ? {0} : {1})",
    "arith.maxui": "({unsigned}({0}) > {unsigned}({1}) ? {0} : {1})",
    "arith.minui": "({unsigned}({0}) < {unsigned}({1}) ? {0} : {1})",
    "arith.select": "({0} ? {1} : {2})",
    "arith.negf": "(-{0})",
}


def number_type(kind: str) -> str:
    """Returns the C++ type of a scalar kind."""
    return _TYPES[kind]


def unsigned_type(kind: str) -> str:
    """Returns the unsigned type of the same width."""
    return "bool" if kind == "i1" else _TYPES[kind].replace("::int", "::uint")


def literal(constant: Constant) -> str:
    """Returns a number as C++ writes it.

    >>> literal(Constant("i32", -3)), literal(Constant("f32", 0.5)), literal(Constant("i1", True))
    ('-3', '0.5f', 'true')
    """
    kind, value = constant.kind, constant.value
    if kind == "i1":
        return "true" if value else "false"
    if kind in ("f32", "f64", "f16", "bf16"):
        number = float(value)
        suffix = "" if kind == "f64" else "f"
        if number != number:
            text = f"std::numeric_limits<{'double' if kind == 'f64' else 'float'}>::quiet_NaN()"
        elif number in (float("inf"), -float("inf")):
            sign = "-" if number < 0 else ""
            text = (
                f"{sign}std::numeric_limits<{'double' if kind == 'f64' else 'float'}>::infinity()"
            )
        else:
            text = repr(number) + suffix
        return f"{_TYPES[kind]}({text})" if kind in ("f16", "bf16") else text
    if kind in ("i64", "index"):
        return (
            "INT64_MIN"
            if value == -(1 << 63)
            else f"{value}"
            if abs(value) < 1 << 31
            else (f"INT64_C({value})")
        )
    return "INT32_MIN" if value == -(1 << 31) else str(value)


def expression(step: Compute, operands: Sequence[str]) -> str | None:
    """Returns the expression of a step, given its operands' expressions; None for other steps."""
    name, kind = step.name, step.result.kind
    first = _kind(step.operands[0])
    if name in _PLAIN:
        return _typed(kind, f"{operands[0]} {_PLAIN[name]} {operands[1]}")
    if name in _WRAPPING or name in _UNSIGNED:
        sign = _WRAPPING.get(name) or _UNSIGNED[name]
        unsigned = unsigned_type(first)
        lhs, rhs = (f"static_cast<{unsigned}>({x})" for x in operands)
        return _typed(kind, f"{lhs} {sign} {rhs}")
    if name in _NEGATED:
        return f"!({operands[0]} {_NEGATED[name]} {operands[1]})"
    if name in _CONVERSIONS:
        if name == "arith.trunci" and kind == "i1":
            return f"({operands[0]} & 1) != 0"
        if first == "i1" and name != "arith.trunci":
            return _typed(kind, f"{operands[0]} ? -1 : 0")
        return _typed(kind, operands[0])
    if name in _UNSIGNED_CONVERSIONS:
        return _typed(kind, f"static_cast<{unsigned_type(first)}>({operands[0]})")
    if name == "arith.bitcast" and {first, kind} <= _OF_BITS:
        given, made = _TYPES[first], _TYPES[kind]
        return (
            f"[&] {{ const {given} bits = {operands[0]}; {made} value{{}}; "
            "std::memcpy(&value, &bits, sizeof value); return value; }()"
        )
    if name in _CHOICES:
        return _CHOICES[name].format(*operands, unsigned=unsigned_type(first))
    return None


def _typed(kind: str, text: str) -> str:
    return text if kind == "i1" else f"static_cast<{_TYPES[kind]}>({text})"


def _kind(operand: Operand) -> str:
    return operand.kind


_WIDTH = 96
_FILLED = {"f32": "std::uint32_t", "f64": "std::uint64_t", "f16": "std::uint16_t"}


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
    kind = _FILLED.get(value.kind) or unsigned_type(value.kind)
    return f"fill<{kind}>({pointer}, {length}, static_cast<{kind}>({text}));"
