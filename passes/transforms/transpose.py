"""The `transpose` pass: turns a linear function around, from tangents to cotangents.

Together with `linearize` it is reverse-mode differentiation. The driver walks the ops backwards and
asks each primitive for the cotangents of its linear operands; it knows no op by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

from iree.compiler import ir

from axir.dialect.core.errors import MissingRuleError, NonArrayArgumentError, UnsupportedRuleError
from axir.dialect.core.state import attributed
from axir.dialect.core.symbolic_zeros import UndefinedPrimal, Zero
from axir.dialect.ops.elementwise.family import add_tangents, instantiate
from axir.dialect.program.derived_functions import TransposedFunction, derive, transformation
from axir.dialect.program.equation import Equation, Literal, Var
from axir.dialect.program.function import Function
from axir.dialect.program.rules import Cotangent, TransposeOperand
from axir.dialect.program.tracer import Trace
from axir.dialect.program.walk import Environment
from axir.passes.framework.base import Pass
from axir.passes.framework.module_functions import linear_arguments, replace_main


def transpose(
    function: Function, arguments: Sequence[TransposeOperand], cotangents: Sequence[Cotangent]
) -> list[Cotangent | None]:
    """Pulls cotangents of a function's outputs back to its linear arguments.

    Args:
        function: A function that is linear in some arguments.
        arguments: For each input and capture its value, or `UndefinedPrimal` if it is linear.
        cotangents: For each output its cotangent, perhaps `Zero`.

    Returns:
        For each argument its cotangent: None for arguments with values, `Zero` for linear arguments
        without a cotangent.
    """
    variables = (*function.inputs, *function.captures)
    known = Environment(
        (v, x) for v, x in zip(variables, arguments, strict=True) if type(x) is not UndefinedPrimal
    )
    linear_equations = _evaluate_known(function, known)
    pending: dict[Var, Cotangent] = {}
    for variable, cotangent in zip(function.outputs, cotangents, strict=True):
        _accumulate(pending, known, variable, cotangent)
    for equation in attributed(reversed(linear_equations)):
        _pull_back(equation, known, pending)
    return [
        None if v in known else pending.get(v, Zero(v.type.to_tangent_aval())) for v in variables
    ]


def _evaluate_known(function: Function, known: Environment) -> list[Equation]:
    """Computes the ops that depend on no linear argument; returns the others."""
    linear_equations = []
    for equation in attributed(function.equations):
        operands = _operands(equation, known)
        if any(type(x) is UndefinedPrimal for x in operands):
            linear_equations.append(equation)
        else:
            results = equation.primitive.bind(*operands, **equation.params)  # type: ignore[arg-type]
            known.store(equation, results)
    return linear_equations


def _operands(equation: Equation, known: Environment) -> list[TransposeOperand]:
    """Returns the operands, `UndefinedPrimal` for those that depend on linear arguments."""
    return [
        known[v] if v in known or type(v) is Literal else UndefinedPrimal(v.type)
        for v in equation.operands
    ]


def _pull_back(equation: Equation, known: Environment, pending: dict[Var, Cotangent]) -> None:
    cotangents = [pending.pop(v, None) for v in equation.results]
    if all(ct is None for ct in cotangents):
        return
    primitive = equation.primitive
    if primitive.transpose is None:
        raise MissingRuleError(
            f"Transpose rule (for reverse-mode differentiation) for '{primitive.name}' not "
            "implemented",
            f"Define it with ad.primitive_transposes[{primitive.name}] = rule(ct, *operands).",
        )
    operands = _operands(equation, known)
    try:
        if primitive.multiple_results:
            cotangents = [
                Zero(v.type.to_tangent_aval()) if ct is None else ct
                for v, ct in zip(equation.results, cotangents, strict=True)
            ]
            results = primitive.transpose(cotangents, *operands, **equation.params)
        else:
            results = primitive.transpose(cotangents[0], *operands, **equation.params)
    except NonArrayArgumentError as error:
        # The rule of a product expects the other factor as a value.
        if sum(type(x) is UndefinedPrimal for x in operands) < 2:
            raise
        raise UnsupportedRuleError(
            f"The rule 'transpose' of {primitive.name!r} cannot apply: two operands depend on "
            "linear arguments, so the result is not linear in them.",
            "A custom_jvp rule must be linear in its tangents, and a function that is transposed "
            "linear in its arguments.",
        ) from error
    for variable, cotangent in zip(equation.operands, results, strict=True):
        _accumulate(pending, known, variable, cotangent)


def _accumulate(
    pending: dict[Var, Cotangent], known: Environment, variable: Var, cotangent: Cotangent | None
) -> None:
    if cotangent is None or type(cotangent) is Zero:
        return
    if type(variable) is Literal or variable in known:
        return
    previous = pending.get(variable)
    pending[variable] = cotangent if previous is None else add_tangents(previous, cotangent)


@transformation("transpose")
def transpose_function(
    function: Function,
    is_linear: tuple[bool, ...],
    active_outputs: tuple[bool, ...],
    instantiate_results: bool = False,
) -> TransposedFunction:
    """Returns the transpose for given linear arguments (inputs, then captures) and outputs."""
    arguments = (*function.inputs, *function.captures)
    with Trace(f"{function.name}_transpose", "Transpose") as trace:
        values = [
            UndefinedPrimal(v.type) if linear else trace.add_input(v.type)
            for v, linear in zip(arguments, is_linear, strict=True)
        ]
        cotangents = [
            trace.add_input(v.type) if active else Zero(v.type.to_tangent_aval())
            for v, active in zip(function.outputs, active_outputs, strict=True)
        ]
        results = transpose(function, values, cotangents)
        chosen = cast(
            "list[Cotangent]", [r for r, linear in zip(results, is_linear, strict=True) if linear]
        )
        if instantiate_results:
            chosen = [instantiate(r) for r in chosen]
        active = tuple(type(r) is not Zero for r in chosen)
        return TransposedFunction(trace.finish([r for r in chosen if type(r) is not Zero]), active)


@dataclass(frozen=True)
class Transpose(Pass):
    """Turns a linear function dx -> dy into ct_y -> ct_x.

    Algorithm:
        1. Copy the ops that depend on no linear argument, in order.
        2. Give each output a cotangent argument.
        3. Walk the other ops backwards; apply the primitive's `transpose` rule to the cotangents of
           its results, and add the rule's results to the cotangents of its operands.
        4. Return the cotangents of the linear arguments.

    Before:
        ```mlir
        func.func @main(%dx: tensor<f32> {jaxpr.linear}, %r: tensor<f32>) -> tensor<f32> {
          %0 = "jaxpr.mul"(%dx, %r) : (tensor<f32>, tensor<f32>) -> tensor<f32>
          return %0 : tensor<f32>
        }
        ```
    After:
        ```mlir
        func.func @main(%r: tensor<f32>, %ct: tensor<f32>) -> tensor<f32> {
          %0 = "jaxpr.mul"(%ct, %r) : (tensor<f32>, tensor<f32>) -> tensor<f32>
          return %0 : tensor<f32>
        }
        ```

    Preconditions:
        The function is linear in the arguments that are named in `argnums`, or that carry the mark
        `jaxpr.linear`, as `linearize` leaves it; without either, in all of them.

    Attributes:
        function: Symbol of the function to transpose; the others stay.
        argnums: The linear arguments.
    """

    name: ClassVar[str] = "transpose"
    function: str = "main"
    argnums: int | tuple[int, ...] | None = None

    def run(self, module: ir.Module) -> None:
        """Replaces the function by its transpose."""
        marked = linear_arguments(module, self.function)

        def transform(function: Function) -> Function:
            count = len(function.inputs) + len(function.captures)
            chosen = marked or tuple(range(count))
            if self.argnums is not None:
                chosen = (self.argnums,) if isinstance(self.argnums, int) else self.argnums
            is_linear = tuple(index in chosen for index in range(count))
            outputs = (True,) * len(function.outputs)
            return derive(function, "transpose", is_linear, outputs, True).function

        replace_main(module, transform, name=self.function)
