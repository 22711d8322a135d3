"""Formulas of real numbers: NumPy evaluates them, and StableHLO is written from them.

A special function without a StableHLO op is a formula (`expressions.py`). Applied to NumPy arrays
it computes; applied to `Term`s it writes StableHLO of the same accuracy, so an exported program
needs only StableHLO.

Elsewhere: the formulas (`dialect/ops/special/gamma_formulas.py` ...) and the ops made of them
(`dialect/ops/special/special_functions.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from iree.compiler import ir

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import Returning
from axir.dialect.core.types import ShapedArray

from . import stablehlo as hlo
from .expressions import Expression, Number

_OPERATIONS: dict[str, Callable[..., ir.Value]] = {
    "add": hlo.add,
    "sub": hlo.subtract,
    "mul": hlo.multiply,
    "div": hlo.divide,
    "neg": hlo.negate,
    "abs": hlo.abs,
    "and": hlo.and_,
    "or": hlo.or_,
    "not": hlo.not_,
    "exp": hlo.exponential,
    "expm1": hlo.exponential_minus_one,
    "log": hlo.log,
    "log1p": hlo.log_plus_one,
    "sqrt": hlo.sqrt,
    "sin": hlo.sine,
    "cos": hlo.cosine,
    "floor": hlo.floor,
    "round_to_even": hlo.round_nearest_even,
    "erfc": hlo.erfc,
    "power": hlo.power,
}


class Term(Expression):
    """A StableHLO value: an array of numbers or truth values."""

    __slots__ = ()

    def constant(self, number: complex) -> Term:
        """Returns an array of this shape and dtype."""
        return Term(hlo.full_like(self.value, number))

    def apply(self, name: str, *others: Term) -> Term:
        """Returns the result of an elementwise operation of StableHLO."""
        return Term(_OPERATIONS[name](self.value, *(x.value for x in others)))

    def compare(self, direction: str, other: Term) -> Term:
        """Returns truth values."""
        return Term(hlo.compare(self.value, other.value, direction))

    def choose(self, on_true: Term, on_false: Term) -> Term:
        """Returns elements of two arrays by these truth values."""
        return Term(hlo.select(self.value, on_true.value, on_false.value))


_STEPS_PER_TEST = 2  # a test costs more than a step, but more steps take long to compile


def iterate(
    step: Callable[..., Sequence[Number]],
    is_active: Callable[..., Number],
    state: Sequence[Number],
    limit: int,
) -> list[Number]:
    """Repeats a step while any element is active, at most about `limit` times.

    Steps run in groups, and for all elements: further steps must not change a converged element.

    Args:
        step: Takes the state, numbers of one shape, and returns the next one.
        is_active: Takes the state and tells for each element whether it needs another step; False
            for nan.
        state: The initial state.
        limit: The largest number of steps.
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


def sum_over(
    function: Callable[..., Number], constants: Sequence[np.ndarray], operands: Sequence[Number]
) -> Number:
    """Returns the sum of a function over constants, such as the nodes of a quadrature.

    The constants lie along a further axis, so the function is written once for all of them.

    Args:
        function: Takes a number of each of the constants, and the operands.
        constants: Vectors of one length.
        operands: Numbers of one shape.
    """
    if not isinstance(operands[0], Term):
        return np.sum(function(*constants, *(x[..., None] for x in operands)), axis=-1)
    values = [x.value for x in operands]
    shape, size = hlo.shape_of(values[0]), len(constants[0])
    rank, wide = len(shape), (*hlo.shape_of(values[0]), size)
    spread = [Term(hlo.broadcast_in_dim(value, wide, range(rank))) for value in values]
    dtype = np.dtype(np.float64) if "64" in str(values[0].type.element_type) else np.float32
    known = [hlo.constant(np.asarray(vector, dtype)) for vector in constants]
    lines = [Term(hlo.broadcast_in_dim(value, wide, (rank,))) for value in known]
    zero = hlo.constant(np.zeros((), dtype))
    total = function(*lines, *spread).value
    return Term(hlo.reduce([total], [zero], (rank,), lambda x, y: hlo.add(x, y))[0])


class _Context(Protocol):
    """The part of a lowering context that formulas use."""

    types_out: list[ShapedArray]
    platform: str


def lower_formula(formula: Callable[..., Number]) -> Returning[ir.Value]:
    """Returns the `lower` rule that writes a formula.

    It computes in double precision, and rounds to the dtype of the op. On Vulkan, where double
    precision is rare, it computes results other than float64 in single precision.
    """

    def lower(context: _Context, *values: ir.Value, **params: object) -> ir.Value:
        (result,) = context.types_out
        is_narrow = result.dtype != dtypes.float64 and context.platform == "vulkan"
        wide = dtypes.float32 if is_narrow else dtypes.float64
        spread = hlo.broadcast_operands(values, result.shape)
        terms = [Term(hlo.convert(value, wide)) for value in spread]
        return hlo.convert(formula(*terms, **params).value, result.dtype)

    return lower


def evaluate_formula(formula: Callable[..., Number]) -> Callable[..., np.ndarray]:
    """Returns the `evaluate` rule that computes a formula in double precision."""

    def evaluate(*operands: np.ndarray, **params: object) -> np.ndarray:
        wide = np.broadcast_arrays(*[np.asarray(x, np.float64) for x in operands])
        return np.asarray(formula(*wide, **params)).astype(operands[0].dtype)

    return evaluate
