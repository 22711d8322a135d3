"""Ops that keep computations from the compiler: `optimization_barrier` and `dce_sink`.

The compiler may neither fold nor move across the values of a barrier. A sink keeps the computation
of its operand although no op uses the value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeGuard

import numpy as np
from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.core import dtypes
from axir.dialect.core.symbolic_zeros import Zero, is_undefined_primal
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.elementwise.family import as_value
from axir.dialect.ops.elementwise.samples import edge_array, random_values
from axir.dialect.program.dimensions import Dimensions, each_alone
from axir.dialect.program.equation import Equation
from axir.dialect.program.function_rules import LoweringContext
from axir.dialect.program.meshes.partitioning import Partitioner, Placed
from axir.dialect.program.op_table import declare
from axir.dialect.program.operation import Sample
from axir.dialect.program.rules import (
    BatchAxis,
    Cotangent,
    Cotangents,
    Operand,
    Results,
    Tangent,
    Tangents,
    TransposeOperand,
    Value,
)


def _infer(*types: ShapedArray) -> list[ShapedArray]:
    return list(types)


def _evaluate(*operands: np.ndarray) -> list[np.ndarray]:
    return list(operands)


def _held(values: Sequence[Cotangent | None]) -> Sequence[Cotangent | None]:
    """Applies one barrier to all values except symbolic zeros, which stay."""
    results = iter(optimization_barrier(*(v for v in values if _is_known(v))))
    return [next(results) if _is_known(v) else v for v in values]


def _is_known(value: Cotangent | None) -> TypeGuard[Value]:
    return value is not None and type(value) is not Zero


def _jvp(primals: Sequence[Value], tangents: Sequence[Tangent], outs: Sequence[Value]) -> Tangents:
    return _held(tangents)


def _transpose(
    cotangents: Sequence[Cotangent], *operands: TransposeOperand
) -> Sequence[Cotangent | None]:
    return _held(
        [ct if is_undefined_primal(x) else None for ct, x in zip(cotangents, operands, strict=True)]
    )


def _batch(
    operands: Sequence[Value], axes: Sequence[int | None]
) -> tuple[list[Value], list[BatchAxis]]:
    return optimization_barrier(*operands), list(axes)


def _lower(context: LoweringContext, *values: ir.Value) -> list[ir.Value]:
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


def _dimensions(operands: Sequence[ShapedArray], results: Sequence[ShapedArray]) -> Dimensions:
    return each_alone(operands, results)


_barrier = declare(
    "optimization_barrier",
    takes_keys=True,
    takes_narrow=True,
    multiple_results=True,
    infer=_infer,
    evaluate=_evaluate,
    jvp=_jvp,
    transpose=_transpose,
    dimensions=_dimensions,
    batch=_batch,
    lower=_lower,
    samples=_samples,
)


def optimization_barrier(*operands: Operand) -> list[Value]:
    """Returns the operands; the compiler computes all of them before anything that uses one."""
    return _barrier.bind(*map(as_value, operands)) if operands else []


def _infer_sink(operand: ShapedArray) -> tuple[()]:
    return ()


def _evaluate_sink(operand: np.ndarray) -> list[np.ndarray]:
    return []


def _jvp_sink(
    primals: Sequence[Value], tangents: Sequence[Tangent], outs: Results
) -> Sequence[Tangent]:
    return []  # the op itself keeps the value


def _transpose_sink(
    cotangents: Cotangents, operand: TransposeOperand
) -> Sequence[Cotangent | None]:
    return [None]


def _batch_sink(
    operands: Sequence[Value], axes: Sequence[int | None]
) -> tuple[list[Value], list[Value]]:
    return dce_sink_primitive.bind(*operands), []


def _lower_sink(context: LoweringContext, value: ir.Value) -> list[ir.Value]:
    return []  # unused values are not observable in compiled code


def _partition_sink(
    partitioner: Partitioner, equation: Equation, operands: Sequence[Placed]
) -> list[Placed]:
    dce_sink_primitive.bind(*(x.value for x in operands))  # each device keeps its part
    return []


def _samples_sink() -> list[Sample]:
    return [Sample((np.array([1, 2, 3], dtype),)) for dtype in (np.float32, np.int8)]


dce_sink_primitive = declare(
    "dce_sink",
    takes_keys=True,
    takes_narrow=True,
    multiple_results=True,
    is_effectful=True,
    is_observer=True,
    infer=_infer_sink,
    evaluate=_evaluate_sink,
    jvp=_jvp_sink,
    transpose=_transpose_sink,
    batch=_batch_sink,
    lower=_lower_sink,
    partition=_partition_sink,
    samples=_samples_sink,
)
