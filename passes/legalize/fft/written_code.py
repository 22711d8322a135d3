"""Functions in LLVM IR while they are written: code, and numbers with operators.

Variables are memory, which LLVM turns into registers. Elsewhere: the functions (`library.py`).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np


class Code:
    """A function while it is written; variables are memory, which LLVM turns into registers."""

    def __init__(self, head: str):
        self._head = head
        self._variables: list[str] = []
        self._lines: list[str] = []
        self._count = 0

    @property
    def text(self) -> str:
        """The function."""
        return "\n".join([f"{self._head} {{", *self._variables, *self._lines, "}"])

    def say(self, line: str) -> None:
        """Adds a line without a result."""
        self._lines.append(line)

    def do(self, operation: str) -> str:
        """Adds an operation, and returns its result."""
        name = self._name("v")
        self.say(f"  {name} = {operation}")
        return name

    def variable(self, kind: str) -> str:
        """Returns the place of a variable."""
        name = self._name("x")
        self._variables.append(f"  {name} = alloca {kind}")
        return name

    def add(self, x: str | int, y: str | int) -> str:
        """Returns a sum of words."""
        return self.do(f"add i64 {x}, {y}")

    def mul(self, x: str | int, y: str | int) -> str:
        """Returns a product of words."""
        return self.do(f"mul i64 {x}, {y}")

    def least(self, x: str, y: str) -> str:
        """Returns the smaller of two words."""
        return self.do(f"call i64 @llvm.umin.i64(i64 {x}, i64 {y})")

    def pick(self, condition: str, kind: str, x: str | int, y: str | int) -> str:
        """Returns one of two values."""
        return self.do(f"select i1 {condition}, {kind} {x}, {kind} {y}")

    def holds(self, comparison: str, x: str, y: str | int) -> str:
        """Returns whether a comparison of words holds."""
        return self.do(f"icmp {comparison} i64 {x}, {y}")

    @contextmanager
    def loop(self, end: str | int) -> Iterator[str]:
        """Runs code for each number from 0 to an end that is not 0."""
        variable, label = self.variable("i64"), self._name("l")[1:]
        self.say(f"  store i64 0, ptr {variable}\n  br label %{label}\n{label}:")
        number = self.do(f"load i64, ptr {variable}")
        yield number
        following = self.add(number, 1)
        self.say(f"  store i64 {following}, ptr {variable}")
        is_last = self.holds("eq", following, end)
        self.say(f"  br i1 {is_last}, label %{label}_end, label %{label}\n{label}_end:")

    @contextmanager
    def when(self, condition: str) -> Iterator[None]:
        """Runs code under a condition."""
        label = self._name("c")[1:]
        self.say(f"  br i1 {condition}, label %{label}, label %{label}_end\n{label}:")
        yield
        self.say(f"  br label %{label}_end\n{label}_end:")

    def _name(self, kind: str) -> str:
        self._count += 1
        return f"%{kind}{self._count}"


class Number:
    """A vector of real numbers in the code, or a single one, with the operators of `Scalar`."""

    def __init__(self, code: Code, value: str, kind: str):
        self.code, self.value, self.kind = code, value, kind

    def _made(self, operation: str, other: Number | float) -> Number:
        if not isinstance(other, Number):
            other = self.constant(other)
        value = self.code.do(f"{operation} {self.kind} {self.value}, {other.value}")
        return Number(self.code, value, self.kind)

    def __add__(self, other: Number | float) -> Number:
        return self._made("fadd", other)

    def __sub__(self, other: Number | float) -> Number:
        return self._made("fsub", other)

    def __mul__(self, other: Number | float) -> Number:
        return self._made("fmul", other)

    def __neg__(self) -> Number:
        return Number(self.code, self.code.do(f"fneg {self.kind} {self.value}"), self.kind)

    def times_plus(self, y: Number, z: Number) -> Number:
        """Returns `self * y + z`, rounded once where the processor can."""
        single = self.kind.rpartition(" ")[2].strip(">")
        count = self.kind[1:].partition(" ")[0] if self.kind.startswith("<") else ""
        suffix = f"v{count}" if count else ""
        suffix += "f32" if single == "float" else "f64"
        operands = ", ".join(f"{self.kind} {x.value}" for x in (self, y, z))
        value = self.code.do(f"call {self.kind} @llvm.fmuladd.{suffix}({operands})")
        return Number(self.code, value, self.kind)

    def constant(self, number: float) -> Number:
        """Returns a number, or a vector of it."""
        is_single = "float" in self.kind
        bits = struct.pack(">d", float(np.float32(number)) if is_single else number).hex()
        single = "float" if is_single else "double"
        text = f"0x{bits.upper()}"
        value = f"splat ({single} {text})" if self.kind.startswith("<") else text
        return Number(self.code, value, self.kind)
