"""`custom_lin`: the derivative of a function of which only the reverse-mode rule is known.

The op stands in linear functions: it takes residuals and tangents, and all that it can do is be
transposed, which calls the user's rule with the residuals and the cotangents.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from ...axes import current_frame
from ...errors import ForwardModeError, ParameterError
from ...function import Function
from ...single_flight import made_once
from ...symbolic import Zero, is_undefined_primal
from ...types import ShapedArray
from ..family import instantiate
from ..shape import broadcast_in_dim, moveaxis
from ..table import declare
from .bodies import batch_rule, listing, same_types
from .rules import Flags, Rule

BackwardFunction = Callable[[Sequence[Any], Sequence[Any]], list[Any]]
"""From residuals and a cotangent (perhaps `Zero`) for each result to one for each argument."""


class Backward(Rule):
    """The reverse-mode rule for residuals of known types.

    Args:
        name: What the user calls it.
        rule: From residuals and cotangents of the results to cotangents of the arguments.
        residual_types: Types of the residuals.
        result_types: Types of the float and complex results, whose cotangents the rule takes.
        argument_types: Types of the float and complex arguments, whose cotangents it returns.
        is_specialized: Whether it wants to know which cotangents are zero.
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

    def __call__(self, residuals: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        """Runs the rule on values: Python code may look at those that are known."""
        if not self.is_specialized:
            cotangents = [instantiate(ct) for ct in cotangents]
        with self.surroundings():
            return self.rule(residuals, cotangents)

    def _traced(self, active: Flags) -> Function:
        from ...trace import trace_function

        def apply(*values: Any) -> list[Any]:
            count = len(self.residual_types)
            moving = iter(values[count:])
            cotangents = [
                next(moving) if is_active else Zero(t)
                for t, is_active in zip(self.result_types, active, strict=True)
            ]
            return [instantiate(ct) for ct in self.rule(values[:count], cotangents)]

        moving_types = [t for t, chosen in zip(self.result_types, active, strict=True) if chosen]
        return trace_function(
            apply, [*self.residual_types, *moving_types], name=self.name, kind="Vjp"
        )


def _result_types(bwd: Any, num_res: int) -> list[ShapedArray]:
    if type(bwd) is Function:
        return bwd.input_types[num_res:]
    return bwd.result_types


def _infer(*types: ShapedArray, bwd: Any, num_res: int, name: str) -> list[ShapedArray]:
    tangents = types[num_res:]
    expected = bwd.output_types if type(bwd) is Function else bwd.argument_types
    if not same_types(tangents, expected):
        raise ParameterError(
            f"custom_lin: the rule @{bwd.name} returns cotangents {listing(expected)}, but the "
            f"op takes tangents {listing(tangents)}."
        )
    return _result_types(bwd, num_res)


def forward_mode_error(name: str) -> ForwardModeError:
    """Returns the error for forward-mode differentiation of a function without a rule for it."""
    return ForwardModeError(
        f"can't apply forward-mode autodiff (jvp) to a custom_vjp function: {name!r} has a "
        "reverse-mode rule only.",
        "Use axir.vjp, axir.grad or axir.jacrev, or define the derivative with axir.custom_jvp, "
        "which serves both modes.",
    )


def _refuse(*operands: Any, name: str, **params: Any) -> NoReturn:
    raise forward_mode_error(name)


def _refuse_jvp(primals: Any, tangents: Any, *outs: Any, name: str, **params: Any) -> NoReturn:
    raise forward_mode_error(name)


def _refuse_lower(context: Any, *values: Any, name: str, **params: Any) -> NoReturn:
    raise forward_mode_error(name)


def _transpose(
    cotangents: Sequence[Any], *operands: Any, bwd: Any, num_res: int, **params: Any
) -> list[Any]:
    residuals = operands[:num_res]
    if type(bwd) is Function:
        results = bwd.evaluate(*residuals, *(instantiate(ct) for ct in cotangents))
    else:
        results = bwd(residuals, cotangents)
    tangents = operands[num_res:]
    return [
        *(None for _ in residuals),
        *(ct if is_undefined_primal(t) else None for t, ct in zip(tangents, results, strict=True)),
    ]


def _batch(
    operands: Sequence[Any],
    axes: Sequence[int | None],
    *,
    bwd: Any,
    num_res: int,
    name: str,
) -> tuple[list[Any], list[int | None]]:
    frame = current_frame()
    rule = batched_backward(bwd, num_res, axes[:num_res], frame.size, frame.name)
    tangents = [
        to_front(x, axis, frame.size)
        for x, axis in zip(operands[num_res:], axes[num_res:], strict=True)
    ]
    results = custom_lin.bind(
        *operands[:num_res], *tangents, bwd=rule, num_res=num_res, name=name
    )
    return results, [0] * len(results)


def to_front(value: Any, axis: int | None, size: int) -> Any:
    """Returns a value with its batch axis in front, broadcast along one if it has none."""
    if axis is None:
        dimensions = tuple(range(1, value.ndim + 1))
        return broadcast_in_dim(value, (size, *value.shape), dimensions)
    return moveaxis(value, axis, 0)


def batched_backward(
    bwd: Any, num_res: int, axes: Sequence[int | None], size: int, axis_name: Any
) -> Backward:
    """Returns a reverse-mode rule vectorized: cotangents come and go along axis 0.

    Args:
        bwd: The rule for one element.
        num_res: How many residuals it takes.
        axes: Batch axis of each residual, or None.
        size: Extent of the axis.
        axis_name: Its name.
    """

    def stacked(types: Sequence[ShapedArray]) -> list[ShapedArray]:
        return [t.update(shape=(size, *t.shape)) for t in types]

    results = _result_types(bwd, num_res)
    is_function = type(bwd) is Function
    residuals = bwd.input_types[:num_res] if is_function else bwd.residual_types
    arguments = bwd.output_types if is_function else bwd.argument_types
    full_axes = [*axes, *(0 for _ in results)]

    def apply(values: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        function = bwd if is_function else bwd.function
        key = ("vmap rule", size, axis_name, tuple(full_axes))
        batched = made_once(
            function.derived,
            key,
            lambda: batch_rule(function, size, axis_name, full_axes, len(arguments)),
        )
        return batched.evaluate(*values, *(instantiate(ct) for ct in cotangents))

    shapes = [
        t if axis is None else t.update(shape=(*t.shape[:axis], size, *t.shape[axis:]))
        for t, axis in zip(residuals, axes, strict=True)
    ]
    name = f"{bwd.name}_vmap"
    return Backward(name, apply, shapes, stacked(results), stacked(arguments), False)


custom_lin = declare(
    "custom_lin",
    takes_keys=True,
    multiple_results=True,
    is_memoized=False,
    infer=_infer,
    evaluate=_refuse,
    value_and_jvp=_refuse_jvp,
    transpose=_transpose,
    batch=_batch,
    lower=_refuse_lower,
    samples=list,
)
custom_lin.implementation = _refuse


def apply_backward(
    bwd: Any, residuals: Sequence[Any], tangents: Sequence[Any], name: str
) -> list[Any]:
    """Applies the derivative of a function, which only a linear function waits for.

    Args:
        bwd: The reverse-mode rule.
        residuals: Values for it.
        tangents: A tangent for each float or complex argument.
        name: What the user calls the function.

    Raises:
        ForwardModeError: if the tangents have values.
    """
    return custom_lin.bind(*residuals, *tangents, bwd=bwd, num_res=len(residuals), name=name)
