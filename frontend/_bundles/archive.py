"""Archives: zip files with uncompressed entries, so that the entries can be mapped.

Each entry begins at a multiple of 64 bytes of the file, as kernels want their arrays. The reader
trusts nothing in an archive: it refuses names that leave a folder, and entries that overlap, are
compressed or reach beyond the file. Elsewhere: the meaning of the entries (`manifest.py`), arrays
in them (`tensors.py`).
"""

from __future__ import annotations

import hashlib
import io
import mmap
import struct
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import IO

from axir._programs.files import write_file
from axir.dialect.core.errors import BundleError

ALIGNMENT = 64
# An entry as pieces of bytes in order, so that large ones are never joined in memory.
Pieces = Sequence[bytes | memoryview]

_LOCAL_HEADER = struct.Struct("<4s22xHH")
_LOCAL_MAGIC = b"PK\x03\x04"
_EXTRA_HEADER = struct.Struct("<HH")
# The extra field that Android's zipalign pads entries with; other readers skip it.
_PADDING_FIELD = 0xD935
_EARLIEST = (1980, 1, 1, 0, 0, 0)
_ZIP64_BYTES = 0x7FFFFFFF
_MOST_ENTRIES = 10_000
# Whatever `zipfile` raises of archives that are not whole, or not zip archives.
_ZIP_ERRORS = (
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
    struct.error,
    NotImplementedError,
    RuntimeError,
    ValueError,
    EOFError,
    OverflowError,
    IndexError,
)


def byte_count(pieces: Pieces) -> int:
    """Returns the total number of bytes of pieces."""
    return sum(map(len, pieces))


def digest(pieces: Iterable[bytes | memoryview]) -> str:
    """Returns the SHA-256 of pieces, in hexadecimal digits."""
    found = hashlib.sha256()
    for piece in pieces:
        found.update(piece)
    return found.hexdigest()


def write_archive(path: Path, entries: Mapping[str, Pieces]) -> None:
    """Writes an archive whole or not at all; equal entries give equal files."""

    def write(name: str) -> None:
        with open(name, "wb") as file:
            _write(file, entries)

    write_file(path, write)


def archive_bytes(entries: Mapping[str, Pieces]) -> bytes:
    """Returns the bytes that `write_archive` would write."""
    file = io.BytesIO()
    _write(file, entries)
    return file.getvalue()


def _write(file: IO[bytes], entries: Mapping[str, Pieces]) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, pieces in entries.items():
            entry = zipfile.ZipInfo(name, _EARLIEST)
            entry.external_attr = 0o644 << 16
            entry.file_size = entry.compress_size = byte_count(pieces)
            entry.CRC = 0  # asked for, and written in the end
            is_large = entry.file_size >= _ZIP64_BYTES
            entry.extra = _padding(file.tell() + len(entry.FileHeader(is_large)))
            with archive.open(entry, "w", force_zip64=is_large) as target:
                for piece in pieces:
                    target.write(piece)


def _padding(offset: int) -> bytes:
    """Returns an extra field after which the content is aligned."""
    missing = -(offset + _EXTRA_HEADER.size) % ALIGNMENT
    return _EXTRA_HEADER.pack(_PADDING_FIELD, missing) + bytes(missing)


