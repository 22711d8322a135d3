"""Functions of what they close over: `closure_convert` and `custom_gradient`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from axir import tree
from axir.arguments import FlatFunction, check_callable, trace_abstract, type_of
from axir.custom_derivatives.reverse import custom_vjp
from axir.dialect import dtypes
from axir.dialect.errors import CustomRuleError, TreeError
from axir.dialect.function import Function
from axir.dialect.trace import trace_function
from axir.dialect.tracer import Tracer
from axir.tree_registration import register_pytree_node


def closure_convert(fun: Callable[..., Any], *example_args: Any) -> tuple[Callable[..., Any], list]:
    """Makes the float values that a function closes over arguments of it.

    A function with a custom rule knows derivatives with respect to its arguments only. This turns
    a function argument into one without traced closures, and the values it needs besides.

    Args:
        fun: Function of arrays or trees of arrays.
        *example_args: Arguments, or anything with their shapes and dtypes.

    Returns:
        `(converted, consts)`, where `converted(*args, *consts)` is `fun(*args)`. `consts` are the
        traced float and complex values that it closes over.

    >>> import axir
    >>> def call_with(f, x):
    ...     converted, consts = axir.closure_convert(f, x)
    ...     print(len(consts), "constant")
    ...     return converted(x, *consts)
    >>> float(axir.grad(lambda a: call_with(lambda x: a * x, 3.0))(2.0))
    1 constant
    3.0
    """
    check_callable(fun, "closure_convert")
    return hoist(fun, *example_args, is_const=lambda x: dtypes.is_inexact(x.dtype))


def hoist(
    fun: Callable[..., Any], *example_args: Any, is_const: Callable[[Any], bool]
) -> tuple[Callable[..., Any], list]:
    """Makes traced values that a function closes over arguments of it; see `closure_convert`.

    Args:
        fun: The function.
        *example_args: Its arguments.
        is_const: Which traced values to make arguments.
    """
    leaves, in_tree = tree.flatten((example_args, {}))
    flat = FlatFunction(fun, in_tree)
    function = trace_abstract(flat, [type_of(x) for x in leaves], "ClosureConvert")
    is_hoisted = [
        type(x) is Tracer and is_const(x) for x in function.captured
    ]
    consts = [x for x, hoisted in zip(function.captured, is_hoisted, strict=True) if hoisted]
    out_tree = flat.out_tree

    def converted(*args_and_consts: Any) -> Any:
        count = len(args_and_consts) - len(consts)
        found, structure = tree.flatten((args_and_consts[:count], {}))
        if structure != in_tree:
            raise TreeError(
                f"The converted {flat.name!r} was called with arguments of structure {structure}, "
                f"but was converted for {in_tree}.",
                "Call it with arguments like the examples, and then the constants.",
            )
        given = iter(args_and_consts[count:])
        captured = [
            next(given) if hoisted else x
            for x, hoisted in zip(function.captured, is_hoisted, strict=True)
        ]
        return out_tree.unflatten(function.interpret([*found, *captured]))

    converted.__name__ = flat.name
    return converted, consts


class _Pullback:
    """The function that a `custom_gradient` function returned, as residuals: what it captured."""

    def __init__(self, function: Function, captured: Sequence[Any]):
        self.function = function
        self.captured = captured


register_pytree_node(
    _Pullback,
    lambda pullback: (tuple(pullback.captured), pullback.function),
    lambda function, captured: _Pullback(function, captured),
)


def custom_gradient(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function whose reverse-mode derivative it returns itself, as a closure.

    Args:
        fun: Returns a pair of its output, and a function from a cotangent of the output to the
            cotangent of the argument, or a tuple of them for several arguments.

    Raises:
        CustomRuleError: if `fun` returns something else.

    >>> import axir, axir.numpy as jnp
    >>> @axir.custom_gradient
    ... def f(x):
    ...     return x ** 2, lambda ct: (ct * x,)
    >>> float(f(3.0)), float(axir.grad(f)(3.0))
    (9.0, 3.0)
    """
    check_callable(fun, "custom_gradient")

    def pair(*args: Any, **kwargs: Any) -> tuple[Any, Callable[..., Any]]:
        result = fun(*args, **kwargs)
        if not isinstance(result, tuple) or len(result) != 2 or not callable(result[1]):
            raise CustomRuleError(
                f"custom_gradient: {getattr(fun, '__name__', 'the function')!r} must return a pair "
                f"(output, function of its cotangent), but returned {result}.",
                "Return both: the output first.",
            )
        return result

    @functools.wraps(fun)
    def primal(*args: Any, **kwargs: Any) -> Any:
        return pair(*args, **kwargs)[0]

    def fwd(*args: Any, **kwargs: Any) -> tuple[Any, _Pullback]:
        output, pullback = pair(*args, **kwargs)
        leaves, structure = tree.flatten(output)

        def flat(*cotangents: Any) -> list[Any]:
            result = pullback(structure.unflatten(cotangents))
            is_tuple = isinstance(result, tuple) and len(result) == len(args)
            return _cotangent_leaves(result if is_tuple else (result,), args)

        function = trace_function(flat, [type_of(x) for x in leaves], name="pullback")
        return output, _Pullback(function, function.captured)

    def bwd(pullback: _Pullback, cotangent: Any) -> tuple[Any, ...]:
        function = pullback.function
        leaves = tree.leaves(cotangent)
        results = function.interpret([*leaves, *pullback.captured])
        return function.derived[_ARGUMENTS].unflatten(results)

    def fwd_with_structure(*args: Any, **kwargs: Any) -> tuple[Any, _Pullback]:
        output, pullback = fwd(*args, **kwargs)
        pullback.function.derived[_ARGUMENTS] = tree.structure(args)
        return output, pullback

    custom = custom_vjp(primal)
    custom.defvjp(fwd_with_structure, bwd)
    return custom


_ARGUMENTS = "structure of the arguments"


def _cotangent_leaves(result: tuple[Any, ...], args: tuple[Any, ...]) -> list[Any]:
    from axir.dialect.ops.family import as_value

    structure = tree.structure(args)
    return [as_value(x) for x in tree.flatten_like(structure, result, "custom_gradient")]
