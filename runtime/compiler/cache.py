"""The disk cache of compiled programs: content-addressed, capped in size, never trusted.

An entry is one file named by the hash of everything its content depends on. Writers work on a
temporary file and rename it, so readers see whole entries only; a header with a checksum tells a
damaged entry from a good one, and a damaged one counts as absent. A folder that cannot be written
to, or a full disk, costs a recompilation and nothing else.

A fingerprint of axir's code is part of the keys: another version may compile a module to another
program. Elsewhere: the other parts of a program's key (`compilation.py`).
"""

from __future__ import annotations

import hashlib
import logging
import os
import struct
import tempfile
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from axir.dialect.core.config import config

# The packages that determine a program; the frontend only decides which program.
_ROOMS = ("dialect", "passes", "runtime")


@cache
def code_fingerprint() -> str:
    """Returns a digest of when each file of the code was changed last, and of their sizes."""
    base = Path(__file__).parents[2]
    lines = sorted(line for room in _ROOMS for line in _sources(f"{base}/{room}"))
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


@cache
def invocation_fingerprint() -> str:
    """Returns a digest of the code that rewrites the compiler's intermediate and final results.

    It is part of a program's key in the disk cache, because other code makes another program.
    """
    folder = Path(__file__).parent / "invocation"
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _sources(folder: str) -> Iterator[str]:
    with os.scandir(folder) as entries:
        for entry in entries:
            name = entry.name
            if name.endswith(".py"):
                status = entry.stat()
                yield f"{entry.path} {status.st_mtime_ns} {status.st_size}"
            elif "." not in name and name != "__pycache__":
                yield from _sources(entry.path)


_LOGGER = logging.getLogger(__name__)

# magic, format version, length of the payload, SHA-256 of the payload
_HEADER = struct.Struct("<8sIQ32s")
_MAGIC = b"AXIRPROG"
_FORMAT_VERSION = 1
_SUFFIX = ".program"
_TEMPORARY_SUFFIX = ".temporary"
# A writer that died leaves its temporary file; no living one takes this long.
_ABANDONED_AFTER_SECONDS = 3600.0
# Evicting down to less than the cap keeps every later write from evicting again.
_EVICTION_TARGET = 0.9


def cache_directory() -> Path:
    """Returns the folder of compiled programs: `axir_cache_dir`, else the user's cache folder."""
    chosen = config.axir_cache_dir
    if chosen:
        return Path(chosen)
    import platformdirs  # late: only compilations need the folder

    return Path(platformdirs.user_cache_dir("axir"))


class ProgramCache:
    """A folder of compiled programs by key.

    Args:
        directory: the folder; made on the first write.
        max_bytes: the size above which the least recently used entries are deleted; 0 keeps
            nothing, -1 everything.
        is_on: whether entries are read and kept at all.

    >>> import tempfile
    >>> cache = ProgramCache(Path(tempfile.mkdtemp()), max_bytes=1 << 20)
    >>> cache.put("0123", b"program")
    >>> cache.get("0123"), cache.get("4567")
    (b'program', None)
    """

    def __init__(self, directory: Path, max_bytes: int, is_on: bool = True):
        self.is_on = is_on
        self.directory = directory
        self.max_bytes = max_bytes

    def path(self, key: str) -> Path:
        """Returns the file of an entry, whether it exists or not."""
        return self.directory / f"{key}{_SUFFIX}"

    def get(self, key: str) -> bytes | None:
        """Returns an entry, or None if it is absent or damaged."""
        if not self.is_on:
            return None
        path = self.path(key)
        try:
            content = path.read_bytes()
        except OSError:
            return None
        payload = _checked_payload(content)
        if payload is None:
            _LOGGER.info("cache entry %s is damaged and will be replaced", path)
            return None
        try:
            os.utime(path)  # the modification time is the time of the last use
        except OSError as error:
            _LOGGER.debug("cannot mark %s as used: %s", path, error)
        return payload

    def put(self, key: str, payload: bytes) -> None:
        """Stores an entry; only logs a failure if the folder or the disk does not allow it.

        Raises:
            OSError: in that case, with the option `jax_raise_persistent_cache_errors`.
        """
        if not (self.is_on and self.max_bytes):
            return
        header = _HEADER.pack(
            _MAGIC, _FORMAT_VERSION, len(payload), hashlib.sha256(payload).digest()
        )
        try:
            # Entries are native code: no other user may write here.
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._replace(self.path(key), header + payload)
            self._evict()
        except OSError as error:
            if config.jax_raise_persistent_cache_errors:
                raise
            _LOGGER.info("the compiled program is not kept on disk: %s", error)

    def _replace(self, path: Path, content: bytes) -> None:
        handle, temporary = tempfile.mkstemp(suffix=_TEMPORARY_SUFFIX, dir=self.directory)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            os.replace(temporary, path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise

    def _evict(self) -> None:
        entries = []
        total = 0
        now = time.time()
        for item in os.scandir(self.directory):
            try:
                status = item.stat()
            except FileNotFoundError:  # another process evicted it meanwhile
                continue
            if item.name.endswith(_SUFFIX):
                entries.append((status.st_mtime, status.st_size, item.path))
                total += status.st_size
            elif item.name.endswith(_TEMPORARY_SUFFIX):
                if now - status.st_mtime > _ABANDONED_AFTER_SECONDS:
                    Path(item.path).unlink(missing_ok=True)
        if self.max_bytes < 0 or total <= self.max_bytes:
            return
        for _, size, path in sorted(entries):
            Path(path).unlink(missing_ok=True)
            total -= size
            if total <= self.max_bytes * _EVICTION_TARGET:
                return


def program_cache() -> ProgramCache:
    """Returns the cache that the options describe: `axir_cache_dir` and its like."""
    is_on = config.jax_enable_compilation_cache
    return ProgramCache(cache_directory(), config.axir_cache_max_bytes, is_on)


def _checked_payload(content: bytes) -> bytes | None:
    if len(content) < _HEADER.size:
        return None
    magic, version, length, digest = _HEADER.unpack_from(content)
    payload = content[_HEADER.size :]
    if magic != _MAGIC or version != _FORMAT_VERSION or length != len(payload):
        return None
    return payload if hashlib.sha256(payload).digest() == digest else None
