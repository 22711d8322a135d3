"""`shard_map`: functions of the parts that the devices of a mesh hold, with collectives.

On one device all parts are computed there: an array is cut along new leading axes, one for each
axis of the mesh, over which the function is vectorized under their names. So a mesh without devices
(`AbstractMesh`) of any size can be used.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Hashable, Sequence, Set

from axir import numpy as jnp
from axir._arguments.arguments import check_callable
from axir._devices.meshes import AbstractMesh, Mesh, context
from axir._devices.partitions import NamedSharding, PartitionSpec, only_device
from axir._transforms.vectorize import vmap
from axir._trees import tree
from axir.dialect.core.annotations import Options, PyTree, UserFunction, UserObject
from axir.dialect.core.errors import AxirError, ParameterError, ShapeError


class ShardSpecError(AxirError, ValueError):
    """Specifications of `shard_map` do not fit the arguments or results."""


def shard_map(
    f: UserFunction | None = None,
    /,
    *,
    out_specs: PyTree,
    in_specs: PyTree = None,
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
        check_vma: Accepted for compatibility: whether results are equal is not checked.

    Raises:
        ParameterError: without a mesh, or with one of several devices.
        ShardSpecError: by a call, if specifications do not fit.
        ShapeError: by a call, if an extent is no multiple of the number of parts.

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
        )
    check_callable(f, "shard_map")
    function = f

    @functools.wraps(function)
    def mapped(*args: Options) -> UserObject:
        chosen = _mesh(mesh)
        names = [n for n in chosen.axis_names if not axis_names or n in axis_names]
        cut = _Cut(chosen, names)
        specs = _inferred(args) if in_specs is None else in_specs
        leaves, structure = tree.flatten(args)
        flat_specs = _specs(specs, args, "in_specs")
        parts = [cut.split(jnp.asarray(x), s) for x, s in zip(leaves, flat_specs, strict=True)]

        def flat(*values: UserObject) -> UserObject:
            return function(*structure.unflatten(values))

        results = cut.mapped(flat)(*parts)
        found, out_tree = tree.flatten(results)
        out_flat = _specs(out_specs, results, "out_specs")
        return out_tree.unflatten([cut.join(x, s) for x, s in zip(found, out_flat, strict=True)])

    return mapped


def _mesh(mesh: Mesh | AbstractMesh | None) -> Mesh | AbstractMesh:
    chosen = context.mesh if mesh is None else mesh
    if chosen is None:
        raise ParameterError(
            "shard_map: no mesh was given, and none is in use.",
            "Pass mesh=axir.make_mesh(shape, names), or choose one with axir.set_mesh(mesh).",
        )
    if isinstance(chosen, Mesh):
        only_device(NamedSharding(chosen, PartitionSpec()), "shard_map")
    return chosen


def _inferred(args: tuple[UserObject, ...]) -> PyTree:
    def spec(x: UserObject) -> PartitionSpec:
        place = getattr(x, "_sharding", None)
        return place.spec if isinstance(place, NamedSharding) else PartitionSpec()

    return tree.map(spec, args)


def _specs(specs: PyTree, arguments: PyTree, name: str) -> list[PartitionSpec]:
    found = tree.broadcast_prefix(specs, arguments, name)
    for spec in found:
        if not isinstance(spec, PartitionSpec):
            raise ShardSpecError(
                f"shard_map: {name} holds {spec!r}, which is no PartitionSpec.",
                "Write PartitionSpec() for what is not cut.",
            )
    return found


class _Cut:
    """How arrays are cut along the axes of a mesh.

    Args:
        mesh: The mesh.
        names: The axes along which arrays are cut, in the order of the mesh.
    """

    def __init__(self, mesh: Mesh | AbstractMesh, names: Sequence[Hashable]):
        self.sizes = {name: mesh.shape[name] for name in names}

    def mapped(self, function: Callable[..., UserObject]) -> UserFunction:
        """Returns a function of parts as one of arrays with all axes of the mesh in front."""
        for name, size in reversed(self.sizes.items()):
            function = vmap(function, axis_name=name, axis_size=size)
        return function

    def split(self, x: UserObject, spec: PartitionSpec) -> UserObject:
        """Returns an array with all axes of the mesh in front."""
        self._check(spec, x.ndim, "in_specs")
        shape: list[int] = []
        places: dict[Hashable, int] = {}
        kept = []
        for dimension, extent in enumerate(x.shape):
            names = self._names_of(spec, dimension)
            parts = math.prod(self.sizes[name] for name in names)
            if extent % parts:
                raise ShapeError(
                    f"shard_map: {spec} cuts dimension {dimension} into {parts} parts, of which "
                    f"the extent in {x.shape} is no multiple.",
                    "Pad the array.",
                )
            for name in names:
                places[name] = len(shape)
                shape.append(self.sizes[name])
            kept.append(len(shape))
            shape.append(extent // parts)
        cut = jnp.transpose(
            jnp.reshape(x, shape), [*(places[n] for n in self.sizes if n in places), *kept]
        )
        absent = [place for place, name in enumerate(self.sizes) if name not in places]
        cut = jnp.expand_dims(cut, absent)
        return jnp.broadcast_to(cut, (*self.sizes.values(), *cut.shape[len(self.sizes) :]))

    def join(self, x: UserObject, spec: PartitionSpec) -> UserObject:
        """Returns the whole of an array with all axes of the mesh in front."""
        count = len(self.sizes)
        self._check(spec, x.ndim - count, "out_specs")
        index = tuple(slice(None) if name in spec.names else 0 for name in self.sizes)
        x = x[index]
        present = [name for name in self.sizes if name in spec.names]
        order, shape = [], []
        for dimension in range(x.ndim - len(present)):
            names = self._names_of(spec, dimension)
            order += [*(present.index(name) for name in names), len(present) + dimension]
            parts = math.prod(self.sizes[name] for name in names)
            shape.append(parts * x.shape[len(present) + dimension])
        return jnp.reshape(jnp.transpose(x, order), shape)

    def _names_of(self, spec: PartitionSpec, dimension: int) -> list[Hashable]:
        return [name for name in spec.names_of(dimension) if name in self.sizes]

    def _check(self, spec: PartitionSpec, ndim: int, what: str) -> None:
        if len(spec) > ndim:
            raise ShardSpecError(
                f"shard_map: {what} has {spec} for an array of {ndim} dimensions.",
                "Name at most as many partitions as there are dimensions.",
            )
        unknown = [name for name in spec.names if name not in self.sizes]
        if unknown:
            raise ShardSpecError(
                f"shard_map: {what} has {spec}, but the mesh has the axes "
                f"{', '.join(map(repr, self.sizes))}.",
                "Name axes of the mesh, and of axis_names if that is given.",
            )
