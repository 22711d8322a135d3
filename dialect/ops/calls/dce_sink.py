"""`dce_sink`: keeps the computation of its operand although no op uses the value."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from iree.compiler import ir

from axir.dialect.core.types import ShapedArray
from axir.dialect.program.equation import Equation
from axir.dialect.program.function_rules import LoweringContext
from axir.dialect.program.meshes.partitioning import Partitioner, Placed
from axir.dialect.program.op_table import declare
from axir.dialect.program.operation import Sample
from axir.dialect.program.rules import (
    Cotangent,
    Cotangents,
    Results,
    Tangent,
    TransposeOperand,
    Value,
)


def _infer(operand: ShapedArray) -> tuple[()]:
    return ()


def _evaluate(operand: np.ndarray) -> list[np.ndarray]:
    return []


def _jvp(primals: Sequence[Value], tangents: Sequence[Tangent], outs: Results) -> Sequence[Tangent]:
    return []  # the op itself keeps the value


def _transpose(cotangents: Cotangents, operand: TransposeOperand) -> Sequence[Cotangent | None]:
    return [None]


def _batch(
    operands: Sequence[Value], axes: Sequence[int | None]
) -> tuple[list[Value], list[Value]]:
    return dce_sink_primitive.bind(*operands), []


def _lower(context: LoweringContext, value: ir.Value) -> list[ir.Value]:
    return []  # unused values are not observable in compiled code


def _partition(
    partitioner: Partitioner, equation: Equation, operands: Sequence[Placed]
) -> list[Placed]:
    dce_sink_primitive.bind(*(x.value for x in operands))  # each device keeps its part
    return []


def _samples() -> list[Sample]:
    return [Sample((np.array([1, 2, 3], dtype),)) for dtype in (np.float32, np.int8)]


dce_sink_primitive = declare(
    "dce_sink",
    takes_keys=True,
    takes_narrow=True,
    multiple_results=True,
    is_effectful=True,
    is_observer=True,
    infer=_infer,
    evaluate=_evaluate,
    jvp=_jvp,
    transpose=_transpose,
    batch=_batch,
    lower=_lower,
    partition=_partition,
    samples=_samples,
)
