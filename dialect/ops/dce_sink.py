"""`dce_sink`: keeps the computation of its operand though nothing uses the value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..primitive import Sample
from ..types import ShapedArray
from .family import Value
from .table import declare


def _infer(operand: ShapedArray) -> list[ShapedArray]:
    return []


def _evaluate(operand: np.ndarray) -> list[np.ndarray]:
    return []


def _jvp(primals: Any, tangents: Any, outs: Any) -> list[Any]:
    return []  # the op itself keeps the value


def _transpose(cotangents: Any, operand: Any) -> list[Any]:
    return [None]


def _batch(operands: Sequence[Value], axes: Sequence[int | None]) -> tuple[list[Any], list[Any]]:
    return dce_sink_primitive.bind(*operands), []


def _lower(context: Any, value: Any) -> list[Any]:
    return []  # compiled code shows nothing of values that nothing uses


def _samples() -> list[Sample]:
    return [Sample((np.array([1, 2, 3], dtype),)) for dtype in (np.float32, np.int8)]


dce_sink_primitive = declare(
    "dce_sink",
    takes_keys=True,
    multiple_results=True,
    is_effectful=True,
    is_observer=True,
    infer=_infer,
    evaluate=_evaluate,
    jvp=_jvp,
    transpose=_transpose,
    batch=_batch,
    lower=_lower,
    samples=_samples,
)
