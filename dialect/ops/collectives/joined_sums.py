"""`joined_psum`: the sums over devices of several arrays, as one exchange.

It occurs only in complete programs of parts (`passes/partition/joined_sums.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from iree.compiler import ir

from axir.dialect.core.annotations import Dtype, HostArray
from axir.dialect.core.types import ShapedArray
from axir.dialect.program.function_rules import LoweringContext
from axir.dialect.program.meshes.communication import Collective, current_channel
from axir.dialect.program.parameters import AxisName

from .axis_reductions import declare_collective
from .communicating import groups_along, mesh_of

# Devices use memory in place if it begins at a multiple of so many bytes.
_ALIGNMENT = 64
_LATE = "programs are complete when sums are joined"


class _Parcel(NamedTuple):
    """Arrays of one dtype that are sent as one.

    Attributes:
        numbers: Numbers of the arrays.
        starts: The start of each.
        size: The number of all elements.
        dtype: Their dtype.
    """

    numbers: list[int]
    starts: list[int]
    size: int
    dtype: Dtype

    def packed(self, arrays: Sequence[HostArray]) -> HostArray:
        """Returns the elements of the arrays, with zeros between them."""
        found = np.empty(self.size, self.dtype)
        ends = [*self.starts[1:], self.size]
        for number, start, end in zip(self.numbers, self.starts, ends, strict=True):
            array = arrays[number]
            found[start : start + array.size] = array.reshape(-1)
            found[start + array.size : end] = 0
        return found


def _parcels(types: Sequence[ShapedArray]) -> list[_Parcel]:
    found = []
    for dtype in dict.fromkeys(t.dtype for t in types):
        numbers = [n for n, t in enumerate(types) if t.dtype == dtype]
        step, end, starts = max(1, _ALIGNMENT // dtype.itemsize), 0, []
        for number in numbers:
            starts.append(end)
            end += -(-types[number].size // step) * step
        found.append(_Parcel(numbers, starts, end, dtype))
    return found


def _lower(
    context: LoweringContext, *values: ir.Value, axes: tuple[AxisName, ...]
) -> Sequence[ir.Value]:
    groups = groups_along(axes, mesh_of(context, {"axes": axes}))
    if len(groups[0]) == 1:
        return values
    types = context.types_in
    sent = []
    for parcel in _parcels(types):
        kind = ShapedArray((parcel.size,), parcel.dtype)
        sent.append((parcel, Collective("psum", groups, kind, kind)))

    def communicate(*operands: HostArray) -> list[HostArray]:
        results = dict[int, HostArray]()
        for parcel, collective in sent:
            total = current_channel().communicate(collective, parcel.packed(operands))
            for number, start in zip(parcel.numbers, parcel.starts, strict=True):
                t = types[number]
                results[number] = total[start : start + t.size].reshape(t.shape)
        return [results[number] for number in range(len(operands))]

    return context.host_call(communicate, values, types, "joined_psum", keeps_results=True)


def _infer(*types: ShapedArray, axes: tuple[AxisName, ...]) -> list[ShapedArray]:
    return list(types)


joined_psum_primitive = declare_collective(
    "joined_psum",
    parameters={"axes": tuple[AxisName, ...]},
    multiple_results=True,
    infer=_infer,
    lower=_lower,
    axis_names=lambda *, axes: axes,
    unsupported={"jvp": _LATE, "transpose": _LATE, "batch": _LATE},
)
