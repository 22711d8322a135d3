"""The type of layers, and the shapes of their outputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from axir._devices.shape_dtype_struct import ShapeDtypeStruct
from axir._transforms.staging import eval_shape
from axir.dialect.core.annotations import PyTree, UserFunction, UserObject

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
