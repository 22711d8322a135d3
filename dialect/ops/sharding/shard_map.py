"""`shard_map`: a function of the parts that the devices of a mesh hold, applied to whole arrays.

Derivatives are maps of the body's derivatives. Each device keeps its own residuals between the
known and the linear part: as a whole array, they have a new first dimension that is cut along all
axes. On one device the op is its vectorized body (`whole_arrays.py`). On several devices, it stays
as it is in their programs (`passes/partition/`).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from iree.compiler import ir

from axir.dialect.core.annotations import HostArray, Param, Params
from axir.dialect.core.config import config
from axir.dialect.core.memo import derived
from axir.dialect.core.symbolic_zeros import chosen, inverted, moving, spread, unknown
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.calls import jit_call as call
from axir.dialect.ops.collectives.axis_reductions import psum_primitive
from axir.dialect.ops.elementwise.arithmetic import mul
from axir.dialect.ops.elementwise.family import as_value
from axir.dialect.ops.shape.broadcasting import expand_dims
from axir.dialect.ops.shape.rearranging import squeeze
from axir.dialect.program.derived_functions import Marks, TransposedFunction, derive
from axir.dialect.program.effects import axis_names_of, current_frame
from axir.dialect.program.equation import Var
from axir.dialect.program.function import Function, unit_of
from axir.dialect.program.function_rules import LoweringContext
from axir.dialect.program.function_tracing import trace_function
from axir.dialect.program.meshes.layouts import (
    DeviceNames,
    Layout,
    MeshAxes,
    axes_in,
    check_layout,
    check_mesh,
    device_count,
    local_shape,
    replicated,
    unnamed,
    without,
)
from axir.dialect.program.op_table import declare
from axir.dialect.program.parameters import AxisName
from axir.dialect.program.rules import (
    Cotangent,
    Operand,
    ResultAxes,
    Results,
    Tangent,
    Tangents,
    TransposeOperand,
    Value,
)
from axir.dialect.program.structure import Representatives
from axir.dialect.program.tracer import Trace

from .parts import body_to_run, partition, samples, unmarked, varying_of_results
from .whole_arrays import on_whole_arrays, whole_type

Layouts = tuple[Layout, ...]


def apply_to_parts(
    function: Function,
    arguments: Sequence[Value],
    axes: MeshAxes,
    in_layouts: Sequence[Layout],
    out_layouts: Sequence[Layout],
    devices: DeviceNames = (),
    auto: Sequence[Hashable] = (),
    *,
    check_vma: bool = False,
) -> list[Value]:
    """Applies a function of parts to whole arrays.

    Args:
        function: From one device's parts of the arguments to its parts of the results. All devices
            hold its captured values as a whole.
        arguments: The arrays.
        axes: The axes of the mesh.
        in_layouts: How each argument is cut.
        out_layouts: How each result is cut. Along axes that a layout does not name, all devices
            hold the same.
        devices: The devices in the order of the mesh; empty if it is abstract.
        auto: Names of the axes along which the function takes whole arrays. Layouts, and
            collectives in the function, may name the other axes.
        check_vma: Whether the types in the function say along which axes values vary.

    Raises:
        ParameterError: if layouts and types do not fit.
        LayoutError: if a layout does not fit the mesh.
        ShapeError: if an extent is no multiple of the number of its parts.
    """
    captured = [replicated(x.ndim) for x in function.captured]
    return shard_map_primitive.bind(
        *arguments,
        *function.captured,
        auto=tuple(auto),
        axes=axes,
        check_vma=check_vma,
        devices=tuple(devices),
        in_layouts=(*in_layouts, *captured),
        jaxpr=function,
        name=function.name,
        out_layouts=tuple(out_layouts),
    )


# Types and values --------------------------------------------------------------------------------


def _infer(
    *types: ShapedArray,
    auto: tuple[AxisName, ...],
    axes: MeshAxes,
    devices: DeviceNames,
    in_layouts: Layouts,
    jaxpr: Function,
    out_layouts: Layouts,
    **params: object,
) -> list[ShapedArray]:
    check_mesh("shard_map", axes, devices)
    manual = without(axes, auto)
    own = dict(manual)
    results = [t.update(varying=t.varying.difference(own)) for t in jaxpr.output_types]
    call.check_count("shard_map", "in_layouts", len(in_layouts), "operands", len(types))
    call.check_count("shard_map", "out_layouts", len(out_layouts), "results", len(results))
    pairs = [*zip(types, in_layouts, strict=True), *zip(results, out_layouts, strict=True)]
    for found, layout in pairs:
        check_layout("shard_map", layout, found.ndim, manual)
    parts = [
        t.update(shape=local_shape(t.shape, layout, manual, "shard_map"))
        for t, layout in zip(types, in_layouts, strict=True)
    ]
    call.check_call("shard_map", jaxpr, parts)
    return [whole_type(t, layout, manual) for t, layout in zip(results, out_layouts, strict=True)]


def whole_function(
    *,
    auto: tuple[AxisName, ...],
    axes: MeshAxes,
    check_vma: bool,
    in_layouts: Layouts,
    jaxpr: Function,
    out_layouts: Layouts,
    **params: object,
) -> Function:
    """Returns the function of whole arrays, given the parameters of the op."""
    body = body_to_run(jaxpr=jaxpr, check_vma=check_vma)
    return on_whole_arrays(body, without(axes, auto), in_layouts, out_layouts)


def _evaluate(*operands: HostArray, **params: Param) -> list[HostArray]:
    return call.jit_primitive.evaluate(*operands, jaxpr=whole_function(**params))  # type: ignore[misc]


def _implement(*operands: Operand, **params: Param) -> list[Value]:
    values = [as_value(x) for x in operands]
    types = tuple(x.type for x in values)
    _infer(*types, **params)
    # Without jit, calls are evaluated op by op: this call would recurse for ever.
    is_run = bool(params["devices"]) and call.has_executor() and not config.jax_disable_jit
    if is_run:
        # Each call traces the body, because users expect to see it run; it is compiled once.
        params["jaxpr"] = bodies.of(unit_of(params["jaxpr"]))
        return call.call(_alone(params["jaxpr"], types, *params.items()), *values)
    return call.call(whole_function(**params), *values)


bodies = Representatives()
"""Bodies that eager calls have run, whose programs serve others of the same structure."""


@derived
def _alone(
    jaxpr: Function, types: tuple[ShapedArray, ...], *params: tuple[str, object]
) -> Function:
    """Returns a function with this op only; the executor runs it on several devices."""
    with Trace(jaxpr.name) as trace:
        inputs = [trace.add_input(t) for t in types]
        return trace.finish(trace.record(shard_map_primitive, inputs, dict(params)))


def _lower(context: LoweringContext, *values: ir.Value, **params: Param) -> list[ir.Value]:
    return context.call(whole_function(**params), *values)


def _free_names(
    *, auto: tuple[AxisName, ...], axes: MeshAxes, jaxpr: Function, **params: object
) -> tuple[AxisName, ...]:
    return tuple(axis_names_of(jaxpr) - dict(without(axes, auto)).keys())


# Derivatives -------------------------------------------------------------------------------------


def _value_and_jvp(
    primals: Sequence[Value],
    tangents: Sequence[Tangent],
    *,
    in_layouts: Layouts,
    jaxpr: Function,
    out_layouts: Layouts,
    **params: object,
) -> tuple[Results, Tangents]:
    active = moving(tangents)
    tangent = derive(jaxpr, "jvp", active)
    results = _mapped(
        tangent.function,
        [*primals, *chosen(tangents, active)],
        [*in_layouts, *chosen(in_layouts, active)],
        [*out_layouts, *chosen(out_layouts, tangent.active_outputs)],
        params,
    )
    count = len(out_layouts)
    types = [x.type for x in results[:count]]
    return results[:count], spread(results[count:], tangent.active_outputs, types)


def _mapped(
    function: Function,
    arguments: Sequence[Value],
    in_layouts: Sequence[Layout],
    out_layouts: Sequence[Layout],
    params: Params,
) -> list[Value]:
    """Applies another function of parts over the mesh of an op."""
    axes, devices, auto = params["axes"], params["devices"], params["auto"]
    return apply_to_parts(
        function,
        arguments,
        axes,
        in_layouts,
        out_layouts,
        devices,
        auto,
        check_vma=params["check_vma"],
    )


def _linearize(
    primals: Sequence[Value],
    tangents: Sequence[Tangent],
    *,
    in_layouts: Layouts,
    jaxpr: Function,
    out_layouts: Layouts,
    **params: Param,
) -> tuple[Results, Tangents]:
    active, count = moving(tangents), len(out_layouts)
    split = derive(jaxpr, "linearize", active)
    names = tuple(name for name, _ in without(params["axes"], params["auto"]))
    kept = [
        (_differing(v, names, params["check_vma"]), *replicated(v.type.ndim))
        for v in split.known.outputs[count:]
    ]
    known = _with_own_dimension(split.known, count)
    results = _mapped(known, primals, in_layouts, [*out_layouts, *kept], params)
    types = [x.type for x in results[:count]]
    if not any(split.active_outputs):
        return results[:count], spread([], split.active_outputs, types)
    residuals = split.residual_values(primals, results[count:])
    remaining = iter(kept)
    layouts = [
        in_layouts[source]
        if isinstance(source, int)
        else next(remaining)
        if source is None
        else replicated(source.ndim)
        for source in split.residuals
    ]
    out_tangents = _mapped(
        _of_own_dimension(split.linear, tuple(source is None for source in split.residuals)),
        [*chosen(tangents, active), *residuals],
        [*chosen(in_layouts, active), *layouts],
        chosen(out_layouts, split.active_outputs),
        params,
    )
    return results[:count], spread(out_tangents, split.active_outputs, types)


def _differing(residual: Var, names: tuple[AxisName, ...], is_told: bool) -> tuple[AxisName, ...]:
    """Returns the axes along which the residuals of devices differ."""
    return tuple(n for n in names if n in residual.type.varying) if is_told else names


@derived
def _with_own_dimension(known: Function, count: int) -> Function:
    """Adds a first dimension of extent 1 to the results of a function from a number on."""

    def stacked(*arguments: Value) -> list[Value]:
        results = known.interpret([*arguments, *known.captured])
        return [*results[:count], *(expand_dims(x, (0,)) for x in results[count:])]

    return trace_function(stacked, known.input_types, name=known.name)


@derived
def _of_own_dimension(linear: Function, marks: Marks) -> Function:
    """Returns a linear function that takes its marked residuals with a first dimension."""

    def unstacked(*arguments: Value) -> list[Value]:
        tangents, residuals = arguments[: len(linear.inputs)], arguments[len(linear.inputs) :]
        parts = [
            squeeze(x, (0,)) if is_marked else x
            for x, is_marked in zip(residuals, marks, strict=True)
        ]
        return linear.interpret([*tangents, *parts])

    residuals = [
        v.type.update(shape=(1, *v.type.shape)) if is_marked else v.type
        for v, is_marked in zip(linear.captures, marks, strict=True)
    ]
    return trace_function(unstacked, [*linear.input_types, *residuals], name=linear.name)


def _transpose(
    cotangents: Sequence[Cotangent],
    *operands: TransposeOperand,
    auto: tuple[AxisName, ...],
    axes: MeshAxes,
    check_vma: bool,
    in_layouts: Layouts,
    jaxpr: Function,
    out_layouts: Layouts,
    **params: object,
) -> Sequence[Cotangent | None]:
    is_linear, active = unknown(operands), moving(cotangents)
    # If types tell which values vary, the function itself broadcasts and sums as needed.
    found = (
        derive(jaxpr, "transpose", is_linear, active)
        if check_vma
        else _transposed(jaxpr, is_linear, active, without(axes, auto), in_layouts, out_layouts)
    )
    linear_layouts = chosen(in_layouts, is_linear)
    known = inverted(is_linear)
    results = _mapped(
        found.function,
        [*chosen(operands, known), *chosen(cotangents, active)],
        [*chosen(in_layouts, known), *chosen(out_layouts, active)],
        chosen(linear_layouts, found.active_arguments),
        {"auto": auto, "axes": axes, "check_vma": check_vma, **params},
    )
    return call.spread_cotangents(operands, found.active_arguments, results)


@derived
def _transposed(
    function: Function,
    is_linear: Marks,
    active: Marks,
    axes: MeshAxes,
    in_layouts: Layouts,
    out_layouts: Layouts,
) -> TransposedFunction:
    """Returns the transpose of a function of parts, as a function of parts of whole cotangents.

    If n devices hold a result, each of them computed it, so each gets an n-th of its cotangent. If
    several devices hold an operand, its cotangent is the sum of theirs.
    """
    plain = derive(function, "transpose", is_linear, active)
    layouts = chosen(chosen(in_layouts, is_linear), plain.active_arguments)
    places = chosen(out_layouts, active)

    def pull_back(*arguments: Value) -> list[Value]:
        count = len(arguments) - len(places)
        shares = [
            _share(ct, device_count(unnamed(layout, axes), axes))
            for ct, layout in zip(arguments[count:], places, strict=True)
        ]
        found = plain.function.interpret(
            [*arguments[:count], *shares, *plain.function.captured],
        )
        return [
            _total(ct, tuple(unnamed(layout, axes)))
            for ct, layout in zip(found, layouts, strict=True)
        ]

    types = plain.function.input_types
    made = trace_function(pull_back, types, name=plain.function.name, kind="Transpose")
    return TransposedFunction(made, plain.active_arguments)


def _share(ct: Value, count: int) -> Value:
    return ct if count == 1 else mul(ct, np.asarray(1 / count, ct.dtype))


def _total(ct: Value, names: tuple[Hashable, ...]) -> Value:
    return psum_primitive.bind(ct, axes=names, axis_index_groups=None) if names else ct


# Vectorization -----------------------------------------------------------------------------------


def _batch(
    operands: Sequence[Value],
    batch_axes: Sequence[int | None],
    *,
    auto: tuple[AxisName, ...],
    axes: MeshAxes,
    check_vma: bool,
    in_layouts: Layouts,
    jaxpr: Function,
    out_layouts: Layouts,
    **params: object,
) -> tuple[Results, ResultAxes]:
    frame, own = current_frame(), dict(without(axes, auto))
    used = {name for layout in (*in_layouts, *out_layouts) for name in axes_in(layout)}
    names = tuple(name for name in frame.mesh_axes if name in own and name not in used)
    size = frame.size // device_count(names, axes)
    if names and check_vma:
        # Values of the batch vary along axes that the types in the function do not have.
        jaxpr, check_vma = unmarked(jaxpr), False
    # Within the map a name of the mesh hides an outer name.
    name = None if frame.name in own else frame.name
    mesh_axes = tuple(n for n in frame.mesh_axes if n not in own)
    key = (size, tuple(batch_axes), None, name, mesh_axes, frame.maps_devices)
    batched = derive(jaxpr, "vmap", *key)
    results = _mapped(
        batched.function,
        operands,
        [_with_batch(*pair, names) for pair in zip(in_layouts, batch_axes, strict=True)],
        [_with_batch(*pair, names) for pair in zip(out_layouts, batched.axes, strict=True)],
        {"auto": auto, "axes": axes, "check_vma": check_vma, **params},
    )
    return results, list(batched.axes)


def _with_batch(layout: Layout, axis: int | None, names: tuple[Hashable, ...]) -> Layout:
    return layout if axis is None else (*layout[:axis], names, *layout[axis:])


# Parts -------------------------------------------------------------------------------------------


# The op ------------------------------------------------------------------------------------------


shard_map_primitive = declare(
    "shard_map",
    parameters={
        "auto": tuple[AxisName, ...],
        "axes": MeshAxes,
        "check_vma": bool,
        "devices": DeviceNames,
        "in_layouts": Layouts,
        "jaxpr": Function,
        "name": str,
        "out_layouts": Layouts,
    },
    takes_keys=True,
    multiple_results=True,
    is_memoized=False,
    is_staged=True,
    infer=_infer,
    evaluate=_evaluate,
    value_and_jvp=_value_and_jvp,
    linearize=_linearize,
    transpose=_transpose,
    batch=_batch,
    lower=_lower,
    axis_names=_free_names,
    partition=partition,
    varying=varying_of_results,
    body=whole_function,
    samples=samples,
)
shard_map_primitive.implementation = _implement
