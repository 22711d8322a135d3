"""Quantized element types of MLIR, `!quant.uniform<i8:f32, 0.5:3>`: the meaning of their integers.

An integer q stands for the number (q - zero point) * scale. axir has no type for such numbers: it
computes with the integers. `numpy_dtype` of a quantized type returns their dtype. Elsewhere: that
arithmetic (`axir.passes.raising`).
"""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import NamedTuple

import ml_dtypes
import numpy as np
from iree.compiler import ir

from . import dtypes
from .annotations import Dtype
from .errors import DTypeError

__all__ = [
    "Quantization",
    "is_quantized",
    "is_quantized_text",
    "quantization",
    "quantization_of_text",
]

_PREFIX = "!quant."
_TEXT = re.compile(
    r"!quant\.uniform<([su]?i?)(\d+)(?:<(-?\d+):(-?\d+)>)?:(\w+)(?::(\d+))?, *(\{[^{}]*\}|[^{}]*)>"
)
_STORAGE: dict[tuple[bool, int], Dtype] = {
    **{(True, d.itemsize * 8): d for d in dtypes.SIGNED if d.itemsize <= 4},
    **{(False, d.itemsize * 8): d for d in dtypes.UNSIGNED if d.itemsize <= 4},
    **{(True, ml_dtypes.iinfo(d).bits): d for d in dtypes.NARROW_SIGNED},
    **{(False, ml_dtypes.iinfo(d).bits): d for d in dtypes.NARROW_UNSIGNED},
}
_EXPRESSED: dict[str, Dtype] = {
    "bf16": dtypes.bfloat16,
    "f16": dtypes.float16,
    "f32": dtypes.float32,
    "f64": dtypes.float64,
}
_BEFORE = "Export the model before it is quantized, or with its arithmetic on integers."
_LONGEST = 120


class Quantization(NamedTuple):
    """The meaning of the integers of a quantized type.

    Attributes:
        storage: The dtype of the integers.
        low: The least integer.
        high: The greatest integer.
        expressed: The dtype of the numbers that they stand for.
        axis: The axis along which scales and zero points change; None if all elements share them.
        scales: The differences between neighbouring numbers.
        zero_points: The integers that stand for zero.
    """

    storage: Dtype
    low: int
    high: int
    expressed: Dtype
    axis: int | None
    scales: tuple[float, ...]
    zero_points: tuple[int, ...]

    @property
    def uses_all_integers(self) -> bool:
        """Whether the type uses every integer of the storage dtype."""
        info = ml_dtypes.iinfo(self.storage)
        return (self.low, self.high) == (info.min, info.max)

    @property
    def reach(self) -> int:
        """The largest distance of an integer of the storage dtype from a zero point."""
        info = ml_dtypes.iinfo(self.storage)
        return max(max(z - int(info.min), int(info.max) - z) for z in self.zero_points)

    def __str__(self) -> str:
        along = "" if self.axis is None else f" along axis {self.axis}"
        shown = [f"{s:g}:{z}" for s, z in zip(self.scales[:3], self.zero_points, strict=False)]
        more = ", ..." if len(self.scales) > 3 else ""
        return f"{self.expressed} by {', '.join(shown)}{more}{along}"


def is_quantized(kind: ir.Type) -> bool:
    """Tells whether a type is a tensor of quantized numbers."""
    # Quantized types have no specific class in Python, and nearly all others have one.
    if not isinstance(kind, ir.ShapedType):
        return False
    element = kind.element_type
    return type(element) is ir.Type and is_quantized_text(str(element))


def is_quantized_text(text: str) -> bool:
    """Tells from its text whether an element type is quantized."""
    return text.startswith(_PREFIX)


def quantization(kind: ir.Type) -> Quantization | None:
    """Returns the meaning of a tensor type's integers; None for types of other numbers.

    Raises:
        DTypeError: if the type is inconsistent, or of a kind that StableHLO does not have.
    """
    if not is_quantized(kind):
        return None
    shaped = ir.ShapedType(kind)
    found = quantization_of_text(str(shaped.element_type))
    if found.axis is None:
        return found
    rank = shaped.rank if shaped.has_rank else 0
    if found.axis >= rank:
        raise DTypeError(
            f"A quantized type of {len(found.scales)} scales has them along axis {found.axis}, but "
            f"its arrays have {rank} axes.",
            "Its axis is counted from 0.",
        )
    extent = shaped.get_dim_size(found.axis)
    if extent >= 0 and extent != len(found.scales):
        raise DTypeError(
            f"A quantized type has {len(found.scales)} scales along axis {found.axis}, where its "
            f"arrays have {extent} elements.",
            "Give one scale for each of them.",
        )
    return found


@lru_cache(maxsize=256)
def quantization_of_text(text: str) -> Quantization:
    """Returns the meaning of a quantized element type's integers.

    Raises:
        DTypeError: if it is inconsistent, or of a kind that StableHLO does not have.
    """
    shown = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
    match = _TEXT.fullmatch(text)
    if match is None:
        raise DTypeError(
            f"MLIR type {shown} is quantized in a way that StableHLO does not have.",
            f"It has !quant.uniform with one scale, or with scales along one axis. {_BEFORE}",
        )
    sign, bits, low, high, expressed, axis, parameters = match.groups()
    storage = _STORAGE.get((not sign.startswith("u"), int(bits)))
    if storage is None or expressed not in _EXPRESSED:
        raise DTypeError(
            f"MLIR type {shown} has {sign}{bits} for {expressed}, which StableHLO does not have.",
            "Quantized numbers are integers of 2, 4, 8, 16 or 32 bits for f16, bf16, f32 or f64.",
        )
    info = ml_dtypes.iinfo(storage)
    pairs = [part.strip().partition(":") for part in parameters.strip("{}").split(",")]
    found = Quantization(
        storage,
        int(info.min) if low is None else int(low),
        int(info.max) if high is None else int(high),
        _EXPRESSED[expressed],
        None if axis is None else int(axis),
        tuple(float(scale) for scale, _, _ in pairs),
        tuple(int(zero or 0) for _, _, zero in pairs),
    )
    _check(found, shown)
    return found


def _check(found: Quantization, shown: str) -> None:
    for scale in found.scales:
        if not (math.isfinite(scale) and np.array(scale).astype(found.expressed) > 0):
            raise DTypeError(
                f"MLIR type {shown} has the scale {scale:g}.",
                "Scales are positive numbers, and finite.",
            )
    for zero in found.zero_points:
        if not found.low <= zero <= found.high:
            raise DTypeError(
                f"MLIR type {shown} has the zero point {zero}, which is none of its integers.",
                f"They are {found.low} to {found.high}.",
            )
    if found.axis is None and len(found.scales) != 1:
        raise DTypeError(
            f"MLIR type {shown} has {len(found.scales)} scales and no axis.",
            "Say along which axis they are: !quant.uniform<i8:f32:0, {...}>.",
        )
