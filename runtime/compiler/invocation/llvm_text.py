"""Translates LLVM IR as text from IREE's LLVM to llvmlite's LLVM, which is older.

IREE contains its own MLIR and LLVM, but no function that makes machine code from LLVM IR. llvmlite
has that function, with another version of LLVM and another text format. Newer versions write
numbers as `f0x3F800000`, `+inf`, `-nan(0x1)`, and decimals that are not exact; older versions
expect the bits, as a double's bits for both floats and doubles. Elsewhere: where the text comes
from (`native.py`).
"""

from __future__ import annotations

import re
import struct
from typing import NamedTuple

# A number that is no part of a name, and the type that often stands right before it.
_NUMBERS = re.compile(
    rb"(?:\b(?P<kind>half|bfloat|float|double) |(?<=[ ,(\[<{]))"
    rb"(?:f0x(?P<bits>[0-9A-Fa-f]+)|(?P<sign>[+-]?)(?:(?P<decimal>\d+\.\d+(?:e[+-]?\d+)?)"
    rb"|(?P<infinity>inf)|(?P<nan>[sq]?nan)(?:\(0x(?P<payload>[0-9A-Fa-f]+)\))?))"
    rb"(?=[ ,)\]>}]|$)",
    re.MULTILINE,
)
_KINDS = re.compile(rb"\b(?:half|bfloat|float|double)\b")


class _Format(NamedTuple):
    """A format of IEEE 754, or bfloat16, the format of a float's first 16 bits.

    Attributes:
        bits: The number of bits.
        fraction: The number of bits behind the exponent.
        prefix: The characters before the bits in the text of older versions.
    """

    bits: int
    fraction: int
    prefix: bytes

    @property
    def infinity(self) -> int:
        return (1 << self.bits - 1) - (1 << self.fraction)


_DOUBLE = _Format(64, 52, b"0x")
_FORMATS = {
    b"half": _Format(16, 10, b"0xH"),
    b"bfloat": _Format(16, 7, b"0xR"),
    b"float": _Format(32, 23, b"0x"),
    b"double": _DOUBLE,
}


def for_older_llvm(text: bytes) -> bytes:
    """Returns LLVM IR with its numbers in the form that all versions of LLVM read.

    >>> for_older_llvm(b"fadd float %x, f0x40490FDB")
    b'fadd float %x, 0x400921FB60000000'
    >>> for_older_llvm(b"select i1 %c, half +qnan, half -inf")
    b'select i1 %c, half 0xH7E00, half 0xHFC00'
    """
    return _NUMBERS.sub(_rewritten, text)


def _rewritten(found: re.Match[bytes]) -> bytes:
    kind = found["kind"]
    if kind is not None:
        return kind + b" " + _written(_bits_of(found, kind), kind)
    # The type stands before the operands of an operation, and is the type of all of them.
    line = found.string.rfind(b"\n", 0, found.start()) + 1
    kinds = _KINDS.findall(found.string, line, found.start())
    return _written(_bits_of(found, kinds[-1]), kinds[-1]) if kinds else found.group()


def _bits_of(found: re.Match[bytes], kind: bytes) -> int:
    """Returns the bits of a number in the text of newer versions."""
    if found["bits"]:
        return int(found["bits"], 16)
    form = _FORMATS[kind]
    if found["infinity"]:
        bits = form.infinity
    elif found["nan"]:
        # A nan is quiet, unless it is written `snan`, if the first bit behind the exponent is set.
        quiet = 0 if found["nan"] == b"snan" else 1 << form.fraction - 1
        bits = form.infinity | quiet | int(found["payload"] or b"0", 16)
    else:
        bits = _nearest(float(found["decimal"]), kind)
    return bits | (found["sign"] == b"-") << form.bits - 1


def _nearest(number: float, kind: bytes) -> int:
    """Returns the bits of the number of a type that is nearest to one that is not negative."""
    if kind == b"half":
        return struct.unpack("<H", struct.pack("<e", number))[0]
    if kind == b"double":
        return struct.unpack("<Q", struct.pack("<d", number))[0]
    bits: int = struct.unpack("<I", struct.pack("<f", number))[0]
    # A bfloat's decimal has few digits, so rounding it through a float gives the same number.
    return bits if kind == b"float" else bits + (1 << 15) >> 16


def _written(bits: int, kind: bytes) -> bytes:
    """Returns the text of a number; older versions read a float as the double of its value."""
    form = _FORMATS[kind]
    if kind == b"float":
        bits, form = _as_double(bits), _DOUBLE
    return form.prefix + b"%0*X" % (form.bits // 4, bits)


def _as_double(bits: int) -> int:
    """Returns the bits of the double with a float's value, or its nan."""
    form = _FORMATS[b"float"]
    if bits & form.infinity == form.infinity:  # converting a nan would make it quiet
        fraction = (bits & (1 << form.fraction) - 1) << _DOUBLE.fraction - form.fraction
        return bits >> form.bits - 1 << _DOUBLE.bits - 1 | _DOUBLE.infinity | fraction
    [number] = struct.unpack("<f", struct.pack("<I", bits))
    return struct.unpack("<Q", struct.pack("<d", number))[0]
