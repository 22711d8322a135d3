"""What the samplers check of their arguments: keys, shapes, dtypes, parameters of distributions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from axir.dialect import dtypes
from axir.dialect.array import Array, ConcreteArray, as_array
from axir.dialect.config import config
from axir.dialect.errors import AxirError, DTypeError, ParameterError, ShapeError
from axir.dialect.ops.broadcasting import broadcast_in_dim, broadcast_shapes
from axir.dialect.ops.conversion import convert_element_type
from axir.dialect.ops.movement import integers
from axir.dialect.tracer import Tracer
from axir.dialect.types import ShapedArray

Value = Any  # an Array or a Tracer

KEY_TYPE = ShapedArray((2,), dtypes.uint32)
_PYTHON_NUMBERS = (bool, int, float)


def to_value(name: str, argument: str, x: Any) -> Value:
    """Returns an argument as an `Array` or `Tracer`; lists and other objects are refused."""
    if type(x) is ConcreteArray or type(x) is Tracer:
        return x
    return as_array(x, f"argument {argument} of random.{name}")


def check_key(name: str, key: Any) -> Value:
    """Returns a key as a value of two uint32 words.

    Raises:
        NonArrayArgumentError: if it is not an array.
        DTypeError, ShapeError: if it does not hold keys.
        ParameterError: if it holds several keys.
    """
    if (type(key) is ConcreteArray or type(key) is Tracer) and key.type is KEY_TYPE:
        return key
    key = check_keys(name, key)
    if key.ndim > 1:
        raise ParameterError(
            f"random.{name} takes one key, but got an array of keys of shape {key.shape}.",
            "Index it, or map over it with axir.vmap.",
        )
    return key


def check_keys(name: str, keys: Any) -> Value:
    """Returns one or more keys as a value of uint32 words of shape `(..., 2)`."""
    keys = to_value(name, "key", keys)
    way_out = "Make keys with random.PRNGKey(seed), random.split and random.fold_in."
    if keys.dtype != dtypes.uint32:
        raise DTypeError(
            f"random.{name}: a key consists of uint32 words, but got {keys.type}.", way_out
        )
    if keys.shape[-1:] != (2,):
        raise ShapeError(f"random.{name}: a key has shape (2,), but got {keys.type}.", way_out)
    return keys


def check_shape(name: str, shape: Any) -> tuple[int, ...]:
    """Returns the shape of the samples as a tuple of Python integers."""
    extents = integers(f"random.{name}", "shape", shape)
    if extents and min(extents) < 0:
        raise ShapeError(f"random.{name}: shape {extents} has a negative extent.")
    return extents


def result_shape(
    name: str,
    shape: Any,
    *parameter_shapes: tuple[int, ...],
    error: type[AxirError] = ParameterError,
) -> tuple[int, ...]:
    """Returns the shape of the samples: as given, or else that of the parameters together.

    Raises:
        ParameterError, or `error`: if a parameter does not broadcast to the given shape.
    """
    together = broadcast_shapes(*parameter_shapes)
    if shape is None:
        return together
    extents = check_shape(name, shape)
    aligned = (*(1 for _ in range(len(extents) - len(together))), *together)
    if len(aligned) != len(extents) or any(
        a not in (1, b) for a, b in zip(aligned, extents, strict=True)
    ):
        raise error(
            f"random.{name}: parameters of shape {together} do not broadcast to shape {extents}.",
            "Leave shape out to get one sample for each parameter.",
        )
    return extents


def float_dtype(name: str, dtype: Any) -> np.dtype:
    """Returns the float dtype of samples, which is the default one if it is not given."""
    if dtype is None:
        return dtypes.float64 if config.jax_enable_x64 else dtypes.float32
    canonical = dtypes.canonicalize_dtype(dtype)
    if not dtypes.is_float(canonical):
        raise ParameterError(
            f"random.{name}: dtype must be a float type, not {canonical}.",
            "Pass float16, bfloat16, float32 or float64.",
        )
    return canonical


def integer_dtype(name: str, dtype: Any, error: type[AxirError] = ParameterError) -> np.dtype:
    """Returns the integer dtype of samples, which is the default one if it is not given."""
    canonical = dtypes.canonicalize_dtype(int if dtype is None else dtype)
    if not dtypes.is_integer(canonical):
        raise error(
            f"random.{name}: dtype must be an integer type, not {canonical}.",
            "Pass int8 to int64 or uint8 to uint64.",
        )
    return canonical


def parameter(name: str, argument: str, x: Any, dtype: np.dtype) -> Value:
    """Returns a real parameter of a distribution in the dtype of its samples."""
    if type(x) in _PYTHON_NUMBERS:
        return ConcreteArray(ShapedArray((), dtype), np.asarray(x, dtype))
    x = to_value(name, argument, x)
    if dtypes.is_complex(x.dtype):
        raise DTypeError(f"random.{name}: {argument} must be real, not {x.type}.")
    return convert_element_type(x, dtype)


def spread(x: Value, shape: Sequence[int]) -> Value:
    """Broadcasts as NumPy does; scalars stay, for elementwise ops stretch them by themselves."""
    if not x.shape or x.shape == tuple(shape):
        return x
    return broadcast_in_dim(x, shape, range(len(shape) - x.ndim, len(shape)))


def standard(
    name: str, key: Any, shape: Any, dtype: Any
) -> tuple[Value, tuple[int, ...], np.dtype]:
    """Checks the arguments of a distribution without parameters."""
    return check_key(name, key), check_shape(name, shape), float_dtype(name, dtype)


def with_parameters(
    name: str, key: Any, shape: Any, dtype: Any, **parameters: Any
) -> tuple[Value, tuple[int, ...], np.dtype, list[Value]]:
    """Checks the arguments of a distribution, and broadcasts its parameters."""
    checked = check_key(name, key)
    result_dtype = float_dtype(name, dtype)
    values = [parameter(name, argument, x, result_dtype) for argument, x in parameters.items()]
    extents = result_shape(name, shape, *(x.shape for x in values))
    return checked, extents, result_dtype, [spread(x, extents) for x in values]


@cache
def constant(number: float, dtype: np.dtype) -> Array:
    """Returns a number of a formula in the dtype of the samples."""
    return ConcreteArray(ShapedArray((), dtype), np.asarray(number, dtype))
