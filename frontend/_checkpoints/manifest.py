"""The manifest of a checkpoint: its tree, its arrays, and the parts that processes wrote, as JSON.

The last line of the file is the SHA-256 of the lines before it. The reader trusts nothing in a
manifest. Elsewhere: the files of arrays (`files.py`).
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from axir._bundles.tensors import STORED_DTYPES
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import AnyDtype, HostArray, UserObject
from axir.dialect.core.errors import AxirError
from axir.dialect.core.extended_dtypes import key_dtype, keys_of, words_of

from .errors import (
    CheckpointHashError,
    CheckpointVersionError,
    DamagedCheckpointError,
    MissingShardError,
)

_KEY = "key<"
_BYTE = np.dtype(np.uint8)


def to_stored(host: HostArray) -> HostArray:
    """Returns an array in a dtype that files support, perhaps with one more axis.

    >>> to_stored(np.array([1 + 2j], np.complex64))
    array([[1., 2.]], dtype=float32)
    """
    host = words_of(host)
    inner = _element(host.dtype)
    if inner == host.dtype:
        return host
    flat = np.ascontiguousarray(host).reshape(-1).view(inner)
    return flat.reshape((*host.shape, host.dtype.itemsize // inner.itemsize))


def from_stored(stored: HostArray, dtype: AnyDtype) -> HostArray:
    """Returns the array that `to_stored` converted; a view if possible."""
    if dtypes.is_key(dtype):
        return keys_of(stored, dtype)
    if stored.dtype == dtype:
        return stored
    return np.ascontiguousarray(stored).view(dtype)[..., 0]


def stored_type(shape: tuple[int, ...], dtype: AnyDtype) -> tuple[tuple[int, ...], np.dtype]:
    """Returns the shape and dtype in which elements are stored."""
    if dtypes.is_key(dtype):
        return (*shape, dtype.words), np.dtype(np.uint32)
    inner = _element(dtype)
    return (shape if inner == dtype else (*shape, dtype.itemsize // inner.itemsize)), inner


def dtype_named(name: str) -> AnyDtype:
    """Returns the dtype for a name in a manifest.

    Raises:
        TypeError: if the dtype is unknown, or arrays cannot have it.
    """
    if name.startswith(_KEY):
        return key_dtype(name[len(_KEY) : -1])
    found = np.dtype(name)
    dtypes.kind(found)
    return found


def _element(dtype: np.dtype) -> np.dtype:
    if dtype in STORED_DTYPES:
        return dtype
    return dtypes.real_dtype(dtype) if dtypes.is_complex(dtype) else _BYTE


# The manifest -------------------------------------------------------------------------------------


FORMAT = "axir checkpoint"
VERSION = 1
MANIFEST = "manifest.json"
AGAIN = "Restore another step (axir.checkpoint.steps lists them), or copy this one again."
_DAMAGES = (ValueError, TypeError, KeyError, AttributeError, RecursionError, AxirError)
_KINDS = {"bool": bool, "int": int, "float": float, "complex": complex, "str": str}
Bounds = tuple[tuple[int, int], ...]
Number = bool | int | float | complex | str


@dataclass(frozen=True)
class Piece:
    """A part of an array that a process has written.

    Attributes:
        file: The file, which lies beside the manifest.
        name: The part's name there.
        bounds: Begin and end in each dimension of the array.
        digest: SHA-256 of the elements.
    """

    file: str
    name: str
    bounds: Bounds
    digest: str

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents of the part."""
        return tuple(end - begin for begin, end in self.bounds)


@dataclass(frozen=True)
class SavedArray:
    """An array of a checkpoint.

    Attributes:
        shape: Its extents.
        dtype: Its dtype.
        weak_type: Whether the dtype came from a Python scalar.
        pieces: Its parts.
    """

    shape: tuple[int, ...]
    dtype: AnyDtype
    weak_type: bool
    pieces: tuple[Piece, ...]

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"


@dataclass(frozen=True)
class Manifest:
    """The content of a checkpoint.

    Attributes:
        step: The step.
        tree: The structure as text (`axir._trees.text`).
        leaves: By path, in the order of the structure: arrays, and numbers and texts of Python.
        files: Sizes of the files of arrays in bytes.
        versions: The versions of its writer.
    """

    step: int
    tree: str
    leaves: Mapping[str, SavedArray | Number]
    files: Mapping[str, int]
    versions: Mapping[str, str] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        """Returns the content of the file."""
        content = {
            "format": FORMAT,
            "version": VERSION,
            "written_by": dict(self.versions),
            "step": self.step,
            "tree": self.tree,
            "files": dict(self.files),
        }
        leaves = ({"path": path, **_leaf(leaf)} for path, leaf in self.leaves.items())
        lines = [f"{_json(key)}: {_json(value)}" for key, value in content.items()]
        lines.append(f'"leaves": [{",".join(f"{chr(10)}  {_json(leaf)}" for leaf in leaves)}]')
        text = ("{\n " + ",\n ".join(lines) + "\n}\n").encode()
        return text + hashlib.sha256(text).hexdigest().encode() + b"\n"

    def check_complete(self, name: str) -> None:
        """Raises `MissingShardError` if a part of an array is nowhere."""
        for path, leaf in self.leaves.items():
            if isinstance(leaf, SavedArray):
                found = sum(element_count(piece.bounds) for piece in leaf.pieces)
                if found != math.prod(leaf.shape):
                    raise MissingShardError(
                        f"{name}: the parts of {path} ({leaf}) have {found} elements together, "
                        f"of {math.prod(leaf.shape)}.",
                        "Each part must be on a device of one of the processes that save.",
                    )


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _leaf(leaf: SavedArray | Number) -> dict[str, object]:
    if not isinstance(leaf, SavedArray):
        return {"python": type(leaf).__name__, "value": leaf if type(leaf) is str else repr(leaf)}
    weak = {"weak_type": True} if leaf.weak_type else {}
    pieces = [
        {"file": p.file, "name": p.name, "bounds": p.bounds, "sha256": p.digest}
        for p in leaf.pieces
    ]
    return {"dtype": str(leaf.dtype), "shape": leaf.shape, **weak, "pieces": pieces}


