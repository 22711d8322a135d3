"""Marks the begin and the end of each dispatch of a program, and its source lines.

IREE can trace tensors: at a `flow.tensor.trace` the program waits until the tensor is computed, and
passes it to a callback of the runtime. A trace of one element of the first operand stands before
each dispatch, and a trace of one element of the first result behind it; their keys name the
dispatch. It is one element only, because traced tensors are copied. A mark takes 10 to 15 us.
Elsewhere: requesting marks (`compilation.py`), reading them (`axir.runtime.calls.host_calls`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from iree.compiler import ir

from .compiler_library import operations_named

BEGIN, END = "begin", "end"
# Between the parts of a key: which end, the dispatch, its lines.
SEPARATOR = "\t"
_FILE_LINE = re.compile(r'"((?:[^"\\]|\\.)+)":(\d+):\d+')
_MOST_LINES = 8


def mark_dispatches(module: ir.Operation) -> int:
    """Puts marks around all dispatches of a module in the phase `flow`, in place.

    Returns:
        The number of dispatches.
    """
    dispatches = operations_named(module, ("flow.dispatch",))
    kernels = dict(_kernels(module))
    for dispatch in dispatches:
        name = _kernel_name(dispatch)
        lines = SEPARATOR.join((name, *_lines(dispatch, kernels.get(name))))
        following = _next_operation(dispatch)
        _mark(dispatch.operands, BEGIN + SEPARATOR + lines, dispatch, dispatch.location)
        _mark(dispatch.results, END + SEPARATOR + lines, following, dispatch.location)
    return len(dispatches)


def _mark(
    values: Sequence[ir.Value], key: str, following: ir.Operation, location: ir.Location
) -> None:
    """Traces an element of one of the values, before an operation."""
    value = next(filter(_is_plain, values), None)
    if value is None:  # no operands: it begins when the dispatch before it ends
        return
    place = ir.InsertionPoint(following)
    with following.context, location, place:
        rank = ir.RankedTensorType(value.type).rank
        if rank:
            value = _element(value, rank)
        attributes = {
            "key": ir.StringAttr.get(key),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 0]),
        }
        ir.Operation.create("flow.tensor.trace", operands=[value], attributes=attributes)


def _element(value: ir.Value, rank: int) -> ir.Value:
    """Returns the first element of a tensor, as a tensor of extents of 1."""
    index = ir.IndexType.get()
    zero, one = (
        ir.Operation.create(
            "arith.constant",
            results=[index],
            attributes={"value": ir.IntegerAttr.get(index, number)},
        ).result
        for number in (0, 1)
    )
    element_type = ir.RankedTensorType(value.type).element_type
    return ir.Operation.create(
        "flow.tensor.slice",
        results=[ir.RankedTensorType.get([1] * rank, element_type)],
        operands=[value, *[zero] * rank, *[one] * rank],
        attributes={"operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 0, rank, rank, 0])},
    ).result


def _is_plain(value: ir.Value) -> bool:
    """Tells whether an element of a value can be read: its type determines its layout in memory."""
    if not isinstance(value.type, ir.RankedTensorType):
        return False
    kind = ir.RankedTensorType(value.type)
    return kind.has_static_shape and kind.encoding is None and 0 not in kind.shape


def _kernel_name(dispatch: ir.Operation) -> str:
    first = next(iter(ir.ArrayAttr(dispatch.attributes["entry_points"])))
    return ir.SymbolRefAttr(first).value[-1]


def _kernels(module: ir.Operation) -> Iterator[tuple[str, ir.Operation]]:
    """Yields the functions of the kernels by name."""
    for executable in operations_named(module, ("flow.executable",)):
        for function in operations_named(executable, ("func.func",)):
            yield ir.StringAttr(function.attributes["sym_name"]).value, function


def _lines(dispatch: ir.Operation, kernel: ir.Operation | None) -> list[str]:
    """Returns the `file:line` places of a dispatch: its own line, and the lines fused into it.

    Equal kernels are merged and have the lines of the first; these lines count if the dispatch's
    own line is among them.
    """
    own = _line(dispatch.location)
    fused: dict[str, None] = {}

    def collect(operation: ir.Operation) -> ir.WalkResult:
        line = _line(operation.location)
        if line is not None:
            fused.setdefault(line)
        return ir.WalkResult.ADVANCE

    if kernel is not None:
        kernel.walk(collect)
    if own is None:
        return list(fused)[:_MOST_LINES]
    others = [line for line in fused if line != own] if own in fused else []
    return [own, *others][:_MOST_LINES]


def _line(location: ir.Location) -> str | None:
    """Returns `file:line` of the innermost place that a location names."""
    found = _FILE_LINE.search(str(location))
    return f"{found[1]}:{found[2]}" if found and not found[1].startswith("<") else None


def _next_operation(operation: ir.Operation) -> ir.Operation:
    is_next = False
    for other in operation.block:
        if is_next:
            return other.operation
        is_next = other.operation == operation
    raise AssertionError("a block ends with a terminator")
