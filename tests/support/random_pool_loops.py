"""Steps of long random programs that hold functions: loops that update their carry, branches.

Deciding values (numbers of passes, branches, places) are exact; see `random_pool_steps.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import axir
import axir.numpy as jnp
from axir import lax

from .random_pool_steps import (
    PoolStep,
    alike,
    converted,
    is_exact,
    place,
    ranked,
    settled,
    shaped,
    truth,
    whole,
    wrapped,
)

Value = Any


def _half(x: Value, y: Value) -> Value:
    """The mean of two values, or a substitute for exact ones."""
    if x.dtype == bool:
        return x ^ y
    return wrapped(x + y) if is_exact(x) else 0.5 * x + 0.5 * y


def _fori_update(x: Value, y: Value, z: Value, choice: int) -> Value:
    """Sets row after row of its carry, from the row before."""
    x = ranked(x)
    y = alike(x, y, choice)
    count = x.shape[0]

    def body(i: Value, c: Value) -> Value:
        return c.at[i].set(_half(c[(i + count - 1) % count], y[i]))

    return lax.fori_loop(0, min(count, 2 + choice % 4), body, x)


def _fori_computed(x: Value, y: Value, z: Value, choice: int) -> Value:
    """Updates at places from another array, which the loop does not change."""
    x = ranked(x)
    row = shaped(converted(y, x.dtype), x.shape[1:], choice)
    places = (jnp.reshape(whole(z), (-1,)) + choice) % x.shape[0]

    def body(i: Value, c: Value) -> Value:
        where = places[i % places.size]
        return c.at[where].set(_half(c[where], row))

    return lax.fori_loop(0, 1 + choice % 4, body, x)


def _traced_fori(x: Value, y: Value, z: Value, choice: int) -> Value:
    """A computed number of passes; the initial carry is used after the loop."""
    x = lax.stop_gradient(ranked(x))
    y = lax.stop_gradient(alike(x, y, choice))
    end = lax.fori_loop(
        0, place(z, 4, choice), lambda i, c: c.at[i % c.shape[0]].set(y[i % y.shape[0]]), x
    )
    return _half(end, x) if choice % 2 else end


def _while_update(x: Value, y: Value, z: Value, choice: int) -> Value:
    """Ends by a sum of whole numbers that the loop changes."""
    x = lax.stop_gradient(ranked(x))
    y = lax.stop_gradient(alike(x, y, choice))
    goal = jnp.max(whole(z)) % 5 + choice % 2

    def step(state: Value) -> Value:
        i, c, d = state
        row = i % c.shape[0]
        return i + 1, c.at[row].set(_half(d[row], y[row])), c

    start = (jnp.zeros((), goal.dtype), x, y)
    end = lax.while_loop(lambda state: state[0] < goal, step, start)
    return end[1] if choice % 2 else _half(end[1], end[2])


def _swapping(x: Value, y: Value, z: Value, choice: int) -> Value:
    """Two arrays that change places and are updated."""
    x = ranked(x)
    y = alike(x, y, choice)
    value = jnp.reshape(converted(z, x.dtype), (-1,))[0]

    def body(i: Value, state: Value) -> Value:
        a, b = state
        return b, a.at[(i + choice) % a.shape[0]].set(_half(b[0], value))

    a, b = lax.fori_loop(0, 1 + choice % 4, body, (x, y))
    return _half(a, b) if choice % 2 else b


def _scan_table(x: Value, y: Value, z: Value, choice: int) -> Value:
    """Goes through rows, fills a table at computed places, and stacks values read from it."""
    x = ranked(x)
    y = alike(x, y, choice)
    offset = place(z, x.shape[0], choice)

    def body(table: Value, slices: Value) -> tuple[Value, Value]:
        i, row = slices
        old = table[(i + offset) % x.shape[0]]
        return table.at[(i * 2 + offset) % x.shape[0]].set(_half(old, row)), old

    numbers = jnp.arange(x.shape[0])
    table, read = lax.scan(body, x, (numbers, y), reverse=bool(choice % 2))
    return _half(table, read) if choice % 3 else table


def _scan_state(x: Value, y: Value, z: Value, choice: int) -> Value:
    """A small state and a table, both changed by each row, the state returned with the rows."""
    rows = ranked(x)
    start = shaped(converted(y, x.dtype), rows.shape[1:], choice)

    def body(state: Value, row: Value) -> tuple[Value, Value]:
        new = settled(_half(state, row))
        return new, new

    last, stacked = lax.scan(body, start, rows, unroll=1 + choice % 2)
    return stacked.at[choice % rows.shape[0]].set(last)


def _cond_update(x: Value, y: Value, z: Value, choice: int) -> Value:
    """One branch updates in place, the other one computes."""
    x = ranked(x)
    y = alike(x, y, choice)
    row = choice % x.shape[0]
    return lax.cond(
        truth(z, choice), lambda a, b: a.at[row].set(b[row]), lambda a, b: _half(a, b), x, y
    )


def _cond_choice(x: Value, y: Value, z: Value, choice: int) -> Value:
    """Branches that return their arguments, or a uniform array."""
    y = alike(x, y, choice)
    branches = (
        (lambda a, b: a, lambda a, b: b),
        (lambda a, b: jnp.zeros_like(a), lambda a, b: a),
        (lambda a, b: jnp.full_like(a, jnp.reshape(b, (-1,))[0]), lambda a, b: _half(a, b)),
    )[choice % 3]
    return lax.cond(truth(z, choice), *branches, x, y)


def _switch_update(x: Value, y: Value, z: Value, choice: int) -> Value:
    x = ranked(x)
    y = alike(x, y, choice)
    branches = [
        lambda a, b: a.at[0].set(b[-1]),
        lambda a, b: _half(a, b),
        lambda a, b: lax.fori_loop(0, 2, lambda i, c: c.at[i % c.shape[0]].set(b[0]), a),
        lambda a, b: b,
    ]
    # An index out of range means the nearest one.
    return lax.switch(place(z, 6, choice) - 1, branches, x, y)


def _branching_loop(x: Value, y: Value, z: Value, choice: int) -> Value:
    """A loop; a number of an array decides in each pass where to write, or whether."""
    x = ranked(x)
    y = alike(x, y, choice)
    flags = jnp.reshape(whole(z), (-1,))

    def body(i: Value, c: Value) -> Value:
        return lax.cond(
            flags[i % flags.size] % 2 == choice % 2,
            lambda c: c.at[i % c.shape[0]].set(y[0]),
            lambda c: _half(c, y),
            c,
        )

    return lax.fori_loop(0, 2 + choice % 2, body, x)


def _nested_loops(x: Value, y: Value, z: Value, choice: int) -> Value:
    x = ranked(x)
    y = alike(x, y, choice)

    def outer(i: Value, c: Value) -> Value:
        def inner(j: Value, d: Value) -> Value:
            return d.at[(i + j) % d.shape[0]].set(_half(d[j % d.shape[0]], y[0]))

        return lax.fori_loop(0, 2, inner, c)

    return lax.fori_loop(0, 1 + choice % 3, outer, x)


def _called(x: Value, y: Value, z: Value, choice: int) -> Value:
    """A nested call, which may stay one."""

    def function(a: Value, b: Value) -> tuple[Value, Value]:
        changed = ranked(a).at[0].set(ranked(b)[-1])
        return changed, _half(changed, ranked(a))

    return axir.jit(function)(x, alike(x, y, choice))[choice % 2]


def _mapped_update(x: Value, y: Value, z: Value, choice: int) -> Value:
    """Updates that are mapped: one place for each row."""
    x = ranked(ranked(x)[..., None]) if x.ndim < 2 else x
    y = alike(x, y, choice)
    places = (shaped(whole(z), x.shape[:1], choice) + choice) % x.shape[1]
    return axir.vmap(lambda a, b, i: a.at[i].set(b[0]))(x, y, places.astype(np.int32))


CONTROL: dict[str, PoolStep] = {
    "fori_update": _fori_update,
    "fori_computed": _fori_computed,
    "traced_fori": _traced_fori,
    "while_update": _while_update,
    "swapping": _swapping,
    "scan_table": _scan_table,
    "scan_state": _scan_state,
    "cond_update": _cond_update,
    "cond_choice": _cond_choice,
    "switch_update": _switch_update,
    "branching_loop": _branching_loop,
    "nested_loops": _nested_loops,
    "called": _called,
    "mapped_update": _mapped_update,
}
