"""Functions of their captures: `closure_convert` and `custom_gradient`."""

from __future__ import annotations

from collections.abc import Callable

from axir._arguments.arguments import FlatFunction, check_callable, trace_abstract, type_of
from axir._arguments.wrapping import wraps
from axir._trees import tree
from axir._trees.registration import Partial
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import Tree, UserFunction, UserObject
from axir.dialect.core.errors import CustomRuleError, TreeError
from axir.dialect.core.symbolic_zeros import chosen
from axir.dialect.program.tracer import Tracer

from ._reverse import custom_vjp


def closure_convert(fun: Callable[..., object], *example_args: object) -> tuple[UserFunction, list]:
    """Makes the float values that a function closes over arguments of it.

    A function with a custom rule knows derivatives with respect to its arguments only. This turns
    a function argument into one without traced closures, and the captured values as further
    arguments.

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
    fun: Callable[..., object], *example_args: object, is_const: Callable[[UserObject], bool]
) -> tuple[UserFunction, list]:
    """Makes traced values that a function closes over arguments of it; see `closure_convert`.

    Args:
        fun: The function.
        *example_args: Its arguments.
        is_const: Which traced values to make arguments.
    """
    leaves, in_tree = tree.flatten((example_args, {}))
    flat = FlatFunction(fun, in_tree)
    function = trace_abstract(flat, [type_of(x) for x in leaves], "ClosureConvert")
    is_hoisted = [type(x) is Tracer and is_const(x) for x in function.captured]
    consts = chosen(function.captured, is_hoisted)
    out_tree = flat.out_tree

    def converted(*args_and_consts: object) -> UserObject:
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


def custom_gradient(fun: Callable[..., object]) -> UserFunction:
    """Returns a function that returns its reverse-mode derivative as a closure.

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

    def pair(*args: object, **kwargs: object) -> tuple[UserObject, UserFunction]:
        result = fun(*args, **kwargs)
        if not isinstance(result, tuple) or len(result) != 2 or not callable(result[1]):
            raise CustomRuleError(
                f"custom_gradient: {getattr(fun, '__name__', 'the function')!r} must return a pair "
                f"(output, function of its cotangent), but returned {result}.",
                "Return both: the output first.",
            )
        return result

    @wraps(fun)
    def primal(*args: object, **kwargs: object) -> object:
        return pair(*args, **kwargs)[0]

    def fwd(*args: object, **kwargs: object) -> tuple[UserObject, Partial]:
        output, pullback = pair(*args, **kwargs)
        structure = tree.structure(args)

        def cotangents(ct: object) -> UserObject:
            result = pullback(ct)
            is_tuple = isinstance(result, tuple) and len(result) == len(args)
            full = result if is_tuple else (result,)
            return structure.unflatten(tree.flatten_like(structure, full, "custom_gradient"))

        # The captures of the pullback are the residuals.
        converted, consts = hoist(cotangents, output, is_const=lambda x: True)
        return output, Partial(converted, *consts)

    def bwd(pullback: Partial, cotangent: Tree) -> tuple[UserObject, ...]:
        return pullback.func(cotangent, *pullback.args)

    custom = custom_vjp(primal)
    custom.defvjp(fwd, bwd)
    return custom
