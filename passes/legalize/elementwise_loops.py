"""Loops over all elements, with a formula on scalars as their body.

`elementwise` makes one `linalg.generic`. A Python function writes its body on `Scalar`s::

    def body(x: Scalar) -> Scalar:
        return select(x < 0, -x, x)

    elementwise("absolute", [operand], body, [element_type])

Written as StableHLO, a formula of forty operations may fall apart into several loops with their
intermediate results in memory, because IREE does not fuse a producer that several operations use or
that widens its operand. As one operation it stays one vectorized loop, which IREE still fuses with
the operations before and after it. (A sine of 1e6 numbers: 2,480 us as StableHLO, 1,050 us like
this.)

A module of thousands of sines would be a hundred times as large. While axir writes kernels for the
module, loops of one formula may share a function (`sharing_formulas`), until the pass
`write-out-formulas` runs.
"""

from __future__ import annotations

import functools
import hashlib
import io
from collections.abc import Sequence
from typing import ClassVar, TypeAlias

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.builders.scalars import Scalar
from axir.dialect.core.annotations import Returning
from axir.dialect.core.context import context
from axir.dialect.core.state import Change, state

from .regions import operations_of
from .rewriting import RewritePass

Body: TypeAlias = Returning[Scalar | Sequence[Scalar]]


def elementwise(
    name: str,
    operands: Sequence[ir.Value],
    body: Body,
    result_elements: Sequence[ir.Type],
) -> list[ir.Value]:
    """Builds a loop over tensors of equal shape; `body` maps their elements to the results'.

    `name` identifies the formula: for one name and the same element types, `body` runs only once
    per process. Building a formula of a hundred operations takes a millisecond, reading its
    bytecode a tenth of that.
    """
    elements = tuple(hlo.element_type_of(operand) for operand in operands)
    key, digest = _key(name, elements, tuple(result_elements))
    is_shared = _is_shared(digest, elements, result_elements)
    if is_shared:
        _share(digest, elements, body, result_elements[0])
        key = (*key, "shared")
    if key not in _formulas:
        if is_shared:
            lines = _calling_lines(digest, elements, result_elements[0])
        else:
            lines = scalar_lines(elements, body, result_elements)
        _formulas[key] = _loop_bytecode(digest, elements, lines, result_elements)
    return _insert_loop(_formulas[key], operands, result_elements)


FORMULA = "formula"
"""The attribute of a loop that tells its body from others: with the same text it is the same."""

_SHARED = "formula_"
# So many loops of one formula have the formula as their body; later ones call a function.
_WRITTEN_OUT = 12
_formulas: dict[tuple[str, ...], bytes] = {}
_functions: dict[str, bytes] = {}


def sharing_formulas() -> Change:
    """Lets loops of one formula in a module share a function while a `with` block runs."""
    return Change(formulas={})


def holder_of_formula(loop: ir.Operation) -> ir.Operation:
    """Returns the operation that holds a loop's formula: the loop or the function it calls."""
    first = operations_of(loop)[0][0]
    if first.name != "func.call":
        return loop
    module = first
    while module.parent is not None:
        module = module.parent
    name = ir.FlatSymbolRefAttr(first.attributes["callee"]).value
    return next(
        x
        for x in operations_of(module)[0]
        if x.name == "func.func" and ir.StringAttr(x.attributes["sym_name"]).value == name
    )


def write_out_formula(loop: ir.Operation) -> list[ir.Value] | None:
    """Builds a copy of a loop with the formula inlined that it calls; None if it calls none."""
    if operations_of(loop)[0][0].name != "func.call":
        return None
    digest = ir.StringAttr(loop.attributes[FORMULA]).value
    results = [x.type.element_type for x in loop.results]
    operands = list(loop.operands)[: len(loop.operands) - len(results)]
    key = (digest, "written out")
    if key not in _formulas:
        elements = [x.type.element_type for x in operands]
        lines = _lines_of(holder_of_formula(loop))
        _formulas[key] = _loop_bytecode(digest, elements, lines, results)
    return _insert_loop(_formulas[key], operands, results)


def erase_shared_formulas(module: ir.Module) -> None:
    """Erases the functions that loops have shared."""
    for function in operations_of(module.operation)[0]:
        if function.name == "func.func":
            name = ir.StringAttr(function.attributes["sym_name"]).value
            if name.startswith(_SHARED) and "sym_visibility" in function.attributes:
                function.erase()


