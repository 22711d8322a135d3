"""Formulas: Python's operators, and further functions, on the operands of a formula.

A formula is a Python function of `+ - * /`, comparisons, and the functions of this file. Applied to
NumPy arrays it computes. Applied to `Expression`s it builds MLIR: from `Scalar`s, operations of
`arith` and `math` on single numbers (`scalars.py`); from `Term`s, StableHLO on arrays
(`formula.py`). Elsewhere: operations of scalars only (bits, conversions), and the formulas, which
stand with the ops and in the passes that use them.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from typing import TypeAlias, TypeVar

import numpy as np
from iree.compiler import ir

from axir.dialect.core.annotations import Foreign, Returning
from axir.dialect.core.late_modules import scipy_special

# A NumPy array, an `Expression`, or a Python scalar beside one of them: NumPy's operators have no
# type for the mixture.
Number: TypeAlias = Foreign

Self = TypeVar("Self", bound="Expression")


class Expression(abc.ABC):
    """Numbers or truth values in the code that is being built, with Python's arithmetic.

    Python numbers beside it become constants of its type. A subclass builds the operations. Their
    names are the names of Python's operators and of this file's functions.
    """

    __slots__ = ("value",)

    def __init__(self, value: ir.Value):
        self.value = value

    @abc.abstractmethod
    def constant(self: Self, number: complex) -> Self:
        """Returns a constant of this type."""

    @abc.abstractmethod
    def apply(self: Self, name: str, *others: Self) -> Self:
        """Returns the result, of this type, of an operation on this and others of its type."""

    @abc.abstractmethod
    def compare(self: Self, direction: str, other: Self) -> Self:
        """Returns a truth value; directions are EQ, NE, LT, LE, GT, GE. Only NE holds for nan."""

    @abc.abstractmethod
    def choose(self: Self, on_true: Self, on_false: Self) -> Self:
        """Returns one of two by this truth value."""

    def operand(self: Self, other: Self | complex) -> Self:
        """Returns the other operand; a Python number becomes a constant."""
        return other if isinstance(other, Expression) else self.constant(other)

    def __add__(self: Self, other: Self | complex) -> Self:
        return self.apply("add", self.operand(other))

    __radd__ = __add__

    def __sub__(self: Self, other: Self | complex) -> Self:
        return self.apply("sub", self.operand(other))

    def __rsub__(self: Self, other: Self | complex) -> Self:
        return self.operand(other).apply("sub", self)

    def __mul__(self: Self, other: Self | complex) -> Self:
        return self.apply("mul", self.operand(other))

    __rmul__ = __mul__

    def __truediv__(self: Self, other: Self | complex) -> Self:
        return self.apply("div", self.operand(other))

    def __rtruediv__(self: Self, other: Self | complex) -> Self:
        return self.operand(other).apply("div", self)

    def __neg__(self: Self) -> Self:
        return self.apply("neg")

    def __abs__(self: Self) -> Self:
        return self.apply("abs")

    def __and__(self: Self, other: Self | complex) -> Self:
        return self.apply("and", self.operand(other))

    def __or__(self: Self, other: Self | complex) -> Self:
        return self.apply("or", self.operand(other))

    def __invert__(self: Self) -> Self:
        return self.apply("not")

    def __lt__(self: Self, other: Self | complex) -> Self:
        return self.compare("LT", self.operand(other))

    def __le__(self: Self, other: Self | complex) -> Self:
        return self.compare("LE", self.operand(other))

    def __gt__(self: Self, other: Self | complex) -> Self:
        return self.compare("GT", self.operand(other))

    def __ge__(self: Self, other: Self | complex) -> Self:
        return self.compare("GE", self.operand(other))

    def __eq__(self: Self, other: Self | complex) -> Self:  # type: ignore[override]
        return self.compare("EQ", self.operand(other))

    def __ne__(self: Self, other: Self | complex) -> Self:  # type: ignore[override]
        return self.compare("NE", self.operand(other))

    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        raise TypeError("the value of an expression is not known while code is built: use select")


def _function(name: str, of_array: Returning[Foreign]) -> Callable[[Number], Number]:
    def function(x: Number) -> Number:
        return x.apply(name) if isinstance(x, Expression) else of_array(x)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`{name}`, elementwise."
    return function


def _erfc(x: np.ndarray) -> np.ndarray:
    return scipy_special.erfc(x)


exp = _function("exp", np.exp)
expm1 = _function("expm1", np.expm1)
log = _function("log", np.log)
log1p = _function("log1p", np.log1p)
sqrt = _function("sqrt", np.sqrt)
sin = _function("sin", np.sin)
cos = _function("cos", np.cos)
tanh = _function("tanh", np.tanh)
floor = _function("floor", np.floor)
round_to_even = _function("round_to_even", np.rint)
erfc = _function("erfc", _erfc)


def power(x: Number, y: Number) -> Number:
    """`x ** y`; at least one of them is not a Python scalar."""
    if isinstance(x, Expression):
        return x.apply("power", x.operand(y))
    if isinstance(y, Expression):
        return y.operand(x).apply("power", y)
    return np.power(x, y)


def select(condition: Number, on_true: Number, on_false: Number) -> Number:
    """`on_true` where the condition holds, else `on_false`; one of them may be a Python scalar."""
    if not isinstance(condition, Expression):
        return np.where(condition, on_true, on_false)
    leader: Expression = on_true if isinstance(on_true, Expression) else on_false
    return condition.choose(leader.operand(on_true), leader.operand(on_false))


def minimum(x: Number, y: Number) -> Number:
    """Returns the smaller of two numbers, nan if `x` is; `y` may be a Python scalar."""
    return select(x > y, y, x)


def maximum(x: Number, y: Number) -> Number:
    """Returns the larger of two numbers, nan if `x` is; `y` may be a Python scalar."""
    return select(x < y, y, x)


def constant_like(x: Number, value: float) -> Number:
    """Returns a constant of the type of `x`."""
    return x.constant(value) if isinstance(x, Expression) else np.full_like(x, value)


def is_nan(x: Number) -> Number:
    """Tells whether a number is nan."""
    return x != x


def polynomial(x: Number, coefficients: Sequence[float]) -> Number:
    """Returns the sum of `coefficients[k] x^k`, by Horner's scheme."""
    result = constant_like(x, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        result = result * x + coefficient
    return result


def chebyshev(t: Number, coefficients: Sequence[float]) -> Number:
    """Returns the sum of `coefficients[k] T_k(t)` for |t| <= 1, by Clenshaw's recurrence."""
    previous, current, double = constant_like(t, 0.0), constant_like(t, coefficients[-1]), 2 * t
    for coefficient in coefficients[-2:0:-1]:
        previous, current = current, double * current - previous + coefficient
    return t * current - previous + coefficients[0]
