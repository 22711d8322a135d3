"""Which op of a function mixes rows: the first whose results differ in other rows, too.

What does not live here: finding that a function mixes rows at all (`batching.py`).
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Sequence

import numpy as np

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import UserObject
from axir.dialect.core.array import ConcreteArray
from axir.dialect.core.config import config
from axir.dialect.core.context import describe_location
from axir.dialect.core.state import outside_traces
from axir.dialect.ops.calls.jit_call import jit_primitive
from axir.dialect.program.equation import Equation
from axir.dialect.program.function import Function

from .batching import WITNESSES, DependentRowsError, random_value


class _MixedError(Exception):
    """Ends a search: an op mixes rows."""

    def __init__(self, equation: Equation):
        super().__init__()
        self.equation = equation


@contextlib.contextmanager
def naming_op(several: Function, is_open: Sequence[bool]) -> Iterator[None]:
    """Has a `DependentRowsError` raised within say in which op rows first meet.

    Args:
        several: The function of `WITNESSES` rows.
        is_open: Which of its first arguments have rows.
    """
    try:
        yield
    except DependentRowsError as error:
        op = _mixing_op(several, [*is_open, *[None] * len(several.inputs)])
        if op is None:
            raise
        raise DependentRowsError(
            f"{error.message} Rows first meet in the op {op.primitive.name!r}.",
            error.way_out,
            where=describe_location(op.location),
        ) from None


def _mixing_op(several: Function, is_open: Sequence[UserObject]) -> Equation | None:
    """Returns the first op found of which more than one row changes where one row does."""
    generator = np.random.default_rng(1)
    values = [random_value(kind, generator) for kind in several.input_types]
    others = [random_value(kind, generator) for kind in several.input_types]
    for row in range(WITNESSES):
        pairs: list[UserObject] = [
            (x, _with_row(x, other, row) if has_rows else x)
            for x, other, has_rows in zip(values, others, is_open, strict=False)
        ]
        try:
            with outside_traces(), config(jax_disable_jit=True), np.errstate(all="ignore"):
                several.interpret(
                    pairs + list(several.captured), functools.partial(_bind_pairs, row)
                )
        except _MixedError as found:
            return found.equation
    return None


def _with_row(x: ConcreteArray, other: ConcreteArray, row: int) -> ConcreteArray:
    host = x.host().copy()
    host[row] = other.host()[row]
    return ConcreteArray(x.type, host)


def _bind_pairs(row: int, equation: Equation, operands: Sequence[UserObject]) -> UserObject:
    """Applies an op to pairs of values, and those that both have in common.

    Raises:
        _MixedError: if its results differ in another row.
    """
    if not any(type(x) is tuple for x in operands):
        return equation.primitive.bind(*operands, **equation.params)
    bind = functools.partial(_bind_pairs, row)
    if equation.primitive is jit_primitive:
        return equation.params["jaxpr"].interpret(operands, bind)
    sides = [
        equation.primitive.bind(
            *[x[n] if type(x) is tuple else x for x in operands], **equation.params
        )
        for n in range(2)
    ]
    is_single = not equation.primitive.multiple_results
    pairs = [tuple(sides)] if is_single else list(zip(*sides, strict=True))
    for pair in pairs:
        one, other = [x.host() for x in pair]
        if one.ndim and len(one) == WITNESSES:
            one, other = np.delete(one, row, 0), np.delete(other, row, 0)
        if not np.array_equal(one, other, equal_nan=dtypes.is_inexact(one.dtype)):
            raise _MixedError(equation)
    return pairs[0] if is_single else pairs
