"""Stand-in while passes/partition is not there: every device gathers all and computes all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.collectives.axis_exchanges import all_gather_primitive
from axir.dialect.ops.collectives.axis_reductions import axis_index_primitive
from axir.dialect.ops.elementwise.arithmetic import add, mul
from axir.dialect.ops.indexing.dynamic_slicing import dynamic_slice
from axir.dialect.program.function import Function
from axir.dialect.program.function_tracing import trace_function
from axir.dialect.program.layouts import Layout, MeshAxes, local_shape, replicated
from axir.dialect.program.rules import Value


@dataclass(frozen=True)
class Partitioned:
    local: Function
    in_layouts: tuple
    out_layouts: tuple


def partition_function(function, axes, in_layouts, out_layouts) -> Partitioned:
    sizes = dict(axes)
    ins = [l or replicated(v.type.ndim) for l, v in zip(in_layouts, function.inputs, strict=True)]
    outs = [l or replicated(v.type.ndim) for l, v in zip(out_layouts, function.outputs, strict=True)]

    def local(*parts):
        wholes = []
        for x, layout in zip(parts, ins, strict=True):
            for d, names in enumerate(layout):
                for name in reversed(names):
                    x = all_gather_primitive.bind(
                        x, axis_name=name, all_gather_dimension=d, axis_size=sizes[name],
                        tiled=True, axis_index_groups=None)
            wholes.append(x)
        results = []
        for x, layout in zip(function.interpret(wholes), outs, strict=True):
            shape = local_shape(x.shape, layout, axes)
            starts = []
            for d, names in enumerate(layout):
                at = 0
                for name in names:
                    at = add(mul(at, sizes[name]), axis_index_primitive.bind(axis_name=name))
                starts.append(mul(at, shape[d]) if names else 0)
            if shape != x.shape:
                x = dynamic_slice(x, starts, shape)
            results.append(x)
        return results

    types = [ShapedArray(local_shape(v.type.shape, l, axes), v.type.dtype, v.type.weak_type)
             for v, l in zip(function.inputs, ins, strict=True)]
    return Partitioned(trace_function(local, types, name=function.name), tuple(ins), tuple(outs))
