"""`sharding_constraint`: a value, and its wanted layout on the devices of a mesh.

The op is the identity. The partitioning of programs for devices (`passes/partition/`) reads it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from iree.compiler import ir

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import HostArray
from axir.dialect.core.state import state
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.elementwise.samples import edge_array, random_values
from axir.dialect.program.equation import Equation
from axir.dialect.program.function_rules import LoweringContext
from axir.dialect.program.meshes.layouts import (
    DeviceNames,
    MeshAxes,
    OpenLayout,
    axes_in,
    check_layout,
    check_mesh,
    check_meshes_agree,
    device_count,
)
from axir.dialect.program.meshes.partitioning import Partitioner, Placed
from axir.dialect.program.op_table import declare
from axir.dialect.program.operation import Sample
from axir.dialect.program.rules import (
    Cotangent,
    Operand,
    OperandTangents,
    Tangents,
    TransposeOperand,
    Value,
)


def _infer(
    x: ShapedArray, *, axes: MeshAxes, devices: DeviceNames, layout: OpenLayout
) -> ShapedArray:
    check_mesh("sharding_constraint", axes, devices)
    check_layout("sharding_constraint", layout, x.ndim, axes)
    return x


def _evaluate(x: HostArray, **params: object) -> HostArray:
    return x


def _jvp(
    primals: Sequence[Value], tangents: OperandTangents, out: Value, **params: object
) -> Tangents:
    return constraint_primitive.bind(tangents[0], **params)


def _transpose(ct: Value, x: TransposeOperand, **params: object) -> Sequence[Cotangent | None]:
    return [constraint_primitive.bind(ct, **params)]


def _batch(
    operands: Sequence[Value],
    batch_axes: Sequence[int],
    *,
    layout: OpenLayout,
    **params: object,
) -> tuple[Value, int]:
    (axis,) = batch_axes
    frame = state.batching  # absent if the batch consists of the words of random keys
    # None leaves the new dimension open.
    names = (frame.mesh_axes if frame is not None else ()) or None
    batched = (*layout[:axis], names, *layout[axis:])
    return constraint_primitive.bind(operands[0], layout=batched, **params), axis


def _lower(context: LoweringContext, x: ir.Value, **params: object) -> ir.Value:
    return x


def _layout(*, layout: OpenLayout, **params: object) -> OpenLayout:
    return layout


def _partition(
    partitioner: Partitioner, equation: Equation, operands: Sequence[Placed]
) -> list[Placed]:
    (x,) = operands
    params = equation.params
    check_meshes_agree("sharding_constraint", params["axes"], partitioner.axes)
    wanted = []
    for dimension, (names, current) in enumerate(zip(params["layout"], x.layout, strict=True)):
        named = axes_in(params["layout"])
        # An open dimension keeps its axes, except those that other dimensions want.
        cut = tuple(n for n in current if n not in named) if names is None else names
        if x.shape[dimension] % device_count(cut, partitioner.axes):
            partitioner.note(
                f"cuts dimension {dimension} of shape {x.shape} along "
                f"{', '.join(map(repr, cut))}, which do not divide it: it stays whole"
            )
            cut = ()
        wanted.append(cut)
    return [partitioner.moved(x, tuple(wanted))]


def _samples() -> list[Sample]:
    generator = np.random.default_rng(0)
    mesh = {"axes": (("x", 2), ("y", 3)), "devices": ()}

    def sample(x: np.ndarray, layout: OpenLayout, **options: object) -> Sample:
        return Sample((x,), {**mesh, **options, "layout": layout})

    singles = [
        Sample((edge_array((2, 3), np.dtype(name)),), {**mesh, "layout": ((), None)})
        for name in ("bool", "int8", "uint32", "int64", "float16", "bfloat16", "complex64")
    ]
    smooth = random_values(generator, (4, 6), dtypes.float32, -2, 2)
    return [
        *singles,
        sample(smooth, (("x",), ("y",))),
        sample(smooth, (("y", "x"), None), devices=(5, 4, 3, 2, 1, 0)),
        sample(random_values(generator, (), dtypes.float64, -2, 2), ()),
        sample(random_values(generator, (0, 2), dtypes.float32, -2, 2), (("y",), ())),
        sample(edge_array((1, 2, 1, 1, 3, 1), dtypes.float64), (None,) * 6),
        sample(edge_array((2, 3), dtypes.float32), ((), None)),
    ]


constraint_primitive = declare(
    "sharding_constraint",
    parameters={"axes": MeshAxes, "devices": DeviceNames, "layout": OpenLayout},
    moves_elements=True,
    takes_narrow=True,
    infer=_infer,
    evaluate=_evaluate,
    jvp=_jvp,
    transpose=_transpose,
    batch=_batch,
    lower=_lower,
    partition=_partition,
    fixed_layout=_layout,
    samples=_samples,
)


def sharding_constraint(
    x: Operand, axes: MeshAxes, layout: OpenLayout, devices: DeviceNames = ()
) -> Value:
    """Returns a value, and states its wanted layout on the devices of a mesh.

    Args:
        x: The value.
        axes: Names and extents of the axes of the mesh.
        layout: For each dimension the axes along which it is cut, or None to leave that open.
        devices: The devices in the order of the mesh; empty if it is abstract.

    Raises:
        LayoutError: if the layout does not fit the mesh or the rank.

    >>> import axir.numpy as jnp
    >>> sharding_constraint(jnp.arange(4.0), (("x", 2),), (("x",),))
    Array([0., 1., 2., 3.], dtype=float32)
    """
    return constraint_primitive.bind(x, axes=axes, devices=tuple(devices), layout=layout)
