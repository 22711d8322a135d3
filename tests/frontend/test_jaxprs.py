"""Programs traced as JAX traces them: the examples of its page on jaxprs, equation by equation."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy
import numpy as np
import pytest

import axir
import axir.numpy
import axir.numpy as jnp
from axir.extend import source_info_util

Program = Callable[[Any], tuple[Callable[..., Any], tuple[Any, ...]]]


def _arithmetic(lib: Any) -> Any:
    jnp = lib.numpy
    return lambda x, y: jnp.sum(x + jnp.sin(y) * 3.0), (np.zeros(8), np.ones(8))


def _inner_function(lib: Any) -> Any:
    jnp = lib.numpy

    def inner(second: Any) -> Any:
        if second.shape[0] > 4:
            return jnp.sin(second)
        raise AssertionError

    return lambda x, y: jnp.sum(x + inner(y) * 3.0), (np.zeros(8), np.ones(8))


def _trees(lib: Any) -> Any:
    jnp = lib.numpy

    def function(pair: Any) -> Any:
        def inner(first: Any, second: Any) -> Any:
            return jnp.sin(first) + second["x"]

        return jnp.sum(inner(*pair))

    return function, ((np.zeros(8), {"x": np.ones(8)}),)


def _switch(lib: Any) -> Any:
    branches = [lambda x: x + 1.0, lambda x: x - 2.0, lambda x: x + 3.0]
    return lambda index, x: lib.lax.switch(index, branches, x), (1, 5.0)


def _cond(lib: Any) -> Any:
    return lambda x: lib.lax.cond(x >= 0.0, lambda y: y + 3.0, lambda y: y - 3.0, x), (5.0,)


def _cond_of_tree(lib: Any) -> Any:
    def function(x: Any, array: Any, extra: Any) -> Any:
        return lib.lax.cond(x >= 0.0, lambda p: p[1] * extra, lambda p: p[0] + p[1], (x, array))

    return function, (5.0, np.ones(3), 2.0)


def _fori_loop(lib: Any) -> Any:
    def function(x: Any, n: Any) -> Any:
        return lib.lax.fori_loop(0, n, lambda i, carry: carry * 3.0 + x, x)

    return function, (np.ones(16, np.float32), 5)


def _while_loop(lib: Any) -> Any:
    def function(x: Any, n: Any) -> Any:
        return lib.lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * 2.0), (0, x))

    return function, (np.ones(4, np.float32), 5)


def _scan(lib: Any) -> Any:
    def function(arr: Any, extra: Any) -> Any:
        ones = lib.numpy.ones(arr.shape, np.float32)

        def body(carry: Any, pair: Any) -> Any:
            first, second = pair
            return carry + first * second + extra, carry

        return lib.lax.scan(body, np.float32(0), (arr, ones))

    return function, (np.ones(16, np.float32), np.float32(5))


def _nested_jit(lib: Any) -> Any:
    def function(x: Any) -> Any:
        @lib.jit
        def inner(y: Any) -> Any:
            return y * 2.0

        return x + inner(x - 2.0)

    return function, (1.0,)


def _vmap(lib: Any) -> Any:
    return lib.vmap(lib.numpy.dot), (np.ones((5, 3), np.float32), np.ones((5, 3), np.float32))


EXAMPLES: dict[str, Program] = {
    "arithmetic": _arithmetic,
    "inner function": _inner_function,
    "trees": _trees,
    "switch": _switch,
    "cond": _cond,
    "cond of a tree": _cond_of_tree,
    "fori_loop": _fori_loop,
    "while_loop": _while_loop,
    "scan": _scan,
    "nested jit": _nested_jit,
    "vmap": _vmap,
}
_CALLS = {"pjit": "jit"}


def _lines(jaxpr: Any) -> Iterator[str]:
    """Yields each equation as types of operands, primitive, types of results; bodies indented."""
    for equation in getattr(jaxpr, "jaxpr", jaxpr).eqns:
        name = _CALLS.get(equation.primitive.name, equation.primitive.name)
        operands, results = (
            [str(v.aval).replace("~", "").replace(", weak_type=True", "") for v in variables]
            for variables in (equation.invars, equation.outvars)
        )
        if name == "convert_element_type" and operands == results:
            continue  # tells the dtype's weakness only, which is no operation in axir
        yield f"{name} {operands} -> {results}"
        for key, value in sorted(equation.params.items()):
            for body in value if isinstance(value, tuple) else [value]:
                if hasattr(getattr(body, "jaxpr", body), "eqns"):
                    yield from (f"  {key}: {line}" for line in _lines(body))


@pytest.mark.parametrize("name", EXAMPLES)
def test_equations_are_those_of_jax(name: str) -> None:
    traced = []
    for lib in (axir, jax):  # axir folds ops without arguments
        function, args = EXAMPLES[name](lib)
        args = jax.tree.map(lambda x: np.float32(x) if isinstance(x, np.ndarray) else x, args)
        traced.append(list(_lines(lib.make_jaxpr(function)(*args))))
    assert traced[0] == traced[1]


def test_pretty_print_tells_what_is_asked_for() -> None:
    def f(x: Any) -> Any:
        with axir.named_scope("outer"):
            y = axir.numpy.sin(x)
        return axir.lax.cond(y > 0, axir.numpy.cos, axir.numpy.tan, y)

    closed, of_jax = axir.make_jaxpr(axir.numpy.sin)(1.0), jax.make_jaxpr(jax.numpy.sin)(1.0)
    for options in ({}, {"print_shapes": False}, {"use_color": False}):
        assert closed.pretty_print(**options) == of_jax.pretty_print(**options)
        assert closed.jaxpr.pretty_print(**options) == of_jax.jaxpr.pretty_print(**options)
    closed = axir.make_jaxpr(f)(1.0)
    assert closed.pretty_print() == str(closed)
    assert "f32" not in closed.pretty_print(print_shapes=False).replace("0.0:f32[]", "")
    lines = closed.pretty_print(source_info=True, name_stack=True).splitlines()
    line = f.__code__.co_firstlineno + 2
    assert lines[1].endswith(f"= sin a  # [outer] {__file__}:{line}")
    colored = closed.pretty_print(use_color=True)
    assert re.sub(r"\x1b\[[\d;]*m", "", colored).split() == str(closed).split()
    assert colored.startswith("{ \x1b[34;1mlambda\x1b[0m ; a\x1b[35m:f32[]\x1b[0m.")


def test_variables_are_equal_to_themselves_alone() -> None:
    jaxpr = axir.make_jaxpr(lambda x, y: (jnp.sin(x) + 2.0 * y, y))(1.0, 2.0).jaxpr
    other = axir.make_jaxpr(jnp.sin)(1.0).jaxpr
    assert jaxpr.eqns[0].outvars[0] in jaxpr.eqns[2].invars
    assert jaxpr.invars[0] not in jaxpr.outvars
    assert jaxpr.invars[0] != other.invars[0]
    assert jaxpr.eqns[1].invars[0] not in jaxpr.invars  # a literal
    assert jaxpr.outvars.index(jaxpr.invars[1]) == 1
    with pytest.raises(axir.errors.UnexpectedTracerError):
        jaxpr.invars[0] == 1.0  # noqa: B015


def test_equations_know_where_they_come_from() -> None:
    def function(x):
        with axir.named_scope("layer"):
            return jnp.sin(x)

    (equation,) = axir.make_jaxpr(function)(1.0).eqns
    assert str(equation.source_info.name_stack) == "layer"
    assert "test_jaxprs.py" in source_info_util.summarize(equation.source_info)
