"""Kernels of our own: loops over scalars that IREE runs as one dispatch.

A StableHLO loop costs IREE at least one dispatch in each pass; a kernel is one
`flow.dispatch.region` whatever its loops do. It is written as a Python function of `Tensor`s, which
are values: storing an element gives a new tensor, which takes the place of the old one in memory if
the old one is not used again::

    def cumulative(x, out):
        def step(i, total, out):
            total = total + x[i]
            return total, out.set(i, total)

        return loop(0, n, (x.constant(0.0), out), step)[1]

    result = dispatch(cumulative, (x,), x.type)

What compiles (IREE 3.13): elements only, no operations on whole tensors; a loop returns its tensors
in the places where it got them. Axes of extent 1 often fail ("operand #0 does not dominate this
use"): `dispatch` leaves them out of what IREE sees. What does not live here: the arithmetic of
scalars (`scalars.py`), and the kernels, which stand with the ops that they compute
(`dialect/ops/linalg/kernels.py`), or with the passes that put them in
(`passes/legalize/sorting/sort_kernels.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from iree.compiler import ir

from . import stablehlo as hlo
from .expressions import select
from .scalars import Scalar, constant, index

Number: TypeAlias = Scalar | bool | int | float  # a number of the same kind
Position: TypeAlias = Scalar | int | tuple[Scalar | int, ...]  # or several

_WORKGROUPS = "#iree_codegen.workgroup_mapping<x>"


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

    @property
    def element(self) -> ir.Type:
        """Returns the type of the elements."""
        return self.value.type.element_type

    def constant(self, number: complex) -> Scalar:
        """Returns a number of the type of the elements."""
        return constant(number, self.element)

    def __getitem__(self, position: Position) -> Scalar:
        return Scalar(_create("tensor.extract", self.element, self, *self._indices(position)))

    def set(self, position: Position, number: Number) -> Tensor:
        """Returns the tensor with another element at a position."""
        element = number if isinstance(number, Scalar) else self.constant(number)
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
        return [index(i) for i, extent in indices if extent != 1]


def scratch(shape: tuple[int, ...], like: Tensor | ir.Type) -> Tensor:
    """Returns memory for a kernel's own use, with elements of a type, or of another tensor's.

    It lies on the stack: at most 32 KB for all of a kernel.
    """
    element = like.element if isinstance(like, Tensor) else like
    value_type = _without_ones(hlo.tensor_type(shape, element))
    return Tensor(_create("tensor.empty", value_type), shape)


def loop(lower: Scalar | int, upper: Scalar | int, carried: Any, step: Callable[..., Any]) -> Any:
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
        operands=[index(lower).value, index(upper).value, index(1).value, *inits],
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
    return _dispatch(kernel, operands, result_type, 1)


def dispatch_rows(
    kernel: Callable[..., Tensor],
    operands: Sequence[ir.Value],
    result_type: ir.Type,
    workgroups: int,
) -> ir.Value:
    """Runs a kernel as one dispatch whose workgroups, which run in parallel, share the rows.

    Args:
        kernel: From the first row of a workgroup and the number of its rows, both indices, tensors
            for the operands, and an empty one for these rows of the result alone, to the latter.
        operands: As those of `dispatch`.
        result_type: The type of the result; a row is what has one index in its first axis.
        workgroups: How many of them at most.
    """
    rows = result_type.shape[0]
    share = -(-rows // workgroups)
    count = -(-rows // share)
    if count == 1:
        return dispatch(
            lambda *tensors: kernel(index(0), index(rows), *tensors), operands, result_type
        )

    def all_rows(*tensors: Tensor) -> Tensor:
        *inputs, output = tensors
        return _in_parallel(
            lambda *place: kernel(*place[:2], *inputs, place[2]), output, count, share
        )

    return _dispatch(all_rows, operands, result_type, count)


def _dispatch(
    kernel: Callable[..., Tensor],
    operands: Sequence[ir.Value],
    result_type: ir.Type,
    workgroups: int,
) -> ir.Value:
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
        counts = [index(number).value for number in (workgroups, 1, 1)]
        ir.Operation.create("flow.return", operands=counts)
    return hlo.reshape(created.result, result_type.shape)


def _in_parallel(
    kernel: Callable[[Scalar, Scalar, Tensor], Tensor], output: Tensor, count: int, share: int
) -> Tensor:
    """Runs `kernel(first row, number of rows, these rows)` for `count` shares of the rows."""
    number = ir.DenseI64ArrayAttr.get
    created = ir.Operation.create(
        "scf.forall",
        results=[output.value.type],
        operands=[output.value],
        attributes={
            "staticLowerBound": number([0]),
            "staticUpperBound": number([count]),
            "staticStep": number([1]),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 0, 0, 1]),
            "mapping": ir.ArrayAttr.get([hlo.attribute(_WORKGROUPS)]),
        },
        regions=1,
    )
    block = created.regions[0].blocks.append(ir.IndexType.get(), output.value.type)
    with ir.InsertionPoint(block):
        whole = Tensor(block.arguments[1], output.shape)
        first = Scalar(block.arguments[0]) * share
        rows = index(share)
        if is_uneven := bool(output.shape[0] % share):
            left = index(output.shape[0]) - first
            rows = select(left < share, left, rows)
        slice_ = _Rows(whole, first, rows if is_uneven else None, share)
        part = kernel(first, rows, slice_.read())
        end = ir.Operation.create("scf.forall.in_parallel", regions=1)
        with ir.InsertionPoint(end.regions[0].blocks.append()):
            slice_.write(part)
    return output.became(created.result)


class _Rows:
    """Rows of a tensor: the first one, and how many, a number or an index that varies."""

    def __init__(self, whole: Tensor, first: Scalar, varying: Scalar | None, share: int):
        self.whole = whole
        self.share = share
        self.operands = [first.value, *([] if varying is None else [varying.value])]
        dynamic = ir.ShapedType.get_dynamic_size()
        others = list(whole.value.type.shape[1:])
        number = ir.DenseI64ArrayAttr.get
        self.sizes = [share if varying is None else dynamic, *others]
        self.attributes = {
            "static_offsets": number([dynamic, *[0] * len(others)]),
            "static_sizes": number(self.sizes),
            "static_strides": number([1] * len(self.sizes)),
        }

    def read(self) -> Tensor:
        """Returns the rows; a single one without its axis."""
        part_type = _without_ones(hlo.tensor_type(self.sizes, self.whole.element))
        created = ir.Operation.create(
            "tensor.extract_slice",
            results=[part_type],
            operands=[self.whole.value, *self.operands],
            attributes={**self.attributes, **self._segments(1)},
        )
        return Tensor(created.result, (self.share, *self.whole.shape[1:]))

    def write(self, part: Tensor) -> None:
        """Puts rows into the place of these, at the end of a parallel loop."""
        ir.Operation.create(
            "tensor.parallel_insert_slice",
            operands=[part.value, self.whole.value, *self.operands],
            attributes={**self.attributes, **self._segments(1, 1)},
        )

    def _segments(self, *tensors: int) -> dict[str, ir.Attribute]:
        counts = [*tensors, 1, len(self.operands) - 1, 0]
        return {"operandSegmentSizes": ir.DenseI32ArrayAttr.get(counts)}


def _without_ones(type_: ir.Type) -> ir.Type:
    shape = [extent for extent in type_.shape if extent != 1]
    return ir.RankedTensorType.get(shape, type_.element_type)


def _squeezed(value: ir.Value) -> ir.Value:
    return hlo.reshape(value, _without_ones(value.type).shape)


def _create(name: str, result: ir.Type, *operands: Scalar | Tensor) -> ir.Value:
    return ir.Operation.create(name, results=[result], operands=[x.value for x in operands]).result
