"""Looking at programs: `make_jaxpr`, `eval_shape`; scopes, set by `with` while they are traced."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

from axir._arguments.arguments import (
    FlatFunction,
    check_callable,
    flatten_arguments,
    trace_abstract,
    type_of,
)
from axir._arguments.wrapping import boundary, wraps
from axir._devices.shape_dtype_struct import ShapeDtypeStruct
from axir._trees import tree
from axir.dialect.core.annotations import Options, UserFunction, UserObject
from axir.dialect.core.errors import ParameterError
from axir.dialect.core.state import showing_captures, within_scope, without_ambient_trace
from axir.dialect.core.types import ShapedArray
from axir.dialect.program.effects import named_axis
from axir.dialect.program.function_tracing import function_name
from axir.dialect.program.jaxpr import ClosedJaxpr

from .refs import AbstractRef


def trace_user_function(
    fun: Callable[..., object],
    args: tuple[object, ...],
    kwargs: dict[str, Options],
    static_argnums: int | Sequence[int] = (),
) -> tuple[UserObject, FlatFunction]:
    """Traces a function on the types of its arguments; returns the jaxpr function too."""
    static = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
    static = tuple(number % len(args) for number in static) if args else ()
    dynamic = tuple(x for number, x in enumerate(args) if number not in static)

    @wraps(fun)
    def partial(*selected: object, **keywords: object) -> UserObject:
        remaining = iter(selected)
        return fun(*(x if n in static else next(remaining) for n, x in enumerate(args)), **keywords)

    leaves, in_tree = flatten_arguments((dynamic, kwargs))
    flat = FlatFunction(partial if static else fun, in_tree)
    types = [type_of(x) for x in leaves]
    return trace_abstract(flat, types, "Jit", shows=True), flat


def make_jaxpr(
    fun: Callable[..., object],
    static_argnums: int | Sequence[int] = (),
    axis_env: Sequence[tuple[Hashable, int]] | None = None,
    return_shape: bool = False,
) -> UserFunction:
    """Returns a function that returns the jaxpr of `fun` for given arguments.

    Args:
        fun: Function of arrays or trees of arrays.
        static_argnums: Positional arguments that are passed on as they are.
        axis_env: Names and extents of axes that the function may name.
        return_shape: Whether to return a pair with the tree of `ShapeDtypeStruct` of the results.

    >>> import axir, axir.numpy as jnp
    >>> axir.make_jaxpr(lambda x: jnp.sin(x) * 2)(jnp.ones(3))
    { lambda ; a:f32[3]. let b:f32[3] = sin a; c:f32[3] = mul b 2.0:f32[] in (c,) }
    """
    check_callable(fun, "make_jaxpr")

    @wraps(fun)
    @boundary
    def jaxpr_maker(*args: object, **kwargs: object) -> object:
        with showing_captures(), ExitStack() as scope:
            for name, size in axis_env or ():
                scope.enter_context(named_axis(name, size))
            function, flat = trace_user_function(fun, args, kwargs, static_argnums)
        jaxpr = ClosedJaxpr.of(function)
        if return_shape:
            return jaxpr, flat.out_tree.unflatten(_structs(function))
        return jaxpr

    return jaxpr_maker


def _structs(function: UserObject) -> list[ShapeDtypeStruct]:
    types = function.output_types
    return [ShapeDtypeStruct(t.shape, t.dtype, weak_type=t.weak_type) for t in types]


def typeof(x: object) -> ShapedArray | AbstractRef:
    """Returns the type of an array, a tracer, a scalar or a ref.

    >>> import axir
    >>> axir.typeof(1.0)
    ShapedArray(float32[], weak_type=True)
    """
    type_of_array = type_of(x)
    return AbstractRef(type_of_array) if getattr(x, "_is_ref", False) else type_of_array


@boundary
def eval_shape(fun: Callable[..., object], *args: object, **kwargs: object) -> UserObject:
    """Returns the shapes and dtypes of a function's results without computing them.

    Args:
        fun: Function of arrays or trees of arrays; a `ShapeDtypeStruct` that it returns stays.
        *args: Arrays, or anything with `shape` and `dtype`, such as `ShapeDtypeStruct`.
        **kwargs: Likewise.

    >>> import axir, axir.numpy as jnp
    >>> axir.eval_shape(lambda x: x @ x.T, axir.ShapeDtypeStruct((2, 3), "float32"))
    ShapeDtypeStruct(shape=(2, 2), dtype=float32)
    """
    check_callable(fun, "eval_shape")
    given: dict[int, ShapeDtypeStruct] = {}

    @wraps(fun)
    def with_values(*args: object, **kwargs: object) -> object:
        leaves, structure = tree.flatten(fun(*args, **kwargs))
        given.update((n, x) for n, x in enumerate(leaves) if isinstance(x, ShapeDtypeStruct))
        return structure.unflatten([False if n in given else x for n, x in enumerate(leaves)])

    function, flat = trace_user_function(with_values, args, kwargs)
    structs = _structs(function)
    return flat.out_tree.unflatten([given.get(n, x) for n, x in enumerate(structs)])


# Scopes -------------------------------------------------------------------------------------------


@contextmanager
def named_scope(name: str) -> Iterator[None]:
    """Names the ops that are traced inside; also a decorator.

    The name is part of their MLIR locations, before the user's line; names of nested scopes are
    joined by slashes.

    Raises:
        ParameterError: if the name is not a string.

    >>> import axir, axir.numpy as jnp
    >>> def f(x):
    ...     with axir.named_scope("attention"):
    ...         return jnp.sin(x)
    >>> equation, = axir.make_jaxpr(f)(0.0).eqns
    >>> str(equation.location).startswith('loc("attention"(')
    True
    """
    if not isinstance(name, str):
        raise ParameterError(f"named_scope: the name must be a string, not {name!r}.")
    with within_scope(name):
        yield


def named_call(fun: Callable[..., object], *, name: str | None = None) -> UserFunction:
    """Returns a function with ops that carry its name, or another one, as in `named_scope`.

    >>> import axir, axir.numpy as jnp
    >>> scaled = axir.named_call(lambda x: 2 * jnp.cos(x), name="scaled")
    >>> float(scaled(0.0))
    2.0
    """
    check_callable(fun, "named_call")
    scope = function_name(fun) if name is None else name

    @wraps(fun)
    def named(*args: object, **kwargs: object) -> object:
        with named_scope(scope):
            return fun(*args, **kwargs)

    return named


@contextmanager
def ensure_compile_time_eval() -> Iterator[None]:
    """Evaluates ops without tracers at once, including callbacks and other effects.

    While a function is traced, ops on known values are evaluated at once anyway; inside this also
    those that would otherwise wait for the run of the program.

    >>> import numpy as np, axir, axir.numpy as jnp
    >>> @axir.jit
    ... def f(x):
    ...     with axir.ensure_compile_time_eval():
    ...         size = axir.pure_callback(lambda: np.int32(3), axir.ShapeDtypeStruct((), "int32"))
    ...     return x * int(size)
    >>> float(f(2.0))
    6.0
    """
    with without_ambient_trace():
        yield
