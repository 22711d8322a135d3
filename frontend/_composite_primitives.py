"""JAX's primitives that are no ops of axir's: applying one makes the ops that it consists of.

Tables of rules by primitive name them, and programs bind them. They never occur in a jaxpr.
"""

from __future__ import annotations

from collections.abc import Sequence

import axir.numpy as jnp
from axir import lax
from axir._devices.placement import device_put
from axir.dialect.core.annotations import Param, UserFunction, UserObject
from axir.dialect.core.dtypes import is_float
from axir.dialect.ops.elementwise.family import as_value
from axir.dialect.program.primitive import Primitive
from axir.dialect.program.rules import Results, Value
from axir.lax import linalg
from axir.random import gamma, loggamma


class CompositePrimitive(Primitive):
    """A primitive that is a function of others.

    Args:
        name: JAX's name of it.
        function: `(*operands, **params) -> result(s)`, with JAX's parameters.
        multiple_results: Whether the function returns a list.
    """

    def __init__(self, name: str, function: UserFunction, multiple_results: bool = False):
        super().__init__(name, multiple_results)
        self._function = function

    def bind(self, *operands: object, **params: object) -> Results:
        """Applies the function."""
        return self._function(*operands, **params)


def _ordered(x: object) -> Value:
    """Returns integers that are ordered as numbers are: -nan < -inf < -0 < 0 < inf < nan.

    The bits of negative floats, but for the sign, are turned over (IEEE 754-2019, 5.10).
    """
    value = as_value(x)
    if not is_float(value.dtype):
        return value
    width = jnp.finfo(value.dtype).bits
    bits = lax.bitcast_convert_type(value, jnp.dtype(f"int{width}"))
    sign = lax.shift_right_arithmetic(bits, lax.full_like(bits, width - 1))
    return lax.bitwise_xor(bits, lax.bitwise_and(sign, lax.full_like(bits, 2 ** (width - 1) - 1)))


def _approx_top_k(operand: UserObject, *, is_max_k: bool, **params: Param) -> list[Value]:
    return [*(lax.approx_max_k if is_max_k else lax.approx_min_k)(operand, **params)]


def _device_put(*operands: object, devices: Sequence[object], **_: object) -> list[object]:
    return [device_put(x, device) for x, device in zip(operands, devices, strict=True)]


def _random_gamma(key: object, a: object, *, log_space: bool) -> Value:
    a = as_value(a)
    return (loggamma if log_space else gamma)(key, a, dtype=a.dtype)


def _scatter_sub(
    operand: UserObject, indices: UserObject, updates: UserObject, *,
    update_jaxpr: object = None, update_consts: object = (), **params: Param,
) -> Value:  # fmt: skip
    return lax.scatter_sub(operand, indices, updates, **params)


_FUNCTIONS: dict[str, UserFunction] = {
    "after_all": lax.after_all,
    "cholesky_update": linalg.cholesky_update,
    "create_token": lax.create_token,
    "eq_to": lambda x, y: lax.eq(_ordered(x), _ordered(y)),
    "le_to": lambda x, y: lax.le(_ordered(x), _ordered(y)),
    "lt_to": lambda x, y: lax.lt(_ordered(x), _ordered(y)),
    "log2": lambda x, accuracy=None: lax.log2(x, accuracy=accuracy),
    "one_minus_square": lax.one_minus_square,
    "ormqr": linalg.ormqr,
    "polynomial": lambda x, *coeffs, unroll=None: lax.polynomial(x, coeffs, unroll=unroll),
    "ragged_all_to_all": lax.ragged_all_to_all,
    "random_gamma": _random_gamma,
    "rng_uniform": lax.rng_uniform,
    "scatter_sub": _scatter_sub,
    "symmetric_product": linalg.symmetric_product,
}
COMPOSITE_PRIMITIVES = {
    name: CompositePrimitive(name, function) for name, function in _FUNCTIONS.items()
} | {
    "approx_top_k": CompositePrimitive("approx_top_k", _approx_top_k, multiple_results=True),
    "device_put": CompositePrimitive("device_put", _device_put, multiple_results=True),
}
