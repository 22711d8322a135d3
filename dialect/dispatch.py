"""Kernels of our own: loops over scalars that IREE runs as one dispatch.

A StableHLO loop costs IREE at least one dispatch in each pass; a kernel is one `flow.dispatch.region`
whatever its loops do. It is written as a Python function of `Tensor`s, which are values: storing an
element gives a new tensor, which takes the place of the old one in memory if the old one is not
used again::

    def cumulative(x, out):
        def step(i, total, out):
            total = total + x[i]
            return total, out.set(i, total)

        return loop(0, n, (scalar(0.0, x), out), step)[1:]

    (result,) = dispatch(cumulative, (x,), (x.type,))

What compiles (IREE 3.13): elements only, no operations on whole tensors; a loop returns its tensors
in the places where it got them. Axes of extent 1 often fail ("operand #0 does not dominate this
use"): `dispatch` leaves them out of what IREE sees. What does not live here: the kernels, which
stand with the ops that they compute (`dialect/ops/linalg/kernels.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from iree.compiler import ir

from . import stablehlo as hlo

Number = Any  # a Scalar, or a Python number of the same kind
Position = Any  # an index, or a tuple of such

_COMPARISONS = {"eq": (1, 0), "lt": (4, 2), "le": (5, 3), "gt": (2, 4), "ge": (3, 5)}


class Scalar:
    """A real number, truth value or index while a kernel runs."""

    __slots__ = ("value",)

    def __init__(self, value: ir.Value):
        self.value = value

    def __add__(self, other: Number) -> Scalar:
        return _arithmetic("add", self, other)

    def __sub__(self, other: Number) -> Scalar:
        return _arithmetic("sub", self, other)

    def __mul__(self, other: Number) -> Scalar:
        return _arithmetic("mul", self, other)

    def __truediv__(self, other: Number) -> Scalar:
        return _arithmetic("div", self, other)

    def __gt__(self, other: Number) -> Scalar:
        return self._compare("gt", other)

    def __lt__(self, other: Number) -> Scalar:
        return self._compare("lt", other)

    def equals(self, other: Number) -> Scalar:
        """Tells whether two numbers are equal; NaN is not."""
        return self._compare("eq", other)

    def _compare(self, name: str, other: Number) -> Scalar:
        number = _like(other, self)
        is_float = isinstance(self.value.type, ir.FloatType)
        predicate = _COMPARISONS[name][0 if is_float else 1]
        attributes = {"predicate": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), predicate)}
        kind = "f" if is_float else "i"
        truth = ir.IntegerType.get_signless(1)
        return _scalar(f"arith.cmp{kind}", truth, self, number, attributes=attributes)

    def choose(self, on_true: Scalar, on_false: Number) -> Scalar:
        """Returns one of two numbers by a truth value."""
        other = _like(on_false, on_true)
        return _scalar("arith.select", on_true.value.type, self, on_true, other)

    def sqrt(self) -> Scalar:
        """Returns the square root."""
        return _scalar("math.sqrt", self.value.type, self)

    def abs(self) -> Scalar:
        """Returns the absolute value of a floating-point number."""
        return _scalar("math.absf", self.value.type, self)

    def to_integer(self, width: int = 32) -> Scalar:
        """Converts an index to a signless integer."""
        return _scalar("arith.index_cast", ir.IntegerType.get_signless(width), self)

    def to_index(self) -> Scalar:
        """Converts an integer to an index."""
        return _scalar("arith.index_cast", ir.IndexType.get(), self)


class Tensor:
    """An array while a kernel runs: `t[i, j]` is an element, `t.set((i, j), x)` a new tensor.

    Args:
        value: The whole array.
        shape: Its shape, with the axes of extent 1 that the value lacks.
        place: Leading indices, of which the tensor is the part.
    """

    __slots__ = ("place", "shape", "value")

    def __init__(self, value: ir.Value, shape: tuple[int, ...], place: tuple[Scalar, ...] = ()):
        self.value = value
        self.shape = shape
        self.place = place

    def __getitem__(self, position: Position) -> Scalar:
        return _scalar(
            "tensor.extract", self.value.type.element_type, self, *self._indices(position)
        )

    def set(self, position: Position, number: Number) -> Tensor:
        """Returns the tensor with another element at a position."""
        element = number if isinstance(number, Scalar) else scalar(number, self)
        created = _create("tensor.insert", self.value.type, element, self, *self._indices(position))
        return self.became(created)

    def became(self, value: ir.Value) -> Tensor:
        """Returns the same part of another value."""
        return Tensor(value, self.shape, self.place)

    def at(self, *place: Scalar) -> Tensor:
        """Returns the part of the tensor at leading indices."""
        return Tensor(self.value, self.shape, (*self.place, *place))

    def whole(self) -> Tensor:
        """Returns the tensor that this is a part of."""
        return Tensor(self.value, self.shape)

    def _indices(self, position: Position) -> list[Scalar]:
        given = position if isinstance(position, tuple) else (position,)
        indices = zip((*self.place, *given), self.shape, strict=True)
        return [_index(i) for i, extent in indices if extent != 1]


def scalar(number: complex, like: Tensor | Scalar) -> Scalar:
    """Returns a constant of the type of another number, or of a tensor's elements."""
    value_type = like.value.type
    element = value_type.element_type if isinstance(like, Tensor) else value_type
    if isinstance(element, ir.FloatType):
        attribute: ir.Attribute = ir.FloatAttr.get(element, float(number.real))
    else:
        attribute = ir.IntegerAttr.get(element, int(number.real))
    return _scalar("arith.constant", element, attributes={"value": attribute})


