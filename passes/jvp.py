"""The `jvp` pass: forward-mode differentiation.

The driver walks a function once and asks each primitive for the tangent of its results; it knows no
op by name. Tangents known to be zero stay symbolic, and ops that only they reach are left alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from iree.compiler import ir

from axir.dialect.context import state
from axir.dialect.derived import derive, transformation
from axir.dialect.errors import MissingRuleError
from axir.dialect.function import Equation, Function, Var, read
from axir.dialect.ops.family import instantiate
from axir.dialect.primitive import Primitive
from axir.dialect.symbolic import Zero
from axir.dialect.tracer import Trace
from axir.passes.base import Pass
from axir.passes.module import replace_main
from axir.passes.silence import params_to_derive


def differentiate(
    primitive: Primitive,
    primals: Sequence[Any],
    tangents: Sequence[Any],
    params: dict[str, Any],
    outs: Any = None,
) -> tuple[Any, Any]:
    """Applies a primitive to primals and tangents by its rules.

    Args:
        primitive: The primitive; its rule is `value_and_jvp` (values and tangents together, as
            calls and users' primitives have) or `jvp` (tangents, given the values).
        primals: Values of the operands.
        tangents: Their tangents, some of them `Zero`.
        params: Parameters of the primitive.
        outs: The results, if they are known already.

    Returns:
        Results and their tangents, as lists for a primitive with multiple results.
    """
    if primitive.value_and_jvp is not None:
        return primitive.value_and_jvp(primals, tangents, **params)
    if primitive.jvp is None:
        raise MissingRuleError(
            f"Differentiation rule for '{primitive.name}' not implemented",
            f"Define it with ad.primitive_jvps[{primitive.name}] = rule(primals, tangents).",
        )
    if outs is None:
        outs = primitive.bind(*primals, **params)
    return outs, primitive.jvp(primals, tangents, outs, **params)


class TangentEnvironment:
    """Values and tangents of a function's variables while a driver walks it.

    Attributes:
        primals: Value of each variable.
        tangents: Tangent of each variable that has one other than zero.
    """

    __slots__ = ("primals", "tangents")

    def __init__(self, function: Function, primals: Sequence[Any], tangents: Sequence[Any]):
        arguments = (*function.inputs, *function.captures)
        self.primals: dict[Var, Any] = dict(zip(arguments, primals, strict=True))
        self.tangents: dict[Var, Any] = {
            v: t for v, t in zip(arguments, tangents, strict=False) if type(t) is not Zero
        }

    def operands(self, equation: Equation) -> list[Any]:
        """Returns the values of an equation's operands."""
        return [read(self.primals, v) for v in equation.operands]

    def is_active(self, equation: Equation) -> bool:
        """Tells whether any operand has a tangent other than zero."""
        tangents = self.tangents
        return any(v in tangents for v in equation.operands)

    def operand_tangents(self, equation: Equation) -> list[Any]:
        """Returns the tangents of an equation's operands."""
        return [self.tangent(v) for v in equation.operands]

    def tangent(self, var: Var) -> Any:
        """Returns the tangent of a variable, perhaps `Zero`."""
        tangent = self.tangents.get(var)
        return Zero(var.type.to_tangent_aval()) if tangent is None else tangent

    def store(self, equation: Equation, outs: Any, tangents: Any = None) -> None:
        """Stores an equation's results and their tangents."""
        if not equation.primitive.multiple_results:
            outs, tangents = (outs,), None if tangents is None else (tangents,)
        for var, out in zip(equation.results, outs, strict=True):
            self.primals[var] = out
        if tangents is None:
            return
        for var, tangent in zip(equation.results, tangents, strict=True):
            if type(tangent) is not Zero and tangent is not None:
                self.tangents[var] = tangent

    def outputs(self, function: Function) -> tuple[list[Any], list[Any]]:
        """Returns the values and tangents of the function's outputs."""
        outs = [read(self.primals, v) for v in function.outputs]
        return outs, [self.tangent(v) for v in function.outputs]


def known_results(equation: Equation, known: dict[Var, Any] | None) -> Any:
    """Returns what an equation gave while it was traced, or None if nobody has computed it."""
    if known is None or any(v not in known for v in equation.results):
        return None
    # Ops without results are those with effects, and tracing with known values ran them at once.
    values = [known[v] for v in equation.results]
    return values if equation.primitive.multiple_results else values[0]


def jvp(
    function: Function,
    primals: Sequence[Any],
    tangents: Sequence[Any],
    known: dict[Var, Any] | None = None,
) -> tuple[list[Any], list[Any]]:
    """Computes a function and its tangents, op by op.

    Args:
        function: What to differentiate.
        primals: Values of its inputs and captures.
        tangents: Their tangents, `Zero` where there is none.
        known: Values of variables that have been computed already.

    Returns:
        Its outputs and their tangents, some of which may be `Zero`.
    """
    environment = TangentEnvironment(function, primals, tangents)
    previous = state.origin
    try:
        for equation in function.equations:
            state.origin = equation
            outs = known_results(equation, known)
            operands = environment.operands(equation)
            if not environment.is_active(equation):
                if outs is None:
                    outs = equation.primitive.bind(*operands, **equation.params)
                environment.store(equation, outs)
                continue
            outs, out_tangents = differentiate(
                equation.primitive,
                operands,
                environment.operand_tangents(equation),
                params_to_derive(equation, has_run=outs is not None),
                outs,
            )
            environment.store(equation, outs, out_tangents)
    finally:
        state.origin = previous
    return environment.outputs(function)


@dataclass(frozen=True)
class TangentFunction:
    """A function that computes another one and its tangents.

    Attributes:
        function: Takes the arguments, then the tangents of the active ones; returns the outputs,
            then the tangents of the active outputs.
        active_outputs: Which outputs have a tangent other than zero.
    """

    function: Function
    active_outputs: tuple[bool, ...]


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
    """Returns which arguments of a saved function a pass differentiates in."""
    from axir.dialect import dtypes
    from axir.passes.errors import OptionValueError

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
