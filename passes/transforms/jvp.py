"""The `jvp` pass: forward-mode differentiation.

The driver walks a function once and asks each primitive for the tangent of its results; it knows no
op by name. Tangents known to be zero stay symbolic, and ops with only such tangents are not
differentiated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from iree.compiler import ir

from axir.dialect.core import dtypes
from axir.dialect.core.symbolic_zeros import Zero
from axir.dialect.ops.elementwise.family import instantiate
from axir.dialect.program.derived_functions import TangentFunction, derive, transformation
from axir.dialect.program.equation import Equation, Var
from axir.dialect.program.function import Function
from axir.dialect.program.rules import Results, Tangent, Tangents, Value
from axir.dialect.program.tracer import Trace
from axir.passes.framework.base import Pass
from axir.passes.framework.errors import OptionValueError
from axir.passes.framework.module_functions import replace_main

from .tangent_walk import differentiate, params_to_derive, walk_with_tangents


def jvp(
    function: Function,
    primals: Sequence[Value],
    tangents: Sequence[Tangent],
    known: Mapping[Var, Value] | None = None,
) -> tuple[list[Value], list[Tangent]]:
    """Computes a function and its tangents, op by op.

    Args:
        function: The function to differentiate.
        primals: Values of its inputs and captures.
        tangents: Their tangents, `Zero` for values without a tangent.
        known: Values of variables that have been computed already.

    Returns:
        Its outputs and their tangents; some tangents may be `Zero`.
    """
    return walk_with_tangents(function, primals, tangents, known, _apply)


def _apply(
    equation: Equation, primals: list[Value], tangents: list[Tangent], outs: Results
) -> tuple[Results, Tangents]:
    params = params_to_derive(equation, has_run=outs is not None)
    return differentiate(equation.primitive, primals, tangents, params, outs)


@transformation("jvp")
def jvp_function(
    function: Function, active: tuple[bool, ...], instantiate_outputs: bool = False
) -> TangentFunction:
    """Returns the tangent function for the given active arguments (inputs, then captures)."""
    arguments = [*function.inputs, *function.captures]
    with Trace(f"{function.name}_jvp", "Jvp") as trace:
        primals = [trace.add_input(v.type) for v in arguments]
        tangents = [
            trace.add_input(v.type) if is_active else Zero(v.type.to_tangent_aval())
            for v, is_active in zip(arguments, active, strict=True)
        ]
        outs, out_tangents = jvp(function, primals, tangents)
        if instantiate_outputs:
            out_tangents = [
                t if type(t) is Zero and not _is_inexact(t) else instantiate(t)
                for t in out_tangents
            ]
        active_outputs = tuple(type(t) is not Zero for t in out_tangents)
        results = [*outs, *(t for t in out_tangents if type(t) is not Zero)]
        return TangentFunction(trace.finish(results), active_outputs)


def _is_inexact(zero: Zero) -> bool:
    return zero.aval.dtype.names is None


@dataclass(frozen=True)
class Jvp(Pass):
    """Turns f(x) into f_jvp(x, dx), which returns f(x) and its derivative in the direction dx.

    Algorithm:
        1. Give every float or complex argument (or those in `argnums`) a tangent argument.
        2. Walk the ops in order. Where no operand has a tangent, copy the op.
        3. Elsewhere apply the primitive's `jvp` rule, which writes the tangents of the results.
        4. Return the outputs, then the tangents of the float and complex outputs.

    Before:
        ```mlir
        func.func @main(%x: tensor<f32>) -> tensor<f32> {
          %0 = "jaxpr.sin"(%x) : (tensor<f32>) -> tensor<f32>
          return %0 : tensor<f32>
        }
        ```
    After:
        ```mlir
        func.func @main(%x: tensor<f32>, %dx: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
          %0 = "jaxpr.sin"(%x) : (tensor<f32>) -> tensor<f32>
          %1 = "jaxpr.cos"(%x) : (tensor<f32>) -> tensor<f32>
          %2 = "jaxpr.mul"(%dx, %1) : (tensor<f32>, tensor<f32>) -> tensor<f32>
          return %0, %2 : tensor<f32>, tensor<f32>
        }
        ```

    Preconditions:
        The module has a function `main` of the jaxpr dialect.

    Attributes:
        argnums: Arguments to differentiate in; all float and complex ones by default.
    """

    name: ClassVar[str] = "jvp"
    argnums: int | tuple[int, ...] | None = None

    def run(self, module: ir.Module) -> None:
        """Replaces `main` by its tangent function."""

        def transform(main: Function) -> Function:
            active = active_arguments(main, self.argnums, self.name)
            return derive(main, "jvp", active, True).function

        replace_main(module, transform)


def active_arguments(
    function: Function, argnums: int | tuple[int, ...] | None, pass_name: str
) -> tuple[bool, ...]:
    """Returns the arguments of a saved function in which a pass differentiates."""
    types = [v.type for v in (*function.inputs, *function.captures)]
    if argnums is None:
        return tuple(dtypes.is_inexact(t.dtype) for t in types)
    chosen = (argnums,) if isinstance(argnums, int) else argnums
    for argument in chosen:
        if not 0 <= argument < len(types):
            raise OptionValueError(
                f"{pass_name}: the function has no argument {argument}.",
                f"It takes {len(types)} arguments, counted from 0.",
            )
        if not dtypes.is_inexact(types[argument].dtype):
            raise OptionValueError(
                f"{pass_name}: argument {argument} is of type {types[argument]}.",
                "Only float and complex arguments can be differentiated in.",
            )
    return tuple(index in chosen for index in range(len(types)))