def loop(
    lower: Number, upper: Number, carried: Sequence[Any], step: Callable[..., Any]
) -> list[Any]:
    """Runs `step(index, *carried) -> carried` for each index from `lower` to below `upper`.

    Args:
        lower: Where the index begins.
        upper: Where it ends; with fewer, nothing runs.
        carried: Scalars and tensors that change.
        step: Gives their next values: one, or a sequence.
    """
    inits = [x.value for x in carried]
    created = ir.Operation.create(
        "scf.for",
        results=[x.type for x in inits],
        operands=[_index(lower).value, _index(upper).value, _index(1).value, *inits],
        regions=1,
    )
    block = created.regions[0].blocks.append(ir.IndexType.get(), *[x.type for x in inits])
    with ir.InsertionPoint(block):
        number, *state = block.arguments
        results = step(Scalar(number), *map(_again, carried, state))
        ends = list(results) if isinstance(results, (tuple, list)) else [results]
        ir.Operation.create("scf.yield", operands=[x.value for x in ends])
    return list(map(_again, carried, created.results))


def _again(old: Scalar | Tensor, value: ir.Value) -> Scalar | Tensor:
    return Scalar(value) if isinstance(old, Scalar) else old.became(value)


def dispatch(
    kernel: Callable[..., Sequence[Tensor]],
    operands: Sequence[ir.Value],
    result_types: Sequence[ir.Type],
) -> list[ir.Value]:
    """Runs a kernel as one dispatch.

    Args:
        kernel: From tensors for the operands, and empty ones for the results, to the results.
        operands: Arrays of real dtypes, none of them empty or with a single element.
        result_types: The types of the results, for which the same holds.
    """
    inputs = [Tensor(_squeezed(x), hlo.shape_of(x)) for x in operands]
    squeezed = [_without_ones(t) for t in result_types]
    created = ir.Operation.create(
        "flow.dispatch.region",
        results=squeezed,
        attributes={"operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 0])},
        regions=2,
    )
    body, count = (region.blocks.append() for region in created.regions)
    with ir.InsertionPoint(body):
        shapes = [tuple(t.shape) for t in result_types]
        empty = [_create("tensor.empty", t) for t in squeezed]
        results = kernel(*inputs, *map(Tensor, empty, shapes))
        ir.Operation.create("flow.return", operands=[x.value for x in results])
    with ir.InsertionPoint(count):
        one = _index(1).value
        ir.Operation.create("flow.return", operands=[one, one, one])
    return [hlo.reshape(x, t.shape) for x, t in zip(created.results, result_types, strict=True)]


def _without_ones(type_: ir.Type) -> ir.Type:
    shape = [extent for extent in type_.shape if extent != 1]
    return ir.RankedTensorType.get(shape, type_.element_type)


def _squeezed(value: ir.Value) -> ir.Value:
    return hlo.reshape(value, _without_ones(value.type).shape)


def _arithmetic(name: str, left: Scalar, right: Number) -> Scalar:
    kind = "f" if isinstance(left.value.type, ir.FloatType) else "i"
    return _scalar(f"arith.{name}{kind}", left.value.type, left, _like(right, left))


def _like(number: Number, other: Scalar) -> Scalar:
    return number if isinstance(number, Scalar) else scalar(number, other)


def _index(number: Number) -> Scalar:
    if isinstance(number, Scalar):
        return number
    index = ir.IndexType.get()
    attributes = {"value": ir.IntegerAttr.get(index, number)}
    return _scalar("arith.constant", index, attributes=attributes)


def _scalar(
    name: str, result: ir.Type, *operands: Scalar | Tensor, attributes: Any = None
) -> Scalar:
    return Scalar(_create(name, result, *operands, attributes=attributes))


def _create(
    name: str, result: ir.Type, *operands: Scalar | Tensor, attributes: Any = None
) -> ir.Value:
    return ir.Operation.create(
        name, results=[result], operands=[x.value for x in operands], attributes=attributes
    ).result
