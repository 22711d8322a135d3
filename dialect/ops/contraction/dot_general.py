"""Contractions: `dot_general`, and the products of matrices and vectors made of it."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import DTypeLike, Param, PrecisionLike, UserObject
from axir.dialect.core.errors import ShapeError, one_layout
from axir.dialect.core.symbolic_zeros import Zero, is_undefined_primal
from axir.dialect.ops.elementwise.conversion import convert_element_type, real
from axir.dialect.ops.elementwise.family import ANY, FLOAT, add_tangents, as_value
from axir.dialect.ops.elementwise.samples import edge_rows, random_values
from axir.dialect.ops.reductions.blocks import reduce_in_blocks
from axir.dialect.ops.shape.rearranging import transpose
from axir.dialect.program.function_rules import LoweringContext
from axir.dialect.program.op_table import declare
from axir.dialect.program.operation import Sample
from axir.dialect.program.rules import (
    BatchAxes,
    Cotangent,
    MlirValues,
    Operand,
    Tangent,
    Tangents,
    TransposeOperand,
    Value,
)

from .algorithms import algorithm_of, rounded_operands
from .types import (
    DimensionNumbers,
    canonical_precision,
    computation_dtype,
    dimensions,
    free_axes,
    infer,
    result_dtype_of,
)

MATMUL: DimensionNumbers = (((1,), (0,)), ((), ()))
# Sums of so many products are added block by block.
_LONG = 1 << 13
# Products per call: a dot product has many running sums, other products have few.
_DOT_BLOCK, _MATRIX_BLOCK = 1 << 13, 1 << 9

# Evaluation ------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=4096)
def _layout(
    lhs_ndim: int, rhs_ndim: int, dimension_numbers: DimensionNumbers
) -> tuple[tuple[int, ...], tuple[int, ...], int, int, bool]:
    """Plans a contraction as one matrix product.

    Returns:
        Permutations that bring lhs to (batch, free, contracting) and rhs to (batch, contracting,
        free); the numbers of batch and of contracting axes; and whether `np.dot` of the permuted
        operands is the result.
    """
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
    lhs_free = free_axes(lhs_ndim, lhs_contract, lhs_batch)
    rhs_free = free_axes(rhs_ndim, rhs_contract, rhs_batch)
    is_plain = not lhs_batch and len(lhs_contract) == 1 and lhs_ndim <= 2 and rhs_ndim <= 2
    return (
        (*lhs_batch, *lhs_free, *lhs_contract),
        (*rhs_batch, *rhs_contract, *rhs_free),
        len(lhs_batch),
        len(lhs_contract),
        is_plain,
    )


def _evaluate(
    lhs: np.ndarray, rhs: np.ndarray, *, dimension_numbers: DimensionNumbers,
    precision: PrecisionLike, preferred_element_type: np.dtype | None,
) -> np.ndarray:  # fmt: skip
    plan = _layout(lhs.ndim, rhs.ndim, dimension_numbers)
    dtype = lhs.dtype
    keeps_dtype = preferred_element_type is None or preferred_element_type == dtype
    if dtype.char in "fdFD" and dtype == rhs.dtype and keeps_dtype:
        return _contract(lhs, rhs, plan)
    result_dtype = result_dtype_of(dtype, rhs.dtype, preferred_element_type)
    computed = computation_dtype(dtype, rhs.dtype, result_dtype)
    # Sums of products of narrow integers are exact in float64, where matrix products are fast.
    is_narrow = computed.kind in "iu" and dtype.itemsize <= 2 and rhs.dtype.itemsize <= 2
    is_exact = is_narrow and min(lhs.size, rhs.size) < 2**21
    carrier = dtypes.float64 if is_exact else computed
    result = _contract(lhs.astype(carrier, copy=False), rhs.astype(carrier, copy=False), plan)
    if is_exact:
        result = np.asarray(result).astype(np.int64)
    elif computed.kind == "c" and result_dtype.kind != "c":
        result = np.real(result)
    return np.asarray(result).astype(result_dtype, copy=False)


def _contract(lhs: np.ndarray, rhs: np.ndarray, plan: tuple) -> np.ndarray:
    lhs_axes, rhs_axes, batch_count, contract_count, is_plain = plan
    if is_plain:
        if lhs_axes == (1, 0):
            lhs = lhs.T
        if rhs_axes == (1, 0):
            rhs = rhs.T
        if lhs.shape[-1] < _LONG:
            return np.dot(lhs, rhs)
        shape = (*lhs.shape[:-1], *rhs.shape[1:])
        return _product(lhs.reshape(-1, len(rhs)), rhs.reshape(len(rhs), -1)).reshape(shape)
    lhs, rhs = lhs.transpose(lhs_axes), rhs.transpose(rhs_axes)
    batch = lhs.shape[:batch_count]
    lhs_free = lhs.shape[batch_count : lhs.ndim - contract_count]
    rhs_free = rhs.shape[batch_count + contract_count :]
    count = math.prod(lhs.shape[lhs.ndim - contract_count :])
    product = _product(
        lhs.reshape(*batch, math.prod(lhs_free), count),
        rhs.reshape(*batch, count, math.prod(rhs_free)),
    )
    return product.reshape((*batch, *lhs_free, *rhs_free))


def _product(lhs: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    """Returns `np.matmul(lhs, rhs)`; adds long sums block by block."""
    *batch, rows, count = lhs.shape
    columns = rhs.shape[-1]
    # The sums of all blocks are few beside the operands.
    least = _DOT_BLOCK if rows == columns == 1 else _MATRIX_BLOCK
    block = max(least, 8 * rows * columns // max(rows + columns, 1))
    if count < _LONG or count < 2 * block or lhs.dtype.kind not in "fc":
        return np.matmul(lhs, rhs)
    whole = count - count % block
    left = lhs[..., :whole].reshape(*batch, rows, whole // block, block)
    right = rhs[..., :whole, :].reshape(*batch, whole // block, block, columns)
    axis = len(batch)
    products = np.matmul(np.moveaxis(left, axis + 1, axis), right)
    found = reduce_in_blocks(np.add, products, (axis,))
    return found + np.matmul(lhs[..., whole:], rhs[..., whole:, :]) if whole < count else found


# Derivatives -----------------------------------------------------------------------------------


def _jvp(
    primals: Sequence[Value], tangents: Sequence[Tangent], out: Value, **params: object
) -> Tangents:
    (lhs, rhs), (lhs_tangent, rhs_tangent) = primals, tangents
    total: Tangent | None = None
    if not dtypes.is_inexact(out.dtype):
        return Zero(out.aval.to_tangent_aval())
    if type(lhs_tangent) is not Zero:
        total = _dot_general.bind(lhs_tangent, rhs, **params)
    if type(rhs_tangent) is not Zero:
        total = add_tangents(total, _dot_general.bind(lhs, rhs_tangent, **params))
    return Zero(out.aval.to_tangent_aval()) if total is None else total


def _transpose(ct: Value, lhs: Param, rhs: Param, **params: Param) -> Sequence[Cotangent | None]:
    if is_undefined_primal(lhs):
        return [_transpose_lhs(ct, lhs, rhs, **params), None]
    (contract, batch) = params.pop("dimension_numbers")
    swapped = (contract[::-1], batch[::-1])
    # Exchanging the operands exchanges the result's free axes as well.
    lhs_free = lhs.ndim - len(contract[0]) - len(batch[0])
    count = len(batch[0])
    order = (*range(count), *range(count + lhs_free, ct.ndim), *range(count, count + lhs_free))
    return [
        None,
        _transpose_lhs(_permute(ct, order), rhs, lhs, dimension_numbers=swapped, **params),
    ]


def _transpose_lhs(
    ct: Value, lhs: TransposeOperand, rhs: Value, *, dimension_numbers: DimensionNumbers,
    precision: PrecisionLike, preferred_element_type: np.dtype | None,
) -> Value:  # fmt: skip
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
    lhs_free = free_axes(lhs.ndim, lhs_contract, lhs_batch)
    rhs_free = free_axes(rhs.ndim, rhs_contract, rhs_batch)
    count = len(lhs_batch)
    ct_contract = tuple(range(count + len(lhs_free), ct.ndim))
    numbers = ((ct_contract, rhs_free), (tuple(range(count)), rhs_batch))
    product = _dot_general.bind(
        ct, rhs, dimension_numbers=numbers, precision=precision, preferred_element_type=None
    )
    # The remaining axes of rhs are its contracting axes, in the order of its axes.
    by_rhs = sorted(range(len(rhs_contract)), key=rhs_contract.__getitem__)
    axes = (*lhs_batch, *lhs_free, *(lhs_contract[i] for i in by_rhs))
    result = _permute(product, tuple(axes.index(axis) for axis in range(lhs.ndim)))
    if dtypes.is_complex(result.dtype) and not dtypes.is_complex(lhs.dtype):
        result = real(result)
    return result if result.dtype == lhs.dtype else convert_element_type(result, lhs.dtype)


def _permute(x: Value, permutation: tuple[int, ...]) -> Value:
    return x if permutation == tuple(range(x.ndim)) else transpose(x, permutation)


# Batching --------------------------------------------------------------------------------------


def _shift(axes: Sequence[int], batch_axis: int) -> tuple[int, ...]:
    return tuple(a + (a >= batch_axis) for a in axes)


def _batch(
    operands: Sequence[Value],
    axes: BatchAxes,
    *,
    dimension_numbers: DimensionNumbers,
    **params: object,
) -> tuple[Value, int]:
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
    lhs_axis, rhs_axis = axes
    if lhs_axis is not None:
        lhs_contract, lhs_batch = _shift(lhs_contract, lhs_axis), _shift(lhs_batch, lhs_axis)
    if rhs_axis is not None:
        rhs_contract, rhs_batch = _shift(rhs_contract, rhs_axis), _shift(rhs_batch, rhs_axis)
    lhs_free = free_axes(operands[0].ndim, lhs_contract, lhs_batch)
    if lhs_axis is not None and rhs_axis is not None:
        lhs_batch, rhs_batch = (lhs_axis, *lhs_batch), (rhs_axis, *rhs_batch)
        result_axis = 0
    elif lhs_axis is not None:
        result_axis = len(lhs_batch) + lhs_free.index(lhs_axis)
    else:
        rhs_free = free_axes(operands[1].ndim, rhs_contract, rhs_batch)
        result_axis = len(lhs_batch) + len(lhs_free) + rhs_free.index(rhs_axis)
    numbers = ((lhs_contract, rhs_contract), (lhs_batch, rhs_batch))
    return _dot_general.bind(*operands, dimension_numbers=numbers, **params), result_axis


# Lowering --------------------------------------------------------------------------------------


def _lower(
    context: LoweringContext, lhs: ir.Value, rhs: ir.Value, *, dimension_numbers: DimensionNumbers,
    precision: PrecisionLike, preferred_element_type: np.dtype | None,
) -> MlirValues:  # fmt: skip
    (lhs_type, rhs_type), (out,) = context.types_in, context.types_out
    contract, batch = dimension_numbers
    if lhs_type.size == 0 or rhs_type.size == 0:
        return hlo.full(0, out.shape, out.dtype)
    computed = computation_dtype(lhs_type.dtype, rhs_type.dtype, out.dtype)
    # Narrow operands of one dtype that are only widened stay narrow: CPUs have instructions for
    # them.
    kinds = {dtypes.kind(dtype) for dtype in (lhs_type.dtype, rhs_type.dtype, computed)}
    if lhs_type.dtype != rhs_type.dtype or len(kinds) > 1:
        lhs, rhs = (_convert(x, t.dtype, computed) for x, t in ((lhs, lhs_type), (rhs, rhs_type)))
    if computed == dtypes.bool_:
        # Compilers add truth values modulo two, or refuse them; here a sum of one or more is true.
        single = dtypes.float32
        lhs, rhs = (hlo.convert(x, single) for x in (lhs, rhs))
        sums = hlo.dot_general(lhs, rhs, contract, batch, element=single)
        return hlo.compare(sums, hlo.full_like(sums, 0), "NE")
    result = hlo.dot_general(lhs, rhs, contract, batch, element=computed, precision=precision)
    return _convert(result, computed, out.dtype)


def _convert(value: ir.Value, dtype: np.dtype, new_dtype: np.dtype) -> ir.Value:
    if dtype == new_dtype:
        return value
    if dtypes.is_complex(dtype) and not dtypes.is_complex(new_dtype):
        value, dtype = hlo.real(value), dtypes.real_dtype(dtype)
    return value if dtype == new_dtype else hlo.convert(value, new_dtype)


# Samples ---------------------------------------------------------------------------------------

_SAMPLE_NUMBERS: tuple[tuple[tuple[int, ...], tuple[int, ...], DimensionNumbers], ...] = (
    ((2, 3), (3, 4), MATMUL),
    ((2, 3), (3,), MATMUL),
    ((3,), (3, 4), (((0,), (0,)), ((), ()))),
    ((3,), (3,), (((0,), (0,)), ((), ()))),
    ((3, 2), (4, 3), (((0,), (1,)), ((), ()))),
    ((), (), (((), ()), ((), ()))),
    ((2,), (3,), (((), ()), ((), ()))),
    ((2, 3, 4), (2, 4, 3), (((2,), (1,)), ((0,), (0,)))),
    ((2, 3, 4, 5), (4, 2, 3, 2), (((1, 2), (2, 0)), ((0,), (1,)))),
    ((3, 4, 2), (2, 3, 5), (((), ()), ((2, 0), (0, 1)))),
    ((2, 7), (19, 2), (((), ()), ((0,), (1,)))),
    ((3, 2, 5), (7, 3, 2), (((0,), (1,)), ((1,), (2,)))),
    ((2, 0), (0, 3), MATMUL),
    ((0, 2), (2, 3), MATMUL),
    ((1, 2, 1, 1, 2, 3), (1, 2, 1, 1, 3, 2), (((5,), (4,)), ((0, 1, 2, 3), (0, 1, 2, 3)))),
)
_SAMPLE_DTYPES = (
    (dtypes.int8, dtypes.int8, dtypes.int32),
    (dtypes.bfloat16, dtypes.bfloat16, dtypes.float32),
    (dtypes.float32, dtypes.float32, dtypes.bfloat16),
    (dtypes.int32, dtypes.float32, None),
    (dtypes.float32, dtypes.complex64, None),
)


def _samples() -> list[Sample]:
    generator = np.random.default_rng(3)

    def sample(
        lhs_shape: tuple[int, ...],
        rhs_shape: tuple[int, ...],
        numbers: DimensionNumbers,
        lhs: np.dtype,
        rhs: np.dtype,
        preferred: np.dtype | None = None,
        precision: PrecisionLike = None,
    ) -> Sample:
        args = (
            random_values(generator, lhs_shape, lhs, -2, 2),
            random_values(generator, rhs_shape, rhs, -2, 2),
        )
        params = {
            "dimension_numbers": numbers,
            "precision": precision,
            "preferred_element_type": preferred,
        }
        # A result rounded to half precision hides small differences of its operands.
        is_smooth = preferred is None or preferred.itemsize >= lhs.itemsize
        return Sample(args, params, is_smooth=is_smooth, tolerance=64.0)

    samples = [sample(*shapes, dtypes.float32, dtypes.float32) for shapes in _SAMPLE_NUMBERS]
    for index, dtype in enumerate(ANY):
        samples.append(sample(*_SAMPLE_NUMBERS[(0, 8, 1)[index % 3]], dtype, dtype))
    for lhs, rhs, preferred in _SAMPLE_DTYPES:
        samples.append(sample((2, 3), (3, 4), MATMUL, lhs, rhs, preferred))
    for dtype in (*FLOAT, dtypes.int8, dtypes.int32, dtypes.uint64):
        regular = sample((7, 4), (4, 3), MATMUL, dtype, dtype)
        args = (edge_rows(dtype), regular.args[1])
        samples.append(dataclasses.replace(regular, args=args, is_smooth=False))
    highest = ("HIGHEST", "HIGHEST")
    float32 = dtypes.float32
    samples.append(sample((2, 3), (3, 4), MATMUL, float32, float32, precision=highest))
    return samples


_dot_general = declare(
    "dot_general",
    parameters={
        "dimension_numbers": DimensionNumbers,
        "precision": tuple[str, str] | None,
        "preferred_element_type": np.dtype | None,
    },
    infer=infer,
    evaluate=_evaluate,
    jvp=_jvp,
    transpose=_transpose,
    batch=_batch,
    lower=_lower,
    dimensions=dimensions,
    samples=_samples,
)

# Functions -------------------------------------------------------------------------------------


def dot_general(
    lhs: Operand,
    rhs: Operand,
    dimension_numbers: UserObject,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike = None,
    *,
    out_sharding: None = None,
) -> Value:
    """Sums products over the contracting axes, separately at each index of the batch axes.

    Args:
        lhs: Array.
        rhs: Array; if the dtypes differ, the result has the wider one.
        dimension_numbers: ((lhs contracting, rhs contracting), (lhs batch, rhs batch)) axes.
        precision: None, 'default', 'high' or 'highest', or a pair of these for the two operands; or
            a `DotAlgorithm`, a `DotAlgorithmPreset` or its name.
        preferred_element_type: dtype to accumulate in, and of the result.
        out_sharding: None here; in `axir.lax`'s function, the sharding of the result.

    Returns:
        An array with the batch axes, then the free axes of lhs, then the free axes of rhs.

    Raises:
        ShapeError: for axes that do not exist, are named twice, or differ in size.
        DTypeError: for a preferred dtype narrower than an integer result.
        ParameterError: for an unknown precision.
    """
    if out_sharding is not None:
        raise one_layout("dot_general", out_sharding)
    lhs, rhs = as_value(lhs), as_value(rhs)
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
    numbers = (
        (_integers(lhs_contract), _integers(rhs_contract)),
        (_integers(lhs_batch), _integers(rhs_batch)),
    )
    if preferred_element_type is not None:
        preferred_element_type = dtypes.canonicalize_dtype(preferred_element_type)
    algorithm = None if precision is None else algorithm_of(precision)
    if algorithm is not None:
        result = preferred_element_type
        if result is None and lhs.dtype == rhs.dtype:
            result = lhs.dtype
        elif result is None:
            result = result_dtype_of(lhs.dtype, rhs.dtype, None)
        lhs, rhs, added_in = rounded_operands(algorithm, lhs, rhs)
        product = _dot_general.bind(
            lhs,
            rhs,
            dimension_numbers=numbers,
            precision=("HIGHEST", "HIGHEST"),
            preferred_element_type=added_in,
        )
        return convert_element_type(product, result)
    return _dot_general.bind(
        lhs,
        rhs,
        dimension_numbers=numbers,
        precision=canonical_precision(precision),
        preferred_element_type=preferred_element_type,
    )


def _integers(axes: Sequence[Any]) -> tuple[int, ...]:
    return tuple([int(axis) for axis in axes])


def dot(
    lhs: Operand,
    rhs: Operand,
    *,
    dimension_numbers: object = None,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike = None,
    out_sharding: None = None,
) -> Value:
    """Multiplies vectors and matrices: vector-vector, matrix-vector and matrix-matrix products.

    With `dimension_numbers` this is `dot_general`.

    Raises:
        ShapeError: for operands of other ranks than 1 and 2, or of sizes that do not fit.
    """
    lhs, rhs = as_value(lhs), as_value(rhs)
    if dimension_numbers is None:
        if lhs.ndim not in (1, 2) or rhs.ndim not in (1, 2):
            raise ShapeError(
                f"dot multiplies vectors and matrices, but got {lhs.aval} and {rhs.aval}.",
                "Use dot_general, jnp.matmul or jnp.tensordot.",
            )
        dimension_numbers = (((lhs.ndim - 1,), (0,)), ((), ()))
    return dot_general(
        lhs, rhs, dimension_numbers, precision, preferred_element_type, out_sharding=out_sharding
    )


def batch_matmul(lhs: Operand, rhs: Operand, precision: PrecisionLike = None) -> Value:
    """Multiplies matrices in the last two axes; all axes before are batch axes.

    Raises:
        ShapeError: for operands without matrices, or of different ranks.
    """
    lhs, rhs = as_value(lhs), as_value(rhs)
    if min(lhs.ndim, rhs.ndim) < 2 or lhs.ndim != rhs.ndim:
        raise ShapeError(
            "batch_matmul takes operands of the same rank, at least 2, but got "
            f"{lhs.aval} and {rhs.aval}.",
            "jnp.matmul broadcasts batch axes.",
        )
    batch = tuple(range(lhs.ndim - 2))
    numbers = (((lhs.ndim - 1,), (lhs.ndim - 2,)), (batch, batch))
    return dot_general(lhs, rhs, numbers, precision)


dot_general.primitive = _dot_general  # type: ignore[attr-defined]
