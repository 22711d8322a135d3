"""Reading the files of arrays: mapped, each part checked when it is first read."""

from __future__ import annotations

import hashlib
import math
import mmap
from pathlib import Path

import numpy as np

from axir._bundles.tensors import DAMAGES, views_of_tensors
from axir.dialect.core.annotations import HostArray

from .errors import (
    CheckpointHashError,
    DamagedCheckpointError,
    MissingShardError,
    TruncatedCheckpointError,
)
from .manifest import (
    AGAIN,
    Bounds,
    Manifest,
    Piece,
    SavedArray,
    common_bounds,
    element_count,
    from_stored,
    slices_within,
    stored_type,
)


class Files:
    """The files of one checkpoint.

    Args:
        folder: Their folder.
        manifest: The description of their content.
    """

    def __init__(self, folder: Path, manifest: Manifest):
        self._folder = folder
        self._manifest = manifest
        self._opened: dict[str, dict[str, HostArray]] = {}
        self._checked: set[tuple[str, str]] = set()

    def check_sizes(self) -> None:
        """Raises the error for a file that is missing, or has another size."""
        for file in self._manifest.files:
            self._check_size(file)

    def _check_size(self, file: str) -> None:
        path, expected = self._folder / file, self._manifest.files[file]
        try:
            found = path.stat().st_size
        except FileNotFoundError:
            raise MissingShardError(
                f"{path} is missing: a process wrote parts of arrays there.",
                "Restore where all processes' files are, or another step.",
            ) from None
        if found != expected:
            raise TruncatedCheckpointError(
                f"{path} has {found:,} bytes, but was written with {expected:,}.", AGAIN
            )

    def read(self, path: str, array: SavedArray, bounds: Bounds) -> HostArray:
        """Returns a part of an array, assembled from the parts that processes have written.

        Args:
            path: The path of the leaf.
            array: Its description.
            bounds: Begin and end of the part in each dimension.

        Raises:
            MissingShardError: if elements of it are nowhere.
            DamagedCheckpointError: if a file differs from the written one.
        """
        shape = tuple(end - begin for begin, end in bounds)
        found = [(piece, common_bounds(piece.bounds, bounds)) for piece in array.pieces]
        parts = [(piece, common) for piece, common in found if common is not None]
        filled = sum(element_count(common) for _, common in parts)
        if filled != math.prod(shape):
            raise MissingShardError(
                f"{self._folder} has {filled} of the {math.prod(shape)} elements "
                f"[{', '.join(f'{begin}:{end}' for begin, end in bounds)}] of {path}.",
                AGAIN,
            )
        if len(parts) == 1 and parts[0][0].bounds == bounds:
            return from_stored(self._content(parts[0][0], array), array.dtype)
        stored = np.empty(*stored_type(shape, array.dtype))
        for piece, common in parts:
            content = self._content(piece, array)
            stored[slices_within(common, bounds)] = content[slices_within(common, piece.bounds)]
        return from_stored(stored, array.dtype)

    def _content(self, piece: Piece, array: SavedArray) -> HostArray:
        """Returns a written part of an array as it is stored, after checking it once."""
        found = self._open(piece.file).get(piece.name)
        expected = stored_type(piece.shape, array.dtype)
        if found is None or (found.shape, found.dtype) != expected:
            raise DamagedCheckpointError(
                f"{self._folder / piece.file} does not have {piece.name} as {array.dtype}.", AGAIN
            )
        if (piece.file, piece.name) not in self._checked:
            content = found.reshape(-1).view(np.uint8)
            if hashlib.sha256(content.data).hexdigest() != piece.digest:
                raise CheckpointHashError(
                    f"{piece.name} in {self._folder / piece.file} is not what was written: its "
                    "checksum is another.",
                    AGAIN,
                )
            self._checked.add((piece.file, piece.name))
        return found

    def _open(self, file: str) -> dict[str, HostArray]:
        if file not in self._opened:
            self._check_size(file)
            try:
                self._opened[file] = views_of_tensors(_mapped(self._folder / file))
            except DAMAGES as error:
                said = str(error).splitlines() or [type(error).__name__]
                raise DamagedCheckpointError(
                    f"{self._folder / file} is not a file of safetensors: {said[0][:100]}.", AGAIN
                ) from None
        return self._opened[file]


def _mapped(path: Path) -> memoryview:
    with open(path, "rb") as file:
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
