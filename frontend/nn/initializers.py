"""Initializers of parameters: functions `(key, shape, dtype) -> array`, or makers of such.

Sources of the scales: Glorot and Bengio 2010 (`glorot_*`), He et al. 2015 (`he_*`), LeCun et al.
1998 (`lecun_*`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from axir import random
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import DTypeLike, UserObject
from axir.dialect.core.array import ArrayLike
from axir.dialect.core.errors import ParameterError
from axir.dialect.ops.elementwise.arithmetic import mul, neg
from axir.dialect.ops.elementwise.conversion import complex_
from axir.dialect.ops.elementwise.transcendental import cos, log1p, sin, sqrt
from axir.dialect.ops.shape.constants import full
from axir.dialect.program.rules import Value
from axir.numpy._arguments.checks import canonical_axes, canonical_axis
from axir.numpy._arguments.promotion import array_argument, cast
from axir.numpy._indexing.index_update import update
from axir.numpy._shape.manipulation import moveaxis, reshape

__all__ = [
    "Initializer", "constant", "delta_orthogonal", "glorot_normal", "glorot_uniform", "he_normal",
    "he_uniform", "kaiming_normal", "kaiming_uniform", "lecun_normal", "lecun_uniform", "normal",
    "ones", "orthogonal", "truncated_normal", "uniform", "variance_scaling", "xavier_normal",
    "xavier_uniform", "zeros",
]  # fmt: skip

Initializer = Callable[..., Value]
Axes = int | Sequence[int]


def __dir__() -> list[str]:
    return __all__


def _float_dtype(dtype: DTypeLike) -> UserObject:
    return dtypes.canonicalize_dtype("float64" if dtype is None else dtype)


def zeros(
    key: ArrayLike, shape: Sequence[int], dtype: DTypeLike = None, out_sharding: object = None
) -> Value:
    """Returns zeros; the key is not used.

    >>> import axir
    >>> axir.nn.initializers.zeros(axir.random.key(0), (2,))
    Array([0., 0.], dtype=float32)
    """
    return full(shape, 0, _float_dtype(dtype))


def ones(
    key: ArrayLike, shape: Sequence[int], dtype: DTypeLike = None, out_sharding: object = None
) -> Value:
    """Returns ones; the key is not used.

    >>> import axir
    >>> axir.nn.initializers.ones(axir.random.key(0), (2,))
    Array([1., 1.], dtype=float32)
    """
    return full(shape, 1, _float_dtype(dtype))


def constant(value: UserObject, dtype: DTypeLike = None) -> Initializer:
    """Makes an initializer that repeats a number.

    >>> import axir
    >>> axir.nn.initializers.constant(7.0)(axir.random.key(0), (2,))
    Array([7., 7.], dtype=float32)
    """

    def init(
        key: ArrayLike,
        shape: Sequence[int],
        dtype: DTypeLike = dtype,
        out_sharding: object = None,
    ) -> Value:
        return full(shape, value, _float_dtype(dtype))

    return init


def uniform(scale: ArrayLike = 1e-2, dtype: DTypeLike = None) -> Initializer:
    """Makes an initializer that draws uniformly from [0, scale).

    >>> import axir
    >>> axir.nn.initializers.uniform(1.0)(axir.random.key(0), (2, 3)).shape
    (2, 3)
    """

    def init(
        key: ArrayLike,
        shape: Sequence[int],
        dtype: DTypeLike = dtype,
        out_sharding: object = None,
    ) -> Value:
        return _scaled(random.uniform(key, shape, _float_dtype(dtype)), scale)

    return init


def normal(stddev: UserObject = 1e-2, dtype: DTypeLike = None) -> Initializer:
    """Makes an initializer that draws from the normal distribution of mean 0.

    >>> import axir
    >>> axir.nn.initializers.normal(1.0)(axir.random.key(0), (2, 3)).shape
    (2, 3)
    """

    def init(
        key: ArrayLike,
        shape: Sequence[int],
        dtype: DTypeLike = dtype,
        out_sharding: object = None,
    ) -> Value:
        return _scaled(random.normal(key, shape, _float_dtype(dtype)), stddev)

    return init


def truncated_normal(
    stddev: UserObject = 1e-2,
    dtype: DTypeLike = None,
    lower: ArrayLike = -2.0,
    upper: ArrayLike = 2.0,
) -> Initializer:
    """Makes an initializer that draws from the normal distribution, limited to an interval.

    Args:
        stddev: Standard deviation before limiting.
        dtype: Default dtype.
        lower, upper: Bounds, in units of `stddev`.

    >>> import axir
    >>> axir.nn.initializers.truncated_normal(1.0)(axir.random.key(0), (2, 3)).shape
    (2, 3)
    """

    def init(
        key: ArrayLike,
        shape: Sequence[int],
        dtype: DTypeLike = dtype,
        out_sharding: object = None,
    ) -> Value:
        draws = random.truncated_normal(key, lower, upper, shape, _float_dtype(dtype))
        return _scaled(draws, stddev)

    return init


def _scaled(draws: Value, scale: ArrayLike) -> Value:
    return mul(draws, cast(array_argument("nn.initializers", scale), draws.dtype))


def variance_scaling(
    scale: UserObject,
    mode: str,
    distribution: str,
    in_axis: Axes = -2,
    out_axis: Axes = -1,
    batch_axis: Axes = (),
    dtype: DTypeLike = None,
) -> Initializer:
    """Makes an initializer with variance scale / n, where n depends on the shape.

    Args:
        scale: Positive number.
        mode: The meaning of n: 'fan_in', the number of inputs; 'fan_out', the number of outputs;
            'fan_avg' or 'fan_geo_avg', their arithmetic or geometric mean.
        distribution: 'truncated_normal', 'normal' or 'uniform' (around 0).
        in_axis, out_axis: Axis or axes of inputs and of outputs.
        batch_axis: Axis or axes that count as neither; the remaining ones count as both.
        dtype: Default dtype, float or complex.

    Raises:
        ParameterError: for another mode or distribution, and for shapes with too few axes.

    >>> import axir
    >>> initialize = axir.nn.initializers.variance_scaling(1.0, "fan_in", "normal")
    >>> initialize(axir.random.key(0), (3, 4)).shape
    (3, 4)
    """

    def init(
        key: UserObject,
        shape: Sequence[int],
        dtype: UserObject = dtype,
        out_sharding: object = None,
    ) -> Value:
        dtype = _float_dtype(dtype)
        fans = _fans(tuple(shape), in_axis, out_axis, batch_axis)
        variance = scale / max(_denominator(mode, *fans), 1e-30)
        if (distribution, dtypes.is_complex(dtype)) not in _DRAWS:
            raise ParameterError(
                f"variance_scaling: distribution {distribution!r} is invalid for {dtype}.",
                "Pass 'truncated_normal', 'normal' or 'uniform'.",
            )
        draw, factor = _DRAWS[distribution, dtypes.is_complex(dtype)]
        return _scaled(draw(key, tuple(shape), dtype), factor * math.sqrt(variance))

    return init


def _uniform(key: ArrayLike, shape: tuple[int, ...], dtype: np.dtype) -> Value:
    return random.uniform(key, shape, dtype, -1)


def _truncated_normal(key: ArrayLike, shape: tuple[int, ...], dtype: np.dtype) -> Value:
    return random.truncated_normal(key, -2, 2, shape, dtype)


def _uniform_in_disk(key: ArrayLike, shape: tuple[int, ...], dtype: np.dtype) -> Value:
    """Draws complex numbers uniformly from the unit disk."""
    key_of_radius, key_of_angle = random.split(key)
    area = random.uniform(key_of_radius, shape, dtypes.real_dtype(dtype))
    return _polar(sqrt(area), key_of_angle)


def _truncated_normal_in_disk(key: ArrayLike, shape: tuple[int, ...], dtype: np.dtype) -> Value:
    """Draws standard normal complex numbers, truncated to modulus below 2.

    The modulus of a standard normal number has the distribution function 1 - exp(-r^2), which is
    inverted.
    """
    key_of_radius, key_of_angle = random.split(key)
    below = random.uniform(key_of_radius, shape, dtypes.real_dtype(dtype))
    return _polar(sqrt(neg(log1p(_scaled(below, math.expm1(-4))))), key_of_angle)


def _polar(radius: Value, key_of_angle: Value) -> Value:
    """Returns complex numbers of given moduli, in directions that are drawn."""
    turns = random.uniform(key_of_angle, radius.shape, radius.dtype)
    angle = _scaled(turns, 2 * math.pi)
    return complex_(mul(radius, cos(angle)), mul(radius, sin(angle)))


# By the name of the distribution, and whether numbers are complex: how to draw, and the factor
# with which the variance is 1. The last two are for truncated normal numbers: real ones between -2
# and 2, and complex ones of modulus below 2.
_DRAWS = {
    ("normal", False): (random.normal, 1.0),
    ("normal", True): (random.normal, 1.0),
    ("uniform", False): (_uniform, math.sqrt(3)),
    ("uniform", True): (_uniform_in_disk, math.sqrt(2)),
    ("truncated_normal", False): (_truncated_normal, 1 / 0.87962566103423978),
    ("truncated_normal", True): (_truncated_normal_in_disk, 1 / 0.95311164380491208),
}


def _denominator(mode: str, fan_in: float, fan_out: float) -> float:
    if mode == "fan_in":
        return fan_in
    if mode == "fan_out":
        return fan_out
    if mode == "fan_avg":
        return (fan_in + fan_out) / 2
    if mode == "fan_geo_avg":
        return math.sqrt(fan_in * fan_out)
    raise ParameterError(
        f"variance_scaling: mode {mode!r} is invalid.",
        "Pass 'fan_in', 'fan_out', 'fan_avg' or 'fan_geo_avg'.",
    )


def _fans(
    shape: tuple[int, ...], in_axis: Axes, out_axis: Axes, batch_axis: Axes
) -> tuple[float, float]:
    """Counts the inputs and outputs of a layer from the shape of its parameters."""
    if in_axis == -2 and len(shape) < 2:
        raise ParameterError(
            f"variance_scaling: can't compute input and output sizes of a {len(shape)}-dimensional "
            "weights tensor. Must be at least 2D.",
            "Use nn.initializers.zeros or normal for vectors, or name in_axis and out_axis.",
        )
    groups = [
        canonical_axes("variance_scaling", axes, len(shape))
        for axes in (in_axis, out_axis, batch_axis)
    ]
    inputs, outputs, batches = (math.prod(shape[axis] for axis in group) for group in groups)
    receptive_field = math.prod(shape) / max(inputs * outputs * batches, 1)
    return inputs * receptive_field, outputs * receptive_field


def _named(name: str, scale: float, mode: str, distribution: str) -> Callable[..., Initializer]:
    def make(
        in_axis: Axes = -2, out_axis: Axes = -1, batch_axis: Axes = (), dtype: DTypeLike = None
    ) -> Initializer:
        return variance_scaling(scale, mode, distribution, in_axis, out_axis, batch_axis, dtype)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"""Makes `variance_scaling` of scale {scale}, {mode!r} and {distribution!r}.

    Args:
        in_axis, out_axis: Axis or axes of inputs and of outputs.
        batch_axis: Axis or axes that count as neither.
        dtype: Default dtype.
    """
    return make


glorot_uniform = _named("glorot_uniform", 1.0, "fan_avg", "uniform")
glorot_normal = _named("glorot_normal", 1.0, "fan_avg", "truncated_normal")
lecun_uniform = _named("lecun_uniform", 1.0, "fan_in", "uniform")
lecun_normal = _named("lecun_normal", 1.0, "fan_in", "truncated_normal")
he_uniform = _named("he_uniform", 2.0, "fan_in", "uniform")
he_normal = _named("he_normal", 2.0, "fan_in", "truncated_normal")
xavier_uniform, xavier_normal = glorot_uniform, glorot_normal
kaiming_uniform, kaiming_normal = he_uniform, he_normal


def orthogonal(
    scale: ArrayLike = 1.0, column_axis: int = -1, dtype: DTypeLike = None
) -> Initializer:
    """Makes an initializer that draws orthogonal matrices, uniformly.

    Source: A. Saxe, J. McClelland and S. Ganguli, "Exact solutions to the nonlinear dynamics of
    learning in deep linear neural networks", 2014.

    Args:
        scale: Factor of the matrices.
        column_axis: Axis of the columns; all others together are the rows.
        dtype: Default dtype, float or complex.

    Raises:
        ParameterError: when it is called for shapes of less than two axes.

    >>> import axir, axir.numpy as jnp
    >>> w = axir.nn.initializers.orthogonal()(axir.random.key(0), (2, 3))
    >>> bool(jnp.allclose(w @ w.T, jnp.eye(2), atol=1e-6))
    True
    """

    def init(
        key: ArrayLike,
        shape: Sequence[int],
        dtype: DTypeLike = dtype,
        out_sharding: object = None,
    ) -> Value:
        dtype = _float_dtype(dtype)
        if len(shape) < 2:
            raise ParameterError(
                f"orthogonal: orthogonal initializer requires at least a 2D shape, not {shape}."
            )
        if 0 in shape:
            return full(shape, 0, dtype)
        axis = canonical_axis("orthogonal", column_axis, len(shape))
        columns, rest = shape[axis], [n for a, n in enumerate(shape) if a != axis]
        drawn = random.orthogonal(key, math.prod(rest), (), dtype, columns)
        return _scaled(moveaxis(reshape(drawn, (*rest, columns)), -1, axis), scale)

    return init


def delta_orthogonal(
    scale: ArrayLike = 1.0, column_axis: int = -1, dtype: DTypeLike = None
) -> Initializer:
    """Makes an initializer of convolutions: an orthogonal matrix at the middle, else zeros.

    Source: L. Xiao et al., "Dynamical isometry and a mean field theory of CNNs", 2018.

    Args:
        scale: Factor of the matrix.
        column_axis: Axis of the columns of the matrix.
        dtype: Default dtype, float or complex.

    Raises:
        ParameterError: when it is called for shapes that are not `(*kernel, inputs, outputs)` with
            one to three axes of the kernel, or with more inputs than outputs.

    >>> import axir
    >>> w = axir.nn.initializers.delta_orthogonal()(axir.random.key(0), (3, 2, 2))
    >>> (w[0] == 0).all(), (w[2] == 0).all()
    (Array(True, dtype=bool), Array(True, dtype=bool))
    """

    def init(
        key: ArrayLike,
        shape: Sequence[int],
        dtype: DTypeLike = dtype,
        out_sharding: object = None,
    ) -> Value:
        if len(shape) not in (3, 4, 5):
            raise ParameterError(
                "delta_orthogonal: Delta orthogonal initializer requires a 3D, 4D or 5D shape, "
                f"not {shape}."
            )
        if shape[-1] < shape[-2]:
            raise ParameterError(
                f"delta_orthogonal: fan_in must be less or equal than fan_out, but shape {shape} "
                f"has {shape[-2]} inputs and {shape[-1]} outputs."
            )
        matrix = orthogonal(scale, column_axis, dtype)(key, shape[-2:])
        middle = tuple((extent - 1) // 2 for extent in shape[:-2])
        return update(full(shape, 0, matrix.dtype), middle, "set", matrix)

    return init
