"""The `linearize` pass: splits differentiation into a known part and a linear function.

It is the `jvp` walk with the tangents in a separate trace. Data decides: ops on only primals run
outside that trace, and ops that depend on a tangent are recorded in it. So the trace holds exactly
the linear function, and its captures are the residuals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from iree.compiler import ir

from axir.dialect.core.array import Array
from axir.dialect.core.symbolic_zeros import Zero
from axir.dialect.program.derived_functions import LinearizedFunction, derive, transformation
from axir.dialect.program.equation import Equation, Var
from axir.dialect.program.function import Function
from axir.dialect.program.rules import Results, Tangent, Tangents, Value
from axir.dialect.program.tracer import Trace, Tracer
from axir.passes.framework.base import Pass
from axir.passes.framework.module_functions import replace_functions

from .jvp import active_arguments
from .tangent_walk import differentiate, params_to_derive, walk_with_tangents


@dataclass(frozen=True)
class Linearized:
    """The result of a linearization at a point.

    Attributes:
        outs: The outputs.
        linear: The function from the tangents of the active arguments to the tangents of the active
            outputs; its captures are the residuals.
        active_outputs: The outputs with a nonzero tangent.
    """

    outs: list[Value]
    linear: Function
    active_outputs: tuple[bool, ...]


def linearize(
    function: Function,
    primals: Sequence[Value],
    active: Sequence[bool],
    known: Mapping[Var, Value] | None = None,
) -> Linearized:
    """Computes a function at a point, and its derivative there as a linear function.

    Args:
        function: The function to differentiate.
        primals: Values of its inputs and captures.
        active: Which inputs and captures get tangents.
        known: Values of variables that have been computed already.
    """
    with Trace(f"{function.name}_linear", "Linearize", is_ambient=False) as trace:
        tangents = [
            trace.add_input(v.type) if is_active else Zero(v.type.to_tangent_aval())
            for v, is_active in zip((*function.inputs, *function.captures), active, strict=True)
        ]
        outs, out_tangents = walk_with_tangents(function, primals, tangents, known, _apply)
        active_outputs = tuple(type(t) is not Zero for t in out_tangents)
        linear = trace.finish([t for t in out_tangents if type(t) is not Zero])
    return Linearized(outs, linear, active_outputs)


def _apply(
    equation: Equation, primals: list[Value], tangents: list[Tangent], outs: Results
) -> tuple[Results, Tangents]:
    primitive = equation.primitive
    if outs is not None and primitive.linearize is not None and primitive.jvp is not None:
        return outs, primitive.jvp(primals, tangents, outs, **equation.params)
    params = params_to_derive(equation, has_run=outs is not None)
    if primitive.linearize is not None:
        return primitive.linearize(primals, tangents, **params)
    return differentiate(primitive, primals, tangents, params, outs)


@transformation("linearize")
def linearize_function(function: Function, active: tuple[bool, ...]) -> LinearizedFunction:
    """Returns the split of a function for the given active arguments (inputs, then captures)."""
    with Trace(f"{function.name}_known", "Linearize") as trace:
        primals = [trace.add_input(v.type) for v in (*function.inputs, *function.captures)]
        result = linearize(function, primals, active)
        index_of = {primal: index for index, primal in enumerate(primals)}
        residuals: list[int | Array | None] = []
        extra = []
        for value in result.linear.captured:
            if type(value) is Tracer and value.owner is trace:
                residuals.append(index_of.get(value))
                if residuals[-1] is None:
                    extra.append(value)
            else:
                residuals.append(value)
        known = trace.finish([*result.outs, *extra])
    return LinearizedFunction(known, result.linear, tuple(residuals), result.active_outputs)


@dataclass(frozen=True)
class Linearize(Pass):
    """Splits f(x) into `main`, returning f(x) and residuals, and the linear function `linear`.

    Algorithm:
        1. Walk the ops in order with a tangent for every float or complex argument (or those in
           `argnums`), applying the `jvp` rules.
        2. Put ops that depend on a tangent into `linear`, all others into `main`.
        3. Values of `main` that `linear` uses are the residuals: additional results of `main`, and
           the arguments of `linear` after the tangents, which carry the mark `jaxpr.linear`.

    Before:
        ```mlir
        func.func @main(%x: tensor<f32>) -> tensor<f32> {
          %0 = "jaxpr.sin"(%x) : (tensor<f32>) -> tensor<f32>
          return %0 : tensor<f32>
        }
        ```
    After:
        ```mlir
        func.func @main(%x: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
          %0 = "jaxpr.sin"(%x) : (tensor<f32>) -> tensor<f32>
          %1 = "jaxpr.cos"(%x) : (tensor<f32>) -> tensor<f32>
          return %0, %1 : tensor<f32>, tensor<f32>
        }
        func.func @linear(%dx: tensor<f32> {jaxpr.linear}, %r: tensor<f32>) -> tensor<f32> {
          %0 = "jaxpr.mul"(%dx, %r) : (tensor<f32>, tensor<f32>) -> tensor<f32>
          return %0 : tensor<f32>
        }
        ```

    Preconditions:
        The module has a function `main` of the jaxpr dialect.

    Attributes:
        argnums: Arguments to differentiate in; all float and complex ones by default.
    """

    name: ClassVar[str] = "linearize"
    argnums: int | tuple[int, ...] | None = None

    def run(self, module: ir.Module) -> None:
        """Replaces `main` by the known part and adds `linear`."""

        def transform(functions: dict[str, Function]) -> dict[str, Function]:
            main = functions["main"]
            active = active_arguments(main, self.argnums, self.name)
            split = derive(main, "linearize", active)
            return {**functions, "main": _with_all_residuals(split), "linear": split.linear}

        replace_functions(module, transform, linear={"linear": "inputs"})


def _with_all_residuals(split: LinearizedFunction) -> Function:
    """Returns `known` with every residual among its outputs, for use without its caller."""
    known = split.known
    count = len(split.active_outputs)
    with Trace("main", "Linearize") as trace:
        arguments = [trace.add_input(v.type) for v in known.inputs]
        results = known.interpret([*arguments, *known.captured])
        residuals = split.residual_values(arguments, results[count:])
        return trace.finish([*results[:count], *residuals])
