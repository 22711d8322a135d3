"""Kernels of our own: loops over numbers in memory that IREE runs as one dispatch.

A StableHLO loop costs IREE at least one dispatch in each pass; a kernel is one, whatever its
loops do. It is a Python function of `Memory`, run once to build the code; assignments to elements
happen in the order in which Python meets them::

    def cumulative(x, sums):
        def step(i, total):
            total = total + x[i]
            sums[i] = total
            return total

        loop(0, n, x.constant(0.0), step)

    [sums] = dispatch(cumulative, [x], [x.type])

Numbers are `Scalar`s, or vectors of a power of two of them (`Memory.read`), which become vector
registers. Results are new arrays, or the memory of operands (`in_place`). Workgroups run in
parallel, and are told apart by the first argument (`workgroups`).

IREE gets a kernel as an executable of its own, on memory instead of tensors: nothing is decided by
how arrays are placed, copied or fused. Facts (IREE 3.13): the stack of a kernel is limited, see
`STACK_BYTES`, so that large memory of its own must be a result that nobody reads; truth values lie
in memory as bytes; vectors whose extent is not a power of two are 30 times slower.

What does not live here: the arithmetic of numbers (`scalars.py`), and the kernels, which stand with
the ops that they compute (`dialect/ops/linalg/kernels.py`), or with the passes that put them in.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from iree.compiler import ir

from axir.dialect.core.annotations import Foreign

from . import stablehlo as hlo
from .scalars import Scalar, boolean, constant, index, integer, operation

Number: TypeAlias = Scalar | bool | int | float  # a number of the same kind
Carried: TypeAlias = Foreign  # a number, a tuple of numbers, or nothing: () or None
Position: TypeAlias = Scalar | int | tuple[Scalar | int, ...]  # or several

STACK_BYTES = 1 << 15
"""How much memory of its own (`scratch`) all of a kernel may have on the stack."""


class Memory:
    """An array while a kernel runs: `t[i, j]` reads an element, `t[i, j] = x` writes one.

    Args:
        value: The whole array, a memref.
        place: Leading indices, of which this is the part.
        element: The type of the elements; truth values lie in memory as bytes.
    """

    __slots__ = ("element", "place", "value")

    def __init__(self, value: ir.Value, element: ir.Type, place: tuple[Scalar, ...] = ()):
        self.value = value
        self.element = element
        self.place = place

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents of the part."""
        return tuple(self.value.type.shape[len(self.place) :])

    def constant(self, number: complex) -> Scalar:
        """Returns a number of the type of the elements."""
        return constant(number, self.element)

    def __getitem__(self, position: Position) -> Scalar:
        stored = self.value.type.element_type
        loaded = operation("memref.load", [_as_scalar(self.value), *self._at(position)], stored)
        return loaded if stored == self.element else loaded != 0

    def __setitem__(self, position: Position, number: Number) -> None:
        element = number if isinstance(number, Scalar) else self.constant(number)
        _effect("memref.store", self._stored(element), self.value, *self._at(position))

    def read(self, position: Position, width: int) -> Scalar:
        """Returns a vector of so many neighbours along the last axis."""
        stored = ir.VectorType.get([width], self.value.type.element_type)
        loaded = operation("vector.load", [_as_scalar(self.value), *self._at(position)], stored)
        return loaded if stored.element_type == self.element else loaded != 0

    def write(self, position: Position, vector: Scalar) -> None:
        """Puts a vector into memory, along the last axis."""
        _effect("vector.store", self._stored(vector), self.value, *self._at(position))

    def at(self, *place: Scalar | int) -> Memory:
        """Returns the part of the array at leading indices."""
        return Memory(self.value, self.element, (*self.place, *map(index, place)))

    def _stored(self, x: Scalar) -> ir.Value:
        if self.value.type.element_type == self.element:
            return x.value
        return operation("arith.extui", (x,), x.like(integer(8))).value

    def _at(self, position: Position) -> list[Scalar]:
        given = position if isinstance(position, tuple) else (position,)
        return [*self.place, *map(index, given)]


