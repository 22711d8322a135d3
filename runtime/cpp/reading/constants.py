"""The bytes of constants, from their MLIR text.

MLIR's bindings cannot access a `#util.composite`, nor the elements of bfloat16 and of some other
types: the text has all of them.
"""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np

from axir.dialect.core.annotations import Dtype, HostArray

_COMPOSITE = re.compile(r"#util\.composite<(\d+)xi8, \[(.*)\]>\Z", re.S)
_ELEMENTS = re.compile(r"dense<(.*)> : (?:tensor|vector)<((?:\d+x)*)([^<>]+(?:<[^<>]+>)?)>\Z", re.S)
_DTYPES = {
    **{f"{sign}{bits}": np.dtype(f"int{bits}") for sign in ("i", "si") for bits in (8, 16, 32, 64)},
    **{f"ui{bits}": np.dtype(f"uint{bits}") for bits in (8, 16, 32, 64)},
    "i1": np.dtype(bool),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f16": np.dtype("float16"),
    "f32": np.dtype("float32"),
    "f64": np.dtype("float64"),
    "complex<f32>": np.dtype("complex64"),
    "complex<f64>": np.dtype("complex128"),
}


class UnknownConstantError(ValueError):
    """A constant is written in a way that is not known."""


def constant_bytes(text: str) -> bytes:
    r"""Returns the bytes of an attribute: elements of one type, or several such parts in a row.

    >>> constant_bytes("dense<[1, 2]> : tensor<2xi16>")
    b'\x01\x00\x02\x00'
    >>> constant_bytes('#util.composite<4xi8, [dense<0> : vector<2xi8>, dense<1> : tensor<i16>]>')
    b'\x00\x00\x01\x00'

    Raises:
        UnknownConstantError: if the text has another form.
    """
    composite = _COMPOSITE.match(text)
    if composite is None:
        return _element_bytes(text)
    content = b"".join(map(_element_bytes, _split(composite[2])))
    if len(content) != int(composite[1]):
        raise UnknownConstantError(f"{len(content)} bytes instead of {composite[1]}")
    return content


def _split(text: str) -> list[str]:
    """Splits at commas between elements, which each end with the `>` of a type."""
    parts = re.split(r">\s*,\s*(?=dense)", text.strip().rstrip(","))
    return [part + ">" for part in parts[:-1]] + [parts[-1]]


def _element_bytes(text: str) -> bytes:
    match = _ELEMENTS.match(text.strip())
    if match is None or match[3] not in _DTYPES:
        raise UnknownConstantError(text[:80])
    body, extents, element = match.groups()
    count = int(np.prod([int(n) for n in extents.split("x") if n], dtype=np.int64))
    dtype = _DTYPES[element]
    if body.startswith('"0x'):
        content = bytes.fromhex(body[3:-1])
        is_splat = len(content) == dtype.itemsize
        return content * count if is_splat and count != 1 else content
    values = [_number(token, dtype) for token in _tokens(body, dtype)]
    if len(values) == 1:
        values *= count
    return np.array(values, dtype).tobytes()


def _tokens(body: str, dtype: Dtype) -> list[str]:
    if dtype.kind == "c":
        return re.findall(r"\([^()]*\)", body)
    return [token for token in re.split(r"[\[\],\s]+", body) if token]


def _number(token: str, dtype: Dtype) -> HostArray:
    if dtype.kind == "c":
        part = np.dtype(f"float{dtype.itemsize * 4}")
        parts = [_number(x.strip(), part) for x in token[1:-1].split(",")]
        return np.array(parts, part).view(dtype)[0]
    if token in ("true", "false"):
        return np.array(token == "true", dtype)
    if token.startswith("0x") and dtype.kind in "fV":
        bits = np.dtype(f"uint{dtype.itemsize * 8}")
        return np.array(int(token, 16), bits).view(dtype)
    return np.array(int(token, 0) if dtype.kind in "iu" else float(token), dtype)
