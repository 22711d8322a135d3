"""Arrays as C++ source: parameters and constants that become part of the program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

_PER_LINE = 4


def write_data(name: str, parameters: bytes | None, constants: Sequence[bytes]) -> str:
    """Returns the text of a source that defines parameters and constants, aligned for kernels."""
    return "\n".join(_lines(name, parameters, constants))


def _lines(name: str, parameters: bytes | None, constants: Sequence[bytes]) -> Iterator[str]:
    yield f"// Data of {name}, a model written by axir. Changes to this file are lost."
    yield "#include <cstdint>"
    yield ""
    yield "#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__"
    yield '#error "this model is for machines that store the lowest byte first"'
    yield "#endif"
    yield ""
    arrays = [] if parameters is None else [(f"{name}_parameters", parameters)]
    arrays += [(f"{name}_constants_{number}", x) for number, x in enumerate(constants)]
    for symbol, content in arrays:
        yield f"extern const std::uint64_t {symbol}[];"
        yield f"alignas(64) const std::uint64_t {symbol}[] = {{"
        yield from _rows(content)
        yield "};"
        yield ""


def _rows(content: bytes) -> Iterator[str]:
    padded = content + bytes(-len(content) % 8) or bytes(8)
    words = [f"0x{word:x}u" for word in np.frombuffer(padded, "<u8").tolist()]
    for start in range(0, len(words), _PER_LINE):
        yield f"    {', '.join(words[start : start + _PER_LINE])},"
