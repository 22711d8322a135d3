"""Functions that depend on the platform: `platform_dependent`, and random numbers without a key."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

import numpy as np

from axir._devices.placement import default_backend, lies_where_told
from axir._devices.shape_dtype_struct import ShapeDtypeStruct
from axir._later import later
from axir._transforms.callbacks import io_callback
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import DTypeLike, UserObject
from axir.dialect.core.array import Array, ArrayLike
from axir.dialect.core.config import config
from axir.dialect.core.errors import DTypeError, ParameterError, ShapeError
from axir.dialect.ops.elementwise.family import as_value
from axir.dialect.ops.shape.constants import full


def platform_dependent(
    *args: object,
    default: Callable[..., object] | None = None,
    **per_platform: Callable[..., object],
) -> UserObject:
    """Applies the function for the platform of the program: the default device's.

    Args:
        *args: Arguments of the functions.
        default: For platforms that are not named.
        **per_platform: Functions by platform: `cpu`, `cuda`, `vulkan`. `gpu` stands for the last
            two.

    Raises:
        ParameterError: if no function for the platform is given.

    >>> from axir import lax
    >>> float(lax.platform_dependent(2.0, cpu=lambda x: x + 1, default=lambda x: x))
    3.0
    """
    device = config.jax_default_device
    platform = default_backend() if device is None else getattr(device, "platform", device)
    names = (platform,) if platform == "cpu" else (platform, "gpu")
    chosen = next((per_platform[name] for name in names if name in per_platform), default)
    if chosen is None:
        raise ParameterError(
            f"platform_dependent: there is no function for the platform {platform!r}, only for "
            f"{', '.join(per_platform) or 'none'}.",
            "Pass one under that name, or a default.",
        )
    return chosen(*args)


@lies_where_told
def empty(shape: UserObject, dtype: DTypeLike, *, out_sharding: object = None) -> Array:
    """Returns an array of zeros, because axir has no uninitialized memory.

    >>> from axir import lax
    >>> lax.empty(2, "float32")
    Array([0., 0.], dtype=float32)
    """
    return full(shape, 0, dtypes.canonicalize_dtype(dtype))


def rng_uniform(a: ArrayLike, b: ArrayLike, shape: Sequence[int]) -> UserObject:
    """Draws numbers uniformly from [a, b), other ones each time the program runs.

    The only source of numbers without a key; `axir.random` is reproducible.

    Args:
        a: Lower bound, a scalar of a float or integer dtype.
        b: Upper bound, of the same dtype.
        shape: Shape of the result.

    Raises:
        DTypeError: for bounds of different dtypes.
        ShapeError: for bounds that are not scalars.

    >>> from axir import lax
    >>> lax.rng_uniform(0.0, 1.0, (3,)).shape
    (3,)
    """
    low, high = as_value(a), as_value(b)
    if low.dtype != high.dtype:
        raise DTypeError(f"rng_uniform: the bounds {low.aval} and {high.aval} differ in dtype.")
    if low.shape or high.shape:
        raise ShapeError(f"rng_uniform: the bounds {low.aval} and {high.aval} must be scalars.")
    key = io_callback(_fresh_key, ShapeDtypeStruct((2,), np.uint32))
    if dtypes.is_float(low.dtype):
        return later.uniform(key, shape, low.dtype, low, high)
    return later.randint(key, shape, low, high, low.dtype)


def _fresh_key() -> np.ndarray:
    return np.frombuffer(os.urandom(8), np.uint32)
