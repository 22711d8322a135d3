"""Steps of long random programs: they read and update arrays, and old values stay in use.

A step takes three values of the pool, of any shape and dtype, and a number, and returns one array.
Two classes of values never mix their errors:

* *Exact* ones (integers, truth values, half-precision floats) are small whole numbers throughout,
  so that every operation on them is exact. Only they decide: places, branches, numbers of passes,
  masks, orders. So no decision of a program depends on rounding.
* *Real* ones (float32, float64 and their complex numbers) are of the size of one. All operations on
  them are continuous and hardly expand, so that errors stay as small as roundings.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import axir
import axir.numpy as jnp
from axir import lax

Value = Any
PoolStep = Callable[[Value, Value, Value, int], Value]
# Exact values lie between minus this and this; sums of 16 of their products fit into 8 bits.
_BOUND = 8
_PERIOD = 2 * _BOUND + 1
# The largest extent of a product of similar matrices.
_LONGEST_SIDE = 300


# Values of the pool -----------------------------------------------------------------------------


def is_exact(x: Value) -> bool:
    """Tells whether all arithmetic on a value is exact."""
    return x.dtype not in (np.float32, np.float64, np.complex64, np.complex128)


def is_complex(x: Value) -> bool:
    return bool(jnp.issubdtype(x.dtype, np.complexfloating))


def wrapped(x: Value) -> Value:
    """Brings an exact value back between the bounds."""
    if x.dtype == bool:
        return x
    if jnp.issubdtype(x.dtype, np.unsignedinteger):
        return x % _PERIOD
    return jnp.remainder(x, _PERIOD) - _BOUND


def settled(x: Value) -> Value:
    """Brings a value to the size of one, smoothly, whatever it has become."""
    if is_exact(x):
        return wrapped(x)
    if is_complex(x):
        return 1.5 * x * lax.rsqrt(1 + jnp.real(x * jnp.conj(x)))
    return 1.5 * x * lax.rsqrt(1 + x * x)


def whole(x: Value) -> Value:
    """A value as int32; for a real value it only tells that it is not huge."""
    if is_exact(x):
        return x.astype(np.int32)
    return (jnp.abs(x) > 1e30).astype(np.int32) + x.size


def converted(x: Value, dtype: Any) -> Value:
    """A value in another dtype; complex numbers lose a part, real ones become exact as `whole`."""
    dtype = jnp.dtype(dtype)
    if x.dtype == dtype:
        return x
    probe = np.zeros((), dtype)
    if is_exact(probe):
        x = x if is_exact(x) else whole(x)
        if dtype.kind == "b":
            return whole(x) % 2 == 1
        if jnp.issubdtype(dtype, np.unsignedinteger):
            return (whole(x) % _PERIOD).astype(dtype)
        return wrapped(x).astype(dtype)
    if is_complex(x) and not jnp.issubdtype(dtype, np.complexfloating):
        x = jnp.real(x) + 0.5 * jnp.imag(x)
    # Whole numbers become numbers of the size of one.
    return x.astype(dtype) / 6 + 0.1 if is_exact(x) else x.astype(dtype)


def shaped(x: Value, shape: tuple[int, ...], choice: int = 0) -> Value:
    """A value in another shape: cut, repeated along axes, or put into a uniform array."""
    if x.shape == shape:
        return x
    size = math.prod(shape)
    if x.size == size:
        return jnp.reshape(x, shape)
    if x.ndim and x.ndim < len(shape) and shape[-x.ndim :] == x.shape:
        return jnp.broadcast_to(x, shape)
    if x.size > size:
        start = choice % (x.size - size + 1)
        return jnp.reshape(jnp.reshape(x, (-1,))[start : start + size], shape)
    flat = jnp.reshape(x, (-1,))
    if choice % 2:
        return jnp.full(shape, flat[choice % x.size])
    padded = lax.pad(flat, flat[0], [(choice % (size - x.size + 1), size, 0)])
    return jnp.reshape(padded[:size], shape)


def alike(x: Value, y: Value, choice: int = 0) -> Value:
    """The second value in the shape and dtype of the first."""
    return shaped(converted(y, x.dtype), x.shape, choice)


def place(z: Value, extent: int, choice: int) -> Value:
    """A place below an extent, computed: by the host if an update needs it."""
    if z.ndim and choice % 4:
        z = jnp.reshape(z, (-1,))[choice % z.size]
    number = jnp.abs(jnp.sum(whole(z))) + choice
    return lax.rem(number, extent).astype((np.int32, np.int32, np.int64)[choice % 3])


def truth(z: Value, choice: int) -> Value:
    """A truth value that is computed."""
    return (jnp.max(whole(z)) + choice) % 2 == 0


def ranked(x: Value) -> Value:
    return jnp.reshape(x, (1,)) if x.ndim == 0 else x


def matrix(x: Value) -> Value:
    """A value as a matrix of its rows."""
    x = ranked(x)
    return x[:, None] if x.ndim == 1 else jnp.reshape(x, (-1, x.shape[-1]))


def _block(x: Value, y: Value, choice: int) -> tuple[Value, tuple[int, ...]]:
    """A part of `y` that fits into `x`, and the room that is left along each axis."""
    sizes = tuple(max(1, n - (choice >> d) % 3) for d, n in enumerate(x.shape))
    block = shaped(converted(y, x.dtype), sizes, choice)
    return block, tuple(n - s for n, s in zip(x.shape, sizes, strict=True))


# Updates in place -------------------------------------------------------------------------------


def _update_known(x: Value, y: Value, z: Value, choice: int) -> Value:
    block, room = _block(x, y, choice)
    return lax.dynamic_update_slice(x, block, tuple(choice % (r + 1) for r in room))


def _update_computed(x: Value, y: Value, z: Value, choice: int) -> Value:
    x = ranked(x)
    block, room = _block(x, y, choice)
    where = place(z, 5, choice)  # clamped where there is less room
    axis = choice % x.ndim
    starts = tuple(
        where if d == axis else jnp.asarray(choice % (r + 1), where.dtype)
        for d, r in enumerate(room)
    )
    return lax.dynamic_update_slice(x, block, starts)


def _set_row(x: Value, y: Value, z: Value, choice: int) -> Value:
    x = ranked(x)
    row = shaped(converted(y, x.dtype), x.shape[1:], choice)
    return x.at[place(z, x.shape[0], choice)].set(row)


def _set_row_known(x: Value, y: Value, z: Value, choice: int) -> Value:
    x = ranked(x)
    row = shaped(converted(y, x.dtype), x.shape[1:], choice)
    return x.at[choice % x.shape[0]].set(row)


def _set_column(x: Value, y: Value, z: Value, choice: int) -> Value:
    x = ranked(x)
    where = place(z, x.shape[-1], choice) if choice % 2 else choice % x.shape[-1]
    return x.at[..., where].set(shaped(converted(y, x.dtype), x.shape[:-1], choice))


def _add_row(x: Value, y: Value, z: Value, choice: int) -> Value:
    x = ranked(x)
    row = shaped(converted(y, x.dtype), x.shape[1:], choice)
    if x.dtype == bool:
        return x.at[place(z, x.shape[0], choice)].set(row)
    if is_exact(x):
        return wrapped(x.at[place(z, x.shape[0], choice)].add(row))
    return x.at[place(z, x.shape[0], choice)].add(0.25 * row)


def _set_part(x: Value, y: Value, z: Value, choice: int) -> Value:
    """Sets a part between known bounds, or one of every second element."""
    x = ranked(x)
    start = choice % max(1, x.shape[0] // 2)
    part = slice(start, None, 1 + choice % 2)
    return x.at[part].set(shaped(converted(y, x.dtype), x[part].shape, choice))


def _scatter(x: Value, y: Value, z: Value, choice: int) -> Value:
    """Sets elements at different places; some may be out of bounds."""
    x = jnp.reshape(x, (-1,))
    count = 1 + choice % min(4, x.size)
    where = place(z, x.size, choice) + jnp.arange(count) * (1 + choice % 2)
    values = shaped(converted(y, x.dtype), (count,), choice)
    return x.at[where].set(values, mode="drop")


def _scatter_add(x: Value, y: Value, z: Value, choice: int) -> Value:
    """Adds to elements at places that may coincide."""
    flat = jnp.reshape(x, (-1,))
    where = (jnp.reshape(whole(z), (-1,))[:5] + choice) % flat.size
    values = shaped(converted(y, x.dtype), where.shape, choice)
    if x.dtype == bool:
        return flat.at[where].max(values).reshape(x.shape)
    if is_exact(x):
        return wrapped(flat.at[where].add(values)).reshape(x.shape)
    return flat.at[where].add(0.25 * values).reshape(x.shape)


def _scatter_extreme(x: Value, y: Value, z: Value, choice: int) -> Value:
    if is_complex(x):
        return _scatter_add(x, y, z, choice)
    flat = jnp.reshape(x, (-1,))
    where = (jnp.reshape(whole(z), (-1,))[:3] + choice) % flat.size
    values = shaped(converted(y, x.dtype), where.shape, choice)
    target = flat.at[where]
    return (target.max(values) if choice % 2 else target.min(values)).reshape(x.shape)


def _masked(x: Value, y: Value, z: Value, choice: int) -> Value:
    mask = shaped(whole(z) % 3 == choice % 3, x.shape, choice)
    if choice % 2:
        return x.at[mask].set(jnp.reshape(alike(x, y, choice), (-1,))[0]) if x.ndim else x
    return jnp.where(mask, x, alike(x, y, choice))


# Parts ------------------------------------------------------------------------------------------


def _slice_known(x: Value, y: Value, z: Value, choice: int) -> Value:
    x = ranked(x)
    axis = choice % x.ndim
    start = choice % x.shape[axis]
    return lax.slice_in_dim(x, start, None, 1 + choice % 2, axis)


def _slice_computed(x: Value, y: Value, z: Value, choice: int) -> Value:
    x = ranked(x)
    axis = choice % x.ndim
    size = max(1, x.shape[axis] - choice % 3)
    return lax.dynamic_slice_in_dim(x, place(z, 4, choice), size, axis)


def _row(x: Value, y: Value, z: Value, choice: int) -> Value:
    x = ranked(x)
    return x[place(z, x.shape[0], choice)]


def _gathered(x: Value, y: Value, z: Value, choice: int) -> Value:
    flat = jnp.reshape(x, (-1,))
    where = (whole(z) + choice) % flat.size
    return flat[where]


def _part_moved(x: Value, y: Value, z: Value, choice: int) -> Value:
    """Writes a part of an array to another place in it: reads elements that it overwrites."""
    x = ranked(x)
    size = max(1, x.shape[0] - 1)
    part = lax.dynamic_slice_in_dim(x, place(z, 2, choice), size, 0)
    return lax.dynamic_update_slice_in_dim(x, part, place(z, 3, choice + 1), 0)


# Uniform arrays ---------------------------------------------------------------------------------


def _constant(dtype: Any, choice: int) -> Value:
    number = (0, 1, 2, -1)[choice % 4] if choice % 3 else 0
    if jnp.dtype(dtype).kind in "bu":
        number = abs(number)
    return jnp.asarray(number, dtype)


def _uniform(x: Value, y: Value, z: Value, choice: int) -> Value:
    """A uniform array of a constant, updated at a computed place."""
    made = jnp.full(x.shape, _constant(x.dtype, choice))
    return _set_row(made, y, z, choice)


def _zeros(x: Value, y: Value, z: Value, choice: int) -> Value:
    return _update_known(jnp.zeros(x.shape, x.dtype), y, z, choice)


def _filled(x: Value, y: Value, z: Value, choice: int) -> Value:
    """A uniform array of a computed number."""
    return jnp.full(x.shape, jnp.reshape(converted(y, x.dtype), (-1,))[choice % y.size])


def _filled_by_sum(x: Value, y: Value, z: Value, choice: int) -> Value:
    total = settled(jnp.sum(whole(y) if is_exact(x) else converted(y, x.dtype)))
    total = converted(total, x.dtype)
    return settled(_both(x, jnp.full(x.shape, total)))


# Elementwise ------------------------------------------------------------------------------------


def _both(x: Value, y: Value) -> Value:
    if x.dtype == bool:
        return x ^ y
    return x + y


def _mixed(x: Value, y: Value, z: Value, choice: int) -> Value:
    y = alike(x, y, choice)
    if is_exact(x):
        return wrapped(_both(x, y))
    return x * 0.5 + y * 0.75


def _difference(x: Value, y: Value, z: Value, choice: int) -> Value:
    y = alike(x, y, choice)
    if x.dtype == bool:
        return x & ~y
    return settled(x - y)


def _product(x: Value, y: Value, z: Value, choice: int) -> Value:
    y = alike(x, y, choice)
    if x.dtype == bool:
        return x | y
    return settled(x * y + x) if not is_exact(x) else wrapped(x * y)


def _turned(x: Value, y: Value, z: Value, choice: int) -> Value:
    y = alike(x, y, choice)
    if is_exact(x):
        return _product(x, y, z, choice)
    if is_complex(x):
        return settled(x * (0.6 + 0.8j) + 0.5 * y)
    return jnp.sin(x + y) if choice % 2 else jnp.tanh(x * 1.2 - 0.5 * y)


def _three(x: Value, y: Value, z: Value, choice: int) -> Value:
    y, z = alike(x, y, choice), alike(x, z, choice + 1)
    if x.dtype == bool:
        return jnp.where(y, x, z)
    if is_exact(x):
        return wrapped(jnp.maximum(x, y) + jnp.minimum(y, z))
    return settled(x * y - 0.5 * z)


def _bits(x: Value, y: Value, z: Value, choice: int) -> Value:
    a, b = whole(x), alike(whole(x), y, choice)
    return wrapped((a << choice % 3) ^ (b >> 1) | (lax.population_count(a) & b))


# Orders, reductions, running sums ---------------------------------------------------------------


def _sorted(x: Value, y: Value, z: Value, choice: int) -> Value:
    x = ranked(x)
    if is_complex(x):
        return lax.complex(jnp.sort(jnp.real(x), 0), jnp.sort(jnp.imag(x), -1))
    return jnp.sort(x, choice % x.ndim, descending=bool(choice // 2 % 2))


def _sorted_by_keys(x: Value, y: Value, z: Value, choice: int) -> Value:
    x = ranked(x)
    keys = shaped(whole(z), x.shape, choice)
    return lax.sort((keys, x), dimension=choice % x.ndim, num_keys=1)[1]


def _order(x: Value, y: Value, z: Value, choice: int) -> Value:
    keys = ranked(whole(x))
    if choice % 2:
        return wrapped(jnp.argsort(keys, axis=choice // 2 % keys.ndim).astype(np.int32))
    found = jnp.argmax(keys, axis=-1) + jnp.argmin(keys, axis=-1)
    return wrapped(found.astype(np.int32)[..., None] + keys)


def _largest(x: Value, y: Value, z: Value, choice: int) -> Value:
    x = ranked(x)
    if is_complex(x):
        return _summed(x, y, z, choice)
    if x.dtype == bool:
        return jnp.any(x, -1, keepdims=True) & jnp.all(x, 0)
    made = jnp.max(x, choice % x.ndim, keepdims=True) + jnp.min(x) - x
    return wrapped(made) if is_exact(x) else 0.5 * made


def _top(x: Value, y: Value, z: Value, choice: int) -> Value:
    x = ranked(x)
    if is_complex(x) or x.dtype == bool:
        return _sorted(x, y, z, choice)
    return lax.top_k(x, max(1, x.shape[-1] - choice % 2))[0]


def _summed(x: Value, y: Value, z: Value, choice: int) -> Value:
    x = ranked(x)
    axis = choice % x.ndim
    if is_exact(x):
        return wrapped(jnp.sum(whole(x), axis, keepdims=True) + whole(x))
    return settled(jnp.sum(x, axis, keepdims=True) / 3 - x)


def _halves_summed(x: Value, y: Value, z: Value, choice: int) -> Value:
    """Sums of numbers of few bits, in their dtype."""
    x = ranked(x)
    x = x if is_exact(x) else whole(x)
    axis = choice % x.ndim
    # Whole numbers of two digits are exact in eight bits.
    small = x if x.dtype == bool else x % 3
    return wrapped(jnp.sum(small, axis, dtype=np.int32 if x.shape[axis] > 50 else None))


def _running(x: Value, y: Value, z: Value, choice: int) -> Value:
    x = ranked(x)
    axis = choice % x.ndim
    if is_exact(x):
        return wrapped(jnp.cumsum(whole(x), axis))
    if choice % 3 == 0 and not is_complex(x):
        return lax.cummax(x, axis, reverse=bool(choice % 2))
    return settled(jnp.cumsum(x, axis) * 0.5)


def _normalized(x: Value, y: Value, z: Value, choice: int) -> Value:
    """A softmax or a norm: reductions that return to their array."""
    x = ranked(x)
    if is_exact(x):
        return wrapped(whole(x) - jnp.max(whole(x), -1, keepdims=True))
    if is_complex(x):
        return 2 * x * lax.rsqrt(1 + jnp.sum(jnp.real(x * jnp.conj(x)), -1, keepdims=True))
    if choice % 2:
        return axir.nn.softmax(x, choice % x.ndim) * 2
    return (x - jnp.mean(x, -1, keepdims=True)) * lax.rsqrt(0.5 + jnp.var(x, -1, keepdims=True))


# Products ---------------------------------------------------------------------------------------


def _small(x: Value) -> Value:
    """Factors of sums of products: of the size of one, exact ones -1, 0, or 1."""
    if x.dtype == bool:
        return x.astype(np.int8)
    if is_exact(x):
        is_unsigned = jnp.issubdtype(x.dtype, np.unsignedinteger)
        return x % 2 if is_unsigned else jnp.remainder(x, 3) - 1
    return x


def _factor(x: Value) -> Value:
    """A matrix that may be multiplied with one of fitting length or width."""
    a = _small(matrix(x))
    return a if max(a.shape) <= _LONGEST_SIDE else a[:_LONGEST_SIDE, :_LONGEST_SIDE]


def _matrix_product(x: Value, y: Value, z: Value, choice: int) -> Value:
    a = _factor(x)
    b = _small(shaped(converted(y, a.dtype), (a.shape[1], a.shape[-1]), choice))
    made = a @ b if choice % 2 else jnp.matmul(b.T, a.T).T
    return settled(made / math.sqrt(a.shape[1])) if not is_exact(a) else wrapped(made)


def _inner_product(x: Value, y: Value, z: Value, choice: int) -> Value:
    a = _small(jnp.reshape(x, (-1,)))
    b = _small(shaped(converted(y, a.dtype), a.shape, choice))
    if is_exact(a):
        a, b = a[:100], b[:100]
        return wrapped(jnp.dot(a, b))
    return settled(jnp.vdot(a, b) / math.sqrt(a.size))


def _tensor_product(x: Value, y: Value, z: Value, choice: int) -> Value:
    a = _factor(x)
    b = _small(shaped(converted(y, a.dtype), (2, *a.shape), choice))
    made = jnp.tensordot(b, a, ([2], [1])) if choice % 2 else jnp.einsum("bij,ik->bjk", b, a)
    return settled(made / math.sqrt(a.size)) if not is_exact(a) else wrapped(made)


def _matrix_vector(x: Value, y: Value, z: Value, choice: int) -> Value:
    a = _small(matrix(x))
    b = _small(shaped(converted(y, a.dtype), (a.shape[1],), choice))
    made = a @ b
    made = settled(made / math.sqrt(a.shape[1])) if not is_exact(a) else wrapped(made)
    return made[:, None] if choice % 2 else made


# Moves ------------------------------------------------------------------------------------------


def _reversed(x: Value, y: Value, z: Value, choice: int) -> Value:
    x = ranked(x)
    return jnp.flip(x, choice % x.ndim)


def _rolled(x: Value, y: Value, z: Value, choice: int) -> Value:
    x = ranked(x)
    by = place(z, 3, choice) if choice % 2 else 1 + choice % 3
    return jnp.roll(x, by, choice % x.ndim)


def _joined(x: Value, y: Value, z: Value, choice: int) -> Value:
    x = ranked(x)
    y = alike(x, y, choice)
    half = x.shape[0] // 2
    return jnp.concatenate([y[half:], x[: x.shape[0] - (y.shape[0] - half)]])


def _padded(x: Value, y: Value, z: Value, choice: int) -> Value:
    x = ranked(x)
    value = jnp.reshape(converted(y, x.dtype), (-1,))[0] if choice % 2 else _constant(x.dtype, 0)
    low = choice % 2
    return lax.pad(x, value, [(low, 1 - low, 0)] + [(0, 0, 0)] * (x.ndim - 1))[1 - low :][
        : x.shape[0]
    ]


def _transposed(x: Value, y: Value, z: Value, choice: int) -> Value:
    return jnp.reshape(jnp.swapaxes(x, 0, -1), x.shape) if x.ndim > 1 else x[..., None]


def _barrier(x: Value, y: Value, z: Value, choice: int) -> Value:
    return lax.optimization_barrier((x, y))[0]


# Dtypes -----------------------------------------------------------------------------------------

NARROW = (np.int8, np.uint8, jnp.bfloat16, np.float16, np.bool_, np.int32, np.int64, np.int16)


def _narrow(x: Value, y: Value, z: Value, choice: int) -> Value:
    return wrapped(converted(x, NARROW[choice % len(NARROW)]))


def _as_real(x: Value, y: Value, z: Value, choice: int) -> Value:
    """A value in the dtype of another one that is real, if there is any."""
    for other in (y, z):
        if not is_exact(other):
            return converted(x, other.dtype)
    return x


def _complex_of(x: Value, y: Value, z: Value, choice: int) -> Value:
    if is_complex(x):
        return lax.complex(jnp.imag(x), jnp.real(alike(x, y, choice)))
    if is_exact(x):
        return _mixed(x, y, z, choice)
    return lax.complex(x, alike(x, y, choice))


def _part_of_complex(x: Value, y: Value, z: Value, choice: int) -> Value:
    if not is_complex(x):
        return _turned(x, y, z, choice)
    return (jnp.real, jnp.imag, lambda v: jnp.real(v * jnp.conj(v)) * 0.5)[choice % 3](x)


def _part_of_made(x: Value, y: Value, z: Value, choice: int) -> Value:
    """A part of a number made of parts: equal to one of them, but from another operation."""
    if is_complex(x) or is_exact(x):
        return _both(x, jnp.zeros_like(x))
    made = lax.complex(x, alike(x, y, choice))
    return jnp.real(made) if choice % 2 else jnp.imag(made)


def _conjugated(x: Value, y: Value, z: Value, choice: int) -> Value:
    return jnp.conj(x) if is_complex(x) else settled(-x) if x.dtype != bool else ~x


MEMORY: dict[str, PoolStep] = {
    "update_known": _update_known,
    "update_computed": _update_computed,
    "set_row": _set_row,
    "set_row_known": _set_row_known,
    "set_column": _set_column,
    "add_row": _add_row,
    "set_part": _set_part,
    "scatter": _scatter,
    "scatter_add": _scatter_add,
    "scatter_extreme": _scatter_extreme,
    "masked": _masked,
    "part_moved": _part_moved,
    "uniform": _uniform,
    "zeros": _zeros,
    "filled": _filled,
    "filled_by_sum": _filled_by_sum,
}
READS: dict[str, PoolStep] = {
    "slice_known": _slice_known,
    "slice_computed": _slice_computed,
    "row": _row,
    "gathered": _gathered,
    "reversed": _reversed,
    "rolled": _rolled,
    "joined": _joined,
    "padded": _padded,
    "transposed": _transposed,
    "barrier": _barrier,
}
ARITHMETIC: dict[str, PoolStep] = {
    "mixed": _mixed,
    "difference": _difference,
    "product": _product,
    "turned": _turned,
    "three": _three,
    "bits": _bits,
    "settled": lambda x, y, z, choice: settled(x),
    "sorted": _sorted,
    "sorted_by_keys": _sorted_by_keys,
    "order": _order,
    "largest": _largest,
    "top": _top,
    "summed": _summed,
    "halves_summed": _halves_summed,
    "running": _running,
    "normalized": _normalized,
    "matrix_product": _matrix_product,
    "inner_product": _inner_product,
    "tensor_product": _tensor_product,
    "matrix_vector": _matrix_vector,
    "narrow": _narrow,
    "as_real": _as_real,
    "complex_of": _complex_of,
    "part_of_complex": _part_of_complex,
    "part_of_made": _part_of_made,
    "conjugated": _conjugated,
}
