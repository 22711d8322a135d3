"""`loop-over-windows`: window reductions as loops, each with its own array of initial values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.builders.scalars import Scalar, element_of
from axir.dialect.core.annotations import Returning
from axir.dialect.core.context import context
from axir.passes.legalize.elementwise_loops import scalar_lines
from axir.passes.legalize.lanes import body_lanes
from axir.passes.legalize.regions import operations_of
from axir.passes.legalize.rewriting import RewritePass

from .position_select_and_scatter import entries

_COMPLEX = {"stablehlo.add": "complex.add", "stablehlo.multiply": "complex.mul"}


class LoopOverWindows(RewritePass):
    """Writes a window reduction as the loops that IREE would make, but fills initial arrays.

    The facts: IREE broadcasts the initial value to an array by a separate dispatch. Reductions of
    equal shapes share that array and write their results into it. With two reductions, the second
    begins with the result of the first, or one becomes part of a loop that IREE rejects ("write
    affecting operations on global resources are restricted to workgroup distributed contexts").
    Both also happen where some results are unused or padded. A fill, in contrast, is fused into the
    loops.

    1. Visit each window reduction without padding and with a body of elementwise operations, or a
       sum or product of complex numbers. Running sums and the like are padded and do not change:
       IREE compiles them in another way.
    2. Fill an array of the results' shape with each initial value.
    3. Loop over the window's dimensions of extent above 1, in row-major order, and combine the
       result so far with the element at each place by the body's operations on scalars.

    Before::

        %0 = "stablehlo.reduce_window"(%x, %zero) <{window_dimensions = [2]}> ({
          … stablehlo.add …
        }) : (tensor<4xf32>, tensor<f32>) -> tensor<3xf32>

    After::

        %1 = linalg.fill ins(%z : f32) outs(%e : tensor<3xf32>)
        %0 = linalg.generic {indexing_maps = [(i, j) -> (i + j), (i, j) -> (j), (i, j) -> (i)]}
          ins(%x, %window : tensor<4xf32>, tensor<2xf32>) outs(%1 : tensor<3xf32>) {
          … arith.addf …
        }

    Precondition: `pad-windows` and `sign-unsigned-data` have run.
    """

    name: ClassVar[str] = "loop-over-windows"
    operations: ClassVar[tuple[str, ...]] = ("stablehlo.reduce_window",)

    def rewrite(self, operation: ir.Operation) -> list[ir.Value] | None:
        """Builds the loops in front of the operation."""
        shape = hlo.shape_of(operation.operands[0])
        window = entries(operation, "window_dimensions", [1] * len(shape))
        padding = entries(operation, "padding", [[0, 0]] * len(shape))
        is_empty = 0 in hlo.shape_of(operation.results[0])
        body = None if is_empty or any(map(any, padding)) else _body(operation)
        if body is None:
            return None
        text = _loop_text(operation, window, body)
        return _inserted(ir.Module.parse(text, context()), list(operation.operands))


def _body(operation: ir.Operation) -> Returning[tuple[Scalar, ...]] | None:
    """Returns the region as a function of scalars; None if it is not known."""
    block = operation.regions[0].blocks[0]
    if not any(map(hlo.is_complex, operation.operands)):
        return body_lanes(block)
    [[first, *others]] = operations_of(operation)
    name = _COMPLEX.get(first.name)
    if name is None or len(others) != 1 or list(others[0].operands) != list(first.results):
        return None
    is_plain = list(first.operands) == list(block.arguments)
    return (lambda x, y: (_complex(name, x, y),)) if is_plain else None


def _complex(name: str, x: Scalar, y: Scalar) -> Scalar:
    made = ir.Operation.create(name, [x.value.type], [x.value, y.value])
    return Scalar(made.results[0])


def _loop_text(
    operation: ir.Operation, window: Sequence[int], body: Returning[tuple[Scalar, ...]]
) -> str:
    """Returns a function of the operation's operands that has the loops."""
    count = len(operation.results)
    types = [str(x.type) for x in operation.operands]
    results = [str(x.type) for x in operation.results]
    elements = [element_of(hlo.element_type_of(x)) for x in operation.results]
    wide = [axis for axis, size in enumerate(window) if size > 1]
    # The body takes the values so far and then the elements; the loop's block takes them in the
    # opposite order.
    read = [f"%arg{count + i}: {elements[i]}" for i in range(count)]
    carried = [f"%arg{i}: {elements[i]}" for i in range(count)]
    places = "x".join([*(str(window[axis]) for axis in wide), "i1"])
    given = ", ".join(f"%in{i}" for i in range(count))
    full = ", ".join(f"%full{i}" for i in range(count))
    kinds = ", ".join(results)
    inputs = ", ".join(types[:count])
    parameters = ", ".join(f"%in{i}: {kind}" for i, kind in enumerate(types))
    return "\n".join(
        [
            f"func.func @f({parameters}) {{",
            f"%window = tensor.empty() : tensor<{places}>",
            *_fills(elements, results),
            f"%made:{count} = linalg.generic {_iteration(operation, wide)}",
            f"ins({given}, %window : {inputs}, tensor<{places}>)",
            f"outs({full} : {kinds}) {{",
            f"^bb0({', '.join([*read, '%place: i1', *carried])}):",
            *scalar_lines(elements * 2, body, elements),
            f"}} -> ({kinds})",
            "return }",
        ]
    )


def _fills(elements: Sequence[ir.Type], results: Sequence[str]) -> list[str]:
    """Returns the lines that fill arrays with the initial values."""
    count = len(results)
    lines = []
    for i, (element, kind) in enumerate(zip(elements, results, strict=True)):
        lines += [
            f"%empty{i} = tensor.empty() : {kind}",
            f"%init{i} = tensor.extract %in{count + i}[] : tensor<{element}>",
            f"%full{i} = linalg.fill ins(%init{i} : {element}) outs(%empty{i} : {kind}) -> {kind}",
        ]
    return lines


def _iteration(operation: ir.Operation, wide: Sequence[int]) -> str:
    """Returns the attributes of the loops: along the results, then along the window."""
    rank = len(hlo.shape_of(operation.results[0]))
    count = len(operation.results)
    ones = [1] * rank
    strides = entries(operation, "window_strides", ones)
    dilations = entries(operation, "window_dilations", ones)
    outer = [f"i{axis}" for axis in range(rank)]
    inner = [f"j{axis}" for axis in wide]
    read = [
        f"i{axis} * {strides[axis]}" + (f" + j{axis} * {dilations[axis]}" if axis in wide else "")
        for axis in range(rank)
    ]
    loops = ", ".join([*outer, *inner])
    operands = [", ".join(read)] * count + [", ".join(inner)] + [", ".join(outer)] * count
    maps = ", ".join(f"affine_map<({loops}) -> ({x})>" for x in operands)
    kinds = ", ".join(['"parallel"'] * rank + ['"reduction"'] * len(wide))
    return f"{{indexing_maps = [{maps}], iterator_types = [{kinds}]}}"


def _inserted(module: ir.Module, operands: Sequence[ir.Value]) -> list[ir.Value]:
    """Moves the function's operations to the insertion point, with these operands."""
    function = module.body.operations[0].operation
    for argument, operand in zip(function.regions[0].blocks[0].arguments, operands, strict=True):
        argument.replace_all_uses_with(operand)
    [[*parts, _]] = operations_of(function)
    for part in parts:
        part.move_before(ir.InsertionPoint.current.ref_operation)
        part.location = ir.Location.current
    return list(parts[-1].results)
