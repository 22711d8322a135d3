"""Padding: elements added at the edges and between elements, or cut off at the edges."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.core import dtypes
from axir.dialect.core.array import ConcreteArray
from axir.dialect.core.errors import DTypeError, ParameterError
from axir.dialect.core.symbolic_dims import is_same, operation
from axir.dialect.core.symbolic_zeros import Zero, is_undefined_primal
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.elementwise.arithmetic import sub
from axir.dialect.ops.elementwise.comparison import select_n
from axir.dialect.ops.elementwise.family import full, instantiate, match_scalars
from axir.dialect.ops.later_ops import later
from axir.dialect.program.dimensions import Dimensions, by_position
from axir.dialect.program.function_rules import LoweringContext
from axir.dialect.program.op_table import declare
from axir.dialect.program.operation import Sample
from axir.dialect.program.primitive import Primitive
from axir.dialect.program.rules import (
    Cotangent,
    MlirValues,
    Operand,
    Tangent,
    Tangents,
    TransposeOperand,
    Value,
)

from .broadcasting import broadcast_in_dim
from .movement import batch_size, insert, integers, spread_samples

PaddingConfig = tuple[tuple[int, int, int], ...]


def _infer_pad(
    operand: ShapedArray, padding_value: ShapedArray, *, padding_config: PaddingConfig
) -> ShapedArray:
    if operand.dtype != padding_value.dtype:
        raise DTypeError(
            f"pad: the padding value {padding_value} must have the dtype of the operand {operand}.",
            "Cast it with astype(dtype).",
        )
    if padding_value.shape:
        raise ParameterError(f"pad: the padding value must be a scalar, but it is {padding_value}.")
    if len(padding_config) != operand.ndim or any(len(entry) != 3 for entry in padding_config):
        raise ParameterError(
            f"pad: padding_config {padding_config} must have one entry (low, high, interior) for "
            f"each of the {operand.ndim} dimensions of {operand}."
        )
    shape = []
    for dimension, (low, high, interior) in enumerate(padding_config):
        if interior < 0:
            raise ParameterError(
                f"pad: interior padding {interior} of dimension {dimension} is negative.",
                "Take every n-th element with slice and strides.",
            )
        extent = operand.shape[dimension]
        padded = low + high + extent
        if not is_same(interior, 0):
            padded += operation("max", extent - 1, 0) * interior
        if padded < 0:
            raise ParameterError(
                f"pad: low {low} and high {high} cut more than there is of dimension {dimension} "
                f"of {operand}."
            )
        shape.append(padded)
    weak_type = operand.weak_type and padding_value.weak_type
    return ShapedArray(shape, operand.dtype, weak_type)


def _evaluate_pad(
    x: np.ndarray, padding_value: np.ndarray, *, padding_config: PaddingConfig
) -> np.ndarray:
    shape, source, destination = [], [], []
    for extent, (low, high, interior) in zip(x.shape, padding_config, strict=True):
        step = interior + 1
        padded = low + high + extent + max(extent - 1, 0) * interior
        # Element i goes to low + i * step; of those places only 0 ... padded - 1 exist.
        first = max(0, -(low // step))
        stop = max(first, min(extent, -((low - padded) // step)))
        start = low + first * step
        shape.append(padded)
        source.append(slice(first, stop))
        destination.append(slice(start, start + (stop - first) * step, step))
    result = np.empty(shape, x.dtype)
    result[...] = padding_value
    result[tuple(destination)] = x[tuple(source)]
    return result


def _pad_jvp(
    primals: Sequence[Value],
    tangents: Sequence[Tangent],
    out: Value,
    *,
    padding_config: PaddingConfig,
) -> Tangents:
    if all(type(t) is Zero for t in tangents):
        return Zero(out.aval.to_tangent_aval())
    return pad(instantiate(tangents[0]), instantiate(tangents[1]), padding_config)


def _transpose_pad(
    ct: Value,
    operand: TransposeOperand,
    padding_value: TransposeOperand,
    *,
    padding_config: PaddingConfig,
) -> Sequence[Cotangent | None]:
    zero = full((), 0, ct.dtype)
    # Removes the added elements, adds zeros for the removed ones, and drops the interior.
    spread = pad(ct, zero, tuple((-low, -high, 0) for low, high, _ in padding_config))
    strides = tuple(interior + 1 for *_, interior in padding_config)
    operand_ct = later.slice(spread, (0,) * ct.ndim, spread.shape, strides)
    padding_ct = None
    if is_undefined_primal(padding_value):
        # Subtracting before summing leaves exact zeros where the operand's elements are.
        rest = sub(ct, pad(operand_ct, zero, padding_config))
        padding_ct = later.reduce_sum(rest, tuple(range(ct.ndim)))
    return [operand_ct if is_undefined_primal(operand) else None, padding_ct]


def _batch_pad(
    operands: Sequence[Value], axes: Sequence[int | None], *, padding_config: PaddingConfig
) -> tuple[Value, int]:
    (x, value), (axis, value_axis) = operands, axes
    if value_axis is None:
        assert axis is not None
        return pad(x, value, insert(padding_config, axis, (0, 0, 0))), axis
    unbatched = x.shape if axis is None else x.shape[:axis] + x.shape[axis + 1 :]
    x = later.move_batch_axis(x, axis, batch_size(operands, axes), 0)
    padded = pad(x, full((), 0, x.dtype), ((0, 0, 0), *padding_config))
    is_padding = pad(
        full(unbatched, False, dtypes.bool_), full((), True, dtypes.bool_), padding_config
    )
    which = broadcast_in_dim(is_padding, padded.shape, tuple(range(1, padded.ndim)))
    return select_n(which, padded, broadcast_in_dim(value, padded.shape, (0,))), 0


def _lower_pad(
    context: LoweringContext, x: ir.Value, padding_value: ir.Value, *, padding_config: PaddingConfig
) -> MlirValues:
    low, high, interior = zip(*padding_config, strict=True) if padding_config else ((), (), ())
    return hlo.pad(x, padding_value, low, high, interior)


def _pad_samples() -> list[Sample]:
    variants: list[tuple[tuple[int, ...], PaddingConfig]] = [
        ((2, 3), ((1, 2, 0), (0, 1, 0))),
        ((2, 3), ((0, 0, 1), (1, 0, 2))),
        ((4, 3), ((-1, 2, 0), (1, -2, 0))),
        ((4, 3), ((-1, -2, 2), (-2, 1, 1))),
        ((3,), ((-5, 6, 1),)),
        ((), ()),
        ((0, 2), ((1, 2, 1), (0, 0, 0))),
        ((2,), ((-1, -1, 0),)),
        ((1, 2, 1, 1, 3, 1), ((1, 0, 0), *[(0, 0, 0)] * 3, (0, 1, 1), (0, 0, 0))),
    ]
    return spread_samples([((shape, ()), {"padding_config": config}) for shape, config in variants])


def _pad_dimensions(
    operands: Sequence[ShapedArray],
    results: Sequence[ShapedArray],
    *,
    padding_config: PaddingConfig,
) -> Dimensions:
    return by_position(operands, results, [d for d, each in enumerate(padding_config) if any(each)])


_pad: Primitive = declare(
    "pad",
    parameters={"padding_config": PaddingConfig},
    infer=_infer_pad,
    evaluate=_evaluate_pad,
    jvp=_pad_jvp,
    transpose=_transpose_pad,
    dimensions=_pad_dimensions,
    batch=_batch_pad,
    lower=_lower_pad,
    samples=_pad_samples,
)


def pad(
    operand: Operand, padding_value: Operand, padding_config: Sequence[tuple[int, int, int]]
) -> Value:
    """Adds elements around an array and between its elements.

    Args:
        operand: The array.
        padding_value: The added value: a scalar of the array's dtype.
        padding_config: For each dimension how many elements to add (low, high, interior): in front,
            behind, and between neighbours. Negative numbers in front and behind cut off elements.

    Raises:
        ParameterError: if the configuration does not fit the array.
        DTypeError: if the dtypes differ.

    >>> pad(np.arange(1, 4), 0, ((1, -1, 1),))
    Array([0, 1, 0, 2, 0], dtype=int32)
    """
    config = tuple([integers("pad", "an entry of padding_config", e) for e in padding_config])
    if type(padding_value) is not ConcreteArray:
        operand, padding_value = match_scalars(operand, padding_value)
    return _pad.bind(operand, padding_value, padding_config=config)
