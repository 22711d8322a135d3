"""Networks as pairs of functions, which are put together from layers.

A layer is a pair `(init_fun, apply_fun)`:

* `init_fun(key, input_shape)` returns the shape of the output and the layer's parameters;
* `apply_fun(params, inputs, **kwargs)` returns the output. Layers that need random numbers take
  them from the keyword `rng`.

Extents of the batch may be -1, "any", in shapes.

>>> import axir, axir.numpy as jnp
>>> from axir.example_libraries import stax
>>> init_fun, apply_fun = stax.serial(stax.Dense(8), stax.Relu, stax.Dense(2), stax.LogSoftmax)
>>> shape, params = init_fun(axir.random.key(0), (-1, 4))
>>> shape, apply_fun(params, jnp.ones((3, 4))).shape
((-1, 2), (3, 2))

Elsewhere: pools (`_pooling.py`), updates of parameters (`optimizers.py`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

from axir import lax, random
from axir import numpy as jnp
from axir.dialect.core.annotations import (
    Options,
    PyTree,
    Tree,
    UserFunction,
    UserObject,
)
from axir.dialect.core.array import ArrayLike
from axir.dialect.core.errors import ParameterError
from axir.nn import (
    elu,
    gelu,
    leaky_relu,
    log_softmax,
    relu,
    selu,
    sigmoid,
    softmax,
    softplus,
    standardize,
)
from axir.nn.initializers import glorot_normal, normal, ones, zeros

from ._pooling import AvgPool, Layer, Layers, MaxPool, Shape, SumPool, output_shape

__all__ = [
    "AvgPool", "BatchNorm", "Conv", "Conv1DTranspose", "ConvTranspose", "Dense", "Dropout", "Elu",
    "Exp", "FanInConcat", "FanInSum", "FanOut", "Flatten", "Gelu", "GeneralConv",
    "GeneralConvTranspose", "Identity", "Layer", "LeakyRelu", "LogSoftmax", "MaxPool", "Relu",
    "Selu", "Sigmoid", "Softmax", "Softplus", "SumPool", "Tanh", "elementwise", "elu", "gelu",
    "glorot", "glorot_normal", "leaky_relu", "log_softmax", "logsoftmax", "normal", "ones",
    "parallel", "randn", "relu", "selu", "serial", "shape_dependent", "sigmoid", "softmax",
    "softplus", "standardize", "zeros",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


Initializer: TypeAlias = Callable[..., UserObject]
"""From a random key and a shape to an array."""

# By default weights are Glorot's, and biases small.
_WEIGHTS = glorot_normal()
_BIASES = normal()
_CHANNEL_BIASES = normal(1e-6)

# Names of 2020.
glorot = glorot_normal
randn = normal
logsoftmax = log_softmax


# Layers with parameters --------------------------------------------------------------------------


def Dense(out_dim: int, W_init: Initializer = _WEIGHTS, b_init: Initializer = _BIASES) -> Layer:
    """Makes a layer that multiplies by a matrix and adds a bias.

    Args:
        out_dim: Extent of the last axis of the output.
        W_init: From a key and a shape to the matrix.
        b_init: From a key and a shape to the bias.
    """

    def init_fun(rng: UserObject, input_shape: Shape) -> tuple[Shape, Tree]:
        first, second = random.split(rng)
        weights = W_init(first, (input_shape[-1], out_dim))
        return (*input_shape[:-1], out_dim), (weights, b_init(second, (out_dim,)))

    def apply_fun(params: PyTree, inputs: ArrayLike, **kwargs: Options) -> UserObject:
        weights, bias = params
        return jnp.dot(inputs, weights) + bias

    return Layer(init_fun, apply_fun)


def GeneralConv(
    dimension_numbers: tuple[str, str, str],
    out_chan: int,
    filter_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: object = "VALID",
    W_init: Initializer | None = None,
    b_init: Initializer = _CHANNEL_BIASES,
) -> Layer:
    """Makes a convolution with a bias for each channel.

    Args:
        dimension_numbers: Orders of the axes of input, kernel and output: ('NHWC', 'HWIO', 'NHWC').
        out_chan: Number of channels of the output.
        filter_shape: Spatial extents of the kernel.
        strides: Distances of its places; 1 by default.
        padding: 'VALID', 'SAME', or pairs of places before and after along each axis.
        W_init: From a key and a shape to the kernel; Glorot's normal one by default.
        b_init: From a key and a shape to the bias.
    """
    steps = tuple(strides or (1,) * len(filter_shape))

    def convolve(inputs: ArrayLike, kernel: UserObject) -> UserObject:
        return lax.conv_general_dilated(
            inputs, kernel, steps, padding, dimension_numbers=dimension_numbers
        )

    return _convolution(convolve, dimension_numbers, out_chan, filter_shape, W_init, b_init)


def GeneralConvTranspose(
    dimension_numbers: tuple[str, str, str],
    out_chan: int,
    filter_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: object = "VALID",
    W_init: Initializer | None = None,
    b_init: Initializer = _CHANNEL_BIASES,
) -> Layer:
    """Makes a transposed convolution (see `lax.conv_transpose`) with a bias for each channel.

    Args:
        dimension_numbers: As for `GeneralConv`.
        out_chan: As for `GeneralConv`.
        filter_shape: As for `GeneralConv`.
        strides: By which the output is finer than the input; 1 by default.
        padding: As for `GeneralConv`.
        W_init: As for `GeneralConv`.
        b_init: As for `GeneralConv`.
    """
    steps = tuple(strides or (1,) * len(filter_shape))

    def convolve(inputs: ArrayLike, kernel: UserObject) -> UserObject:
        return lax.conv_transpose(
            inputs, kernel, steps, padding, dimension_numbers=dimension_numbers
        )

    return _convolution(convolve, dimension_numbers, out_chan, filter_shape, W_init, b_init)


def _convolution(
    convolve: UserFunction,
    dimension_numbers: tuple[str, str, str],
    out_chan: int,
    filter_shape: Sequence[int],
    W_init: Initializer | None,
    b_init: Initializer,
) -> Layer:
    lhs, rhs, out = dimension_numbers
    init_kernel = W_init or glorot_normal(rhs.index("I"), rhs.index("O"))

    def init_fun(rng: UserObject, input_shape: Shape) -> tuple[Shape, Tree]:
        extents = {"O": out_chan, "I": input_shape[lhs.index("C")]}
        spatial = iter(filter_shape)
        kernel_shape = tuple(extents[a] if a in extents else next(spatial) for a in rhs)
        first, second = random.split(rng)
        params = init_kernel(first, kernel_shape), b_init(second, bias_shape)
        return output_shape(convolve, input_shape, lhs.index("N"), params[0]), params

    def apply_fun(params: PyTree, inputs: ArrayLike, **kwargs: object) -> UserObject:
        kernel, bias = params
        return convolve(inputs, kernel) + bias

    bias_shape = tuple(out_chan if axis == "C" else 1 for axis in out)
    return Layer(init_fun, apply_fun)


Conv = functools.partial(GeneralConv, ("NHWC", "HWIO", "NHWC"))
ConvTranspose = functools.partial(GeneralConvTranspose, ("NHWC", "HWIO", "NHWC"))
Conv1DTranspose = functools.partial(GeneralConvTranspose, ("NHC", "HIO", "NHC"))


def BatchNorm(
    axis: int | Sequence[int] = (0, 1, 2),
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
    beta_init: Initializer = zeros,
    gamma_init: Initializer = ones,
) -> Layer:
    """Makes a layer that brings the mean over axes to 0 and the variance to 1, then scales.

    Mean and variance are taken over the current batch, in training and in inference.

    Args:
        axis: Axes to take the mean over.
        epsilon: Added to the variance.
        center: Whether a parameter is added afterwards.
        scale: Whether it is multiplied by a parameter before.
        beta_init: From a key and a shape to the former.
        gamma_init: From a key and a shape to the latter.
    """
    axes = (axis,) if isinstance(axis, int) else tuple(axis)

    def init_fun(rng: UserObject, input_shape: Shape) -> tuple[Shape, Tree]:
        shape = tuple(extent for n, extent in enumerate(input_shape) if n not in axes)
        first, second = random.split(rng)
        beta = beta_init(first, shape) if center else ()
        return input_shape, (beta, gamma_init(second, shape) if scale else ())

    def apply_fun(params: PyTree, x: ArrayLike, **kwargs: Options) -> UserObject:
        beta, gamma = params
        z = standardize(x, axes, epsilon=epsilon)
        if scale:
            z = jnp.expand_dims(gamma, axes) * z
        return z + jnp.expand_dims(beta, axes) if center else z

    return Layer(init_fun, apply_fun)


# Layers without parameters -----------------------------------------------------------------------


def elementwise(fun: Callable[..., object], **fun_kwargs: object) -> Layer:
    """Makes a layer of a function that does not change shapes."""
    return _plain(lambda shape: shape, lambda x: fun(x, **fun_kwargs))


def _plain(shape: Callable[[UserObject], UserObject], function: Callable[..., object]) -> Layer:
    """Makes a layer without parameters."""

    def init_fun(rng: object, input_shape: object) -> tuple[object, Tree]:
        return shape(input_shape), ()

    def apply_fun(params: Tree, inputs: object, **kwargs: object) -> UserObject:
        return function(inputs)

    return Layer(init_fun, apply_fun)


Tanh = elementwise(jnp.tanh)
Relu = elementwise(relu)
Exp = elementwise(jnp.exp)
LogSoftmax = elementwise(log_softmax, axis=-1)
Softmax = elementwise(softmax, axis=-1)
Softplus = elementwise(softplus)
Sigmoid = elementwise(sigmoid)
Elu = elementwise(elu)
LeakyRelu = elementwise(leaky_relu)
Selu = elementwise(selu)
Gelu = elementwise(gelu)
Identity = elementwise(lambda x: x)
Flatten = _plain(
    lambda shape: (shape[0], math.prod(shape[1:])),
    lambda x: jnp.reshape(x, (x.shape[0], math.prod(x.shape[1:]))),
)


def Dropout(rate: float, mode: str = "train") -> Layer:
    """Makes a layer that keeps each element with a probability, divided by it, and else gives 0.

    Args:
        rate: The probability of keeping an element.
        mode: 'train'; with any other one the layer does nothing.

    Raises:
        ParameterError: when the layer is applied without the keyword `rng`.
    """

    def apply_fun(params: PyTree, inputs: UserObject, **kwargs: Options) -> UserObject:
        key = kwargs.get("rng")
        if key is None:
            raise ParameterError(
                "Dropout: the layer needs random numbers, but was applied without a key.",
                "Pass one to the network: apply_fun(params, inputs, rng=key).",
            )
        if mode != "train":
            return inputs
        is_kept = random.bernoulli(key, rate, inputs.shape)
        return jnp.where(is_kept, inputs / rate, 0)

    return Layer(Identity.init_fun, apply_fun)


def FanOut(num: int) -> Layer:
    """Makes a layer that gives its input several times, as a list, for `parallel`."""
    return _plain(lambda shape: [shape] * num, lambda x: [x] * num)


FanInSum = _plain(lambda shapes: shapes[0], sum)


def FanInConcat(axis: int = -1) -> Layer:
    """Makes a layer that concatenates the arrays of a list, such as `parallel` gives."""

    def joined(shapes: Sequence[Shape]) -> Shape:
        place = axis % len(shapes[0])
        total = sum(shape[place] for shape in shapes)
        return (*shapes[0][:place], total, *shapes[0][place + 1 :])

    return _plain(joined, lambda x: jnp.concatenate(x, axis))


# Layers of layers --------------------------------------------------------------------------------


def serial(*layers: Layers) -> Layer:
    """Makes a layer that applies layers one after the other; its parameters are a list of theirs.

    >>> import axir
    >>> init_fun, _ = serial(Dense(3), Relu)
    >>> shape, params = init_fun(axir.random.key(0), (1, 2))
    >>> [len(p) for p in params]
    [2, 0]
    """

    def init_fun(rng: UserObject, input_shape: object) -> tuple[UserObject, PyTree]:
        params = []
        for init, _ in layers:
            rng, key = random.split(rng)
            input_shape, made = init(key, input_shape)
            params.append(made)
        return input_shape, params

    def apply_fun(params: PyTree, inputs: object, **kwargs: object) -> UserObject:
        keys = _keys(kwargs.pop("rng", None), len(layers))
        for (_, apply), own, key in zip(layers, params, keys, strict=True):
            inputs = apply(own, inputs, rng=key, **kwargs)
        return inputs

    return Layer(init_fun, apply_fun)


def parallel(*layers: Layers) -> Layer:
    """Makes a layer that applies a layer to each array of a list, and gives a list.

    >>> import axir, axir.numpy as jnp
    >>> block = serial(FanOut(2), parallel(Relu, Identity), FanInSum)
    >>> _, params = block.init_fun(axir.random.key(0), (2,))
    >>> block.apply_fun(params, jnp.array([-1.0, 1.0]))
    Array([-1.,  2.], dtype=float32)
    """

    def init_fun(rng: UserObject, input_shape: UserObject) -> tuple[UserObject, PyTree]:
        keys = random.split(rng, len(layers))
        made = [
            init(key, shape)
            for (init, _), key, shape in zip(layers, keys, input_shape, strict=True)
        ]
        return tuple(shape for shape, _ in made), tuple(params for _, params in made)

    def apply_fun(params: PyTree, inputs: UserObject, **kwargs: object) -> UserObject:
        keys = _keys(kwargs.pop("rng", None), len(layers))
        return [
            apply(own, x, rng=key, **kwargs)
            for (_, apply), own, x, key in zip(layers, params, inputs, keys, strict=True)
        ]

    return Layer(init_fun, apply_fun)


def _keys(key: UserObject, count: int) -> UserObject:
    return random.split(key, count) if key is not None else (None,) * count


def shape_dependent(make_layer: Callable[[UserObject], Layers]) -> Layer:
    """Makes a layer of a function from the shape of the input to a layer, such as a residual block.

    >>> import axir
    >>> same_width = shape_dependent(lambda shape: Dense(shape[-1]))
    >>> same_width.init_fun(axir.random.key(0), (1, 5))[0]
    (1, 5)
    """

    def init_fun(rng: object, input_shape: object) -> tuple[object, Tree]:
        return make_layer(input_shape)[0](rng, input_shape)

    def apply_fun(params: Tree, inputs: UserObject, **kwargs: object) -> UserObject:
        return make_layer(inputs.shape)[1](params, inputs, **kwargs)

    return Layer(init_fun, apply_fun)