def read_manifest(folder: Path) -> Manifest:
    """Returns the manifest of the checkpoint in a folder.

    Raises:
        MissingShardError: if the folder has no manifest.
        CheckpointHashError: if it was changed.
        CheckpointVersionError: if a newer axir has written it.
        DamagedCheckpointError: if the file is not a manifest.
    """
    try:
        content = (folder / MANIFEST).read_bytes()
    except FileNotFoundError:
        raise MissingShardError(f"{folder} has no {MANIFEST}.", AGAIN) from None
    text, _, written = content.rstrip(b"\n").rpartition(b"\n")
    if hashlib.sha256(text + b"\n").hexdigest().encode() != written:
        raise CheckpointHashError(
            f"{folder / MANIFEST} is not what was written: its checksum is another.", AGAIN
        )
    try:
        found = json.loads(text)
        if found["format"] != FORMAT:
            raise ValueError(f"its format is {found['format']!r}")
        if found["version"] > VERSION:
            raise CheckpointVersionError(
                f"{folder} was written by axir {found['written_by'].get('axir')}, in version "
                f"{found['version']} of the format; this one reads up to {VERSION}.",
                "Install a newer axir: pip install --upgrade axir.",
            )
        return _manifest(found)
    except CheckpointVersionError:
        raise
    except _DAMAGES as error:
        said = str(error).splitlines() or [type(error).__name__]
        raise DamagedCheckpointError(
            f"{folder / MANIFEST} is not a manifest that axir wrote: {said[0]}.", AGAIN
        ) from None


def _manifest(found: UserObject) -> Manifest:
    leaves = {str(entry["path"]): _read_leaf(entry) for entry in found["leaves"]}
    files = {str(name): int(size) for name, size in found["files"].items()}
    named = {p.file for x in leaves.values() if isinstance(x, SavedArray) for p in x.pieces}
    if not named <= set(files) or any("/" in name or name.startswith(".") for name in files):
        raise ValueError("it names files outside of the folder")
    return Manifest(int(found["step"]), str(found["tree"]), leaves, files, found["written_by"])


def _read_leaf(entry: UserObject) -> SavedArray | Number:
    if "python" in entry:
        return _read_number(entry["python"], entry["value"])
    shape = tuple(int(extent) for extent in entry["shape"])
    pieces = tuple(_read_piece(piece, shape) for piece in entry["pieces"])
    return SavedArray(shape, dtype_named(entry["dtype"]), bool(entry.get("weak_type")), pieces)


def _read_number(kind: str, text: str) -> Number:
    return text == "True" if kind == "bool" else _KINDS[kind](text)


def _read_piece(entry: UserObject, shape: tuple[int, ...]) -> Piece:
    bounds = tuple((int(begin), int(end)) for begin, end in entry["bounds"])
    fits = (0 <= b <= e <= n for (b, e), n in zip(bounds, shape, strict=True))
    if not all(fits):
        raise ValueError(f"the part {bounds} lies outside of an array of shape {shape}")
    return Piece(str(entry["file"]), str(entry["name"]), bounds, str(entry["sha256"]))


def common_bounds(one: Bounds, other: Bounds) -> Bounds | None:
    """Returns the intersection of two parts of an array, None if it is empty.

    >>> common_bounds(((0, 4),), ((2, 9),)), common_bounds(((0, 2),), ((2, 4),))
    (((2, 4),), None)
    """
    found = tuple((max(a, c), min(b, d)) for (a, b), (c, d) in zip(one, other, strict=True))
    return None if any(begin >= end for begin, end in found) else found


def slices_within(part: Bounds, whole: Bounds) -> tuple[slice, ...]:
    """Returns the index of a part, in an array that begins where `whole` does."""
    return tuple(slice(b - o, e - o) for (b, e), (o, _) in zip(part, whole, strict=True))


def is_number(leaf: object) -> bool:
    """Tells whether a leaf is a number or a text of Python, which the manifest keeps."""
    return type(leaf).__name__ in _KINDS and type(leaf) is _KINDS[type(leaf).__name__]


def element_count(bounds: Bounds) -> int:
    """Returns the number of elements of a part."""
    return math.prod(end - begin for begin, end in bounds)
