"""Parameters and types of contractions: precision, dimension numbers, result shape and dtype."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import PrecisionLike
from axir.dialect.core.config import config
from axir.dialect.core.errors import DTypeError, ParameterError, ShapeError
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.reductions.folding import accumulator_dtype
from axir.dialect.program.dimensions import Dimensions, Factors

# ((lhs contracting, rhs contracting), (lhs batch, rhs batch))
DimensionNumbers = tuple[
    tuple[tuple[int, ...], tuple[int, ...]], tuple[tuple[int, ...], tuple[int, ...]]
]

# Parameters ------------------------------------------------------------------------------------

_PRECISIONS = {
    "default": "DEFAULT", "bfloat16": "DEFAULT", "fastest": "DEFAULT",
    "high": "HIGH", "bfloat16_3x": "HIGH", "tensorfloat32": "HIGH",
    "highest": "HIGHEST", "float32": "HIGHEST",
}  # fmt: skip


def canonical_precision(precision: PrecisionLike) -> tuple[str, str] | None:
    """Returns a precision as names for both operands, or None for the default.

    Args:
        precision: None, a name, a `Precision`, or a pair of such. None takes the option
            `jax_default_matmul_precision`.

    Raises:
        ParameterError: for anything else.
    """
    if precision is None:
        precision = config.jax_default_matmul_precision
        if precision is None:
            return None
    if isinstance(precision, (tuple, list)):
        if len(precision) == 2:
            return _precision_name(precision[0]), _precision_name(precision[1])
        raise _bad_precision(precision)
    name = _precision_name(precision)
    return name, name


def _precision_name(precision: PrecisionLike) -> str:
    name = "default" if precision is None else getattr(precision, "name", precision)
    if isinstance(name, str) and name.lower() in _PRECISIONS:
        return _PRECISIONS[name.lower()]
    raise _bad_precision(precision)


def _bad_precision(precision: PrecisionLike) -> ParameterError:
    return ParameterError(
        f"dot_general: precision {precision!r} is not a precision.",
        f"Pass None, one of {', '.join(_PRECISIONS)}, a Precision, or a pair of these.",
    )


# Types -----------------------------------------------------------------------------------------


def _rank(dtype: np.dtype) -> tuple[int, ...]:
    """Returns a sort key: products of mixed operands have the dtype with the larger key, as in XLA.

    Complex dtypes are the largest; then the range of floats counts, then their precision.
    """
    real = dtypes.real_dtype(dtype) if dtypes.is_complex(dtype) else dtype
    if dtypes.is_float(real):
        info = ml_dtypes.finfo(real)
        return dtypes.is_complex(dtype), info.maxexp, info.nmant
    bits = 1 if real == dtypes.bool_ else ml_dtypes.iinfo(real).bits
    return False, -1, -1, bits, not dtypes.is_unsigned(real)


_RANK = {dtype: _rank(dtype) for dtype in (*dtypes.ALL, *dtypes.NARROW)}


def computation_dtype(*operands: np.dtype) -> np.dtype:
    """Returns the dtype to multiply and accumulate in."""
    return accumulator_dtype(max(operands, key=_RANK.__getitem__))


def _check_side(name: str, operand: ShapedArray, contract: Any, batch: Any) -> None:
    used = (*contract, *batch)
    if any(not 0 <= axis < operand.ndim for axis in used):
        raise ShapeError(
            f"dot_general: dimension numbers of {name} (contracting {contract}, batch {batch}) lie "
            f"outside its {operand.ndim} axes; {name} is {operand}.",
            f"Name axes from 0 to {operand.ndim - 1}." if operand.ndim else "A scalar has no axes.",
        )
    if len(set(used)) != len(used):
        raise ShapeError(
            f"dot_general: {name} uses an axis twice (contracting {contract}, batch {batch}).",
            "Each axis is either contracted, or batch, or free.",
        )


def _check_sizes(kind: str, lhs: ShapedArray, rhs: ShapedArray, axes: Any) -> None:
    if len(axes[0]) != len(axes[1]):
        raise ShapeError(
            f"dot_general: lhs has {kind} axes {axes[0]} and rhs {axes[1]}: their numbers differ.",
            f"Name the {kind} axes of both operands in the same order.",
        )
    sizes = [tuple(x.shape[a] for a in side) for x, side in zip((lhs, rhs), axes, strict=True)]
    if sizes[0] != sizes[1]:
        raise ShapeError(
            f"dot_general: {kind} axes must agree in size, but axes {axes[0]} of lhs {lhs} have "
            f"{sizes[0]} and axes {axes[1]} of rhs {rhs} have {sizes[1]}.",
            "Transpose or reshape one operand so that they match.",
        )


def free_axes(ndim: int, contract: Sequence[int], batch: Sequence[int]) -> tuple[int, ...]:
    """Returns the axes that are neither contracted nor batch axes."""
    return tuple(a for a in range(ndim) if a not in contract and a not in batch)


def result_dtype_of(lhs: np.dtype, rhs: np.dtype, preferred: np.dtype | None) -> np.dtype:
    """Returns the dtype of the result, or raises `DTypeError`."""
    for dtype in (lhs, rhs):
        if dtype not in _RANK:
            raise DTypeError(f"dot_general does not accept {dtype}.", "Cast with x.astype(dtype).")
    if lhs != rhs and preferred is None and _RANK[lhs] == _RANK[rhs]:
        raise DTypeError(
            f"dot_general: {lhs} and {rhs} are of one range and precision.",
            "Cast one of the operands, or say the dtype of the result: preferred_element_type.",
        )
    dtype = max(lhs, rhs, key=_RANK.__getitem__)
    if preferred is None:
        return dtype
    if dtypes.is_integer(dtype) and preferred.itemsize < dtype.itemsize:
        raise DTypeError(
            f"dot_general: preferred_element_type {preferred} is narrower than the result type "
            f"{dtype}.",
            "Leave it out, and cast the result.",
        )
    return preferred


def dimensions(
    operands: Sequence[ShapedArray],
    results: Sequence[ShapedArray],
    *,
    dimension_numbers: DimensionNumbers,
    precision: tuple[str, str] | None,
    preferred_element_type: np.dtype | None,
) -> Dimensions:
    """Returns the factors of a product: of the batch, the rows, the columns, and the sum."""
    contract, batch = dimension_numbers
    factors = Factors()
    lhs = tuple(map(factors.new, operands[0].shape))
    shared = dict(zip((*contract[1], *batch[1]), (*contract[0], *batch[0]), strict=True))
    rhs = tuple(
        lhs[shared[axis]] if axis in shared else factors.new(extent)
        for axis, extent in enumerate(operands[1].shape)
    )
    out = (
        *(lhs[axis] for axis in batch[0]),
        *(lhs[axis] for axis in free_axes(len(lhs), contract[0], batch[0])),
        *(rhs[axis] for axis in free_axes(len(rhs), contract[1], batch[1])),
    )
    combined = {number: "sum" for axis in contract[0] for number in lhs[axis]}
    return Dimensions((lhs, rhs), (out,), factors, combined)


def infer(
    lhs: ShapedArray, rhs: ShapedArray, *, dimension_numbers: DimensionNumbers,
    precision: PrecisionLike, preferred_element_type: np.dtype | None,
) -> ShapedArray:  # fmt: skip
    """Infers the result type of `dot_general`."""
    contract, batch = dimension_numbers
    _check_side("lhs", lhs, contract[0], batch[0])
    _check_side("rhs", rhs, contract[1], batch[1])
    _check_sizes("batch", lhs, rhs, batch)
    _check_sizes("contracting", lhs, rhs, contract)
    shape = (
        *(lhs.shape[a] for a in batch[0]),
        *(lhs.shape[a] for a in free_axes(lhs.ndim, contract[0], batch[0])),
        *(rhs.shape[a] for a in free_axes(rhs.ndim, contract[1], batch[1])),
    )
    dtype = result_dtype_of(lhs.dtype, rhs.dtype, preferred_element_type)
    is_weak = lhs.weak_type and rhs.weak_type and preferred_element_type is None
    return ShapedArray(shape, dtype, is_weak)
