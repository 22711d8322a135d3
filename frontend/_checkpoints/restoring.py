"""Restoring: saved trees, on the devices of the present job."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from axir._devices.partitions import as_sharding
from axir._devices.placed_arrays import bounds_of, make_array_from_callback
from axir._devices.placement import put
from axir._devices.shape_dtype_struct import ShapeDtypeStruct
from axir._devices.sharding import Index, Sharding, SingleDeviceSharding
from axir._trees import text, tree
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import HostArray, PyTree, Tree, UserObject
from axir.dialect.core.array import Array, ConcreteArray, as_array
from axir.dialect.core.types import ShapedArray

from . import folders
from .errors import CheckpointTreeError
from .files import Files
from .manifest import Manifest, Number, SavedArray, is_number, read_manifest


def restore(
    folder: str | os.PathLike[str],
    like: Tree = None,
    *,
    step: int | None = None,
    shardings: Tree = None,
) -> PyTree:
    """Returns a tree that was saved, on the devices of the present job.

    Each process reads the parts that its devices hold, which may differ from the written parts:
    arrays can be restored on any number of devices. All that is read is checked.

    Args:
        folder: Folder of the training run; see `save`.
        like: A tree of the same structure: arrays, `ShapeDtypeStruct`s, numbers. The result has its
            structure, and arrays with its shardings. Without it, containers are of the saved
            classes, or dictionaries if a class is not known.
        step: The step; the last one by default.
        shardings: The places of arrays: a tree of shardings or devices that is a prefix of the
            tree, or one for all. They take precedence over the shardings of `like`; None leaves
            arrays uncommitted.

    Returns:
        The tree.

    Raises:
        CheckpointNotFoundError: if the folder has no checkpoint, or not this step.
        CheckpointTreeError: if `like` has other leaves, or other shapes or dtypes.
        MissingShardError: if a part of an array, or a file, is missing.
        TruncatedCheckpointError: if a file has another size than it was written with.
        CheckpointHashError: if a file has another content.
        DamagedCheckpointError: if a file is damaged otherwise.
        CheckpointVersionError: if a newer axir has written it.

    >>> import axir, axir.numpy as jnp, tempfile
    >>> from axir import checkpoint
    >>> from axir.sharding import NamedSharding, PartitionSpec
    >>> run = tempfile.mkdtemp()
    >>> _ = checkpoint.save(run, {"w": jnp.arange(4.0), "b": (jnp.zeros(2), 3)}, 0)
    >>> checkpoint.restore(run)
    {'b': (Array([0., 0.], dtype=float32), 3), 'w': Array([0., 1., 2., 3.], dtype=float32)}
    >>> rows = NamedSharding(axir.make_mesh((1,), ("x",)), PartitionSpec("x"))
    >>> like = {"w": axir.ShapeDtypeStruct((4,), "float32", sharding=rows), "b": (jnp.ones(2), 0)}
    >>> checkpoint.restore(run, like)["w"].sharding == rows
    True
    """
    path = folders.existing(Path(folder), step)
    manifest = read_manifest(path)
    files = Files(path, manifest)
    files.check_sizes()
    if like is None:
        template: PyTree = text.read(manifest.tree)(list(manifest.leaves))
        wanted: Mapping[str, UserObject] = dict.fromkeys(manifest.leaves)
    else:
        found, structure = tree.flatten_with_path(like)
        wanted = {"".join(map(str, keys)) or "tree": leaf for keys, leaf in found}
        _check_leaves(path, manifest, wanted)
        template = structure.unflatten(list(wanted))
    places = tree.broadcast_prefix(shardings, template, "shardings")
    names, structure = tree.flatten(template)
    return structure.unflatten(
        [
            _leaf(files, manifest, name, wanted[name], p)
            for name, p in zip(names, places, strict=True)
        ]
    )


def verify(folder: str | os.PathLike[str], step: int | None = None) -> int:
    """Reads all of a checkpoint, and raises an error if it is damaged.

    Args:
        folder: Folder of the training run; see `save`.
        step: The step; the last one by default.

    Returns:
        The step.

    Raises:
        CheckpointNotFoundError: if the checkpoint is absent.
        DamagedCheckpointError: if files differ from the written ones; `restore` lists how.

    >>> import axir.numpy as jnp, tempfile
    >>> from axir import checkpoint
    >>> run = tempfile.mkdtemp()
    >>> _ = checkpoint.save(run, jnp.ones(3), 5)
    >>> checkpoint.verify(run)
    5
    """
    path = folders.existing(Path(folder), step)
    manifest = read_manifest(path)
    files = Files(path, manifest)
    files.check_sizes()
    for name, leaf in manifest.leaves.items():
        if isinstance(leaf, SavedArray):
            files.read(name, leaf, tuple((0, extent) for extent in leaf.shape))
    return manifest.step


def _check_leaves(path: Path, manifest: Manifest, wanted: Mapping[str, object]) -> None:
    """Raises `CheckpointTreeError` if a tree does not have the saved leaves."""
    saved = manifest.leaves
    lines = [f"{name} was not saved" for name in wanted if name not in saved]
    lines += [f"{name} was saved, but is not in `like`" for name in saved if name not in wanted]
    lines += [
        f"{name} was saved as {_described(saved[name])}, but is {_described(leaf)} in `like`"
        for name, leaf in wanted.items()
        if name in saved and _described(saved[name]) != _described(leaf)
    ]
    if lines:
        more = f", and {len(lines) - 5} more" if len(lines) > 5 else ""
        raise CheckpointTreeError(
            f"{path} holds another tree: {'; '.join(lines[:5])}{more}.",
            "Pass a tree like the one that was saved, or leave `like` out to see what was.",
        )


def _described(leaf: object) -> str:
    """Returns the type of an array or a number."""
    if isinstance(leaf, SavedArray):
        return str(leaf)
    if is_number(leaf):
        return type(leaf).__name__
    if isinstance(leaf, (ShapeDtypeStruct, np.ndarray)):
        return f"{leaf.dtype}[{','.join(map(str, leaf.shape))}]"
    array = as_array(leaf)
    return f"{array.dtype}[{','.join(map(str, array.shape))}]"


def _leaf(files: Files, manifest: Manifest, name: str, like: object, place: object) -> object:
    """Returns a leaf: where `place` says, else where `like` is."""
    leaf: SavedArray | Number = manifest.leaves[name]
    if not isinstance(leaf, SavedArray):
        return leaf
    is_committed = isinstance(like, ShapeDtypeStruct) or getattr(like, "committed", False)
    where = place or (getattr(like, "sharding", None) if is_committed else None)
    kind = ShapedArray(leaf.shape, leaf.dtype, leaf.weak_type)

    def part(index: Index | None) -> HostArray:
        chosen = (slice(None),) * len(leaf.shape) if index is None else index
        return files.read(name, leaf, bounds_of(chosen, leaf.shape))

    if where is None:
        host = part(None)
        return host if isinstance(like, np.ndarray) else ConcreteArray(kind, host)
    return _placed(kind, as_sharding(where, "checkpoint.restore"), part)


def _placed(kind: ShapedArray, where: Sharding, part: Callable[[Index | None], HostArray]) -> Array:
    """Returns an array with a sharding; each process reads the parts of its devices."""
    if isinstance(where, SingleDeviceSharding) or dtypes.is_key(kind.dtype):
        return put(ConcreteArray(kind, part(None)), where, "checkpoint.restore")
    return make_array_from_callback(kind.shape, where, part, kind.dtype)
