"""Scopes, set by `with`: names in programs, evaluation while tracing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from axir._arguments.arguments import check_callable
from axir._arguments.wrapping import wraps
from axir.dialect.core.annotations import UserFunction
from axir.dialect.core.errors import ParameterError
from axir.dialect.core.state import within_scope, without_ambient_trace
from axir.dialect.program.function_tracing import function_name


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
