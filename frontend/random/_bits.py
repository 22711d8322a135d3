"""Random bits, the source of all samplers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from axir._devices.result_layouts import lies_where_told
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import DTypeLike
from axir.dialect.core.array import ArrayLike, ConcreteArray
from axir.dialect.core.config import config
from axir.dialect.core.errors import ParameterError
from axir.dialect.core.places import place_of_part, settled
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.random import random_keys
from axir.dialect.program.key_reuse import use
from axir.dialect.program.rules import Value

from ._parameters import check_key, check_shape


@lies_where_told
def bits(
    key: ArrayLike,
    shape: Sequence[int] = (),
    dtype: DTypeLike = None,
    *,
    out_sharding: object = None,
) -> Value:
    """Draws uniformly distributed bits, as unsigned integers.

    Args:
        key: The key.
        shape: Shape of the result.
        dtype: uint8, uint16, uint32 or uint64; by default uint32, and uint64 with
            `jax_enable_x64`.
        out_sharding: Placement of the result: a sharding, or a `PartitionSpec`.

    Raises:
        ParameterError: for a dtype that is not unsigned.

    >>> from axir import random
    >>> random.bits(random.key(0), (2,), "uint8")
    Array([89,  1], dtype=uint8)
    """
    key = check_key("bits", key)
    extents = check_shape("bits", shape)
    canonical = dtypes.canonicalize_dtype(np.uint64 if dtype is None else dtype)
    if not dtypes.is_unsigned(canonical):
        raise ParameterError(
            f"random.bits: dtype must be an unsigned integer type, not {canonical}.",
            "Pass uint8, uint16, uint32 or uint64.",
        )
    return random_bits(key, canonical.itemsize * 8, extents)


def random_bits(key: Value, bit_width: int, shape: tuple[int, ...]) -> Value:
    """Draws unsigned integers of 8, 16, 32 or 64 bits with a checked key."""
    if config.jax_debug_key_reuse:
        use(key)
    return random_keys.random_bits.bind(
        key,
        bit_width=bit_width,
        shape=shape,
        partitionable=config.jax_threefry_partitionable,
    )


def wrap(host: object, like: Value) -> ConcreteArray:
    """Wraps samples computed by NumPy; they are on the key's device."""
    host = np.asarray(host)
    device = place_of_part(like, host.shape) if type(like) is ConcreteArray else None
    made = ConcreteArray(ShapedArray(host.shape, host.dtype), host, None, device)
    return made if device is not None else settled(made)
