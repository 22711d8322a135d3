"""Diagonals of sums, products and other arrays, computed without the rest of these arrays.

The variance of a Gaussian process is the diagonal of `K - v.T @ v`, and a trace is the sum of a
diagonal. They need n of the n x n elements, and n of the dot products. Elsewhere: the pass that
asks for this (`simplify.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, cast

from axir.dialect.ops.contraction.dot_general import dot_general
from axir.dialect.ops.indexing.static_slicing import slice as slice_array
from axir.dialect.ops.indexing.static_slicing import slice_in_dim
from axir.dialect.ops.shape.broadcasting import broadcast_in_dim
from axir.dialect.ops.shape.rearranging import reshape, transpose
from axir.dialect.program.dimensions import position_wise
from axir.dialect.program.equation import Equation, Var
from axir.dialect.program.function import Function
from axir.dialect.program.rules import Value
from axir.dialect.program.tracer import Trace, Tracer
from axir.dialect.program.walk import Environment, apply_equations

# Operations between a diagonal and the arrays that it is taken of. Code that is written twice must
# not grow without a limit.
_MOST_OPERATIONS = 64
_REDUCTIONS = frozenset(f"reduce_{x}" for x in ("sum", "prod", "max", "min", "and", "or", "xor"))


class _Diagonal(NamedTuple):
    """Elements `(start + k, second_start + k)` along two axes, for k below `length`.

    The diagonal takes the place of the first axis, and the second axis is dropped.
    """

    first: int
    second: int
    start: int
    second_start: int
    length: int

    def between(self, first: int, second: int) -> _Diagonal:
        """Returns the same diagonal of an array in which its axes have other places."""
        if first < second:
            return self._replace(first=first, second=second)
        return _Diagonal(second, first, self.second_start, self.start, self.length)

    def shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Returns the shape of the diagonal of an array of a shape."""
        found = [*shape]
        found[self.first] = self.length
        del found[self.second]
        return tuple(found)

    def axis(self, axis: int) -> int:
        """Returns the place of an axis in the diagonal; the second one has the first's."""
        return self.first if axis == self.second else axis - (axis > self.second)


class _NoDiagonalError(Exception):
    """The diagonal is not computed without the array."""


def shorten_diagonals(function: Function) -> Function:
    """Returns a function that computes diagonals without the arrays around them, where it can."""
    made_by = {v: equation for equation in function.equations for v in equation.results}
    found = {
        equation: diagonal
        for equation in function.equations
        if (diagonal := _diagonal_of(equation, made_by)) is not None
    }
    if not found:
        return function
    with Trace(function.name, "Simplify") as trace:
        inputs = [trace.add_input(v.type) for v in function.inputs]
        captures = cast("list[Tracer]", [trace.lift(x) for x in function.captured])
        environment = Environment.of(function, [*inputs, *captures])

        def bind(equation: Equation, operands: list[Value]) -> Value | list[Value]:
            if equation in found:
                x, diagonal = found[equation]
                try:
                    return _Shortener(made_by, environment).of(x, diagonal)
                except _NoDiagonalError:
                    pass
            return equation.primitive.bind(*operands, **equation.params)

        apply_equations(function.equations, environment, bind)
        return trace.finish(environment.values_of(function.outputs))


def _diagonal_of(equation: Equation, made_by: dict[Var, Equation]) -> tuple[Var, _Diagonal] | None:
    """Returns the array that a strided slice takes a diagonal of, and which diagonal."""
    if equation.primitive.name != "slice":
        return None
    flat = made_by.get(equation.operands[0])
    if flat is None or flat.primitive.name != "reshape":
        return None
    [x] = flat.operands
    shape, row = x.type.shape, flat.results[0].type.shape
    if x.type.is_open or x.type.ndim < 2 or row != (*shape[:-2], shape[-2] * shape[-1]):
        return None
    made = made_by.get(x)
    if made is None or not _is_known(made):
        return None
    starts, strides = equation.params["start_indices"], equation.params["strides"]
    strides = strides or (1,) * len(starts)
    result = equation.results[0].type.shape
    width, count = shape[-1], result[-1]
    is_diagonal = strides[-1] == width + 1 and result[:-1] == row[:-1] and count > 0
    if not is_diagonal or any(x != 1 for x in strides[:-1]):
        return None
    start, second_start = divmod(starts[-1], width)
    if start + count > shape[-2] or second_start + count > width:
        return None
    return x, _Diagonal(x.type.ndim - 2, x.type.ndim - 1, start, second_start, count)


