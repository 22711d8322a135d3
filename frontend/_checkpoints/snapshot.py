"""The parts of a tree that a process writes: the arrays' parts on its devices."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from axir._devices.placed_arrays import bounds_of
from axir._trees import text, tree
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import HostArray, Tree
from axir.dialect.core.array import ConcreteArray, as_array, from_numpy
from axir.dialect.core.errors import NonArrayArgumentError
from axir.dialect.core.types import ShapedArray

from .errors import CheckpointLeafError
from .manifest import Bounds, Number, Piece, is_number, to_stored

Leaf: TypeAlias = "ShapedArray | Number"


@dataclass(frozen=True)
class Part:
    """A part of an array in the memory of this process.

    Attributes:
        path: Which leaf it is a part of.
        bounds: Begin and end in each dimension.
        host: The elements.
    """

    path: str
    bounds: Bounds
    host: HostArray

    @property
    def name(self) -> str:
        """The part's name in its file."""
        return f"{self.path}[{','.join(f'{begin}:{end}' for begin, end in self.bounds)}]"

    def piece(self, file: str, stored: HostArray) -> Piece:
        """Returns its entry in the manifest."""
        content = np.ascontiguousarray(stored).reshape(-1).view(np.uint8)
        return Piece(file, self.name, self.bounds, hashlib.sha256(content.data).hexdigest())


@dataclass(frozen=True)
class Snapshot:
    """A tree at the time when it is saved; keeps the memory of its arrays alive.

    Attributes:
        structure: The structure as text.
        leaves: By path, the types of arrays, and the numbers and texts of Python.
        parts: The parts that this process writes.
    """

    structure: str
    leaves: Mapping[str, Leaf]
    parts: tuple[Part, ...]

    def tensors(self) -> dict[str, HostArray]:
        """Returns the parts by name, as they are stored."""
        return {part.name: to_stored(part.host) for part in self.parts}


def snapshot_of(value: Tree, is_first: bool) -> Snapshot:
    """Returns the parts of a tree that are to be written.

    Args:
        value: The tree.
        is_first: Whether this process writes the parts that all processes have.

    Raises:
        CheckpointLeafError: if a leaf is neither an array nor a number or text of Python.
        SerializationError: if a key of a dictionary cannot be written.
    """
    found, structure = tree.flatten_with_path(value)
    leaves: dict[str, Leaf] = {}
    parts: list[Part] = []
    for keys, leaf in found:
        path = "".join(map(str, keys)) or "tree"
        if is_number(leaf):
            leaves[path] = leaf
            continue
        array = _array(leaf, path)
        leaves[path] = array.type
        parts += [
            Part(path, bounds_of(shard.index, array.shape), shard.data.host())
            for shard in getattr(array, "addressable_shards", ())
            if shard.replica_id == 0 and (is_first or not getattr(array, "is_fully_addressable", 1))
        ]
    return Snapshot(text.write(structure), leaves, tuple(parts))


def _array(leaf: object, path: str) -> ConcreteArray:
    try:
        # NumPy's arrays keep their dtype, of 64 bits too.
        is_numpy = isinstance(leaf, (np.ndarray, np.generic)) and bool(dtypes.kind(leaf.dtype))
        array = from_numpy(np.array(leaf)) if is_numpy else as_array(leaf)
    except (NonArrayArgumentError, TypeError, ValueError):
        array = None
    if array is None or array.dtype == dtypes.float0:
        raise CheckpointLeafError(
            f"The leaf {path} is of type {type(leaf).__name__!r}, which checkpoints cannot keep.",
            "Save arrays, and numbers and texts of Python; make arrays of other leaves, or leave "
            "them out.",
        )
    return array
