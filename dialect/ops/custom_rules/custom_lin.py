"""`custom_lin`: the derivative of a function with a reverse-mode rule only.

The op stands in linear functions: it takes residuals and tangents. Transposition is the only
operation on it, and calls the user's rule with the residuals and the cotangents.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from axir.dialect.core.annotations import Param
from axir.dialect.core.errors import ForwardModeError, ParameterError
from axir.dialect.core.state import BatchFrame
from axir.dialect.core.symbolic_zeros import Marks, chosen, is_undefined_primal, spread
from axir.dialect.core.types import Axes as VaryingAxes
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.calls.jit_call import listing, same_types
from axir.dialect.ops.elementwise.family import instantiate
from axir.dialect.ops.reductions.reduce import reduce_sum
from axir.dialect.ops.shape.rearranging import move_batch_axis
from axir.dialect.program.effects import current_frame
from axir.dialect.program.function import Function
from axir.dialect.program.function_tracing import trace_function
from axir.dialect.program.op_table import declare
from axir.dialect.program.parameters import Deferrable
from axir.dialect.program.rules import (
    Cotangent,
    OperandTangents,
    Value,
)

from .bodies import Axes, batched_rule, batched_types
from .rules import Rule

BackwardFunction = Callable[[Sequence[Any], Sequence[Any]], list[Any]]
"""From residuals and a cotangent (perhaps `Zero`) for each result to one for each argument."""


class Backward(Rule):
    """The reverse-mode rule for residuals of known types.

    Args:
        name: Name of the user's rule.
        rule: From residuals and cotangents of the results to cotangents of the arguments.
        residual_types: Types of the residuals.
        result_types: Types of the float and complex results; the rule takes their cotangents.
        argument_types: Types of the float and complex arguments; the rule returns their cotangents.
        is_specialized: Whether it depends on which cotangents are zero.
    """

    def __init__(
        self,
        name: str,
        rule: BackwardFunction,
        residual_types: Sequence[ShapedArray],
        result_types: Sequence[ShapedArray],
        argument_types: Sequence[ShapedArray],
        is_specialized: bool,
    ):
        super().__init__(name, self._traced, (True,) * len(result_types), is_specialized)
        self.rule = rule
        self.residual_types = list(residual_types)
        self.result_types = list(result_types)
        self.argument_types = list(argument_types)

    @staticmethod
    def of(parameter: Param, num_res: int) -> Backward:
        """Returns the rule of an op's parameter: a rule, or a function read from text."""
        if type(parameter) is not Function:
            return parameter

        def apply(residuals: Sequence[Value], cotangents: Sequence[Value]) -> list[Value]:
            return parameter.evaluate(*residuals, *cotangents)

        types = parameter.input_types
        residual_types, result_types = types[:num_res], types[num_res:]
        rule = Backward(
            parameter.name, apply, residual_types, result_types, parameter.output_types, False
        )
        rule._function = parameter
        return rule

    def __call__(self, residuals: Sequence[Value], cotangents: Sequence[Cotangent]) -> list[Value]:
        """Runs the rule on values; Python code may look at known values."""
        if not self.is_specialized:
            cotangents = list(map(instantiate, cotangents))
        with self.surroundings():
            return self.rule(residuals, cotangents)

    def _traced(self, active: Marks) -> Function:
        count = len(self.residual_types)

        def apply(*values: Value) -> list[Value]:
            cotangents = spread(values[count:], active, self.result_types)
            return list(map(instantiate, self.rule(values[:count], cotangents)))

        types = [*self.residual_types, *chosen(self.result_types, active)]
        return trace_function(apply, types, name=self.name, kind="Vjp")

    def vectorized(self, frame: BatchFrame, axes: Axes, argument_axes: Axes) -> Backward:
        """Returns the rule vectorized; cotangents of results come along axis 0.

        Args:
            frame: The batch axis.
            axes: Where the residuals have it, or None.
            argument_axes: Where the cotangents of the arguments get it. For an argument that is
                equal for all elements, the cotangents are summed.
        """
        in_axes = (*axes, *(0 for _ in self.result_types))
        out_axes = tuple(0 if axis is None else axis for axis in argument_axes)

        def apply(residuals: Sequence[Value], cotangents: Sequence[Value]) -> list[Value]:
            batched = batched_rule(self.function, frame, in_axes, out_axes)
            results = batched.evaluate(*residuals, *map(instantiate, cotangents))
            return [
                reduce_sum(ct, (0,)) if axis is None else ct
                for ct, axis in zip(results, argument_axes, strict=True)
            ]

        size = frame.size
        return Backward(
            f"{self.name}_vmap",
            apply,
            batched_types(self.residual_types, axes, size),
            batched_types(self.result_types, (0,) * len(self.result_types), size),
            batched_types(self.argument_types, argument_axes, size),
            False,
        )