def scratch(shape: Sequence[int], like: Memory | ir.Type) -> Memory:
    """Returns memory for a kernel's own use, on the stack, with elements of a type."""
    element = like.element if isinstance(like, Memory) else like
    created = ir.Operation.create(
        "memref.alloca",
        results=[_memref(shape, element)],
        attributes={"operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 0])},
    )
    return Memory(created.result, element)


# Control flow ----------------------------------------------------------------------------------


def loop(
    lower: Scalar | int,
    upper: Scalar | int,
    carried: Carried,
    step: Callable[..., Carried],
    stride: int = 1,
) -> Carried:
    """Runs `step(index, *carried) -> carried` for each index from `lower` to below `upper`.

    Args:
        lower: Where the index begins.
        upper: Where it ends; if it is not larger, nothing runs.
        carried: A scalar or vector that changes, or a tuple of such: arguments of their own.
        step: Gives the next value, or a tuple of them; None if nothing is carried, `()`.
        stride: What the index grows by.

    Returns:
        The last value, or a tuple of them.
    """
    starts = _many(carried)
    created = ir.Operation.create(
        "scf.for",
        results=[x.type for x in starts],
        operands=[index(x).value for x in (lower, upper, stride)] + [x.value for x in starts],
        regions=1,
    )
    block = created.regions[0].blocks.append(ir.IndexType.get(), *[x.type for x in starts])
    with ir.InsertionPoint(block):
        _end("scf.yield", step(*map(Scalar, block.arguments)))
    return _like(carried, created)


def repeat_while(
    carried: Carried, condition: Callable[..., Scalar], step: Callable[..., Carried]
) -> Carried:
    """Runs `step(*carried) -> carried` as long as `condition(*carried)` holds.

    Args:
        carried: A scalar or vector that changes, or a tuple of such.
        condition: Gives a truth value.
        step: Gives the next value, or a tuple of them.

    Returns:
        The last value, or a tuple of them.
    """
    starts = _many(carried)
    types = [x.type for x in starts]
    created = ir.Operation.create(
        "scf.while", results=types, operands=[x.value for x in starts], regions=2
    )
    before, after = (region.blocks.append(*types) for region in created.regions)
    with ir.InsertionPoint(before):
        holds = condition(*map(Scalar, before.arguments))
        ir.Operation.create("scf.condition", operands=[holds.value, *before.arguments])
    with ir.InsertionPoint(after):
        _end("scf.yield", step(*map(Scalar, after.arguments)))
    return _like(carried, created)


def branch(
    condition: Scalar,
    on_true: Callable[[], Carried],
    on_false: Callable[[], Carried],
    types: Sequence[ir.Type] = (),
) -> tuple[Scalar, ...]:
    """Runs one of two functions, each of which returns a tuple of numbers of these types."""
    created = ir.Operation.create(
        "scf.if", results=list(types), operands=[condition.value], regions=2
    )
    for region, function in zip(created.regions, (on_true, on_false), strict=True):
        with ir.InsertionPoint(region.blocks.append()):
            _end("scf.yield", function())
    return tuple(map(Scalar, created.results))


def _many(carried: Carried) -> tuple[Scalar, ...]:
    if carried is None:
        return ()
    return carried if isinstance(carried, tuple) else (carried,)


def _end(name: str, results: Carried) -> None:
    ir.Operation.create(name, operands=[x.value for x in _many(results)])


def _like(carried: Carried, created: ir.Operation) -> Carried:
    results = tuple(map(Scalar, created.results))
    return results if isinstance(carried, tuple) else results[0]


# Dispatches ------------------------------------------------------------------------------------


def dispatch(
    kernel: Callable[..., None],
    operands: Sequence[ir.Value],
    result_types: Sequence[ir.Type],
    *,
    workgroups: int | None = None,
    in_place: Mapping[int, int] | None = None,
    name: str = "kernel",
) -> list[ir.Value]:
    """Runs a kernel as one dispatch.

    Args:
        kernel: Writes the results; takes the memory of the operands, then that of those results
            that have memory of their own. With `workgroups`, the number of the workgroup, an
            index, comes before.
        operands: Arrays of real dtypes, none of them empty.
        result_types: The types of the results, for which the same holds.
        workgroups: How many copies of the kernel run, in parallel.
        in_place: For results that take the place of an operand: their number, and its. The operand
            must not be an argument of the program, nor used again.
        name: What the kernel is called in modules and profiles.

    Returns:
        The results.
    """
    tied = dict(in_place or {})
    arrays = [hlo.bitcast_convert(x, _signless(x.type.element_type)) for x in operands]
    results = [hlo.tensor_type(x.shape, _signless(x.element_type)) for x in result_types]
    own = [x for number, x in enumerate(results) if number not in tied]
    bindings = [*(x.type for x in arrays), *own]
    symbol = _executable(kernel, bindings, workgroups, name)
    created = ir.Operation.create(
        "flow.dispatch",
        results=results,
        operands=arrays,
        attributes={
            "entry_points": ir.ArrayAttr.get([hlo.attribute(f"@{symbol}::@{symbol}")]),
            "tied_operands": ir.ArrayAttr.get(
                [
                    ir.IntegerAttr.get(ir.IndexType.get(), tied.get(number, -1))
                    for number in range(len(result_types))
                ]
            ),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, len(operands), 0, 0]),
        },
    )
    return [
        hlo.bitcast_convert(x, wanted.element_type)
        for x, wanted in zip(created.results, result_types, strict=True)
    ]


