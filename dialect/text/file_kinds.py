"""The kind of a file, from its first bytes: a name says less, and pipes have no name.

Elsewhere: reading (`parsing.py`, and the code that opens bundles and programs).
"""

from __future__ import annotations

import stat
from pathlib import Path

from axir.dialect.core.errors import ParseError

from .bytecode import Content

_BUNDLE, _PROGRAM = "bundle", "compiled program"
_SUFFIXES = {".axir": _BUNDLE, ".vmfb": _PROGRAM}
# The first entry of an archive; its name stands at byte 30.
_ARCHIVE, _NAME = b"PK\x03\x04", 30
_ENTRIES = {b"manifest.json": _BUNDLE, b"module.fb": _PROGRAM}
_IMPORT = "`axir import {name} -o model.axir` makes a bundle of it."
# The first bytes of files that are often given by mistake: their kind, and the way out.
_OTHERS = (
    (b"\x93NUMPY", "an array of NumPy", "Give it as an argument: `axir run MODULE x=@{name}`."),
    (
        b"\x89HDF",
        "a file of HDF5",
        "Export it from Keras on its JAX backend, by jax.export.",
    ),
    (b"\x7fELF", "a program or an object file", "Give the module that it was compiled from."),
    (b"\x1f\x8b", "compressed by gzip", "Decompress it: gunzip {name}."),
    (b"%PDF", "a PDF", "Give the path of a module."),
)


def is_bundle(path: Path) -> bool:
    """Tells whether a file is a bundle, by its content and else by its name."""
    return _kind(path) == _BUNDLE


def is_program(path: Path) -> bool:
    """Tells whether a file is a compiled program, by its content and else by its name."""
    return _kind(path) == _PROGRAM


def _kind(path: Path) -> str | None:
    found = None
    try:
        if stat.S_ISREG(path.stat().st_mode):
            with path.open("rb") as file:
                found = _of_archive(file.read(64))
    except OSError:  # the code that opens it reports the reason
        pass
    return found or _SUFFIXES.get(path.suffix)


def _of_archive(data: bytes) -> str | None:
    if not data.startswith(_ARCHIVE):
        return None
    return next((kind for name, kind in _ENTRIES.items() if data[_NAME:].startswith(name)), None)


def other_kind(data: Content, name: str) -> ParseError | None:
    """Returns the error for content that is known to be no module; None for other content.

    Args:
        data: The content.
        name: Its name: a path, or `<stdin>`.
    """
    start = bytes(data[:64])
    kind, is_file = _of_archive(start), not name.startswith("<")
    if kind is not None:
        suffix = next(suffix for suffix, known in _SUFFIXES.items() if known == kind)
        return ParseError(
            f"{name} is a {kind}, not a module.",
            "It is read from a file of its own, not from a pipe: give its path."
            if not is_file
            else f"Give it its own suffix, {suffix}.",
            name,
        )
    if start.startswith(_ARCHIVE):
        return ParseError(
            f"{name} is an archive (zip), not a module.",
            "A program of torch.export is called .pt2: " + _IMPORT.format(name=name),
            name,
        )
    if name.endswith((".onnx", ".pt2")):
        return ParseError(f"{name} is not MLIR.", _IMPORT.format(name=name), name)
    for beginning, what, way_out in _OTHERS:
        if start.startswith(beginning):
            return ParseError(f"{name} is {what}, not a module.", way_out.format(name=name), name)
    return None
