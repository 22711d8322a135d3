"""Small programs of a kind with a fault, found by long random programs, with their arguments.

One operation reads an array, and another one updates it in place. If the host reads a value that
depends on the update, IREE cut the program there. It moved operations that only the end needs
behind the cut, so these read overwritten elements.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import axir.numpy as jnp
from axir import lax

Value = Any
_RANDOM = np.random.default_rng(0)


def _place(n: Value, *others: Value) -> Value:
    """A place that depends on arrays, and equals `n`, because the arrays are small."""
    largest = sum(jnp.max(jnp.abs(x)) for x in others)
    return n + (largest > 1e30)


def _base(m: Value) -> Value:
    return jnp.tanh(jnp.flip(jnp.sort(m, 1), 0))


def _with_row(x: Value, row: Value, where: Value) -> Value:
    # Complex numbers keep such a small program from becoming one kernel.
    row = row if jnp.iscomplexobj(x) else jnp.real(row)
    return lax.dynamic_update_slice(x, row, (where, jnp.zeros_like(where)))


def _early(a: Value, piece: Value) -> Value:
    return lax.dynamic_update_slice(a, piece.astype(a.dtype), (1, 3))


def updated_twice(m: Value, row: Value, piece: Value, n: Value) -> Value:
    """The update for the result reads `a` late, and the update for a place reads it early."""
    a = _base(m)
    late = jnp.tanh(lax.dynamic_update_slice(a, a[:3, :1], (n, jnp.ones_like(n))))
    return _with_row(late, row, _place(n, jnp.tanh(_early(a, piece))))


def of_complex(m: Value, row: Value, piece: Value, n: Value) -> Value:
    """The result becomes complex; a separate kernel updates long complex arrays."""
    a = _base(m)
    late = jnp.tanh(lax.dynamic_update_slice(a, a[:3, :1], (n, jnp.ones_like(n)))) + 0j
    return _with_row(late, row, _place(n, jnp.tanh(_early(a, piece))))


def read_by_a_sum(m: Value, row: Value, piece: Value, n: Value) -> tuple[Value, Value]:
    """The late reader of `a` is no update, and the updated array is a result."""
    a = _base(m)
    late = jnp.sin(a.T + m)
    early = _early(a, piece)
    return early, _with_row(late, row, _place(n, jnp.tanh(early)))


def chosen(m: Value, row: Value, piece: Value, n: Value) -> Value:
    """The host reads a truth value as well."""
    a = _base(m)
    late = jnp.tanh(lax.dynamic_update_slice(a, a[:3, :1], (n, jnp.ones_like(n))))
    is_large = _place(n, jnp.tanh(_early(a, piece))) > 5
    where = lax.cond(is_large, lambda: n + 1, lambda: n)
    return jnp.sort(_with_row(late, row, where), 0)


def looped(m: Value, row: Value, piece: Value, n: Value) -> tuple[Value, Value]:
    """The host reads the number of passes of a loop; the loop updates its initial carry."""
    a = _base(m)
    late = jnp.tanh(lax.dynamic_update_slice(a, a[:3, :1], (n, jnp.ones_like(n))))
    early = jnp.tanh(_early(a, piece))
    count = _place(n, early)
    end = lax.fori_loop(0, count, lambda i, c: _with_row(c, row, i % 4), early)
    return _with_row(late, row, count), end


def _arguments(dtype: Any) -> list[np.ndarray]:
    matrix, row, piece = (_RANDOM.uniform(-1, 1, shape) for shape in ((4, 4), (1, 3), (1, 1)))
    parts = [matrix.astype(dtype), (row + 0.5j).astype(np.result_type(dtype, np.complex64))]
    return [*parts, piece.astype(dtype), np.asarray(1, np.int64)]


EARLY_UPDATES: dict[str, tuple[Any, ...]] = {
    f"{function.__name__}_{dtype.__name__}": (function, *_arguments(dtype))
    for function in (updated_twice, of_complex, read_by_a_sum, chosen, looped)
    for dtype in (np.float32, np.float64)
}