def _executable(
    kernel: Callable[..., None], bindings: Sequence[ir.Type], workgroups: int | None, name: str
) -> str:
    """Puts an executable with the kernel at the head of the module; returns its name."""
    block = _module_block()
    symbol = _unused_symbol(block, name)
    with ir.InsertionPoint.at_block_begin(block):
        executable = _symbol("stream.executable", symbol, {"sym_visibility": _text("private")})
    with ir.InsertionPoint(executable.regions[0].blocks.append()):
        _export(symbol, workgroups or 1)
        inner = ir.Operation.create("builtin.module", regions=1)
        ir.Operation.create("stream.executable.end")
    binding = ir.Type.parse("!stream.binding")
    with ir.InsertionPoint(inner.regions[0].blocks.append()):
        signature = ir.FunctionType.get([binding] * len(bindings), [])
        function = _symbol("func.func", symbol, {"function_type": ir.TypeAttr.get(signature)})
    body = function.regions[0].blocks.append(*[binding] * len(bindings))
    with ir.InsertionPoint(body):
        arrays = [_bound(x, type_) for x, type_ in zip(body.arguments, bindings, strict=True)]
        kernel(*([] if workgroups is None else [_workgroup()]), *arrays)
        ir.Operation.create("func.return")
    return symbol


def _export(name: str, workgroups: int) -> None:
    export = _symbol(
        "stream.executable.export",
        name,
        {"function_ref": hlo.attribute(f"@{name}"), "sym_visibility": _text("public")},
    )
    with ir.InsertionPoint(export.regions[0].blocks.append()):
        counts = [index(number).value for number in (workgroups, 1, 1)]
        ir.Operation.create("stream.return", operands=counts)


def _workgroup() -> Scalar:
    dimension = ir.IntegerAttr.get(ir.IndexType.get(), 0)
    return operation(
        "stream.dispatch.workgroup.id", (), ir.IndexType.get(), {"dimension": dimension}
    )


def _bound(binding: ir.Value, type_: ir.Type) -> Memory:
    element = type_.element_type
    memref = _memref(type_.shape, element)
    subspan = operation("stream.binding.subspan", [_as_scalar(binding), index(0)], memref)
    return Memory(subspan.value, element)


def _module_block() -> ir.Block:
    operation = ir.InsertionPoint.current.block.owner
    while operation.name != "builtin.module":
        operation = operation.parent
    return operation.regions[0].blocks[0]


def _unused_symbol(block: ir.Block, name: str) -> str:
    taken = {
        operation.attributes["sym_name"].value
        for operation in block
        if "sym_name" in operation.attributes
    }
    names = (f"{name}_{number}" for number in itertools.count())
    return next(candidate for candidate in names if candidate not in taken)


# MLIR ------------------------------------------------------------------------------------------


def _memref(shape: Sequence[int], element: ir.Type) -> ir.Type:
    stored = integer(8) if element == boolean() else element
    return ir.MemRefType.get(shape, stored)


def _signless(element: ir.Type) -> ir.Type:
    return integer(element.width) if isinstance(element, ir.IntegerType) else element


def _as_scalar(value: ir.Value) -> Scalar:
    return Scalar(value)


def _effect(name: str, *operands: ir.Value | Scalar) -> None:
    values = [x.value if isinstance(x, Scalar) else x for x in operands]
    ir.Operation.create(name, operands=values)


def _symbol(name: str, symbol: str, attributes: dict[str, ir.Attribute]) -> ir.Operation:
    named = {"sym_name": _text(symbol), **attributes}
    return ir.Operation.create(name, attributes=named, regions=1)


def _text(text: str) -> ir.Attribute:
    return ir.StringAttr.get(text)
