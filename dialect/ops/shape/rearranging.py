"""Ops that rearrange elements: reshaping, transposing, squeezing, reversing.

All are linear in their array operands, so a tangent is rearranged like its primal, and a cotangent
inversely. This module also exports broadcasting (`broadcasting.py`) and padding (`padding.py`).
Elsewhere: joining arrays (`concatenation.py`), parts of arrays
(`dialect/ops/indexing/dynamic_slicing.py`), and arrays without operands (`constants.py`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.core.annotations import Params
from axir.dialect.core.errors import ParameterError, ShapeError, one_layout
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.elementwise.family import as_value
from axir.dialect.program.dimensions import Dimensions, Factors, Shapes, by_position, regrouped
from axir.dialect.program.function_rules import LoweringContext
from axir.dialect.program.op_table import declare
from axir.dialect.program.operation import Sample
from axir.dialect.program.parameters import Ints
from axir.dialect.program.primitive import Primitive
from axir.dialect.program.rules import Cotangent, MlirValues, Operand, TransposeOperand, Value

from .broadcasting import (
    broadcast,
    broadcast_in_dim,
    broadcast_shapes,
    broadcast_to_rank,
    expand_dims,
)
from .movement import (
    Variant,
    apply_to_tangent,
    canonical_axes,
    canonical_axis,
    insert,
    integers,
    spread_samples,
)
from .padding import pad

__all__ = [
    "broadcast",
    "broadcast_in_dim",
    "broadcast_shapes",
    "broadcast_to_rank",
    "collapse",
    "expand_dims",
    "inverse_permutation",
    "move_batch_axis",
    "moveaxis",
    "pad",
    "reshape",
    "rev",
    "squeeze",
    "transpose",
]

# reshape ---------------------------------------------------------------------------------------


def _infer_reshape(
    operand: ShapedArray, *, new_sizes: tuple[int, ...], dimensions: tuple[int, ...] | None
) -> ShapedArray:
    if any(extent < 0 for extent in new_sizes):
        raise ShapeError(
            f"reshape: new_sizes {new_sizes} has a negative extent.",
            "Only the functions of axir.numpy infer an extent given as -1.",
        )
    size = math.prod(new_sizes)
    if size != operand.size:
        raise ShapeError(
            f"reshape: cannot reshape {operand} of {operand.size} elements into shape {new_sizes} "
            f"of {size}."
        )
    if dimensions is not None:
        _check_permutation("reshape", "dimensions", dimensions, operand)
    return ShapedArray(new_sizes, operand.dtype, operand.weak_type)


def _check_permutation(
    name: str, what: str, permutation: tuple[int, ...], operand: ShapedArray
) -> None:
    if sorted(permutation) != list(range(operand.ndim)):
        raise ShapeError(
            f"{name}: {what} {permutation} is not a permutation of the {operand.ndim} dimensions "
            f"of {operand}."
        )


def _evaluate_reshape(
    x: np.ndarray, *, new_sizes: tuple[int, ...], dimensions: tuple[int, ...] | None
) -> np.ndarray:
    return (x if dimensions is None else x.transpose(dimensions)).reshape(new_sizes)


def _transpose_reshape(
    ct: Value,
    operand: TransposeOperand,
    *,
    new_sizes: tuple[int, ...],
    dimensions: tuple[int, ...] | None,
) -> Sequence[Cotangent | None]:
    shape = operand.aval.shape
    if dimensions is None:
        return [reshape(ct, shape)]
    permuted = reshape(ct, tuple(shape[d] for d in dimensions))
    return [transpose(permuted, inverse_permutation(dimensions))]


def _batch_reshape(
    operands: Sequence[Value],
    axes: Sequence[int],
    *,
    new_sizes: tuple[int, ...],
    dimensions: tuple[int, ...] | None,
) -> tuple[Value, int]:
    x = moveaxis(operands[0], axes[0], 0)
    if dimensions is not None:
        dimensions = (0, *(d + 1 for d in dimensions))
    return reshape(x, (x.shape[0], *new_sizes), dimensions), 0


def _lower_reshape(
    context: LoweringContext,
    x: ir.Value,
    *,
    new_sizes: tuple[int, ...],
    dimensions: tuple[int, ...] | None,
) -> MlirValues:
    return hlo.reshape(x if dimensions is None else hlo.transpose(x, dimensions), new_sizes)


def _reshape_samples() -> list[Sample]:
    def variant(
        source: tuple[int, ...], sizes: tuple[int, ...], dimensions: object = None
    ) -> Variant:
        return (source,), {"new_sizes": sizes, "dimensions": dimensions}

    return spread_samples(
        [
            variant((2, 3), (3, 2)),
            variant((2, 3), (6,)),
            variant((2, 3), (3, 2), (1, 0)),
            variant((1,), ()),
            variant((), (1, 1)),
            variant((2, 0), (0, 3)),
            variant((2, 3, 2), (4, 3), (2, 0, 1)),
            variant((1, 2, 1, 1, 3, 1), (3, 1, 2, 1, 1, 1)),
        ]
    )


def _reshape_dimensions(
    operands: Sequence[ShapedArray],
    results: Sequence[ShapedArray],
    *,
    new_sizes: tuple[int, ...],
    dimensions: tuple[int, ...] | None,
) -> Dimensions | None:
    if dimensions is not None:
        return None
    own, new, factors = regrouped(operands[0].shape, new_sizes)

    def local_params(_: Shapes, parts: Shapes) -> Params:
        return {"new_sizes": parts[0]}

    return Dimensions((tuple(own),), (tuple(new),), factors, local_params=local_params)


_reshape: Primitive = declare(
    "reshape",
    parameters={"new_sizes": Ints, "dimensions": Ints | None},
    moves_elements=True,
    infer=_infer_reshape,
    evaluate=_evaluate_reshape,
    jvp=apply_to_tangent(lambda t, **params: _reshape.bind(t, **params)),
    transpose=_transpose_reshape,
    dimensions=_reshape_dimensions,
    batch=_batch_reshape,
    lower=_lower_reshape,
    samples=_reshape_samples,
)


def reshape(
    operand: Operand,
    new_sizes: Sequence[int],
    dimensions: Sequence[int] | None = None,
    *,
    out_sharding: None = None,
) -> Value:
    """Gives an array another shape, keeping the elements in row-major order.

    Args:
        operand: The array.
        new_sizes: Shape of the result, of as many elements.
        dimensions: A permutation of the dimensions to apply first.
        out_sharding: None here; in `axir.lax`'s function, the sharding of the result.

    Raises:
        ShapeError: if the number of elements differs, or `dimensions` is no permutation.
    """
    if out_sharding is not None:
        raise one_layout("reshape", out_sharding)
    sizes = integers("reshape", "new_sizes", new_sizes)
    operand = as_value(operand)
    if dimensions is not None:
        dimensions = integers("reshape", "dimensions", dimensions)
        if dimensions == tuple(range(operand.ndim)):
            dimensions = None
    if dimensions is None and operand.shape == sizes:
        return operand
    return _reshape.bind(operand, new_sizes=sizes, dimensions=dimensions)


def collapse(operand: Operand, start_dimension: int, stop_dimension: int | None = None) -> Value:
    """Merges the dimensions from `start_dimension` to `stop_dimension` (exclusive) into one.

    >>> from axir.dialect.core.array import as_array
    >>> collapse(as_array(np.zeros((2, 3, 4))), 0, 2).shape
    (6, 4)
    """
    operand = as_value(operand)
    # Bounds count, and are clamped to the ends, as in a Python slice.
    start, stop, _ = slice(start_dimension, stop_dimension).indices(operand.ndim)
    if start > stop:
        raise ParameterError(
            f"collapse: dimensions {start_dimension} to {stop_dimension} are no range of the "
            f"dimensions of {operand.aval}."
        )
    shape = operand.shape
    return reshape(operand, (*shape[:start], math.prod(shape[start:stop]), *shape[stop:]))


# transpose -------------------------------------------------------------------------------------


def inverse_permutation(permutation: Sequence[int]) -> tuple[int, ...]:
    """Returns the permutation that undoes another."""
    return tuple(sorted(range(len(permutation)), key=permutation.__getitem__))


def _infer_transpose(operand: ShapedArray, *, permutation: tuple[int, ...]) -> ShapedArray:
    _check_permutation("transpose", "permutation", permutation, operand)
    shape = tuple(operand.shape[d] for d in permutation)
    return ShapedArray(shape, operand.dtype, operand.weak_type)


def _batch_transpose(
    operands: Sequence[Value], axes: Sequence[int], *, permutation: tuple[int, ...]
) -> tuple[Value, int]:
    (x,), (axis,) = operands, axes
    shifted = tuple(d + (d >= axis) for d in permutation)
    return transpose(x, insert(shifted, axis, axis)), axis


def _transpose_dimensions(
    operands: Sequence[ShapedArray],
    results: Sequence[ShapedArray],
    *,
    permutation: tuple[int, ...],
) -> Dimensions:
    factors = Factors()
    made = tuple(map(factors.new, operands[0].shape))
    return Dimensions((made,), (tuple(made[place] for place in permutation),), factors)


_transpose: Primitive = declare(
    "transpose",
    parameters={"permutation": Ints},
    moves_elements=True,
    infer=_infer_transpose,
    evaluate=lambda x, *, permutation: x.transpose(permutation),
    jvp=apply_to_tangent(lambda t, **params: _transpose.bind(t, **params)),
    transpose=lambda ct, x, *, permutation: [transpose(ct, inverse_permutation(permutation))],
    dimensions=_transpose_dimensions,
    batch=_batch_transpose,
    lower=lambda context, x, *, permutation: hlo.transpose(x, permutation),
    samples=lambda: spread_samples(
        [
            (((2, 3),), {"permutation": (1, 0)}),
            (((2, 3, 4),), {"permutation": (2, 0, 1)}),
            (((2, 3, 4),), {"permutation": (0, 2, 1)}),
            (((),), {"permutation": ()}),
            (((0, 3),), {"permutation": (1, 0)}),
            (((3,),), {"permutation": (0,)}),
            (((1, 2, 1, 1, 3, 2),), {"permutation": (4, 0, 5, 2, 1, 3)}),
        ]
    ),
)


def transpose(operand: Operand, permutation: Sequence[int]) -> Value:
    """Permutes dimensions: dimension i of the result is dimension `permutation[i]` of the operand.

    Raises:
        ShapeError: if `permutation` is not one of the operand's dimensions.
    """
    permutation = integers("transpose", "permutation", permutation)
    operand = as_value(operand)
    if permutation == tuple(range(operand.ndim)):
        return operand
    return _transpose.bind(operand, permutation=permutation)


def moveaxis(operand: Value, source: int, destination: int) -> Value:
    """Moves one axis to another place; the others keep their order."""
    source = canonical_axis("moveaxis", source, operand.ndim)
    destination = canonical_axis("moveaxis", destination, operand.ndim)
    if source == destination:
        return operand
    others = [d for d in range(operand.ndim) if d != source]
    return _transpose.bind(operand, permutation=insert(others, destination, source))


def move_batch_axis(value: Value, axis: int | None, size: int, destination: int) -> Value:
    """Brings a batch axis to a place; repeats a value without one along a new axis there."""
    if axis is not None:
        return moveaxis(value, axis, destination)
    shape = (*value.shape[:destination], size, *value.shape[destination:])
    dimensions = tuple(d for d in range(value.ndim + 1) if d != destination)
    return broadcast_in_dim(value, shape, dimensions)


# squeeze ---------------------------------------------------------------------------------------


def _infer_squeeze(operand: ShapedArray, *, dimensions: tuple[int, ...]) -> ShapedArray:
    for dimension in dimensions:
        if operand.shape[dimension] != 1:
            raise ParameterError(
                f"squeeze: dimension {dimension} of {operand} has extent "
                f"{operand.shape[dimension]}; only extent 1 can be squeezed out."
            )
    shape = tuple(extent for d, extent in enumerate(operand.shape) if d not in dimensions)
    return ShapedArray(shape, operand.dtype, operand.weak_type)


def _batch_squeeze(
    operands: Sequence[Value], axes: Sequence[int], *, dimensions: tuple[int, ...]
) -> tuple[Value, int]:
    axis = axes[0]
    shifted = tuple(d + (d >= axis) for d in dimensions)
    return squeeze(operands[0], shifted), axis - sum(d < axis for d in shifted)


def _squeeze_dimensions(
    operands: Sequence[ShapedArray], results: Sequence[ShapedArray], *, dimensions: tuple[int, ...]
) -> Dimensions:
    factors = Factors()
    shape = operands[0].shape
    made = tuple(() if d in dimensions else factors.new(n) for d, n in enumerate(shape))
    return Dimensions((made,), (tuple(each for each in made if each),), factors)


_squeeze: Primitive = declare(
    "squeeze",
    parameters={"dimensions": Ints},
    moves_elements=True,
    infer=_infer_squeeze,
    evaluate=lambda x, *, dimensions: x.squeeze(dimensions),
    jvp=apply_to_tangent(lambda t, **params: _squeeze.bind(t, **params)),
    transpose=lambda ct, x, *, dimensions: [reshape(ct, x.aval.shape)],
    dimensions=_squeeze_dimensions,
    batch=_batch_squeeze,
    lower=lambda context, x, **params: hlo.reshape(x, context.types_out[0].shape),
    samples=lambda: spread_samples(
        [
            (((1, 3),), {"dimensions": (0,)}),
            (((2, 1, 3, 1),), {"dimensions": (1, 3)}),
            (((1, 1),), {"dimensions": (0, 1)}),
            (((2, 1),), {"dimensions": (1,)}),
            (((0, 1),), {"dimensions": (1,)}),
            (((2,),), {"dimensions": ()}),
            (((),), {"dimensions": ()}),
            (((1, 2, 1, 1, 3, 1),), {"dimensions": (0, 3, 5)}),
        ]
    ),
)


def squeeze(array: Operand, dimensions: Sequence[int]) -> Value:
    """Drops dimensions of extent 1.

    Args:
        array: The array.
        dimensions: The dimensions to drop; negative ones count from the back.

    Raises:
        AxisError: for a dimension that the array does not have, or named twice.
        ParameterError: for a dimension of another extent.
    """
    array = as_value(array)
    dimensions = tuple(sorted(canonical_axes("squeeze", dimensions, array.ndim)))
    return _squeeze.bind(array, dimensions=dimensions) if dimensions else array


# rev -------------------------------------------------------------------------------------------


def _infer_rev(operand: ShapedArray, *, dimensions: tuple[int, ...]) -> ShapedArray:
    canonical_axes("rev", dimensions, operand.ndim)
    return operand


_FORWARD, _BACKWARD = slice(None), slice(None, None, -1)


def _evaluate_rev(x: np.ndarray, *, dimensions: tuple[int, ...]) -> np.ndarray:
    return x[tuple([_BACKWARD if d in dimensions else _FORWARD for d in range(x.ndim)])]


def _batch_rev(
    operands: Sequence[Value], axes: Sequence[int], *, dimensions: tuple[int, ...]
) -> tuple[Value, int]:
    shifted = tuple(d + (d >= axes[0]) for d in dimensions)
    return _rev.bind(operands[0], dimensions=shifted), axes[0]


def _rev_dimensions(
    operands: Sequence[ShapedArray], results: Sequence[ShapedArray], *, dimensions: tuple[int, ...]
) -> Dimensions:
    return by_position(operands, results, dimensions)


_rev: Primitive = declare(
    "rev",
    parameters={"dimensions": Ints},
    moves_elements=True,
    infer=_infer_rev,
    evaluate=_evaluate_rev,
    jvp=apply_to_tangent(lambda t, **params: _rev.bind(t, **params)),
    transpose=lambda ct, x, **params: [_rev.bind(ct, **params)],
    dimensions=_rev_dimensions,
    batch=_batch_rev,
    # IREE does not accept a reversal without dimensions.
    lower=lambda context, x, *, dimensions: hlo.reverse(x, dimensions) if dimensions else x,
    samples=lambda: spread_samples(
        [
            (((2, 3),), {"dimensions": (0,)}),
            (((2, 3, 2),), {"dimensions": (2, 0)}),
            (((),), {"dimensions": ()}),
            (((0, 3),), {"dimensions": (0, 1)}),
            (((3,),), {"dimensions": (0,)}),
            (((1, 2, 1, 2, 3, 1),), {"dimensions": (1, 3, 5)}),
        ]
    ),
)


def rev(operand: Operand, dimensions: Sequence[int]) -> Value:
    """Reverses the order of elements along dimensions; negative ones count from the back.

    >>> rev(np.arange(3), (0,))
    Array([2, 1, 0], dtype=int32)
    """
    operand = as_value(operand)
    return _rev.bind(operand, dimensions=canonical_axes("rev", dimensions, operand.ndim))