class _Shortener:
    """Computes a diagonal of a variable's value from parts of the values that it is made of.

    Args:
        made_by: The equation of each variable.
        environment: Values of the variables so far.
    """

    def __init__(self, made_by: dict[Var, Equation], environment: Environment):
        self.environment = environment
        self._made_by = made_by
        self._known: dict[tuple[Var, _Diagonal], Value] = {}
        self._count = 0

    def of(self, x: Var, diagonal: _Diagonal) -> Value:
        """Returns the diagonal of a value; raises _NoDiagonalError if it takes the whole value."""
        known = self._known.get((x, diagonal))
        if known is not None:
            return known
        self._count += 1
        if self._count > _MOST_OPERATIONS:
            raise _NoDiagonalError
        made = self._made_by.get(x)
        if made is not None and made.primitive.name in _RULES:
            result = _RULES[made.primitive.name](self, made, diagonal)
        elif made is not None and _is_elementwise(made):
            operands = [
                self.of(y, diagonal) if y.type.shape else self.value(y) for y in made.operands
            ]
            result = made.primitive.bind(*operands, **made.params)
        else:
            result = self._taken(x, diagonal)
        self._known[x, diagonal] = result
        return result

    def value(self, x: Var) -> Value:
        """Returns the value of a variable."""
        return self.environment[x]

    def _taken(self, x: Var, diagonal: _Diagonal) -> Value:
        *leading, rows, columns = x.type.shape
        if diagonal.second != x.type.ndim - 1 or diagonal.first != x.type.ndim - 2:
            raise _NoDiagonalError
        row = reshape(self.value(x), (*leading, rows * columns))
        first = diagonal.start * columns + diagonal.second_start
        last = first + (diagonal.length - 1) * (columns + 1) + 1
        return slice_in_dim(row, first, last, columns + 1, axis=len(leading))


# Rules: for an operation, the diagonal of its result ---------------------------------------------


def _is_elementwise(equation: Equation) -> bool:
    [*kinds] = {v.type.shape for v in (*equation.operands, *equation.results)} - {()}
    return (
        equation.primitive.dimensions is position_wise
        and not equation.primitive.multiple_results
        and len(kinds) == 1
    )


def _is_known(equation: Equation) -> bool:
    return equation.primitive.name in _RULES or _is_elementwise(equation)


def _cut(x: Value, start: int, count: int, axis: int) -> Value:
    is_whole = x.type.shape[axis] == count
    return x if is_whole else slice_in_dim(x, start, start + count, axis=axis)


def _of_broadcast(shortener: _Shortener, equation: Equation, diagonal: _Diagonal) -> Value:
    [x] = equation.operands
    dims, extents = [*equation.params["broadcast_dimensions"]], x.type.shape
    own = {d: axis for axis, d in enumerate(dims) if extents[axis] > 1}
    if diagonal.first in own and diagonal.second in own:
        part = shortener.of(x, diagonal.between(own[diagonal.first], own[diagonal.second]))
        dims.remove(diagonal.second)
    else:
        part = shortener.value(x)
        if diagonal.first in own:
            part = _cut(part, diagonal.start, diagonal.length, own[diagonal.first])
        if diagonal.second in own:
            part = _cut(part, diagonal.second_start, diagonal.length, own[diagonal.second])
        if diagonal.first in dims and diagonal.second in dims:
            dropped = diagonal.first if diagonal.second in own else diagonal.second
            part = reshape(
                part, [n for n, d in zip(part.type.shape, dims, strict=True) if d != dropped]
            )
            dims.remove(dropped)
    dims = [diagonal.axis(d) for d in dims]
    if dims != sorted(dims):
        raise _NoDiagonalError
    return broadcast_in_dim(part, diagonal.shape(equation.results[0].type.shape), dims)


