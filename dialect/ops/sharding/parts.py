"""Functions of parts: without varying axes in their types, partitioned further, and as samples.

Differentiation must know which values vary along axes of the mesh. Execution need not: `pvary` and
`pinvary` are then identities, and `psum_invariant` is an ordinary sum. Elsewhere: the op
(`shard_map.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import Params
from axir.dialect.core.memo import derived
from axir.dialect.core.types import NOWHERE, ShapedArray
from axir.dialect.ops.calls import jit_call as call
from axir.dialect.ops.collectives.axis_exchanges import all_gather_primitive
from axir.dialect.ops.collectives.axis_reductions import (
    pinvary_primitive,
    psum_invariant_primitive,
    psum_primitive,
    pvary_primitive,
)
from axir.dialect.ops.elementwise.arithmetic import mul
from axir.dialect.ops.elementwise.samples import random_values
from axir.dialect.ops.elementwise.transcendental import sin
from axir.dialect.program.equation import Equation
from axir.dialect.program.function import Function
from axir.dialect.program.function_tracing import trace_function
from axir.dialect.program.meshes.layouts import (
    Layout,
    MeshAxes,
    check_meshes_agree,
    without,
)
from axir.dialect.program.meshes.partitioning import Partitioner, Placed
from axir.dialect.program.meshes.varying_axes import Axes, varying_axes
from axir.dialect.program.module_writer import embed_captures
from axir.dialect.program.operation import Sample
from axir.dialect.program.parameters import AxisName
from axir.dialect.program.primitive import primitive_of
from axir.dialect.program.rules import (
    Operand,
    Results,
    Value,
)
from axir.dialect.program.tracer import Trace
from axir.dialect.program.walk import Environment, apply_equations


def body_to_run(*, jaxpr: Function, check_vma: bool, **params: object) -> Function:
    """Returns the function that each device runs for a `shard_map` with these parameters."""
    return unmarked(jaxpr) if check_vma else jaxpr


@derived
def unmarked(function: Function) -> Function:
    """Returns the function without varying axes in its types.

    The captures of the function become inputs.
    """
    variables = (*function.inputs, *function.captures)
    with Trace(function.name, "Unmarked") as trace:

        def record(equation: Equation, operands: list[Value]) -> Results:
            if equation.primitive in (pvary_primitive, pinvary_primitive):
                return operands[0]
            primitive, params = primitive_of(equation), equation.params
            if primitive is psum_invariant_primitive:
                primitive = psum_primitive
            elif primitive.body is not None and primitive.partition is None:
                # The custom derivatives of the op are not needed any more.
                body = primitive.body(**params)
                if body is not None:
                    return unmarked(body).interpret(operands)
            return trace.record(primitive, operands, _unmarked_params(params))

        inputs = [trace.add_input(v.type.update(varying=NOWHERE)) for v in variables]
        environment = Environment(zip(variables, inputs, strict=True))
        apply_equations(function.equations, environment, record)
        plain = trace.finish(environment.values_of(function.outputs))
    return embed_captures(plain)  # constants: the function takes only operands


def _unmarked_params(params: Params) -> Params:
    return {name: _unmarked_param(value) for name, value in params.items()}


def _unmarked_param(value: object) -> object:
    if type(value) is Function:
        return unmarked(value)
    if type(value) is tuple:
        return tuple(map(_unmarked_param, value))
    return value


def varying_of_results(
    given: Sequence[Axes],
    *,
    auto: tuple[AxisName, ...],
    axes: MeshAxes,
    jaxpr: Function,
    **params: object,
) -> list[Axes]:
    """Returns the axes of a surrounding mesh along which results differ."""
    # Results differ along the op's own axes and are joined: outside, the arrays are whole.
    own = dict(without(axes, auto))
    return [found.difference(own) for found in varying_axes(jaxpr, tuple(given))]


def partition(
    partitioner: Partitioner, equation: Equation, operands: Sequence[Placed]
) -> list[Placed]:
    """Applies the function of parts to parts of a larger mesh."""
    params, auto = equation.params, equation.params["auto"]
    body = body_to_run(**params)
    check_meshes_agree("shard_map", params["axes"], partitioner.axes)
    rest = tuple(axis for axis in partitioner.axes if axis[0] in auto)
    placed = [
        partitioner.moved(x, _with_rest(layout, x, rest))
        for x, layout in zip(operands, params["in_layouts"], strict=True)
    ]
    # Along the remaining axes the body is a program of whole arrays.
    inner = [_only(x.layout, rest) for x in placed]
    found = partitioner.function(body, inner, None, rest)
    results = call.call(found.local, *(x.value for x in placed))
    layouts = [
        tuple((*names, *own) for names, own in zip(layout, inside, strict=True))
        for layout, inside in zip(params["out_layouts"], found.out_layouts, strict=True)
    ]
    return [
        Placed(value, layout, v.type.shape)
        for value, layout, v in zip(results, layouts, equation.results, strict=True)
    ]


def _with_rest(layout: Layout, x: Placed, rest: MeshAxes) -> Layout:
    """Returns a layout that keeps cuts along other axes if they do not conflict with its own."""
    kept, own = [], _only(x.layout, rest)
    for names, current, others in zip(layout, x.layout, own, strict=True):
        kept.append((*names, *others) if current == (*names, *others) else names)
    return tuple(kept)


def _only(layout: Layout, axes: MeshAxes) -> Layout:
    kept = dict(axes)
    return tuple(tuple(name for name in names if name in kept) for names in layout)


def samples() -> list[Sample]:
    """Returns arguments and parameters for tests of the op."""
    generator = np.random.default_rng(0)
    axes: MeshAxes = (("i", 2), ("j", 3))

    def body(x: Operand, y: Operand, z: Operand) -> list[Value]:
        total = psum_primitive.bind(sin(x), axes=("i",), axis_index_groups=None)
        rows = all_gather_primitive.bind(
            y, axis_name="j", all_gather_dimension=1, axis_size=3, tiled=True,
            axis_index_groups=None,
        )  # fmt: skip
        return [mul(mul(total, rows), z), mul(x, 2.0), mul(z, z)]

    def part(*shape: int) -> ShapedArray:
        return ShapedArray(shape, np.float32)

    function = trace_function(body, [part(2, 3), part(1, 1), part()], name="body")
    x, y = (random_values(generator, shape, dtypes.float32, -2, 2) for shape in ((4, 9), (1, 3)))
    arguments = (x, y, np.array(0.5, np.float32))
    params = {
        "auto": (),
        "axes": axes,
        "check_vma": False,
        "devices": (),
        "in_layouts": ((("i",), ("j",)), ((), ("j",)), ()),
        "jaxpr": function,
        "name": "body",
        "out_layouts": (((), ("j",)), (("i",), ("j",)), ()),
    }
    placed = {
        **params,
        "auto": ("k",),
        "axes": (("i", 2), ("k", 2), ("j", 3)),
        "devices": tuple(reversed(range(12))),
    }
    return [Sample(arguments, params), Sample(arguments, placed)]
