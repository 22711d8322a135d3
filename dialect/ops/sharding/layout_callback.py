"""`layout_callback`: tells a Python function the layout of a value, once it is decided.

It calls the function while a program is partitioned or compiled, not while it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from iree.compiler import ir

from axir.dialect.core.annotations import HostArray
from axir.dialect.core.types import ShapedArray
from axir.dialect.program.equation import Equation
from axir.dialect.program.function_rules import LoweringContext
from axir.dialect.program.meshes.layouts import Layout, MeshAxes
from axir.dialect.program.meshes.partitioning import Partitioner, Placed
from axir.dialect.program.op_table import declare
from axir.dialect.program.operation import Sample
from axir.dialect.program.rules import (
    Cotangent,
    Cotangents,
    ResultAxes,
    Results,
    Tangent,
    Tangents,
    TransposeOperand,
    Value,
)

LayoutFunction = Callable[[tuple[int, ...], Layout | None, MeshAxes], None]
"""Takes the shape of a value, and how it is cut; None if it is on one device."""


def _infer(x: ShapedArray, *, callback: LayoutFunction) -> list[ShapedArray]:
    return []


def _evaluate(x: HostArray, *, callback: LayoutFunction) -> list[HostArray]:
    callback(x.shape, None, ())
    return []


def _lower(context: LoweringContext, x: ir.Value, *, callback: LayoutFunction) -> list[ir.Value]:
    callback(context.types_in[0].shape, None, ())
    return []


def _jvp(
    primals: Sequence[Value], tangents: Sequence[Tangent], outs: Results, **params: object
) -> Tangents:
    return []  # the op itself stays with the value


def _transpose(
    cotangents: Cotangents, x: TransposeOperand, **params: object
) -> Sequence[Cotangent | None]:
    return [None]


def _batch(
    operands: Sequence[Value], axes: Sequence[int], **params: object
) -> tuple[Results, ResultAxes]:
    return layout_callback_primitive.bind(*operands, **params), []


def _partition(
    partitioner: Partitioner, equation: Equation, operands: Sequence[Placed]
) -> list[Placed]:
    (x,) = operands
    equation.params["callback"](x.shape, x.layout, partitioner.axes)
    return []


def _samples() -> list[Sample]:
    return []


layout_callback_primitive = declare(
    "layout_callback",
    parameters={"callback": Callable[[tuple[int, ...], Layout | None, MeshAxes], None]},
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