def _of_reduction(shortener: _Shortener, equation: Equation, diagonal: _Diagonal) -> Value:
    [x] = equation.operands
    axes = equation.params["axes"]
    kept = [axis for axis in range(x.type.ndim) if axis not in axes]
    inner = diagonal.between(kept[diagonal.first], kept[diagonal.second])
    part = shortener.of(x, inner)
    return equation.primitive.bind(part, axes=tuple(inner.axis(axis) for axis in axes))


def _of_transpose(shortener: _Shortener, equation: Equation, diagonal: _Diagonal) -> Value:
    [x] = equation.operands
    order = equation.params["permutation"]
    inner = diagonal.between(order[diagonal.first], order[diagonal.second])
    part = shortener.of(x, inner)
    return transpose(
        part, [inner.axis(axis) for place, axis in enumerate(order) if place != diagonal.second]
    )


def _of_reshape(shortener: _Shortener, equation: Equation, diagonal: _Diagonal) -> Value:
    """Takes the diagonal before axes of extent 1 are added or removed."""
    [x] = equation.operands
    before, after = x.type.shape, equation.results[0].type.shape
    own, others = ([a for a, n in enumerate(shape) if n != 1] for shape in (before, after))
    if [before[a] for a in own] != [after[a] for a in others]:
        raise _NoDiagonalError
    places = dict(zip(others, own, strict=True))
    if diagonal.first not in places or diagonal.second not in places:
        raise _NoDiagonalError
    part = shortener.of(x, diagonal.between(places[diagonal.first], places[diagonal.second]))
    return reshape(part, diagonal.shape(after))


def _of_slice(shortener: _Shortener, equation: Equation, diagonal: _Diagonal) -> Value:
    """Takes the diagonal of a part without strides along the two axes; cuts the other axes."""
    [x] = equation.operands
    starts = [*equation.params["start_indices"]]
    limits = [*equation.params["limit_indices"]]
    strides = [*(equation.params["strides"] or (1,) * x.type.ndim)]
    if (strides[diagonal.first], strides[diagonal.second]) != (1, 1):
        raise _NoDiagonalError
    inner = diagonal._replace(
        start=diagonal.start + starts[diagonal.first],
        second_start=diagonal.second_start + starts[diagonal.second],
    )
    part = shortener.of(x, inner)
    starts[diagonal.first], limits[diagonal.first] = 0, diagonal.length
    for numbers in (starts, limits, strides):
        del numbers[diagonal.second]
    return slice_array(part, starts, limits, strides)


def _of_product(shortener: _Shortener, equation: Equation, diagonal: _Diagonal) -> Value:
    """Multiplies rows of one operand and columns of the other, as a stack of dot products."""
    (contracted, batch) = equation.params["dimension_numbers"]
    lhs, rhs = equation.operands
    free = [
        [a for a in range(x.type.ndim) if a not in (*contracted[n], *batch[n])]
        for n, x in enumerate((lhs, rhs))
    ]
    first = diagonal.first - len(batch[0])
    second = diagonal.second - len(batch[0]) - len(free[0])
    # The diagonal stands behind the batch in the result.
    if first != 0 or second < 0 or not free[0]:
        raise _NoDiagonalError
    rows, columns = free[0][first], free[1][second]
    return dot_general(
        _cut(shortener.value(lhs), diagonal.start, diagonal.length, rows),
        _cut(shortener.value(rhs), diagonal.second_start, diagonal.length, columns),
        **{
            **equation.params,
            "dimension_numbers": (contracted, ((*batch[0], rows), (*batch[1], columns))),
        },
    )


_Rule = Callable[[_Shortener, Equation, _Diagonal], Value]
_RULES: dict[str, _Rule] = {
    "broadcast_in_dim": _of_broadcast,
    "dot_general": _of_product,
    "reshape": _of_reshape,
    "slice": _of_slice,
    "squeeze": _of_reshape,
    "transpose": _of_transpose,
    **dict.fromkeys(_REDUCTIONS, _of_reduction),
}
