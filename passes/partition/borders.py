"""Ops that treat devices of a mesh differently: borders of parts, and ops that run once.

Here: elements that an op needs from neighbouring parts, positions in parts, and ops on the first
device, which sends the results to all.
Elsewhere: the dimensions that need borders (the rule `dimensions` of each op).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import HostArray, Returning
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.collectives.axis_exchanges import ppermute_primitive
from axir.dialect.ops.collectives.axis_reductions import axis_index_primitive, psum_primitive
from axir.dialect.ops.control_flow.closed_bodies import trace_body
from axir.dialect.ops.control_flow.conditional import bind_cond
from axir.dialect.ops.elementwise.arithmetic import add, mul, sub
from axir.dialect.ops.elementwise.comparison import and_, eq, ge, lt, not_, or_, select_n
from axir.dialect.ops.elementwise.conversion import convert_element_type
from axir.dialect.ops.elementwise.family import full
from axir.dialect.ops.indexing.static_slicing import slice_in_dim
from axir.dialect.ops.shape.concatenation import concatenate
from axir.dialect.ops.shape.rearranging import broadcast_in_dim, squeeze
from axir.dialect.program.dimensions import Halo, LookUp
from axir.dialect.program.meshes.layouts import MeshAxes
from axir.dialect.program.rules import Value

Names = Sequence[Hashable]


def position_along(names: Names, axes: MeshAxes) -> Value:
    """Returns the number of a device's part of a dimension that is cut along some axes."""
    position, sizes = axis_index_primitive.bind(axis_name=names[0]), dict(axes)
    for name in names[1:]:
        index = axis_index_primitive.bind(axis_name=name)
        position = add(mul(position, sizes[name]), index)
    return position


def with_halo(x: Value, halo: Halo, names: Names, axes: MeshAxes) -> Value:
    """Returns a part with the adjacent elements of its neighbours; zeros at the ends."""
    extent, along, pieces = x.shape[halo.dimension], halo.dimension, [x]
    if halo.before:
        last = slice_in_dim(x, extent - halo.before, extent, axis=along)
        pieces.insert(0, _handed_on(last, 1, names, axes))
    if halo.after:
        first = slice_in_dim(x, 0, halo.after, axis=along)
        pieces.append(_handed_on(first, -1, names, axes))
    return concatenate(pieces, along) if len(pieces) > 1 else x


def _handed_on(x: Value, step: int, names: Names, axes: MeshAxes) -> Value:
    """Returns the value of the neighbour before (step 1) or behind (-1); zeros at the ends."""
    *outer, name = names
    count = dict(axes)[name]
    pairs = tuple((p, p + step) for p in range(count) if 0 <= p + step < count)
    received = ppermute_primitive.bind(x, axis_name=name, perm=pairs)
    if not outer:
        return received
    # The last device along this axis precedes the first one of the next place along the outer axes.
    ends = (count - 1, 0) if step > 0 else (0, count - 1)
    turned = ppermute_primitive.bind(x, axis_name=name, perm=(ends,))
    return add(received, _handed_on(turned, step, outer, axes))


def own_positions(
    indices: Value, look_up: LookUp, part: int, whole: int, names: Names, axes: MeshAxes
) -> tuple[Value, Value]:
    """Returns indices as positions in the part that a device holds, and which of them it answers.

    Args:
        indices: Vectors of positions in the whole.
        look_up: How the op looks up positions.
        part: The extent of a part along the dimension.
        whole: The extent of the whole array.
        names: The axes along which the dimension is cut.
        axes: The axes of the mesh.
    """
    if indices.dtype.itemsize < 4:
        indices = convert_element_type(indices, dtypes.int32)
    dtype, last, column = indices.dtype, indices.ndim - 1, look_up.column

    def number(value: int) -> HostArray:
        return np.asarray(value, dtype)

    position = slice_in_dim(indices, column, column + 1, axis=last)
    if look_up.clips:
        position = select_n(lt(position, number(0)), position, full(position.shape, 0, dtype))
        largest = full(position.shape, whole - 1, dtype)
        position = select_n(lt(position, number(whole)), largest, position)
    start = convert_element_type(mul(position_along(names, axes), part), dtype)
    own = sub(position, start)
    answers = and_(ge(own, number(0)), lt(own, number(part)))
    if look_up.fills:
        is_outside = not_(and_(ge(position, number(0)), lt(position, number(whole))))
        answers = or_(answers, and_(is_outside, is_first(list(names))))
    if look_up.batch is not None:
        own = select_n(answers, full(own.shape, 0, dtype), own)
    columns = [
        own if n == column else slice_in_dim(indices, n, n + 1, axis=last)
        for n in range(indices.shape[last])
    ]
    found = concatenate(columns, last) if len(columns) > 1 else own
    return found, squeeze(answers, (last,))


def zero_elsewhere(x: Value, answers: Value, batch: Sequence[int]) -> Value:
    """Returns a result with zeros where another device answers."""
    mask = broadcast_in_dim(answers, x.shape, tuple(batch))
    return select_n(mask, full(x.shape, 0, x.dtype), x)


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
