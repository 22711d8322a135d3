"""The type of layers, and pools: reductions of windows as layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from axir import lax
from axir import numpy as jnp
from axir._devices.shape_dtype_struct import ShapeDtypeStruct
from axir._transforms.staging import eval_shape
from axir.dialect.core.annotations import PyTree, Tree, UserFunction, UserObject

Shape: TypeAlias = tuple[int, ...]


class Layer(NamedTuple):
    """A layer: a pair of functions.

    Attributes:
        init_fun: From a random key and the shape of the input to the shape of the output and the
            parameters.
        apply_fun: From the parameters and the input to the output.
    """

    init_fun: Callable[[UserObject, UserObject], tuple[UserObject, PyTree]]
    apply_fun: UserFunction


Layers: TypeAlias = Layer | tuple[UserFunction, UserFunction]
"""A layer, of ours or written as a pair."""


def output_shape(
    function: Callable[..., object], input_shape: Shape, batch_axis: int, *arguments: object
) -> Shape:
    """Returns the shape of a function's output for an input shape.

    Args:
        function: Takes the input and `arguments`; the batch is at the same place in its result.
        input_shape: May have -1 as extent of the batch.
        batch_axis: The axis of the batch.
        *arguments: Further arguments.
    """
    one = tuple(1 if n == batch_axis else extent for n, extent in enumerate(input_shape))
    like = ShapeDtypeStruct(one, "float32")
    found = eval_shape(function, like, *arguments).shape
    batch = input_shape[batch_axis]
    return tuple(batch if n == batch_axis else extent for n, extent in enumerate(found))


# Pools --------------------------------------------------------------------------------------------


def MaxPool(
    window_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: str = "VALID",
    spec: str | None = None,
) -> Layer:
    """Makes a layer that takes the maximum of each window.

    Args:
        window_shape: Spatial extents of a window.
        strides: Distances of windows; 1 by default.
        padding: 'VALID', or 'SAME' for windows that reach over the edges.
        spec: Order of the axes, such as 'NHWC', which it is by default.
    """
    return _pool(lax.max, -jnp.inf, window_shape, strides, padding, spec)


def SumPool(
    window_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: str = "VALID",
    spec: str | None = None,
) -> Layer:
    """Makes a layer that sums each window; see `MaxPool`."""
    return _pool(lax.add, 0.0, window_shape, strides, padding, spec)


def AvgPool(
    window_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: str = "VALID",
    spec: str | None = None,
) -> Layer:
    """Makes a layer that takes the mean of each window, of its places inside; see `MaxPool`."""
    return _pool(lax.add, 0.0, window_shape, strides, padding, spec, is_mean=True)


def _pool(
    reducer: Callable[..., object],
    init_value: float,
    window_shape: Sequence[int],
    strides: Sequence[int] | None,
    padding: str,
    spec: str | None,
    is_mean: bool = False,
) -> Layer:
    axes = spec or f"N{'.' * len(window_shape)}C"
    window = _with_ones(axes, window_shape)
    steps = _with_ones(axes, strides or (1,) * len(window_shape))

    def reduce(inputs: UserObject) -> UserObject:
        sums = lax.reduce_window(inputs, init_value, reducer, window, steps, padding)
        if not is_mean:
            return sums
        extents = [1 if a in "NC" else n for a, n in zip(axes, inputs.shape, strict=True)]
        places = jnp.ones(extents, inputs.dtype)
        return sums / lax.reduce_window(places, 0.0, lax.add, window, steps, padding)

    def init_fun(rng: object, input_shape: Shape) -> tuple[Shape, Tree]:
        return output_shape(reduce, input_shape, axes.index("N")), ()

    def apply_fun(params: Tree, inputs: object, **kwargs: object) -> UserObject:
        return reduce(inputs)

    return Layer(init_fun, apply_fun)


def _with_ones(axes: str, extents: Sequence[int]) -> Shape:
    """Returns spatial extents with 1 at the places of batch and channels."""
    spatial = iter(extents)
    return tuple(1 if axis in "NC" else next(spatial) for axis in axes)
