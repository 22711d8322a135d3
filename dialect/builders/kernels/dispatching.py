"""`dispatch`: a kernel as a separate executable, and its call."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.builders.errors import KernelArrayError, KernelError, KernelStackError
from axir.dialect.builders.expressions import minimum
from axir.dialect.builders.kernels.building import state
from axir.dialect.builders.scalars import Scalar, index, operation, signless
from axir.dialect.core.state import Change

from .building import Kernel, index_value
from .functions import declare_outside
from .memory import Memory, aligned, bytes_of, memref_type
from .packing import MOST_BINDINGS, grouped, packed, packed_type, unpacked

# Numbers of the arrays in a binding, one behind the other, and their types.
_Binding: TypeAlias = Sequence[tuple[int, ir.Type]]


def dispatch(
    kernel: Callable[..., None],
    operands: Sequence[ir.Value],
    result_types: Sequence[ir.Type],
    *,
    workgroups: int | None = None,
    in_place: Mapping[int, int] | None = None,
    name: str = "kernel",
    identity: str = "",
    most_bindings: int = MOST_BINDINGS,
) -> list[ir.Value]:
    """Runs a kernel as one dispatch.

    Args:
        kernel: Writes the results. It takes the memory of the operands, then the memory of the
            results that are not in place. With `workgroups`, the number of the workgroup, an index,
            comes first.
        operands: Arrays of real dtypes, none of them empty.
        result_types: The types of the results, under the same conditions.
        workgroups: Number of copies of the kernel that run in parallel.
        in_place: From numbers of results to numbers of the operands that they overwrite. If the
            operand is used again, or is an argument of the program, IREE copies it before.
        name: Name of the kernel in modules and profiles.
        identity: A text that, together with the types of the arrays, determines the code. With it,
            the kernel is not built again to find that the module has an equal one.
        most_bindings: The largest number of bindings; if there are more arrays, some share a
            binding.

    Returns:
        The results.

    Raises:
        KernelError: for a mismatch, also in the kernel; its subclasses give the kind.
    """
    tied = dict(in_place or {})
    _check_arrays([x.type for x in operands], result_types, tied)
    arrays = [hlo.bitcast_convert(x, signless(x.type.element_type)) for x in operands]
    if not any(map(_varies, arrays)):
        # With constant operands, IREE would run the kernel once, when the program is loaded, and
        # then read the first of several results in place of another one. So one operand is hidden
        # from it.
        kernel = _without_argument(kernel, len(arrays) + (workgroups is not None))
        arrays = [*arrays, *hlo.optimization_barrier(hlo.constant(np.int32(0)))]
    results = [hlo.tensor_type(x.shape, signless(x.element_type)) for x in result_types]
    own = [number for number in range(len(results)) if number not in tied]
    taken, given = grouped(
        [x.type for x in arrays], [results[n] for n in own], tied.values(), most_bindings
    )
    given = [[own[number] for number in group] for group in given]
    bindings = [
        *([(number, arrays[number].type) for number in group] for group in taken),
        *([(len(arrays) + own.index(n), results[n]) for n in group] for group in given),
    ]
    symbol, spaces = _executable(kernel, bindings, workgroups, name, identity)
    bound = [packed([arrays[number] for number in group]) for group in taken]
    groups = sorted([*given, *([number] for number in tied)])
    ties = [taken.index([tied[group[0]]]) if group[0] in tied else -1 for group in groups]
    kinds = [[results[number] for number in group] for group in groups]
    made = _called(symbol, bound, [*map(packed_type, kinds), *spaces], ties).results
    found = {
        number: x
        for group, types, pack in zip(groups, kinds, made, strict=False)
        for number, x in zip(group, unpacked(pack, types), strict=True)
    }
    return [
        hlo.bitcast_convert(found[number], wanted.element_type)
        for number, wanted in enumerate(result_types)
    ]


def dispatch_outside(
    symbol: str, operands: Sequence[ir.Value], result_types: Sequence[ir.Type]
) -> ir.Operation:
    """Runs an external kernel of one workgroup that is linked to the program.

    Args:
        symbol: The kernel.
        operands: The arrays that it reads.
        result_types: The types of the arrays that it writes.

    Returns:
        The call; its results are the arrays.
    """
    module = _module_block()
    if symbol not in _symbols(module):
        with ir.InsertionPoint.at_block_begin(module):
            executable = _symbol("stream.executable", symbol, {"sym_visibility": _text("private")})
        with ir.InsertionPoint(executable.regions[0].blocks.append()):
            _export(symbol, 1)
            inner = ir.Operation.create("builtin.module", regions=1)
            ir.Operation.create("stream.executable.end")
        with ir.InsertionPoint(inner.regions[0].blocks.append()), ir.Location.unknown():
            declare_outside(symbol, [])
    return _called(symbol, operands, result_types, [-1])


def _called(
    symbol: str, operands: Sequence[ir.Value], results: Sequence[ir.Type], ties: Sequence[int]
) -> ir.Operation:
    index_type = ir.IndexType.get()
    padded = [*ties, *[-1] * (len(results) - len(ties))]
    return ir.Operation.create(
        "flow.dispatch",
        results=results,
        operands=operands,
        attributes={
            "entry_points": ir.ArrayAttr.get([hlo.attribute(f"@{symbol}::@{symbol}")]),
            "tied_operands": ir.ArrayAttr.get(
                [ir.IntegerAttr.get(index_type, number) for number in padded]
            ),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, len(operands), 0, 0]),
        },
    )


def workspace(shape: Sequence[int], like: Memory | ir.Type) -> Memory:
    """Returns private memory of a kernel, of any size, with elements of a type.

    It is an unused result of the dispatch; workgroups share it. Small memory is faster on the stack
    (`scratch`).

    Raises:
        KernelStackError: if no kernel is being built.
    """
    element = like.element if isinstance(like, Memory) else like
    kernel = state.kernel
    if kernel is None:
        raise KernelStackError(
            "A workspace belongs to the kernel that `dispatch` builds.", "Use `scratch` here."
        )
    if kernel.workspace is None:
        # One for all: IREE binds 32 arrays to a kernel at most.
        binding = ir.Type.parse("!stream.binding")
        kernel.workspace = kernel.entry.add_argument(binding, ir.Location.current)
    start = kernel.workspace_bytes
    kernel.workspace_bytes += aligned(bytes_of(shape, element))
    with ir.InsertionPoint.at_block_begin(kernel.entry):
        return _bound(kernel.workspace, hlo.tensor_type(shape, element), index(start))


def rows_of(workgroup: Scalar, rows: int, workgroups: int) -> tuple[Scalar, Scalar]:
    """Returns the first row of a workgroup, and the end of its rows.

    The shares of workgroups differ by one row at most.
    """
    if workgroups == 1:
        return Scalar(index_value(0)), Scalar(index_value(rows))  # known to the compiler
    share, left = divmod(rows, workgroups)
    first = workgroup * share
    if not left:
        return first, first + share
    following = workgroup + 1
    return first + minimum(workgroup, left), following * share + minimum(following, left)


# Constants -------------------------------------------------------------------------------------


def _varies(x: ir.Value) -> bool:
    """Tells whether an array depends on an argument of a function or of a loop."""
    seen: set[ir.Value] = set()
    waiting = [x]
    while waiting:
        value = waiting.pop()
        if isinstance(value, ir.BlockArgument):
            return True
        if value not in seen:
            seen.add(value)
            operation = value.owner.operation
            if len(operation.regions):
                return True
            waiting.extend(operation.operands)
    return False


def _without_argument(kernel: Callable[..., None], position: int) -> Callable[..., None]:
    """Returns a kernel that takes one more argument and ignores it."""

    def without_argument(*arguments: Memory | Scalar) -> None:
        kernel(*arguments[:position], *arguments[position + 1 :])

    return without_argument


# Checks ----------------------------------------------------------------------------------------


def _check_arrays(
    operands: Sequence[ir.Type], results: Sequence[ir.Type], tied: Mapping[int, int]
) -> None:
    for what, types in (("operand", operands), ("result", results)):
        for number, type_ in enumerate(types):
            if 0 in type_.shape:
                raise KernelArrayError(
                    f"Array {number} of the {what}s of a kernel is empty: {type_}.",
                    "Compute empty results without a kernel.",
                )
            if isinstance(type_.element_type, ir.ComplexType):
                raise KernelArrayError(
                    f"Array {number} of the {what}s of a kernel is complex: {type_}.",
                    "Give it the real and imaginary parts as arrays of their own.",
                )
    for number, operand in tied.items():
        if not (number < len(results) and operand < len(operands)) or (
            results[number] != operands[operand]
        ):
            raise KernelArrayError(
                f"Result {number} of a kernel cannot take the place of operand {operand}: "
                f"the results are ({_listed(results)}), the operands ({_listed(operands)}).",
                "`in_place` gives for the number of a result that of an operand of its type.",
            )


def _listed(types: Sequence[ir.Type]) -> str:
    return ", ".join(map(str, types))


# Executables -----------------------------------------------------------------------------------


def _executable(
    kernel: Callable[..., None],
    bindings: Sequence[_Binding],
    workgroups: int | None,
    name: str,
    identity: str,
) -> tuple[str, list[ir.Type]]:
    """Puts an executable with the kernel at the head of the module.

    If the module already has an equal executable, that one is used. Returns its name, and the type
    of its workspace if it has one.
    """
    module = _module_block()
    taken = _symbols(module)
    if identity:
        types = [type_ for arrays in bindings for _, type_ in arrays]
        told = f"{identity} {workgroups} {_listed(types)}"
        symbol = f"{name}_{hashlib.sha256(told.encode()).hexdigest()[:12]}"
        if symbol in taken:
            return symbol, _spaces_of(module, symbol, len(bindings))
    else:
        symbol = _unused_symbol(taken, name)
    with ir.InsertionPoint.at_block_begin(module):
        executable = _symbol("stream.executable", symbol, {"sym_visibility": _text("private")})
    try:
        spaces = _fill(executable, kernel, bindings, workgroups, symbol)
        _verify(executable)
    except BaseException:
        executable.erase()
        raise
    equal = None if identity else _equal_executable(module, executable, name, symbol)
    if equal is None:
        return symbol, spaces
    executable.erase()
    return equal, spaces


def _fill(
    executable: ir.Operation,
    kernel: Callable[..., None],
    bindings: Sequence[_Binding],
    workgroups: int | None,
    symbol: str,
) -> list[ir.Type]:
    with ir.InsertionPoint(executable.regions[0].blocks.append()):
        _export(symbol, workgroups or 1)
        inner = ir.Operation.create("builtin.module", regions=1)
        ir.Operation.create("stream.executable.end")
    binding = ir.Type.parse("!stream.binding")
    with ir.InsertionPoint(inner.regions[0].blocks.append()):
        no_type = ir.TypeAttr.get(ir.FunctionType.get([], []))
        function = _symbol("func.func", symbol, {"function_type": no_type})
    body = function.regions[0].blocks.append(*[binding] * len(bindings))
    building = Kernel(body)
    with ir.InsertionPoint(body), Change(kernel=building):
        arrays: dict[int, Memory] = {}
        for argument, held in zip(body.arguments, bindings, strict=True):
            start = 0
            for number, type_ in held:
                arrays[number] = _bound(argument, type_, Scalar(index_value(start)))
                start += bytes_of(type_.shape, type_.element_type)
        in_order = [arrays[number] for number in range(len(arrays))]
        kernel(*([] if workgroups is None else [_workgroup()]), *in_order)
        ir.Operation.create("func.return")
    signature = ir.FunctionType.get([binding] * len(body.arguments), [])
    function.attributes["function_type"] = ir.TypeAttr.get(signature)
    return _spaces(building.workspace_bytes)


def _spaces(size: int) -> list[ir.Type]:
    return [hlo.tensor_type((size,), ir.IntegerType.get_signless(8))] if size else []


def _verify(executable: ir.Operation) -> None:
    try:
        executable.verify()
    except ir.MLIRError as error:
        raise KernelError(
            f"A kernel is not valid: {'; '.join(map(str, error.error_diagnostics))}.",
            "Operations that the builders do not check got operands of types that do not fit.",
        ) from error


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


def _bound(binding: ir.Value, type_: ir.Type, start: Scalar) -> Memory:
    """Returns an array in a binding of a kernel, from a byte on."""
    kind = memref_type(type_.shape, type_.element_type)
    subspan = operation("stream.binding.subspan", [Scalar(binding), start], kind)
    return Memory(subspan.value, type_.element_type)


def _module_block() -> ir.Block:
    operation = ir.InsertionPoint.current.block.owner
    while operation.name != "builtin.module":
        operation = operation.parent
    return operation.regions[0].blocks[0]


def _symbols(block: ir.Block) -> set[str]:
    return {
        operation.attributes["sym_name"].value
        for operation in block
        if "sym_name" in operation.attributes
    }


def _unused_symbol(taken: set[str], name: str) -> str:
    names = (f"{name}_{number}" for number in itertools.count())
    return next(candidate for candidate in names if candidate not in taken)


def _equal_executable(
    block: ir.Block, executable: ir.Operation, name: str, symbol: str
) -> str | None:
    """Returns the name of an executable with the same code and a name of the same kind."""
    codes = state.kernel_codes
    if codes is None:
        codes = {}
    codes.pop(symbol, None)  # of a removed executable that was equal to another one
    text = None
    bound = _bound_types(executable)
    for other in block:
        if other.operation.name != "stream.executable" or other.operation == executable:
            continue
        found: str = other.attributes["sym_name"].value
        # Writing out the code takes as long as building it. Most kernels differ in their bindings.
        if found.rpartition("_")[0] != name or _bound_types(other.operation) != bound:
            continue
        if text is None:
            text = _code(executable, symbol)
            codes[symbol] = hash(text)
        if found not in codes:
            codes[found] = hash(_code(other.operation, found))
        # A kernel that changed since then is compared again, or counts as other code.
        if codes[found] == codes[symbol] and _code(other.operation, found) == text:
            return found
    return None


def _bound_types(executable: ir.Operation) -> list[set[ir.Type]]:
    """Returns the types of the bindings of an executable's function."""
    symbol = executable.attributes["sym_name"]
    inner = executable.regions[0].blocks[0].operations[1]
    functions = inner.regions[0].blocks[0].operations
    [function] = (x for x in functions if x.attributes["sym_name"] == symbol)
    arguments = function.regions[0].blocks[0].arguments
    return [{use.owner.results[0].type for use in x.uses} for x in arguments]


