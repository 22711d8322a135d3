"""LLVM IR as text, from IREE's LLVM to that of llvmlite, which is older.

IREE brings MLIR and LLVM of its own, but no function that makes machine code of LLVM IR. llvmlite
has that, in another version of LLVM, whose text differs: newer ones write numbers as `f0x3F800000`,
`+inf` and `+qnan`, and decimals that are not exact; older ones want the bits of a double for floats
and doubles alike. What does not live here: where the text comes from (`native.py`).
"""

from __future__ import annotations

import re
import struct

_BITS = re.compile(rb"\bf0x([0-9A-Fa-f]+)\b")
_TYPED = re.compile(
    rb"\b(half|bfloat|float|double) "
    rb"((?:[+-]?\d+\.\d+(?:e[+-]?\d+)?|[+-]?inf|[+-]?[sq]?nan(?:\(0x[0-9a-fA-F]+\))?))"
    rb"(?=[,\s>)\]}]|$)"
)
_SPECIAL = {b"inf": 0x7FF0 << 48, b"nan": 0x7FF8 << 48}
_PREFIX = {b"half": b"0xH", b"bfloat": b"0xR"}
_WORDS = {b"half": ("<e", "<H"), b"float": ("<f", "<I"), b"double": ("<d", "<Q")}


def for_older_llvm(text: bytes) -> bytes:
    """Returns LLVM IR with its numbers in the form that all versions of LLVM read.

    >>> for_older_llvm(b"fadd float %x, f0x40490FDB")
    b'fadd float %x, 0x400921FB60000000'
    >>> for_older_llvm(b"select i1 %c, float +qnan, float -inf")
    b'select i1 %c, float 0x7FF8000000000000, float 0xFFF0000000000000'
    """
    # What has no type before it is the second operand of an operation, whose type stands there.
    return _TYPED.sub(_of_words, _BARE.sub(_of_bare, _BITS.sub(_of_bits, text)))


_BARE = re.compile(
    rb"(?<=[,\[] )([+-]?\d+\.\d+(?:e[+-]?\d+)?|[+-]inf|[+-][sq]?nan(?:\(0x[0-9a-fA-F]+\))?)"
    rb"(?=[,\s>)\]}]|$)"
)


def _of_bits(found: re.Match[bytes]) -> bytes:
    """Four digits are a half, eight a float, sixteen a double."""
    digits = found.group(1)
    if len(digits) == 4:
        return b"0xH" + digits
    if len(digits) == 8:
        [number] = struct.unpack("<f", struct.pack("<I", int(digits, 16)))
        return _as_double(number, int(digits, 16))
    return b"0x" + digits


def _as_double(number: float, bits: int) -> bytes:
    """Returns the bits of a float as those of the double of its value, payload of nan included."""
    if number != number:
        sign, payload = bits >> 31, bits & 0x7FFFFF
        return b"0x%016X" % (sign << 63 | 0x7FF << 52 | payload << 29)
    [wide] = struct.unpack("<Q", struct.pack("<d", number))
    return b"0x%016X" % wide


def _of_words(found: re.Match[bytes]) -> bytes:
    kind, word = found.groups()
    return kind + b" " + _number(kind, word)


def _of_bare(found: re.Match[bytes]) -> bytes:
    start = found.string.rfind(b"\n", 0, found.start()) + 1
    kinds = re.findall(rb"\b(half|bfloat|float|double)\b", found.string[start : found.start()])
    return _number(kinds[-1], found.group(1)) if kinds else found.group(0)


def _number(kind: bytes, word: bytes) -> bytes:
    sign = word[:1] == b"-"
    name = word.lstrip(b"+-")
    if name.endswith(b"inf") or b"nan" in name:
        special = b"inf" if name.endswith(b"inf") else b"nan"
        bits = _SPECIAL[special] | (sign << 63)
        if kind in _PREFIX:
            narrow = {b"half": (0x7C00, 0x7E00), b"bfloat": (0x7F80, 0x7FC0)}[kind]
            return _PREFIX[kind] + b"%04X" % (narrow[special == b"nan"] | sign << 15)
        return b"0x%016X" % bits
    number = float(word)
    if kind == b"bfloat":
        [bits] = struct.unpack("<I", struct.pack("<f", number))
        return b"0xR%04X" % (bits >> 16)
    wide, narrow_word = _WORDS[kind]
    [bits] = struct.unpack(narrow_word, struct.pack(wide, number))
    if kind == b"half":
        return b"0xH%04X" % bits
    [rounded] = struct.unpack(wide, struct.pack(wide, number))
    return _as_double(rounded, bits)
