"""Algorithms of contractions: dtypes for rounding the operands and for adding the products.

Elsewhere: precision as one of three names (`types.py`), and the contraction.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

import numpy as np

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import DTypeLike, PrecisionLike
from axir.dialect.core.errors import DTypeError
from axir.dialect.ops.elementwise.conversion import convert_element_type
from axir.dialect.program.rules import Value


@dataclass(frozen=True)
class DotAlgorithm:
    """The arithmetic of a contraction, as a value of `precision`.

    Attributes:
        lhs_precision_type: dtype that elements of lhs are rounded to.
        rhs_precision_type: dtype that elements of rhs are rounded to.
        accumulation_type: dtype that products are added in.
        lhs_component_count: The number of components of that dtype that an element of lhs is split
            into. From two on elements are not rounded, which is at least as precise.
        rhs_component_count: The same for elements of rhs.
        num_primitive_operations: The number of products of components that are added.
        allow_imprecise_accumulation: Whether sums may be less precise; they are not.

    >>> import axir.numpy as jnp
    >>> from axir import lax
    >>> algorithm = DotAlgorithm(jnp.bfloat16, jnp.bfloat16, jnp.float32)
    >>> lax.dot(jnp.array([1.001, 2.0]), jnp.array([1.0, 1.0]), precision=algorithm)
    Array(3., dtype=float32)
    """

    lhs_precision_type: DTypeLike
    rhs_precision_type: DTypeLike
    accumulation_type: DTypeLike
    lhs_component_count: int = 1
    rhs_component_count: int = 1
    num_primitive_operations: int = 1
    allow_imprecise_accumulation: bool = False


class DotAlgorithmPreset(enum.Enum):
    """Algorithms by name: dtypes of lhs, rhs and sums; `X3` and so on for elements that are split.

    TF32 numbers are computed in float32. Algorithms of any 8-bit floats do not round.
    """

    DEFAULT = "DEFAULT"
    ANY_F8_ANY_F8_F32 = "ANY_F8_ANY_F8_F32"
    ANY_F8_ANY_F8_F32_FAST_ACCUM = "ANY_F8_ANY_F8_F32_FAST_ACCUM"
    ANY_F8_ANY_F8_ANY = "ANY_F8_ANY_F8_ANY"
    ANY_F8_ANY_F8_ANY_FAST_ACCUM = "ANY_F8_ANY_F8_ANY_FAST_ACCUM"
    F16_F16_F16 = "F16_F16_F16"
    F16_F16_F32 = "F16_F16_F32"
    BF16_BF16_BF16 = "BF16_BF16_BF16"
    BF16_BF16_F32 = "BF16_BF16_F32"
    BF16_BF16_F32_X3 = "BF16_BF16_F32_X3"
    BF16_BF16_F32_X6 = "BF16_BF16_F32_X6"
    BF16_BF16_F32_X9 = "BF16_BF16_F32_X9"
    TF32_TF32_F32 = "TF32_TF32_F32"
    TF32_TF32_F32_X3 = "TF32_TF32_F32_X3"
    F32_F32_F32 = "F32_F32_F32"
    F64_F64_F64 = "F64_F64_F64"


_BY_NAME = {preset.name: preset for preset in DotAlgorithmPreset}
_DTYPES = {
    "F16": dtypes.float16, "BF16": dtypes.bfloat16, "TF32": dtypes.float32,
    "F32": dtypes.float32, "F64": dtypes.float64,
}  # fmt: skip


def algorithm_of(precision: PrecisionLike) -> DotAlgorithm | DotAlgorithmPreset | None:
    """Returns the algorithm that a `precision` names, or None for other precisions."""
    if isinstance(precision, (DotAlgorithm, DotAlgorithmPreset)):
        return precision
    return _BY_NAME.get(precision) if isinstance(precision, str) else None


def rounded_operands(
    algorithm: DotAlgorithm | DotAlgorithmPreset, lhs: Value, rhs: Value
) -> tuple[Value, Value, np.dtype | None]:
    """Returns operands rounded by an algorithm, and the dtype to add in, or None.

    Raises:
        DTypeError: if an algorithm of 8-bit floats gets other dtypes, or operands are not real
            floats.
    """
    if algorithm is DotAlgorithmPreset.DEFAULT:
        return lhs, rhs, None
    if not (dtypes.is_float(lhs.dtype) and dtypes.is_float(rhs.dtype)):
        raise DTypeError(
            f"dot_general: {algorithm} is an algorithm of real floats, not of {lhs.aval} and "
            f"{rhs.aval}.",
            "Leave precision out.",
        )
    if isinstance(algorithm, DotAlgorithmPreset) and algorithm.name.startswith("ANY_F8"):
        if not all(x.dtype in dtypes.NARROW_FLOATS for x in (lhs, rhs)):
            raise DTypeError(
                f"dot_general: {algorithm.name} multiplies 8-bit floats, not {lhs.aval} and "
                f"{rhs.aval}.",
                "Cast with x.astype('float8_e4m3fn').",
            )
        return lhs, rhs, dtypes.float32
    if isinstance(algorithm, DotAlgorithmPreset):
        first, second, added, *split = algorithm.name.split("_")
        algorithm = DotAlgorithm(
            _DTYPES[first], _DTYPES[second], _DTYPES[added], 3 if split else 1, 3 if split else 1
        )
    added_in = dtypes.canonicalize_dtype(algorithm.accumulation_type)
    return (
        _rounded(lhs, algorithm.lhs_precision_type, algorithm.lhs_component_count, added_in),
        _rounded(rhs, algorithm.rhs_precision_type, algorithm.rhs_component_count, added_in),
        added_in,
    )


def _rounded(x: Value, dtype: DTypeLike, components: int, added_in: np.dtype) -> Value:
    kept = x if components > 1 else convert_element_type(x, dtypes.canonicalize_dtype(dtype))
    return convert_element_type(kept, added_in)
