"""Kernels of our own: loops over scalars that IREE runs as one dispatch.

A StableHLO loop costs IREE at least one dispatch in each pass; a kernel is one
`flow.dispatch.region` whatever its loops do. It is written as a Python function of `Tensor`s, which
are values: storing an element gives a new tensor, which takes the place of the old one in memory if
the old one is not used again::

    def cumulative(x, out):
        def step(i, total, out):
            total = total + x[i]
            return total, out.set(i, total)

        return loop(0, n, (scalar(0.0, x), out), step)[1]

    result = dispatch(cumulative, (x,), x.type)

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

# The predicates of arith.cmpf and arith.cmpi.
_COMPARISONS = {"eq": (1, 0), "lt": (4, 2), "gt": (2, 4)}


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

    def to_float(self, like: Tensor) -> Scalar:
        """Converts an index to a number of the type of a tensor's elements."""
        number = _scalar("arith.index_cast", ir.IntegerType.get_signless(64), self)
        return _scalar("arith.sitofp", like.value.type.element_type, number)

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


def scratch(shape: tuple[int, ...], like: Tensor) -> Tensor:
    """Returns memory for a kernel's own use, with elements of the type of another tensor's.

    It lies on the stack: at most 32 KB for all of a kernel.
    """
    element = like.value.type.element_type
    value_type = _without_ones(hlo.tensor_type(shape, element))
    return Tensor(_create("tensor.empty", value_type), shape)


def loop(lower: Number, upper: Number, carried: Any, step: Callable[..., Any]) -> Any:
    """Runs `step(index, carried) -> carried` for each index from `lower` to below `upper`.

    Args:
        lower: Where the index begins.
        upper: Where it ends; if it is not larger, nothing runs.
        carried: A scalar or tensor that changes, or a tuple of such: arguments of their own.
        step: Gives the next value, or a tuple of them.

    Returns:
        The last value, or a tuple of them.
    """
    starts = carried if isinstance(carried, tuple) else (carried,)
    inits = [x.value for x in starts]
    created = ir.Operation.create(
        "scf.for",
        results=[x.type for x in inits],
        operands=[_index(lower).value, _index(upper).value, _index(1).value, *inits],
        regions=1,
    )
    block = created.regions[0].blocks.append(ir.IndexType.get(), *[x.type for x in inits])
    with ir.InsertionPoint(block):
        number, *state = block.arguments
        results = step(Scalar(number), *map(_again, starts, state))
        ends = results if isinstance(results, tuple) else (results,)
        ir.Operation.create("scf.yield", operands=[x.value for x in ends])
    lasts = tuple(map(_again, starts, created.results))
    return lasts if isinstance(carried, tuple) else lasts[0]


def _again(old: Scalar | Tensor, value: ir.Value) -> Scalar | Tensor:
    return Scalar(value) if isinstance(old, Scalar) else old.became(value)


def dispatch(
    kernel: Callable[..., Tensor], operands: Sequence[ir.Value], result_type: ir.Type
) -> ir.Value:
    """Runs a kernel as one dispatch.

    There is one result, for IREE makes results that nobody uses part of the stack, where there is
    no room for them: what belongs together lies in one array, and is cut out of it.

    Args:
        kernel: From tensors for the operands, and an empty one for the result, to the result.
        operands: Arrays of real dtypes, none of them empty.
        result_type: The type of the result, for which the same holds.
    """
    inputs = [Tensor(_squeezed(x), hlo.shape_of(x)) for x in operands]
    squeezed = _without_ones(result_type)
    created = ir.Operation.create(
        "flow.dispatch.region",
        results=[squeezed],
        attributes={"operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 0])},
        regions=2,
    )
    body, count = (region.blocks.append() for region in created.regions)
    with ir.InsertionPoint(body):
        empty = Tensor(_create("tensor.empty", squeezed), tuple(result_type.shape))
        ir.Operation.create("flow.return", operands=[kernel(*inputs, empty).value])
    with ir.InsertionPoint(count):
        one = _index(1).value
        ir.Operation.create("flow.return", operands=[one, one, one])
    return hlo.reshape(created.result, result_type.shape)


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