def _is_shared(digest: str, elements: Sequence[ir.Type], results: Sequence[ir.Type]) -> bool:
    """Tells whether the next loop of a formula calls a function of the module."""
    if state.formulas is None or len(results) > 1:
        return False
    if any(isinstance(x, ir.ComplexType) for x in (*elements, *results)):
        return False
    state.formulas[digest] = state.formulas.get(digest, 0) + 1
    return state.formulas[digest] > _WRITTEN_OUT


def _share(digest: str, elements: Sequence[ir.Type], body: Body, result: ir.Type) -> None:
    """Adds the function of a formula to the module when the first loop calls it."""
    assert state.formulas is not None
    if state.formulas[digest] > _WRITTEN_OUT + 1:
        return
    if digest not in _functions:
        *lines, last = scalar_lines(elements, body, [result])
        arguments = ", ".join(f"%arg{i}: {element}" for i, element in enumerate(elements))
        head = f"func.func private @{_SHARED}{digest}({arguments}) -> {result} {{"
        last = last.replace("linalg.yield", "return", 1)
        _functions[digest] = _bytecode([head, *lines, last, "}"])
    made = ir.Module.parse(_functions[digest], context())
    outermost = ir.InsertionPoint.current.ref_operation
    while outermost.parent.parent is not None:
        outermost = outermost.parent
    operations_of(made.operation)[0][0].move_after(outermost)


def _calling_lines(digest: str, elements: Sequence[ir.Type], result: ir.Type) -> list[str]:
    """Returns the body of a loop that calls the function of its formula."""
    given = ", ".join(f"%arg{i}" for i in range(len(elements)))
    kinds = ", ".join(map(str, elements))
    return [
        f"%made = func.call @{_SHARED}{digest}({given}) : ({kinds}) -> {result}",
        f"linalg.yield %made : {result}",
    ]


def _lines_of(function: ir.Operation) -> list[str]:
    """Returns the body of a shared function as the body of a loop."""
    _, *lines, result, _ = str(function).splitlines()
    return [*lines, result.strip().replace("return", "linalg.yield", 1)]


@functools.lru_cache(maxsize=4096)
def _key(
    name: str, elements: tuple[ir.Type, ...], results: tuple[ir.Type, ...]
) -> tuple[tuple[str, ...], str]:
    """Returns the key of a formula for given types, and the digest of the key.

    Kept, since programs have thousands of loops, and the process one context.
    """
    key = (name, *map(str, elements), "to", *map(str, results))
    return key, hashlib.sha256("\0".join(key).encode()).hexdigest()[:16]


def _loop_bytecode(
    formula: str,
    elements: Sequence[ir.Type],
    lines: Sequence[str],
    result_elements: Sequence[ir.Type],
) -> bytes:
    """Returns the bytecode of a function with the loop; its arguments are tensors of rank 0."""
    inputs = [f"tensor<{element}>" for element in elements]
    outputs = [f"tensor<{element}>" for element in result_elements]
    arguments = ", ".join(f"%in{i}: {kind}" for i, kind in enumerate(inputs))
    scalars = ", ".join(
        [f"%arg{i}: {element}" for i, element in enumerate(elements)]
        + [f"%unused{i}: {element}" for i, element in enumerate(result_elements)]
    )
    maps = ", ".join(["affine_map<() -> ()>"] * (len(inputs) + len(outputs)))
    loop = [
        f"func.func @f({arguments}) {{",
        *(f"%out{i} = tensor.empty() : {kind}" for i, kind in enumerate(outputs)),
        f"%made:{len(outputs)} = linalg.generic",
        f"{{indexing_maps = [{maps}], iterator_types = []}}",
        f"ins({', '.join(f'%in{i}' for i in range(len(inputs)))} : {', '.join(inputs)})",
        f"outs({', '.join(f'%out{i}' for i in range(len(outputs)))} : {', '.join(outputs)})",
        f'attrs = {{{FORMULA} = "{formula}"}} {{',
        f"^bb0({scalars}):",
        *lines,
        f"}} -> ({', '.join(outputs)})",
        "return }",
    ]
    if "func.call" in lines[0]:  # the function exists in the program, but not yet in this module
        signature = f"({', '.join(map(str, elements))}) -> {result_elements[0]}"
        loop.append(f"func.func private @{_SHARED}{formula}{signature}")
    return _bytecode(loop)


def _bytecode(lines: Sequence[str]) -> bytes:
    module = ir.Module.parse("\n".join(lines), context())
    bytecode = io.BytesIO()
    module.operation.write_bytecode(bytecode)
    return bytecode.getvalue()


