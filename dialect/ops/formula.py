"""Formulas of real numbers that NumPy evaluates and StableHLO is written from.

A special function without a StableHLO op of its own is a Python function of `+ - * /`, comparisons
and the functions of this file. Applied to NumPy arrays it computes; applied to `Term`s it writes
StableHLO, accurate alike, so an exported program needs nothing beyond StableHLO.

What does not live here: the formulas (`gamma_formulas.py` ...) and the ops made of them
(`special.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from iree.compiler import ir

from .. import dtypes
from .. import stablehlo as hlo
from .operand_shapes import lower_operands

Number = Any  # a NumPy array, a Term, or a Python scalar beside one of them


class Term:
    """A StableHLO value (numbers or truth values) with Python's arithmetic.

    Python scalars beside it become constants of its type.
    """

    __slots__ = ("value",)

    def __init__(self, value: ir.Value):
        self.value = value

    def _operand(self, other: Number) -> ir.Value:
        return other.value if isinstance(other, Term) else hlo.full_like(self.value, other)

    def __add__(self, other: Number) -> Term:
        return Term(hlo.add(self.value, self._operand(other)))

    __radd__ = __add__

    def __sub__(self, other: Number) -> Term:
        return Term(hlo.subtract(self.value, self._operand(other)))

    def __rsub__(self, other: Number) -> Term:
        return Term(hlo.subtract(self._operand(other), self.value))

    def __mul__(self, other: Number) -> Term:
        return Term(hlo.multiply(self.value, self._operand(other)))

    __rmul__ = __mul__

    def __truediv__(self, other: Number) -> Term:
        return Term(hlo.divide(self.value, self._operand(other)))

    def __rtruediv__(self, other: Number) -> Term:
        return Term(hlo.divide(self._operand(other), self.value))

    def __neg__(self) -> Term:
        return Term(hlo.negate(self.value))

    def __abs__(self) -> Term:
        return Term(hlo.abs(self.value))

    def _compare(self, other: Number, direction: str) -> Term:
        return Term(hlo.compare(self.value, self._operand(other), direction))

    def __lt__(self, other: Number) -> Term:
        return self._compare(other, "LT")

    def __le__(self, other: Number) -> Term:
        return self._compare(other, "LE")

    def __gt__(self, other: Number) -> Term:
        return self._compare(other, "GT")

    def __ge__(self, other: Number) -> Term:
        return self._compare(other, "GE")

    def __eq__(self, other: object) -> Term:  # type: ignore[override]
        return self._compare(other, "EQ")

    def __ne__(self, other: object) -> Term:  # type: ignore[override]
        return self._compare(other, "NE")

    __hash__ = None  # type: ignore[assignment]

    def __and__(self, other: Term) -> Term:
        return Term(hlo.and_(self.value, other.value))

    def __or__(self, other: Term) -> Term:
        return Term(hlo.or_(self.value, other.value))

    def __invert__(self) -> Term:
        return Term(hlo.not_(self.value))


def _function(
    name: str, of_array: Callable[..., Any], of_value: Callable[[ir.Value], ir.Value]
) -> Callable[[Number], Number]:
    def function(x: Number) -> Number:
        return Term(of_value(x.value)) if isinstance(x, Term) else of_array(x)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`{name}`, elementwise."
    return function


def _erfc(x: np.ndarray) -> np.ndarray:
    import scipy.special

    return scipy.special.erfc(x)


exp = _function("exp", np.exp, hlo.exponential)
expm1 = _function("expm1", np.expm1, hlo.exponential_minus_one)
log = _function("log", np.log, hlo.log)
log1p = _function("log1p", np.log1p, hlo.log_plus_one)
sqrt = _function("sqrt", np.sqrt, hlo.sqrt)
sin = _function("sin", np.sin, hlo.sine)
cos = _function("cos", np.cos, hlo.cosine)
floor = _function("floor", np.floor, hlo.floor)
round_to_even = _function("round_to_even", np.rint, hlo.round_nearest_even)
erfc = _function("erfc", _erfc, hlo.erfc)


def power(x: Number, y: Number) -> Number:
    """`x ** y`; at least one of them is not a Python scalar."""
    if isinstance(x, Term):
        return Term(hlo.power(x.value, x._operand(y)))
    if isinstance(y, Term):
        return Term(hlo.power(y._operand(x), y.value))
    return np.power(x, y)


def select(condition: Number, on_true: Number, on_false: Number) -> Number:
    """`on_true` where the condition holds, else `on_false`; one of them may be a Python scalar."""
    if not isinstance(condition, Term):
        return np.where(condition, on_true, on_false)
    leader = on_true if isinstance(on_true, Term) else on_false
    if not isinstance(on_true, Term):
        on_true = Term(leader._operand(on_true))
    if not isinstance(on_false, Term):
        on_false = Term(leader._operand(on_false))
    return Term(hlo.select(condition.value, on_true.value, on_false.value))


def minimum(x: Number, y: Number) -> Number:
    """The smaller of two numbers, nan if `x` is; `y` may be a Python scalar."""
    return select(x > y, y, x)


def maximum(x: Number, y: Number) -> Number:
    """The larger of two numbers, nan if `x` is; `y` may be a Python scalar."""
    return select(x < y, y, x)


def constant_like(x: Number, value: float) -> Number:
    """A constant of the type of `x`."""
    return Term(x._operand(value)) if isinstance(x, Term) else np.full_like(x, value)


def is_nan(x: Number) -> Number:
    """Whether a number is nan."""
    return x != x


def polynomial(x: Number, coefficients: Sequence[float]) -> Number:
    """The sum of `coefficients[k] x^k`, by Horner's scheme."""
    result = constant_like(x, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        result = result * x + coefficient
    return result


def chebyshev(t: Number, coefficients: Sequence[float]) -> Number:
    """The sum of `coefficients[k] T_k(t)` for |t| <= 1, by Clenshaw's recurrence."""
    previous, current = constant_like(t, 0.0), constant_like(t, coefficients[-1])
    for coefficient in coefficients[-2:0:-1]:
        previous, current = current, 2 * t * current - previous + coefficient
    return t * current - previous + coefficients[0]


_STEPS_PER_TEST = 2  # a test costs more than a step, but more steps take long to compile


def iterate(
    step: Callable[..., Sequence[Number]],
    is_active: Callable[..., Number],
    state: Sequence[Number],
    limit: int,
) -> list[Number]:
    """Repeats a step while any element is active, at most about `limit` times.

    Steps are made in groups, and for all elements: one that has converged must bear more of them.

    Args:
        step: Takes the state, numbers of one shape, and returns the next one.
        is_active: Takes the state and tells for each element whether it needs another step; False
            for nan.
        state: Where to begin.
        limit: The most steps.
    """
    groups = -(-limit // _STEPS_PER_TEST)

    def advance(current: Sequence[Number]) -> list[Number]:
        for _ in range(_STEPS_PER_TEST):
            current = step(*current)
        return list(current)

    if not isinstance(state[0], Term):
        current = list(state)
        for _ in range(groups):
            if not np.any(is_active(*current)):
                break
            current = advance(current)
        return current

    def condition(count: ir.Value, *values: ir.Value) -> ir.Value:
        needed = is_active(*map(Term, values)).value
        no, dimensions = hlo.constant(np.False_), range(len(hlo.shape_of(needed)))
        any_needed = hlo.reduce([needed], [no], dimensions, lambda x, y: hlo.or_(x, y))[0]
        return hlo.and_(hlo.compare(count, hlo.full_like(count, groups), "LT"), any_needed)

    def body(count: ir.Value, *values: ir.Value) -> list[ir.Value]:
        following = advance([Term(value) for value in values])
        return [hlo.add(count, hlo.full_like(count, 1)), *(x.value for x in following)]

    inits = [hlo.constant(np.int32(0)), *(x.value for x in state)]
    return [Term(value) for value in hlo.while_(inits, condition, body)[1:]]


def lower_formula(formula: Callable[..., Number]) -> Callable[..., Any]:
    """Returns the `lower` rule that writes a formula.

    Its accuracy is that of double precision, rounded to the dtype of the op; on Vulkan, where
    double precision is rare, that of single precision.
    """

    def lower(context: Any, *values: ir.Value, **params: Any) -> ir.Value:
        (result,) = context.types_out
        is_narrow = result.dtype != dtypes.float64 and context.platform == "vulkan"
        wide = dtypes.float32 if is_narrow else dtypes.float64
        spread = lower_operands(values, result.shape)
        terms = [Term(hlo.convert(value, wide)) for value in spread]
        return hlo.convert(formula(*terms, **params).value, result.dtype)

    return lower


def evaluate_formula(formula: Callable[..., Number]) -> Callable[..., np.ndarray]:
    """Returns the `evaluate` rule that computes a formula in double precision."""

    def evaluate(*operands: np.ndarray, **params: Any) -> np.ndarray:
        wide = np.broadcast_arrays(*[np.asarray(x, np.float64) for x in operands])
        return np.asarray(formula(*wide, **params)).astype(operands[0].dtype)

    return evaluate
