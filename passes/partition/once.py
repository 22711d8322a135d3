"""Ops that must run once: on the first device of a mesh, which sends the results to all."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import Returning
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.collectives.axis_reductions import axis_index_primitive, psum_primitive
from axir.dialect.ops.control_flow.closed_bodies import trace_body
from axir.dialect.ops.control_flow.conditional import bind_cond
from axir.dialect.ops.elementwise.comparison import and_, eq
from axir.dialect.ops.elementwise.conversion import convert_element_type
from axir.dialect.ops.elementwise.family import full
from axir.dialect.program.meshes.layouts import MeshAxes
from axir.dialect.program.rules import Value


def is_first(names: Sequence[Hashable]) -> Value:
    """Returns whether the device is the first one along some axes."""
    marks = [eq(axis_index_primitive.bind(axis_name=name), np.int32(0)) for name in names]
    found = marks[0]
    for mark in marks[1:]:
        found = and_(found, mark)
    return found


def on_first_device(
    apply: Returning[list[Value]],
    operands: Sequence[Value],
    types: Sequence[ShapedArray],
    axes: MeshAxes,
) -> list[Value]:
    """Applies a function on the first device, and sends its results to all devices.

    Args:
        apply: The function.
        operands: Its operands, which all devices have.
        types: Types of the results.
        axes: The axes of the mesh.
    """
    given = [x.type for x in operands]
    otherwise = trace_body(
        lambda *_: [full(t.shape, 0, t.dtype) for t in types], given, "otherwise", is_branch=True
    )
    act = trace_body(apply, given, "act", is_branch=True)
    names = tuple(name for name, _ in axes)
    results = bind_cond(
        convert_element_type(is_first(names), dtypes.int32), [otherwise, act], operands
    )
    return [_told(x, names) for x in results]


def _told(x: Value, names: tuple[Hashable, ...]) -> Value:
    number = convert_element_type(x, dtypes.int32) if x.dtype == dtypes.bool_ else x
    total = psum_primitive.bind(number, axes=names, axis_index_groups=None)
    return convert_element_type(total, x.dtype) if number is not x else total