def scalar_lines(
    elements: Sequence[ir.Type], body: Body, result_elements: Sequence[ir.Type]
) -> list[str]:
    """Returns the text of a loop's body, of `%arg0`, `%arg1`, …, its yield included."""
    # Locations of the program that uses the formula first do not belong to the formula.
    with ir.Location.unknown():
        text = str(_scalar_function(elements, body, result_elements))
    _, _, *lines, result, _, _ = text.splitlines()  # without module and func.func
    return [*lines, result.strip().replace("return", "linalg.yield", 1)]


def _scalar_function(
    elements: Sequence[ir.Type], body: Body, result_elements: Sequence[ir.Type]
) -> ir.Module:
    """Returns a module with one function of scalars."""
    kind = ir.TypeAttr.get(ir.FunctionType.get(list(elements), list(result_elements)))
    module = ir.Module.create()
    attributes = {"sym_name": ir.StringAttr.get("f"), "function_type": kind}
    with ir.InsertionPoint(module.body):
        function = ir.Operation.create("func.func", attributes=attributes, regions=1)
    block = function.regions[0].blocks.append(*elements)
    with ir.InsertionPoint(block):
        made = body(*map(Scalar, block.arguments))
        results = [made] if isinstance(made, Scalar) else made
        ir.Operation.create("func.return", operands=[result.value for result in results])
    return module


def _insert_loop(
    bytecode: bytes, operands: Sequence[ir.Value], result_elements: Sequence[ir.Type]
) -> list[ir.Value]:
    """Reads a loop, moves it to the insertion point, and sets its operands.

    It avoids `ir.Operation.create` and `clone`: the first operation of the linalg dialect that they
    make imports the dialect's Python package, which takes 0.15 s.
    """
    module = ir.Module.parse(bytecode, context())
    *empties, loop = _find_loop(module)
    shape = hlo.shape_of(operands[0])
    result_types = [hlo.tensor_type(shape, element) for element in result_elements]
    rewritten = ir.InsertionPoint.current.ref_operation
    for part in (*empties, loop):
        part.move_before(rewritten)
        part.location = ir.Location.current
    for empty, result, kind in zip(empties, loop.results, result_types, strict=True):
        empty.results[0].set_type(kind)
        result.set_type(kind)
    for index, operand in enumerate(operands):
        loop.operands[index] = operand
    if not shape:  # that is how it was written
        return list(loop.results)
    identity = ir.AffineMapAttr.get(ir.AffineMap.get_identity(len(shape)))
    maps = [identity] * (len(operands) + len(empties))
    loop.attributes["indexing_maps"] = ir.ArrayAttr.get(maps)
    parallel = ", ".join(["#linalg.iterator_type<parallel>"] * len(shape))
    loop.attributes["iterator_types"] = hlo.attribute(f"[{parallel}]")
    return list(loop.results)


def _find_loop(module: ir.Module) -> list[ir.Operation]:
    """Returns the loop of a module, after the operations that make its results' places."""
    found: list[ir.Operation] = []

    def collect(operation: ir.Operation) -> ir.WalkResult:
        if operation.name in ("tensor.empty", "linalg.generic"):
            found.append(operation)
            return ir.WalkResult.SKIP
        return ir.WalkResult.ADVANCE

    module.operation.walk(collect, ir.WalkOrder.PRE_ORDER)
    return found


class WriteOutFormulas(RewritePass):
    """Inlines formulas into the loops that call a function of the module for them.

    The fact: a program of thousands of sines is a hundred times as large with the formula in each
    loop. Kernels need the formula only once. But IREE compiles the loops that did not become
    kernels, and its dispatches call no functions.

    1. Give each such loop the body of the function.
    2. Erase the functions.

    Before::

        %0 = linalg.generic {…} ins(%x : tensor<9xf32>) … { %1 = func.call @formula_0(%in) … }

    After::

        %0 = linalg.generic {…} ins(%x : tensor<9xf32>) … { ^bb0(%in: f32, %out: f32): … }

    Precondition: `legalize-for-iree{part=numbers}` has made the functions.
    """

    name: ClassVar[str] = "write-out-formulas"
    operations: ClassVar[tuple[str, ...]] = ("linalg.generic",)

    def run(self, module: ir.Module) -> None:
        """Rewrites the loops, then erases the functions that they called."""
        super().run(module)
        erase_shared_formulas(module)

    def rewrite(self, operation: ir.Operation) -> list[ir.Value] | None:
        """Builds the loop with its formula."""
        return write_out_formula(operation)
