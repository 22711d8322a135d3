"""Quantized types as plain data, and the formulas of StableHLO's specification in float64."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

_NAMES = {"f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64"}
# A number this near to the middle between two integers may be rounded to either of them.
NEAR_A_TIE = 2e-4
# The allowed error of a computation, in units in the last place of float32 at one.
_UNITS = 4e-7


@dataclass(frozen=True)
class Q:
    """A quantized element type."""

    storage: str = "i8"
    scales: tuple[float, ...] | float = 0.05
    zeros: tuple[int, ...] | int = 0
    axis: int | None = None
    bounds: tuple[int, int] | None = None
    expressed: str = "f32"

    @property
    def text(self) -> str:
        """The type in MLIR's text."""
        bounds = "" if self.bounds is None else f"<{self.bounds[0]}:{self.bounds[1]}>"
        head = f"!quant.uniform<{self.storage}{bounds}:{self.expressed}"
        if self.axis is None:
            return f"{head}, {self.scales:.17e}:{self.zeros}>"
        pairs = ", ".join(f"{s:.17e}:{z}" for s, z in zip(self.scales, self._zeros, strict=True))
        return f"{head}:{self.axis}, {{{pairs}}}>"

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the integers."""
        name = self.storage.replace("u", "uint").replace("i", "int", self.storage[0] == "i")
        return (
            np.dtype(getattr(ml_dtypes, name))
            if name[-1] in "24" and name[-2] == "t"
            else (np.dtype(name))
        )

    @property
    def numbers(self) -> np.dtype:
        """The dtype of the numbers that the integers stand for."""
        name = _NAMES[self.expressed]
        return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)

    @property
    def limits(self) -> tuple[int, int]:
        """The least and the greatest integer."""
        info = ml_dtypes.iinfo(self.dtype)
        return (int(info.min), int(info.max)) if self.bounds is None else self.bounds

    @property
    def _zeros(self) -> tuple[int, ...]:
        count = len(self.scales) if isinstance(self.scales, tuple) else 1
        return self.zeros if isinstance(self.zeros, tuple) else (self.zeros,) * count

    def _along(self, values: Any, rank: int) -> np.ndarray:
        array = np.asarray(values, np.float64)
        if self.axis is None:
            return array
        return np.broadcast_to(array, len(self.scales)).reshape(
            [-1 if axis == self.axis else 1 for axis in range(rank)]
        )

    def _scales(self, rank: int) -> np.ndarray:
        kind = np.float64 if self.expressed == "f64" else np.float32
        return self._along(np.asarray(self.scales).astype(kind), rank)

    def dequantize(self, x: np.ndarray) -> np.ndarray:
        """The numbers that integers stand for, in float64."""
        x = np.asarray(x).astype(np.float64)
        return (x - self._along(self.zeros, x.ndim)) * self._scales(x.ndim)

    def before_rounding(self, x: np.ndarray) -> np.ndarray:
        """The numbers that are rounded to the quantized integers."""
        x = np.asarray(x, np.float64)
        scaled = x / self._scales(x.ndim) + self._along(self.zeros, x.ndim)
        return np.clip(scaled, *self.limits)

    def random(self, rng: np.random.Generator, shape: Sequence[int]) -> np.ndarray:
        """Some integers of the type, the least and the greatest one among them."""
        low, high = self.limits
        found = rng.integers(low, high + 1, tuple(shape))
        if found.size > 1:
            found.flat[:2] = low, high
        return found.astype(self.dtype)


def tensor(shape: Sequence[int], element: Q | str) -> str:
    """The type of arrays in MLIR's text."""
    name = element.text if isinstance(element, Q) else element
    return f"tensor<{''.join(f'{n}x' for n in shape)}{name}>"


def assert_quantized(
    found: np.ndarray, q: Q, numbers: np.ndarray, near: float = NEAR_A_TIE
) -> None:
    """Asserts that integers represent given numbers."""
    assert found.dtype == q.dtype
    wanted = q.before_rounding(numbers)
    assert found.shape == wanted.shape
    integers = found.astype(np.float64)
    allowed = np.maximum(near, np.abs(wanted) * _UNITS)
    wrong = np.abs(integers - wanted) > 0.5 + allowed
    away = np.abs(np.abs(wanted - np.floor(wanted)) - 0.5) > allowed
    wrong |= away & (integers != np.round(wanted))
    assert not wrong.any(), (found[wrong][:5], wanted[wrong][:5])
