"""Linear functions: their transposes, and custom transposes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from axir._arguments.arguments import (
    FlatFunction,
    check_callable,
    to_values,
    trace_abstract,
    type_of,
)
from axir._arguments.wrapping import boundary
from axir._trees import tree
from axir.dialect.core.annotations import Tree, UserObject
from axir.dialect.core.errors import GradientError, TreeError, UnsupportedRuleError
from axir.dialect.core.symbolic_zeros import UndefinedPrimal
from axir.dialect.ops.custom_rules.linear_call import call_linear
from axir.dialect.ops.elementwise.family import instantiate
from axir.dialect.program.function_tracing import trace_function
from axir.dialect.program.rules import TransposeOperand
from axir.passes.transforms.transpose import transpose as pull_back


@boundary
def linear_transpose(
    fun: Callable[..., object], *primals: object, reduce_axes: Sequence[object] = ()
) -> Callable[..., tuple[UserObject, ...]]:
    """Returns the transpose of a linear function.

    Unlike `vjp` it needs no point, only shapes and dtypes, and never computes the function.

    Args:
        fun: A function that is linear in its arguments, trees of arrays.
        *primals: Arrays, or anything with `shape` and `dtype`, in place of the arguments.
        reduce_axes: Must be empty; named axes are reduced by `axir.lax.psum`.

    Returns:
        A function from a cotangent of the output to a tuple of cotangents, one for each argument.

    Raises:
        UnsupportedRuleError: by the result's call, if `fun` is not linear; it names the op.
        TreeError, GradientError: if the cotangent is not of the output's structure and types.

    >>> import axir, axir.numpy as jnp
    >>> f = lambda x, y: 2 * x - 3 * y
    >>> transposed = axir.linear_transpose(f, axir.ShapeDtypeStruct((), "float32"), 0.0)
    >>> [float(ct) for ct in transposed(1.0)]
    [2.0, -3.0]
    """
    check_callable(fun, "linear_transpose")
    if reduce_axes:
        raise NotImplementedError("linear_transpose: reduce_axes must be empty.")
    leaves, in_tree = tree.flatten((primals, {}))
    flat = FlatFunction(fun, in_tree)
    function = trace_abstract(flat, [type_of(x) for x in leaves], "Transpose")

    def transposed(cotangent: Tree) -> tuple[UserObject, ...]:
        leaves, structure = tree.flatten(cotangent)
        if structure != flat.out_tree:
            raise TreeError(
                f"linear_transpose: the cotangent tree {structure} does not match the output "
                f"of {flat.name!r}: expected {flat.out_tree}.",
                "A cotangent has the structure of the function's result.",
            )
        cotangents = to_values(leaves, cotangent, flat.name)
        for ct, expected in zip(cotangents, function.output_types, strict=True):
            if (ct.shape, ct.dtype) != (expected.shape, expected.dtype):
                raise GradientError(
                    f"linear_transpose: the cotangent type {ct.type} does not match the output of "
                    f"{flat.name!r}: expected {expected}.",
                    "A cotangent has the shape and dtype of the function's result.",
                )
        arguments: list[TransposeOperand] = [
            *(UndefinedPrimal(t) for t in function.input_types),
            *function.captured,
        ]
        try:
            results = pull_back(function, arguments, cotangents)
        except NotImplementedError as error:
            raise UnsupportedRuleError(
                f"linear_transpose: {flat.name!r} is not linear: {str(error).splitlines()[0]}",
                "Linearize it first: axir.vjp, or axir.linearize.",
            ) from error
        chosen = [instantiate(ct) for ct in results if ct is not None]
        return tree.unflatten(in_tree, chosen)[0]

    return transposed


def linear_call(
    fun: Callable[[UserObject, UserObject], UserObject],
    fun_transpose: Callable[[UserObject, UserObject], UserObject],
    residual_args: object,
    linear_args: object,
) -> UserObject:
    """Calls a function that is linear in its last argument, with a given transpose.

    Args:
        fun: `(residual_args, linear_args) -> output`, linear in `linear_args`.
        fun_transpose: `(residual_args, cotangent) -> cotangent of linear_args`.
        residual_args: Tree of values that are not differentiated in.
        linear_args: Tree of values.

    >>> import axir
    >>> from axir.custom_derivatives import linear_call
    >>> def f(r, x):
    ...     return x / r
    >>> def t(r, ct):
    ...     return 7 * ct
    >>> float(axir.linear_transpose(lambda x: linear_call(f, t, 2.0, x), 1.0)(1.0)[0])
    7.0
    """
    residuals, residual_tree = tree.flatten(residual_args)
    linear, linear_tree = tree.flatten(linear_args)
    values = to_values([*residuals, *linear], (residual_args, linear_args), "linear_call")
    count = len(residuals)
    out_tree: UserObject = None

    def flat(*leaves: object) -> list[UserObject]:
        nonlocal out_tree
        result = fun(residual_tree.unflatten(leaves[:count]), linear_tree.unflatten(leaves[count:]))
        found, out_tree = tree.flatten(result)
        return to_values(found, result, "linear_call")

    function = trace_function(flat, [x.type for x in values], name="linear_call")

    def flat_transpose(*leaves: object) -> list[UserObject]:
        result = fun_transpose(
            residual_tree.unflatten(leaves[:count]), out_tree.unflatten(leaves[count:])
        )
        found = tree.flatten_like(linear_tree, result, "linear_call: result of fun_transpose")
        return to_values(found, result, "linear_call")

    types = [*(x.type for x in values[:count]), *function.output_types]
    transposed = trace_function(flat_transpose, types, name="linear_call_transpose")
    return out_tree.unflatten(call_linear(function, transposed, values, count))
