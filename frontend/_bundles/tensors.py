"""Arrays in a file of the safetensors format, which other programs read and write as well.

The format (https://huggingface.co/docs/safetensors): eight bytes for the length of a header, the
header as JSON, the arrays one after the other. The format's library reads files only whole or by
their path, and decides the order itself; here arrays are views of mapped memory, and arrays with a
size that is a multiple of 64 bytes come first, so that programs can use them where they lie.
A file of weights may accompany a module. Elsewhere: the file around them (`archive.py`).
"""

from __future__ import annotations

import json
import math
import mmap
import struct
from collections.abc import Mapping
from pathlib import Path

import ml_dtypes
import numpy as np

from axir.dialect.core.annotations import HostArray, UserObject
from axir.dialect.core.errors import BundleError, WeightsError

from .archive import ALIGNMENT, Pieces

_NAMES = {
    "BOOL": np.dtype(np.bool_),
    **{f"I{bits}": np.dtype(f"int{bits}") for bits in (8, 16, 32, 64)},
    **{f"U{bits}": np.dtype(f"uint{bits}") for bits in (8, 16, 32, 64)},
    **{f"F{bits}": np.dtype(f"float{bits}") for bits in (16, 32, 64)},
    "BF16": np.dtype(ml_dtypes.bfloat16),
}
_NAME_OF = {dtype: name for name, dtype in _NAMES.items()}
STORED_DTYPES = frozenset(_NAME_OF)
_LENGTH = struct.Struct("<Q")
_METADATA = "__metadata__"
# The exceptions of reading a forged header.
DAMAGES = (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError)


def write_tensors(arrays: Mapping[str, HostArray]) -> Pieces:
    """Returns the content of a file of arrays; contiguous arrays are not copied.

    Args:
        arrays: Of booleans, integers or real numbers, by name.
    """
    host = {name: np.ascontiguousarray(x).reshape(x.shape) for name, x in arrays.items()}
    ordered = sorted(host.items(), key=lambda item: (item[1].nbytes % ALIGNMENT != 0, item[0]))
    header: dict[str, UserObject] = {}
    end = 0
    for name, x in ordered:
        begin, end = end, end + x.nbytes
        header[name] = {
            "dtype": _NAME_OF[x.dtype],
            "shape": list(x.shape),
            "data_offsets": [begin, end],
        }
    text = json.dumps(header, ensure_ascii=False).encode()
    text += b" " * (-(len(text) + _LENGTH.size) % ALIGNMENT)
    contents = [memoryview(x.reshape(-1).view(np.uint8)) for _, x in ordered if x.nbytes]
    return [_LENGTH.pack(len(text)) + text, *contents]


def read_tensors(memory: memoryview, name: str) -> dict[str, HostArray]:
    """Returns the arrays of a file as read-only views of its memory.

    Args:
        memory: Its content.
        name: Its name in errors.

    Raises:
        BundleError: if it has another format.
    """
    try:
        return views_of_tensors(memory)
    except DAMAGES as error:
        said = str(error).splitlines() or [type(error).__name__]
        raise BundleError(
            f"{name}: its parameters are not a file of safetensors: {said[0][:100]}.",
            "The bundle is damaged: copy it again, or save it again.",
            where="",
        ) from None


def views_of_tensors(memory: memoryview) -> dict[str, HostArray]:
    """Returns the arrays of a file as read-only views of its memory; see `read_tensors`.

    Raises:
        DAMAGES: one of these if it is not of the format.
    """
    header, start = _header(memory)
    entries = {key: value for key, value in header.items() if key != _METADATA}
    return {key: _view(memory, start, entry) for key, entry in entries.items()}


def _header(memory: memoryview) -> tuple[dict[str, UserObject], int]:
    if len(memory) < _LENGTH.size:
        raise ValueError("it is too short")
    (length,) = _LENGTH.unpack(memory[: _LENGTH.size])
    start = _LENGTH.size + length
    if start > len(memory):
        raise ValueError("its header reaches beyond its end")
    header = json.loads(bytes(memory[_LENGTH.size : start]).decode())
    if not isinstance(header, dict):
        raise ValueError("its header is no table")
    return header, start


def _view(memory: memoryview, start: int, entry: Mapping[str, UserObject]) -> HostArray:
    dtype = _NAMES[entry["dtype"]]
    shape = tuple(entry["shape"])
    begin, end = entry["data_offsets"]
    if not all(type(x) is int and x >= 0 for x in (*shape, begin, end)):
        raise ValueError("shapes and offsets are natural numbers")
    if end - begin != math.prod(shape) * dtype.itemsize or start + end > len(memory):
        raise ValueError(f"an array of {dtype}{list(shape)} does not have {end - begin} bytes")
    view = np.frombuffer(memory[start + begin : start + end], np.uint8).view(dtype)
    view = view.reshape(shape)
    view.flags.writeable = False
    return view


# Files of weights ---------------------------------------------------------------------------------


def read_safetensors(path: Path) -> dict[str, HostArray]:
    """Returns the arrays of a file by name, where it is mapped.

    Raises:
        WeightsError: if the file has another format.
    """
    try:
        with path.open("rb") as file:
            return views_of_tensors(memoryview(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)))
    except DAMAGES as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise WeightsError(
            f"{path} is not a file of safetensors: {reason[:100]}.",
            "Write the weights again, as safetensors or as .irpa.",
            where="",
        ) from None