def _infer(*types: ShapedArray, bwd: Param, num_res: int, name: str) -> list[ShapedArray]:
    rule, tangents = Backward.of(bwd, num_res), types[num_res:]
    if not same_types(tangents, rule.argument_types):
        raise ParameterError(
            f"custom_lin: the rule @{bwd.name} returns cotangents {listing(rule.argument_types)}, "
            f"but the op takes tangents {listing(tangents)}."
        )
    return rule.result_types


def _varying(
    given: Sequence[VaryingAxes], *, bwd: Param, num_res: int, name: str
) -> list[VaryingAxes]:
    # The rule gives only the types of forward tangents.
    return [t.varying for t in Backward.of(bwd, num_res).result_types]


def forward_mode_error(name: str) -> ForwardModeError:
    """Returns the error for forward-mode differentiation of a function without a rule for it."""
    return ForwardModeError(
        f"can't apply forward-mode autodiff (jvp) to a custom_vjp function: {name!r} has a "
        "reverse-mode rule only.",
        "Use axir.vjp, axir.grad or axir.jacrev, or define the derivative with axir.custom_jvp, "
        "which serves both modes.",
    )


def _refuse(*arguments: np.ndarray, name: str, **params: Param) -> NoReturn:
    raise forward_mode_error(name)


def _transpose(
    cotangents: Sequence[Cotangent],
    *operands: Param,
    bwd: Param,
    num_res: int,
    **params: Param,
) -> Sequence[Cotangent | None]:
    residuals, tangents = operands[:num_res], operands[num_res:]
    results = Backward.of(bwd, num_res)(residuals, cotangents)
    return [
        *(None for _ in residuals),
        *(ct if is_undefined_primal(t) else None for t, ct in zip(tangents, results, strict=True)),
    ]


def _batch(
    operands: Sequence[Value], axes: Axes, *, bwd: Param, num_res: int, name: str
) -> tuple[list[Value], list[int | None]]:
    frame = current_frame()
    tangents = [
        move_batch_axis(x, axis, frame.size, 0)
        for x, axis in zip(operands[num_res:], axes[num_res:], strict=True)
    ]
    rule = Backward.of(bwd, num_res).vectorized(frame, axes[:num_res], (0,) * len(tangents))
    results = apply_backward(rule, operands[:num_res], tangents, name)
    return results, [0] * len(results)


custom_lin = declare(
    "custom_lin",
    parameters={"bwd": Deferrable, "num_res": int, "name": str},
    takes_keys=True,
    multiple_results=True,
    is_memoized=False,
    infer=_infer,
    evaluate=_refuse,
    value_and_jvp=_refuse,
    transpose=_transpose,
    batch=_batch,
    lower=_refuse,
    varying=_varying,
    samples=list,
)
custom_lin.implementation = _refuse


def apply_backward(
    bwd: Param, residuals: Sequence[Value], tangents: OperandTangents, name: str
) -> list[Value]:
    """Applies the derivative of a function inside of a linear function.

    Args:
        bwd: The reverse-mode rule.
        residuals: Values for it.
        tangents: A tangent for each float or complex argument.
        name: Name of the user's function.

    Raises:
        ForwardModeError: if the tangents have values.
    """
    return custom_lin.bind(*residuals, *tangents, bwd=bwd, num_res=len(residuals), name=name)
