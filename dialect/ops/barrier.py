"""`optimization_barrier`: values that the compiler may neither fold nor move across."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import dtypes
from .. import stablehlo as hlo
from ..primitive import Sample
from ..symbolic import Zero, is_undefined_primal
from ..types import ShapedArray
from .family import (
    Value,
    as_value,
    edge_array,
    random_values,
)
from .table import declare


def _infer(*types: ShapedArray) -> list[ShapedArray]:
    return list(types)


def _evaluate(*operands: np.ndarray) -> list[np.ndarray]:
    return list(operands)


def _held(values: Sequence[Any]) -> list[Any]:
    """Holds the values that are no symbolic zeros together; the others stay."""
    results = iter(optimization_barrier(*(v for v in values if _is_known(v))))
    return [next(results) if _is_known(v) else v for v in values]


def _is_known(value: Any) -> bool:
    return value is not None and type(value) is not Zero


def _jvp(primals: Sequence[Value], tangents: Sequence[Any], outs: Sequence[Value]) -> list[Any]:
    return _held(tangents)


def _transpose(cotangents: Sequence[Any], *operands: Any) -> list[Any]:
    return _held(
        [
            ct if is_undefined_primal(x) else None
            for ct, x in zip(cotangents, operands, strict=True)
        ]
    )


def _batch(operands: Sequence[Value], axes: Sequence[int | None]) -> tuple[list[Value], list[Any]]:
    return optimization_barrier(*operands), list(axes)


def _lower(context: Any, *values: Any) -> list[Any]:
    return hlo.optimization_barrier(values)


def _samples() -> list[Sample]:
    generator = np.random.default_rng(0)
    singles = [
        Sample((edge_array((2, 3), np.dtype(name)),), is_smooth=False)
        for name in ("bool", "int8", "uint8", "uint32", "int64", "float16", "bfloat16", "complex64")
    ]
    x = random_values(generator, (3,), dtypes.float32, -2, 2)
    y = random_values(generator, (), dtypes.float64, -2, 2)
    empty = random_values(generator, (0, 2), dtypes.float32, -2, 2)
    edges = edge_array((1, 2, 1, 1, 3, 1), dtypes.float64)
    return [*singles, Sample((x, y)), Sample((x, y, empty)), Sample((edges,), is_smooth=False)]


_barrier = declare(
    "optimization_barrier",
    takes_keys=True,
    multiple_results=True,
    infer=_infer,
    evaluate=_evaluate,
    jvp=_jvp,
    transpose=_transpose,
    batch=_batch,
    lower=_lower,
    samples=_samples,
)


def optimization_barrier(*operands: Any) -> list[Value]:
    """Returns the operands; the compiler computes all of them before anything that uses one."""
    return _barrier.bind(*map(as_value, operands)) if operands else []