class Archive:
    """The entries of an archive, as views of memory or of the mapped file.

    Args:
        source: A file to map, or the content of an archive.
        name: Its name in errors.

    Attributes:
        entries: The contents by name.

    Raises:
        OSError: if the file cannot be read.
        BundleError: if it is not an archive, or one that cannot be trusted.
    """

    def __init__(self, source: Path | bytes, name: str):
        self.name = name
        memory = memoryview(source) if isinstance(source, bytes) else _mapped(source, name)
        try:
            with zipfile.ZipFile(_Reader(memory)) as archive:
                found = archive.infolist()
        except _ZIP_ERRORS as error:
            raise BundleError(
                f"{name} is not a bundle, or one that is not whole: {_said(error)}.",
                "Copy it again from where it was made, or save it again.",
                where="",
            ) from None
        if len(found) > _MOST_ENTRIES:
            raise self._refusal(f"it has {len(found):,} entries", "Bundles have a few.")
        self.entries: dict[str, memoryview] = {}
        end = 0
        for entry in sorted(found, key=lambda entry: entry.header_offset):
            self._check(entry)
            start = self._start(entry, memory)
            if entry.header_offset < end:
                raise self._refusal(f"{entry.filename!r} overlaps the entry before it")
            end = start + entry.file_size
            if end > len(memory):
                raise self._refusal(f"{entry.filename!r} reaches beyond the end of the file")
            self.entries[entry.filename] = memory[start:end]

    def _check(self, entry: zipfile.ZipInfo) -> None:
        """Refuses an entry that bundles never have."""
        name = entry.filename
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or "\\" in name or ":" in name or not name:
            raise self._refusal(
                f"its entry {name!r} names a place outside of the bundle",
                "It was made to overwrite other files: do not unpack it.",
            )
        if name in self.entries:
            raise self._refusal(f"it has two entries {name!r}")
        if entry.flag_bits & 0x1:
            raise self._refusal(f"its entry {name!r} is encrypted")
        if entry.compress_type != zipfile.ZIP_STORED or entry.compress_size != entry.file_size:
            raise self._refusal(
                f"its entry {name!r} is compressed, so it cannot be mapped",
                "Pack it without compression: zip -0 -r model.axir .",
            )

    def _start(self, entry: zipfile.ZipInfo, memory: memoryview) -> int:
        """Returns the offset of an entry's content, after its local header."""
        header = memory[entry.header_offset : entry.header_offset + _LOCAL_HEADER.size]
        if len(header) < _LOCAL_HEADER.size:
            raise self._refusal(f"the header of {entry.filename!r} is cut off")
        magic, name_bytes, extra_bytes = _LOCAL_HEADER.unpack(header)
        start: int = entry.header_offset + _LOCAL_HEADER.size
        name = bytes(memory[start : start + name_bytes])
        if magic != _LOCAL_MAGIC or name != entry.orig_filename.encode(errors="replace"):
            raise self._refusal(f"the header of {entry.filename!r} is damaged")
        return start + name_bytes + extra_bytes

    def _refusal(self, reason: str, way_out: str | None = None) -> BundleError:
        return BundleError(
            f"{self.name} is not a bundle that axir wrote: {reason}.",
            way_out or "Copy it again from where it was made, or save it again.",
            where="",
        )


class _Reader(io.RawIOBase):
    """A file over memory, which `io.BytesIO` would copy."""

    def __init__(self, memory: memoryview):
        self._memory = memory
        self._position = 0

    def readable(self) -> bool:
        """Tells that it can be read."""
        return True

    def seekable(self) -> bool:
        """Tells that it can be read anywhere."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Moves to a position, which is returned."""
        base = (0, self._position, len(self._memory))[whence]
        if base + offset < 0:
            raise ValueError("a position before the beginning")
        self._position = base + offset
        return self._position

    def tell(self) -> int:
        """Returns the position."""
        return self._position

    def read(self, size: int | None = -1) -> bytes:
        """Reads so many bytes, or all to the end."""
        end = None if size is None or size < 0 else self._position + size
        found = bytes(self._memory[self._position : end])
        self._position += len(found)
        return found


def _mapped(path: Path, name: str) -> memoryview:
    """Returns a file's content, mapped for reading; arrays on it keep the mapping alive."""
    with open(path, "rb") as file:
        try:
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        except ValueError:  # the file is empty
            raise BundleError(f"{name} is empty.", "Save the bundle again.", where="") from None


def _said(error: object) -> str:
    lines = str(error).splitlines()
    return lines[0].rstrip(".") if lines else type(error).__name__
