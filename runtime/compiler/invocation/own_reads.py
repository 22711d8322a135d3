"""Splits an operand that a kernel both reads and works on in place into two operands.

IREE makes one operand of both where a part of an array is inserted elsewhere in the same array. The
kernel then reads bytes that it has overwritten, and its operands do not show that. With two
operands the proof sees that they are one array, and the program is compiled again with a copy. The
row `slice-before-update` of the pass `separate-dispatches` copies only the part, where it
recognizes the case; the other cases end here. Elsewhere: when the compiler stops for this
(`invoker.py`).
"""

from __future__ import annotations

from iree.compiler import ir

from .compiler_library import operations_named

_EXECUTABLE, _DISPATCH = "flow.executable", "flow.dispatch"
_LOAD, _STORE = "iree_tensor_ext.dispatch.tensor.load", "iree_tensor_ext.dispatch.tensor.store"
_KIND = "!iree_tensor_ext.dispatch.tensor<"
_IN_PLACE, _RESULT, _READ = f"{_KIND}readwrite:", f"{_KIND}writeonly:", f"{_KIND}readonly:"
_SIZES, _ENTRIES = "operandSegmentSizes", "entry_points"
# It changes its last operands, as many as it has results.
_SCATTER = "iree_linalg_ext.scatter"


def give_own_reads(module: ir.Operation) -> int:
    """Gives each kernel of a module in the phase `flow` separate operands for reads and writes.

    Returns:
        The number of operands added.
    """
    added: dict[str, list[int]] = {}
    for function in _kernels(module):
        arguments = list(function.regions[0].blocks[0].arguments)
        places = [place for place, x in enumerate(arguments) if _reads(x)]
        for count, place in enumerate(places):
            _add_argument(function, place, _first_result(arguments) + count)
        if places:
            added[ir.StringAttr(function.attributes["sym_name"]).value] = places
    if added:
        for dispatch in operations_named(module, (_DISPATCH,)):
            entry = str(dispatch.attributes[_ENTRIES]).rpartition("@")[2].strip('"]')
            _add_operands(dispatch, added.get(entry, []))
    return sum(map(len, added.values()))


def _kernels(module: ir.Operation) -> list[ir.Operation]:
    executables = [
        op.operation
        for op in module.regions[0].blocks[0].operations
        if op.operation.name == _EXECUTABLE
    ]
    return [function for x in executables for function in operations_named(x, ("func.func",))]


def _first_result(arguments: list[ir.BlockArgument]) -> int:
    """Returns the number of the first argument that a kernel writes: they follow the others."""
    count = len(arguments)
    while count and str(arguments[count - 1].type).startswith(_RESULT):
        count -= 1
    return count


def _reads(argument: ir.BlockArgument) -> list[ir.OpOperand]:
    """Returns the reads of an array that a kernel changes in place, except the in-place uses."""
    if not str(argument.type).startswith(_IN_PLACE):
        return []
    loads = [use.owner.operation for use in argument.uses if use.owner.name == _LOAD]
    return [use for load in loads for use in load.results[0].uses if not _is_worked_on(use)]


def _is_worked_on(use: ir.OpOperand) -> bool:
    """Tells whether an operation changes an operand."""
    operation = use.owner.operation
    is_known = operation.name == _SCATTER or operation.name.startswith("linalg.")
    return is_known and use.operand_number >= len(operation.operands) - len(operation.results)


def _add_argument(function: ir.Operation, place: int, new: int) -> None:
    """Adds an argument at `new` to a kernel; it serves the reads of the argument at `place`."""
    block = function.regions[0].blocks[0]
    kind = str(block.arguments[place].type)
    added = ir.Type.parse(kind.replace(_IN_PLACE, _READ, 1), function.context)
    block.add_argument(added, function.location)
    # The arguments that it writes move up.
    for position in range(len(block.arguments) - 1, new, -1):
        before = block.arguments[position - 1]
        block.arguments[position].set_type(before.type)
        before.replace_all_uses_with(block.arguments[position])
    own = block.arguments[new]
    own.set_type(added)
    for use in _reads(block.arguments[place]):
        load = use.owner.operation.operands[use.operand_number].owner.operation
        read = load.clone(ip=ir.InsertionPoint(load))
        read.operands[0] = own
        use.owner.operation.operands[use.operand_number] = read.operation.results[0]
    kinds = [x.type for x in block.arguments]
    signature = ir.FunctionType.get(kinds, [], function.context)
    function.attributes["function_type"] = ir.TypeAttr.get(signature, function.context)


def _add_operands(dispatch: ir.Operation, places: list[int]) -> None:
    """Passes some operands of a dispatch again, after its other operands."""
    if not places:
        return
    sizes = list(ir.DenseI32ArrayAttr(dispatch.attributes[_SIZES]))
    operands = list(dispatch.operands)
    ends = [sum(sizes[: count + 1]) for count in range(3)]
    handed, extents = operands[ends[0] : ends[1]], operands[ends[1] : ends[2]]
    firsts = [sum(map(_open_extents, handed[:place])) for place in places]
    for place, first in zip(places, firsts, strict=True):
        extents += extents[first : first + _open_extents(handed[place])]
        handed.append(handed[place])
    sizes[1:3] = len(handed), len(extents)
    attributes = {name: dispatch.attributes[name] for name in dispatch.attributes}
    attributes[_SIZES] = ir.DenseI32ArrayAttr.get(sizes, dispatch.context)
    with ir.InsertionPoint(dispatch), dispatch.location:
        wider = ir.Operation.create(
            _DISPATCH,
            [x.type for x in dispatch.results],
            [*operands[: ends[0]], *handed, *extents, *operands[ends[2] :]],
            attributes,
        )
    for old, new in zip(dispatch.results, wider.results, strict=True):
        old.replace_all_uses_with(new)
    dispatch.erase()


def _open_extents(value: ir.Value) -> int:
    """Returns how many extents of an array the program computes."""
    kind = value.type
    if not isinstance(kind, ir.RankedTensorType):
        return 0
    return sum(kind.is_dynamic_dim(axis) for axis in range(kind.rank))
