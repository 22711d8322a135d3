"""`shard_map`: functions of the parts that the devices of a mesh hold, with collectives.

Here: the user's function and its specifications are traced into the op
(`dialect/ops/sharding/shard_map.py`). The op describes the computation of one device, so a mesh
without devices (`AbstractMesh`) may have any size.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Sequence, Set
from typing import TypeAlias

import numpy as np

from axir._arguments.arguments import (
    FlatFunction,
    check_callable,
    flat_arguments,
    trace_abstract,
)
from axir._arguments.wrapping import boundary, wraps
from axir._devices.layouts import device_numbers, layout_of, mesh_axes
from axir._devices.meshes import AbstractMesh, Mesh, context
from axir._devices.partitions import NamedSharding, PartitionSpec
from axir._transforms.signatures import cleared_with_caches
from axir._trees import tree
from axir.dialect.core.annotations import Tree, UserFunction, UserObject
from axir.dialect.core.errors import AxirError, ParameterError
from axir.dialect.core.state import state, with_axes
from axir.dialect.ops.collectives.axis_reductions import pvary
from axir.dialect.ops.shape.movement import canonical_axis
from axir.dialect.ops.sharding.shard_map import apply_to_parts, bodies
from axir.dialect.program.function import Function
from axir.dialect.program.function_tracing import function_name, trace_function
from axir.dialect.program.meshes.layouts import Layout, MeshAxes, axes_in, local_shape, without
from axir.dialect.program.rules import Value

cleared_with_caches(bodies)


class ShardSpecError(AxirError, ValueError):
    """Specifications of `shard_map` do not fit the arguments or results."""


class ReplicationError(AxirError, ValueError):
    """A result of `shard_map` is said to be the same along an axis of the mesh, but may differ."""


def shard_map(
    f: Callable[..., object] | None = None,
    /,
    *,
    out_specs: Tree,
    in_specs: Tree = None,
    mesh: Mesh | AbstractMesh | None = None,
    axis_names: Set[Hashable] = frozenset(),
    check_vma: bool = True,
) -> UserFunction:
    """Returns a function of arrays, given one of the parts of them that a device holds.

    In `f` collectives (`lax.psum` and others) work over the axes of the mesh.

    Args:
        f: Function of parts; without it, `shard_map` is a decorator with options.
        out_specs: For each result a `PartitionSpec`: how parts make a whole. Along axes that it
            does not name, results of all devices must be equal.
        in_specs: The same for arguments, a prefix of their tuple: how they are cut. By default as
            the arguments lie.
        mesh: The mesh; by default the one in use. One without devices may have any size: all of
            it is computed on one device.
        axis_names: The axes of the mesh along which `f` is one of parts; by default all.
        check_vma: Whether to check that results are equal along the axes that `out_specs` does not
            name. Only collectives (`lax.psum`, `lax.all_gather`, ...) prove equality; results that
            are equal for other reasons need False.

    Raises:
        ParameterError: without a mesh.
        ShardSpecError: by a call, if specifications do not fit.
        ShapeError: by a call, if an extent is no multiple of the number of parts.
        ReplicationError: by a call, if a result may differ along an axis that `out_specs` does not
            name.

    >>> import axir, axir.numpy as jnp
    >>> from axir.sharding import AbstractMesh, PartitionSpec as P
    >>> mesh = AbstractMesh((2,), ("x",))
    >>> total = axir.shard_map(
    ...     lambda part: axir.lax.psum(part, "x"), mesh=mesh, in_specs=P("x"), out_specs=P())
    >>> total(jnp.arange(4.0))
    Array([2., 4.], dtype=float32)
    """
    if f is None:
        return functools.partial(
            shard_map,
            out_specs=out_specs,
            in_specs=in_specs,
            mesh=mesh,
            axis_names=axis_names,
            check_vma=check_vma,
        )
    check_callable(f, "shard_map")

    def given(args: UserObject) -> list[PartitionSpec]:
        return _specs(_inferred(args) if in_specs is None else in_specs, args, "in_specs")

    def returned(results: object) -> list[PartitionSpec]:
        return _specs(out_specs, results, "out_specs")

    return _mapped(f, mesh, axis_names, given, returned, check_vma)


SpecsOf: TypeAlias = Callable[[UserObject], list[PartitionSpec]]


def _mapped(
    function: Callable[..., object],
    mesh: Mesh | AbstractMesh | None,
    axis_names: Set[Hashable],
    given: SpecsOf,
    returned: SpecsOf,
    check_vma: bool,
) -> Callable[..., object]:
    """Returns the mapped function; `given` and `returned` tell how leaves are cut."""

    @wraps(function)
    @boundary
    def mapped(*args: object) -> UserObject:
        chosen = _mesh(mesh)
        axes = mesh_axes(chosen)
        auto = tuple(n for n in chosen.axis_names if axis_names and n not in axis_names)
        manual = without(axes, auto)
        values, in_tree = flat_arguments(args, function_name(function))
        in_layouts = [
            _layout(spec, x.ndim, manual, "in_specs")
            for spec, x in zip(given(args), values, strict=True)
        ]
        flat = FlatFunction(function, in_tree)
        traced = _trace(flat, values, in_layouts, manual, check_vma)
        results = flat.out_tree.unflatten(traced.outputs)
        out_layouts = [
            _layout(spec, v.type.ndim, manual, "out_specs")
            for spec, v in zip(returned(results), traced.outputs, strict=True)
        ]
        if check_vma:
            _check_replicated(traced, manual, out_layouts, tree.paths(results))
            traced = _varying_results(traced, tuple(out_layouts))
        numbers = device_numbers(chosen)
        return flat.out_tree.unflatten(
            apply_to_parts(
                traced,
                values,
                axes,
                in_layouts,
                out_layouts,
                numbers,
                auto,
                check_vma=check_vma,
            )
        )

    return mapped


def smap(
    f: Callable[..., object] | None = None,
    /,
    *,
    in_axes: object = None,
    out_axes: object,
    axis_name: Hashable,
) -> UserFunction:
    """Returns a function of arrays, given one of their parts along one axis of the mesh in use.

    It is `shard_map` for one axis of the mesh, with numbers instead of specifications.

    Args:
        f: Function of parts; without it, `smap` is a decorator with options.
        in_axes: Which axes of the arguments are cut: an integer, None for arguments that each
            device gets whole, or a tuple with one of these, or a tree of these per argument.
        out_axes: The axes of the results along which parts are joined, in the same form.
        axis_name: The axis of the mesh.

    Raises:
        ParameterError: for axes that are no integers, and without a mesh.
        AxisError: by a call, if an array does not have the axis.

    >>> import axir, axir.numpy as jnp
    >>> with axir.sharding.use_abstract_mesh(axir.sharding.AbstractMesh((2,), ("x",))):
    ...     axir.smap(jnp.cumsum, in_axes=0, out_axes=0, axis_name="x")(jnp.ones(4))
    Array([1., 2., 1., 2.], dtype=float32)
    """
    if f is None:
        return functools.partial(smap, in_axes=in_axes, out_axes=out_axes, axis_name=axis_name)
    check_callable(f, "smap")
    if isinstance(axis_name, (list, tuple)):
        raise ParameterError(
            f"smap: axis_name must be one name, not {axis_name!r}.",
            "Nest smap for several axes, or use shard_map.",
        )

    def specs(axes: object, what: str) -> SpecsOf:
        _check_axes(axes, what)
        return lambda values: _specs_of_axes(axes, values, axis_name, what)

    given, returned = specs(in_axes, "in_axes"), specs(out_axes, "out_axes")
    return _mapped(f, None, frozenset({axis_name}), given, returned, True)


def _check_axes(axes: object, what: str) -> None:
    wrong = [axis for axis in tree.leaves(axes) if type(axis) is not int]
    if wrong or (what == "in_axes" and not isinstance(axes, (int, tuple, type(None)))):
        raise ParameterError(
            f"smap: {what} must be an integer, None, or made of them, not {axes!r}.",
            "Write one axis for each argument: (0, None).",
        )


def _specs_of_axes(axes: object, values: Tree, name: Hashable, what: str) -> list[PartitionSpec]:
    """Returns how each leaf is cut that has the axis of a tree of axes, or is not."""
    found = tree.broadcast_prefix(axes, values, f"smap: {what}")
    specs = []
    for axis, leaf in zip(found, tree.leaves(values), strict=True):
        rank = leaf.type.ndim if hasattr(leaf, "type") else np.ndim(leaf)
        place = None if axis is None else canonical_axis("smap", axis, rank)
        specs.append(PartitionSpec(*([] if place is None else [*[None] * place, name])))
    return specs


def _check_replicated(
    function: Function,
    axes: MeshAxes,
    out_layouts: Sequence[Layout],
    paths: Sequence[str],
) -> None:
    """Raises `ReplicationError` if a result may differ along an axis that its layout leaves out."""
    for path, layout, v in zip(paths, out_layouts, function.outputs, strict=True):
        differs = v.type.varying.difference(axes_in(layout))
        names = [name for name, _ in axes if name in differs]
        if names:
            told = ", ".join(map(repr, names))
            raise ReplicationError(
                f"shard_map of {function.name!r}: out_specs do not name {told} for result{path} of "
                f"type {v.type}, so all devices along {told} must hold the same, but what they "
                "compute may differ.",
                f"Combine it over {told} (axir.lax.psum, pmean, pmax), or name the axis in "
                "out_specs. If it is known to be the same everywhere, pass check_vma=False.",
            )


def _trace(
    flat: FlatFunction,
    values: Sequence[Value],
    layouts: Sequence[Layout],
    axes: MeshAxes,
    is_tracked: bool,
) -> Function:
    """Traces a function of parts, in which collectives may name the axes."""
    own, names = dict(axes), frozenset(dict(axes))
    types = [
        x.type.update(
            shape=local_shape(x.shape, layout, axes, "shard_map"),
            varying=x.type.varying.union(axes_in(layout)) if is_tracked else x.type.varying,
        )
        for x, layout in zip(values, layouts, strict=True)
    ]
    tracked = state.tracked_axes | names if is_tracked else state.tracked_axes - names
    with with_axes({**state.axis_sizes, **own}, tracked):
        return trace_abstract(flat, types, "ShardMap")


def _varying_results(function: Function, layouts: tuple[Layout, ...]) -> Function:
    """Returns a function of parts with results that vary along all axes of their layouts.

    A replicated result that is joined from all devices gets a cotangent from each device.
    """
    outputs = zip(function.outputs, layouts, strict=True)
    if all(v.type.varying.issuperset(axes_in(layout)) for v, layout in outputs):
        return function

    def varied(*arguments: Value) -> list[Value]:
        results = function.interpret([*arguments, *function.captured])
        return [pvary(x, axes_in(layout)) for x, layout in zip(results, layouts, strict=True)]

    return trace_function(varied, function.input_types, name=function.name, kind="ShardMap")


def _mesh(mesh: Mesh | AbstractMesh | None) -> Mesh | AbstractMesh:
    chosen = context.mesh if mesh is None else mesh
    if chosen is None:
        raise ParameterError(
            "shard_map: no mesh was given, and none is in use.",
            "Pass mesh=axir.make_mesh(shape, names), or choose one with axir.set_mesh(mesh).",
        )
    return chosen


def _inferred(args: tuple[object, ...]) -> Tree:
    def spec(x: object) -> PartitionSpec:
        place = getattr(x, "sharding", None)
        return place.spec if isinstance(place, NamedSharding) else PartitionSpec()

    return tree.map(spec, args)


def _specs(specs: Tree, arguments: Tree, name: str) -> list[PartitionSpec]:
    found = tree.broadcast_prefix(specs, arguments, name)
    for spec in found:
        if not isinstance(spec, PartitionSpec):
            raise ShardSpecError(
                f"shard_map: {name} holds {spec!r}, which is no PartitionSpec.",
                "Write PartitionSpec() for what is not cut.",
            )
    return found


def _layout(spec: PartitionSpec, ndim: int, axes: MeshAxes, what: str) -> Layout:
    if len(spec) > ndim:
        raise ShardSpecError(
            f"shard_map: {what} has {spec} for an array of {ndim} dimensions.",
            "Name at most as many partitions as there are dimensions.",
        )
    unknown = [name for name in spec.names if name not in dict(axes)]
    if unknown:
        raise ShardSpecError(
            f"shard_map: {what} has {spec}, but the mesh has the axes "
            f"{', '.join(map(repr, dict(axes)))}.",
            "Name axes of the mesh, and of axis_names if that is given.",
        )
    return layout_of(spec, ndim)
