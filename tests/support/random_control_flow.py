"""Steps of random programs that hold functions: loops, branches, custom rules, collectives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import axir
import axir.numpy as jnp
from axir import lax

from .random_steps import (
    alike,
    binary,
    counter,
    indices,
    matrix,
    positive_definite,
    ranked,
    unary,
    vector,
)

Value = Any


# Loops and branches -----------------------------------------------------------------------------


def _while(x: Value, y: Value, choice: int) -> Value:
    """A loop with an array as its number of passes; no derivative passes through it."""
    x, y = (lax.stop_gradient(v) for v in alike(x, y))
    passes = jnp.max(indices(y)) % 3 + choice % 2

    def goes_on(state: Value) -> Value:
        return state["i"] < passes

    def step(state: Value) -> Value:
        return {"i": state["i"] + 1, "x": jnp.sin(state["x"]) + y, "last": state["x"]}

    end = lax.while_loop(goes_on, step, {"i": 0, "x": x, "last": jnp.zeros_like(x)})
    return end["x"] - end["last"]


def _nested_scan(x: Value, y: Value, choice: int) -> Value:
    rows = matrix(x)

    def inner(carry: Value, element: Value) -> tuple[Value, Value]:
        return jnp.sin(carry + element), carry * element

    def outer(carry: Value, row: Value) -> tuple[Value, Value]:
        last, products = lax.scan(inner, carry, row, reverse=bool(choice % 2))
        return last, (products, last)

    last, (products, ends) = lax.scan(outer, jnp.mean(y), rows)
    return products + ends[:, None] * last


def _branching_scan(x: Value, y: Value, choice: int) -> Value:
    rows, other = matrix(x), jnp.mean(y)

    def body(state: Value, row: Value) -> tuple[Value, Value]:
        count, carry = state
        new = lax.cond(
            count % 2 == choice % 2, lambda c: jnp.cos(c) * row, lambda c: c + other, carry
        )
        return (count + 1, new), new - carry

    return lax.scan(body, (0, jnp.ones_like(rows[0])), rows)[1]


def _switching_loop(x: Value, y: Value, choice: int) -> Value:
    x, y = alike(x, y)
    branches = [jnp.sin, lambda c: c * y, lambda c: lax.fori_loop(0, 2, lambda i, d: d * 0.7, c)]
    return lax.fori_loop(0, 2 + choice % 3, lambda i, c: lax.switch(i, branches, c), x)


def _batched_cond(x: Value, y: Value, choice: int) -> Value:
    x, y = (vector(v) for v in alike(x, y))
    return axir.vmap(
        lambda p, a, b: lax.cond(p, lambda a, b: jnp.sin(a) * b, lambda a, b: a - b, a, b)
    )(indices(x) % 2 == choice % 2, x, y)


def _scanned_pytree(x: Value, y: Value, choice: int) -> Value:
    rows, others = matrix(x), jnp.tanh(matrix(alike(x, y)[1]))

    def body(state: Value, slices: Value) -> tuple[Value, Value]:
        total, table = state
        count, row, other = slices
        table = lax.dynamic_update_index_in_dim(table, row * other, count, 0)
        return (total + jnp.sum(row), table), {"sum": total, "row": row - other}

    numbers = jnp.arange(rows.shape[0])
    state = (jnp.zeros((), x.dtype), jnp.zeros_like(rows))
    unroll = 1 + choice % 2
    (total, table), out = lax.scan(body, state, (numbers, rows, others), unroll=unroll)
    return table * total + out["row"] + out["sum"][:, None]


def _recurrence(x: Value, a: int) -> Value:
    def combine(left: Value, right: Value) -> Value:
        return left[0] * right[0], left[1] * right[0] + right[1]

    return lax.associative_scan(combine, (jnp.tanh(x), x), axis=a, reverse=a % 2 == 1)[1]


# Functions with custom rules --------------------------------------------------------------------


@axir.custom_vjp
def _clipped(x: Value, y: Value) -> Value:
    return jnp.sin(x) * y


def _clipped_forward(x: Value, y: Value) -> tuple[Value, Value]:
    return _clipped(x, y), (x, jnp.cos(x), y)


def _clipped_backward(residuals: Value, cotangent: Value) -> tuple[Value, Value]:
    x, cosine, y = residuals
    return jnp.tanh(cosine * y * cotangent), jnp.sin(x) * cotangent


_clipped.defvjp(_clipped_forward, _clipped_backward)


@axir.custom_jvp
def _softplus(x: Value) -> Value:
    return jnp.log1p(jnp.exp(-jnp.abs(x))) + jnp.maximum(x, 0)


@_softplus.defjvp
def _softplus_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (tangent,) = primals, tangents
    return _softplus(x), axir.nn.sigmoid(x) * tangent


def _linear_solve(x: Value, y: Value, choice: int) -> Value:
    system = positive_definite(x)
    right = jnp.ones(system.shape[0], x.dtype) * jnp.mean(y)

    def solve(apply: Callable[[Value], Value], b: Value) -> Value:
        # Gauss-Seidel would do; an inverse is shorter.
        return jnp.linalg.inv(system) @ b

    return lax.custom_linear_solve(lambda v: system @ v, right, solve, symmetric=True)


def _inner_gradient(x: Value, y: Value) -> Value:
    return axir.grad(lambda a: jnp.sum(jnp.sin(a) * jnp.cumsum(vector(a)).reshape(a.shape) * y))(x)


def _inner_hessian(x: Value, y: Value, choice: int) -> Value:
    x, y = (vector(v)[:4] for v in alike(x, y))
    return axir.hessian(lambda a: jnp.sum(jnp.sin(a * y)) * jnp.mean(a))(x)


def _linearized(x: Value, y: Value) -> Value:
    out, push = axir.linearize(lambda a: jnp.tanh(a) * a, x)
    return push(y) + axir.linear_transpose(push, x)(out)[0]


# Named axes -------------------------------------------------------------------------------------


def _named(function: Callable[[Value, int], Value]) -> Callable[..., Value]:
    """Makes a step that maps over the rows of a matrix, as the named axis `i`."""

    def step(x: Value, y: Value, choice: int) -> Value:
        rows = matrix(x)
        return axir.vmap(lambda row: function(row, rows.shape[0]), axis_name="i")(rows)

    return step


def _shifted(row: Value, size: int) -> Value:
    return row - 0.5 * lax.ppermute(row, "i", [(j, (j + 1) % size) for j in range(size)])


def _gathered(row: Value, size: int) -> Value:
    return lax.all_gather(jnp.sin(row), "i") * row + lax.axis_index("i")


def _scattered(row: Value, size: int) -> Value:
    return lax.psum_scatter(jnp.outer(jnp.arange(size) * 0.25, row), "i")


def _exchanged(row: Value, size: int) -> Value:
    return lax.all_to_all(jnp.outer(jnp.cos(jnp.arange(size)), row), "i", 0, 0)


def _looped_sum(row: Value, size: int) -> Value:
    return lax.fori_loop(0, 2, lambda i, c: jnp.sin(c) + lax.psum(c, "i") / size, row)


STRUCTURED: dict[str, Callable[[Value, Value, int], Value]] = {
    "while": _while,
    "nested_scan": _nested_scan,
    "branching_scan": _branching_scan,
    "switching_loop": _switching_loop,
    "batched_cond": _batched_cond,
    "scanned_pytree": _scanned_pytree,
    "recurrence": ranked(_recurrence),
    "custom_vjp": binary(_clipped),
    "softplus": unary(_softplus),
    "linear_solve": _linear_solve,
    "inner_gradient": binary(_inner_gradient),
    "inner_hessian": _inner_hessian,
    "linearized": binary(_linearized),
    "saving_checkpoint": binary(
        axir.checkpoint(
            lambda x, y: jnp.sin(jnp.sin(x) * y) * jnp.sum(x * y),
            policy=axir.checkpoint_policies.dots_saveable,
        )
    ),
    "barrier": unary(lambda x: lax.optimization_barrier(x)),
    "psum": _named(lambda row, size: row - lax.psum(jnp.tanh(row), "i") / size),
    "pmax": _named(lambda row, size: row - lax.stop_gradient(lax.pmax(row, "i"))),
    "ppermute": _named(_shifted),
    "all_gather": _named(_gathered),
    "psum_scatter": _named(_scattered),
    "all_to_all": _named(_exchanged),
    "looped_psum": _named(_looped_sum),
    "scanned_jit": ranked(
        lambda x, a: lax.scan(
            axir.jit(lambda c, row: (c * 0.5 + row, jnp.sin(c))),
            jnp.zeros_like(jnp.moveaxis(x, a, 0)[0]),
            jnp.moveaxis(x, a, 0),
        )[1]
    ),
    "random": unary(
        lambda x: x * axir.random.uniform(axir.random.key(7), x.shape, np.float32).astype(x.dtype)
    ),
    "counted": unary(lambda x: x + jnp.cumsum(vector(counter(x))).reshape(x.shape) % 4 / 8),
}
