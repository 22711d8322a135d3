"""The `vmap` pass: vectorization over a batch axis.

The driver walks a function in which some values have an additional axis. It asks each primitive
with such an operand for its batched form; it knows no op by name.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from iree.compiler import ir

from axir.dialect.core.errors import MissingRuleError
from axir.dialect.core.state import BatchFrame, attributed
from axir.dialect.ops.shape.rearranging import broadcast_in_dim, moveaxis
from axir.dialect.program.derived_functions import BatchedFunction, derive, transformation
from axir.dialect.program.effects import batching_over, names_in
from axir.dialect.program.equation import Equation, Var
from axir.dialect.program.function import Function
from axir.dialect.program.rules import BatchAxis, Value
from axir.dialect.program.tracer import Trace
from axir.dialect.program.walk import Environment
from axir.passes.framework.base import Pass
from axir.passes.framework.errors import OptionValueError
from axir.passes.framework.module_functions import replace_main

Axes = Sequence[int | None]


def batch(
    function: Function, values: Sequence[Value], axes: Axes, frame: BatchFrame
) -> tuple[list[Value], list[BatchAxis]]:
    """Applies a function to values with batch axes, op by op.

    Args:
        function: The function to vectorize.
        values: Values of its inputs and captures.
        axes: The position of each value's batch axis; None without a batch axis.
        frame: Extent and name of the batch axis.

    Returns:
        The outputs, and the position of each output's batch axis or None.
    """
    environment = Environment.of(function, values)
    arguments = zip((*function.inputs, *function.captures), axes, strict=True)
    axis_of: dict[Var, int] = {v: axis for v, axis in arguments if axis is not None}
    with batching_over(frame):
        for equation in attributed(function.equations):
            operands = [environment[v] for v in equation.operands]
            operand_axes = [axis_of.get(v) for v in equation.operands]
            results, result_axes = _apply(equation, operands, operand_axes, frame)
            for variable, result, axis in zip(equation.results, results, result_axes, strict=True):
                environment[variable] = result
                if axis is not None:
                    axis_of[variable] = axis
    return environment.values_of(function.outputs), [axis_of.get(v) for v in function.outputs]


def _apply(
    equation: Equation, operands: list[Value], axes: list[int | None], frame: BatchFrame
) -> tuple[Sequence[Value], Sequence[BatchAxis]]:
    primitive = equation.primitive
    communicates = frame.name is not None and frame.name in names_in(equation)
    if communicates and primitive.batch_named is not None:
        results, result_axes = primitive.batch_named(operands, axes, frame, **equation.params)
    elif not communicates and all(axis is None for axis in axes):
        results = primitive.bind(*operands, **equation.params)
        result_axes = [None] * len(equation.results) if primitive.multiple_results else None
    elif primitive.batch is None:
        raise MissingRuleError(
            f"Batching rule for '{primitive.name}' not implemented",
            f"Define it with batching.primitive_batchers[{primitive.name}] = rule(operands, axes).",
        )
    else:
        # Tuples, as users' rules expect: some return the axes as a tree.
        results, result_axes = primitive.batch(tuple(operands), tuple(axes), **equation.params)
    return (results, result_axes) if primitive.multiple_results else ([results], [result_axes])


def to_axis(value: Value, axis: int | None, wanted: int | None, size: int) -> Value:
    """Moves the batch axis of a value to a position; broadcasts a value without one."""
    if wanted is None:
        return value
    if axis is None:
        if wanted < 0:
            wanted += value.ndim + 1
        shape = (*value.shape[:wanted], size, *value.shape[wanted:])
        dimensions = tuple(d for d in range(value.ndim + 1) if d != wanted)
        return broadcast_in_dim(value, shape, dimensions)
    return moveaxis(value, axis, wanted)


@transformation("vmap")
def batch_function(
    function: Function,
    size: int,
    axes: tuple[int | None, ...],
    out_axes: tuple[int | None, ...] | None = None,
    axis_name: Hashable | None = None,
    mesh_axes: tuple[Hashable, ...] = (),
    maps_devices: bool = False,
) -> BatchedFunction:
    """Returns a function vectorized over given axes of its arguments (inputs, then captures).

    Args:
        function: The function to vectorize.
        size: Extent of the batch axis.
        axes: For each argument the position of the batch axis, or None.
        out_axes: The positions of the outputs' batch axes; by default where the rules put them.
        axis_name: The name by which collectives in the function refer to the batch axis.
        mesh_axes: Axes of a mesh over which the batch axis is spread, for values with layouts.
        maps_devices: Whether the places of the batch axis are devices.
    """
    with Trace(f"{function.name}_vmap", "Vmap") as trace:
        arguments = []
        for variable, axis in zip((*function.inputs, *function.captures), axes, strict=True):
            shape = variable.type.shape
            if axis is not None:
                shape = (*shape[:axis], size, *shape[axis:])
            varying = variable.type.varying - {axis_name}
            arguments.append(trace.add_input(variable.type.update(shape=shape, varying=varying)))
        frame = BatchFrame(size, axis_name, mesh_axes, maps_devices)
        outputs, found = batch(function, arguments, axes, frame)
        if out_axes is not None:
            outputs = [
                to_axis(value, axis, wanted, size)
                for value, axis, wanted in zip(outputs, found, out_axes, strict=True)
            ]
            found = list(out_axes)
        return BatchedFunction(trace.finish(outputs), tuple(found))


@dataclass(frozen=True)
class Vmap(Pass):
    """Vectorizes `main` over a new axis of its arguments and results.

    Algorithm:
        1. Insert an axis of extent `axis_size` into the arguments that `in_axes` names.
        2. Walk the ops in order. Where no operand has the axis, copy the op.
        3. Elsewhere apply the primitive's `batch` rule, which also returns the position of the axis
           in the results.
        4. Move the axis of each result to `out_axes`, and broadcast results without the axis.

    Before:
        ```mlir
        func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
          %0 = "jaxpr.sin"(%x) : (tensor<3xf32>) -> tensor<3xf32>
          return %0 : tensor<3xf32>
        }
        ```
    After `vmap{axis_size=5}`:
        ```mlir
        func.func @main(%x: tensor<5x3xf32>) -> tensor<5x3xf32> {
          %0 = "jaxpr.sin"(%x) : (tensor<5x3xf32>) -> tensor<5x3xf32>
          return %0 : tensor<5x3xf32>
        }
        ```

    Preconditions:
        The module has a function `main` of the jaxpr dialect.

    Attributes:
        axis_size: Extent of the new axis.
        in_axes: Its position, for all arguments or for each; `none` does not change an argument.
        out_axes: Its position in the results, in the same form.
    """

    name: ClassVar[str] = "vmap"
    axis_size: int
    in_axes: int | tuple[int | None, ...] | None = 0
    out_axes: int | tuple[int | None, ...] | None = 0

    def run(self, module: ir.Module) -> None:
        """Replaces `main` by its vectorized form."""

        def transform(main: Function) -> Function:
            if self.axis_size < 0:
                raise OptionValueError(
                    f"vmap: axis_size is {self.axis_size}.", "Give the extent of the new axis."
                )
            arguments = [v.type for v in (*main.inputs, *main.captures)]
            outputs = [v.type for v in main.outputs]
            axes = _spread(self.in_axes, [t.ndim for t in arguments], "in_axes")
            out_axes = _spread(self.out_axes, [t.ndim for t in outputs], "out_axes")
            return derive(main, "vmap", self.axis_size, axes, out_axes).function

        replace_main(module, transform)


def _spread(
    axes: int | tuple[int | None, ...] | None, ranks: Sequence[int], option: str
) -> tuple[int | None, ...]:
    entries = (axes,) * len(ranks) if axes is None or isinstance(axes, int) else axes
    if len(entries) != len(ranks):
        raise OptionValueError(
            f"vmap: {option} has {len(entries)} entries for {len(ranks)} values.",
            "Give one integer for all, or one entry for each.",
        )
    for axis, rank in zip(entries, ranks, strict=True):
        if axis is not None and not -rank - 1 <= axis <= rank:
            raise OptionValueError(
                f"vmap: {option} entry {axis} is out of range for a value of rank {rank}.",
                f"The new axis can go to positions {-rank - 1} to {rank}.",
            )
    return tuple(
        axis + rank + 1 if axis is not None and axis < 0 else axis
        for axis, rank in zip(entries, ranks, strict=True)
    )