def _code(executable: ir.Operation, symbol: str) -> str:
    text: str = executable.get_asm(use_local_scope=True, assume_verified=True)
    return text.replace(f"@{symbol}", "@")


def _spaces_of(block: ir.Block, symbol: str, bindings: int) -> list[ir.Type]:
    """Returns the type of the workspace of an executable, if it has one."""
    [function] = (
        x
        for executable in block
        if "sym_name" in executable.attributes and executable.attributes["sym_name"].value == symbol
        for x in _functions_in(executable.operation)
        if x.attributes["sym_name"].value == symbol
    )
    spaces = list(function.regions[0].blocks[0].arguments)[bindings:]
    memrefs = [use.owner.results[0].type for x in spaces for use in x.uses]
    return _spaces(sum(aligned(bytes_of(x.shape, x.element_type)) for x in memrefs))


def _functions_in(executable: ir.Operation) -> list[ir.Operation]:
    found: list[ir.Operation] = []

    def visit(operation: ir.Operation) -> ir.WalkResult:
        if operation.name == "func.func":
            found.append(operation)
            return ir.WalkResult.SKIP
        return ir.WalkResult.ADVANCE

    executable.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def _symbol(name: str, symbol: str, attributes: dict[str, ir.Attribute]) -> ir.Operation:
    named = {"sym_name": _text(symbol), **attributes}
    return ir.Operation.create(name, attributes=named, regions=1)


def _text(text: str) -> ir.Attribute:
    return ir.StringAttr.get(text)
