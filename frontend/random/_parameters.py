"""Checks of the samplers' arguments: keys, shapes, dtypes, parameters of distributions."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import cache

import ml_dtypes
import numpy as np

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import (
    DTypeLike,
    Options,
    ShapeLike,
    UserObject,
)
from axir.dialect.core.array import Array, ArrayLike, ConcreteArray, as_array
from axir.dialect.core.config import config
from axir.dialect.core.dtypes import is_key
from axir.dialect.core.errors import AxirError, DTypeError, ParameterError, ShapeError
from axir.dialect.core.extended_dtypes import KeyDtype, dtype_of_generator, keys_of, words_of
from axir.dialect.core.places import place_of_part
from axir.dialect.core.symbolic_dims import is_symbolic_dim
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.elementwise.conversion import convert_element_type
from axir.dialect.ops.elementwise.family import as_value
from axir.dialect.ops.random.random_keys import random_unwrap, random_wrap
from axir.dialect.ops.shape.broadcasting import broadcast_in_dim, broadcast_shapes
from axir.dialect.ops.shape.movement import integers
from axir.dialect.program.rules import Value
from axir.dialect.program.tracer import Tracer

_PYTHON_NUMBERS = (bool, int, float)
_MAKE_KEYS = "Make keys with random.key(seed), random.split and random.fold_in."


def to_value(name: str, argument: str, x: ArrayLike) -> Value:
    """Returns an argument as an `Array` or `Tracer`; lists and other objects are refused."""
    if type(x) is ConcreteArray or type(x) is Tracer:
        return x
    if is_symbolic_dim(x):
        return as_value(x)
    return as_array(x, f"argument {argument} of random.{name}")


def default_key_dtype() -> KeyDtype:
    """Returns the dtype of the keys of the generator that `jax_default_prng_impl` names."""
    dtype = dtype_of_generator(config.jax_default_prng_impl)
    assert dtype is not None
    return dtype


def check_key(name: str, key: UserObject) -> Value:
    """Returns a key as a typed one; words, as `random.PRNGKey` makes them, are wrapped.

    Raises:
        NonArrayArgumentError: if it is not an array.
        DTypeError, ShapeError: if it does not hold keys.
        ParameterError: if it holds several keys, or words where the options forbid them.
    """
    keys = check_keys(name, key)
    if keys.shape:
        raise ParameterError(
            f"random.{name} accepts a single key, but was given a key array of shape {key.shape}.",
            "Index it, or map over it with axir.vmap.",
        )
    return keys


def check_keys(name: str, keys: ArrayLike) -> Value:
    """Returns one or more keys as typed ones, as `check_key` does."""
    keys = to_value(name, "key", keys)
    if is_key(keys.dtype):
        return keys
    if config.jax_legacy_prng_key != "allow":
        _complain_of_words(name)
    return wrap_words(name, keys, default_key_dtype())


def wrap_words(name: str, words: Value, dtype: KeyDtype) -> Value:
    """Returns keys of uint32 words of shape `(..., words)`."""
    shape = words.shape
    if words.dtype != dtypes.uint32:
        raise DTypeError(
            f"random.{name}: a key consists of uint32 words, but got {words.type}.", _MAKE_KEYS
        )
    if shape[-1:] != (dtype.words,):
        raise ShapeError(
            f"random.{name}: the words of a key of {dtype.impl.name} have shape "
            f"({dtype.words},), but got {words.type}.",
            _MAKE_KEYS,
        )
    if type(words) is ConcreteArray:  # the same as the op, in less time
        host = keys_of(words.host(), dtype)
        place = place_of_part(words, shape[:-1])
        return ConcreteArray(ShapedArray(shape[:-1], dtype), host, None, place)
    return random_wrap.bind(words, impl=dtype.impl.tag)


def unwrap_words(keys: Value) -> Value:
    """Returns the words of typed keys."""
    if type(keys) is ConcreteArray:  # the same as the op, in less time
        words = keys.type.words
        return ConcreteArray(words, words_of(keys.host()), None, place_of_part(keys, words.shape))
    return random_unwrap.bind(keys)


def _complain_of_words(name: str) -> None:
    what = f"random.{name} was given a key of words, which jax_legacy_prng_key does not allow."
    way_out = "Make keys with random.key(seed), or wrap words with random.wrap_key_data."
    if config.jax_legacy_prng_key == "error":
        raise ParameterError(what, way_out)
    warnings.warn(f"{what} {way_out}", UserWarning, stacklevel=4)


def check_shape(name: str, shape: ShapeLike) -> tuple[int, ...]:
    """Returns the shape of the samples as a tuple of Python integers."""
    extents = integers(f"random.{name}", "shape", shape)
    if any(extent < 0 for extent in extents):
        raise ShapeError(f"random.{name}: shape {extents} has a negative extent.")
    return extents


def result_shape(
    name: str,
    shape: ShapeLike | None,
    *parameter_shapes: tuple[int, ...],
    error: type[AxirError] = ParameterError,
) -> tuple[int, ...]:
    """Returns the shape of the samples: as given, or else the parameters' broadcast shape.

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


def float_dtype(name: str, dtype: DTypeLike) -> np.dtype:
    """Returns the float dtype of samples, which is the default one if it is not given."""
    if dtype is None:
        return dtypes.float64 if config.jax_enable_x64 else dtypes.float32
    canonical = dtypes.canonicalize_dtype(dtype)
    if not dtypes.is_float(canonical):
        raise ParameterError(
            f"random.{name}: dtype must be a float type, not {canonical}.",
            "Pass float16, bfloat16, float32 or float64.",
        )
    if ml_dtypes.finfo(canonical).bits < 8:
        raise ParameterError(
            f"random.{name}: {canonical} has too few bits for random numbers.",
            f"Draw in float32, and convert with x.astype('{canonical}').",
        )
    return canonical


def integer_dtype(name: str, dtype: DTypeLike, error: type[AxirError] = ParameterError) -> np.dtype:
    """Returns the integer dtype of samples, which is the default one if it is not given."""
    canonical = dtypes.canonicalize_dtype(int if dtype is None else dtype)
    if not dtypes.is_integer(canonical):
        raise error(
            f"random.{name}: dtype must be an integer type, not {canonical}.",
            "Pass int8 to int64 or uint8 to uint64.",
        )
    return canonical


def parameter(name: str, argument: str, x: ArrayLike, dtype: np.dtype) -> Value:
    """Returns a real parameter of a distribution in the dtype of its samples."""
    if type(x) in _PYTHON_NUMBERS:
        return ConcreteArray(ShapedArray((), dtype), np.asarray(x, dtype))
    x = to_value(name, argument, x)
    if dtypes.is_complex(x.dtype):
        raise DTypeError(f"random.{name}: {argument} must be real, not {x.type}.")
    return convert_element_type(x, dtype)


def spread(x: Value, shape: Sequence[int]) -> Value:
    """Broadcasts as NumPy does; scalars stay, because elementwise ops broadcast them."""
    if not x.shape or x.shape == tuple(shape):
        return x
    return broadcast_in_dim(x, shape, range(len(shape) - x.ndim, len(shape)))


def standard(
    name: str, key: ArrayLike, shape: ShapeLike, dtype: DTypeLike
) -> tuple[Value, tuple[int, ...], np.dtype]:
    """Checks the arguments of a distribution without parameters."""
    return check_key(name, key), check_shape(name, shape), float_dtype(name, dtype)


def with_parameters(
    name: str, key: ArrayLike, shape: ShapeLike | None, dtype: DTypeLike, **parameters: Options
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
