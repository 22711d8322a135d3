"""`axir.shard_map`, under its older name and with its older order of arguments."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Set

from axir import _shard_mapping
from axir._devices.meshes import AbstractMesh, Mesh
from axir.dialect.core.annotations import Tree, UserFunction

__all__ = ["shard_map"]


def __dir__() -> list[str]:
    return __all__


def shard_map(
    f: Callable[..., object],
    mesh: Mesh | AbstractMesh,
    in_specs: Tree,
    out_specs: Tree,
    check_rep: bool = True,
    auto: Set[Hashable] = frozenset(),
) -> UserFunction:
    """Returns a function of arrays, given one of their parts; see `axir.shard_map`.

    Args:
        f: Function of parts.
        mesh: The mesh.
        in_specs: How arguments are cut.
        out_specs: How results are joined.
        check_rep: Whether to check that results are equal along axes not named in `out_specs`.
        auto: Axes of the mesh along which nothing is cut.
    """
    names = frozenset(name for name in mesh.axis_names if name not in auto)
    return _shard_mapping.shard_map(
        f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, axis_names=names, check_vma=check_rep
    )
