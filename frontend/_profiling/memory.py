"""Profiles of device memory, in the form that `pprof` reads.

Live objects are found by the garbage collector's list, so tracking arrays costs nothing. The place
where they were made is not known, and buffers are grouped by dtype, shape and device.
"""

from __future__ import annotations

import gc
import gzip
import time
from collections import Counter
from collections.abc import Iterable

import numpy as np

from axir.dialect.core.annotations import Dtype
from axir.dialect.core.array import ConcreteArray
from axir.runtime.calls.executable import Program
from axir.runtime.calls.native_executable import NativeExecutable
from axir.runtime.device.buffers import Buffer, BufferDevice
from axir.runtime.device.devices import default_device

_NUMBER, _BYTES = 0, 2


def number(field: int, value: int) -> bytes:
    """Returns a field that holds an integer, negative ones as 64 bits.

    >>> number(1, 300).hex()
    '08ac02'
    """
    return _varint(field << 3 | _NUMBER) + _varint(value & (1 << 64) - 1)


def message(field: int, content: bytes | str) -> bytes:
    """Returns a field that holds a message, or text."""
    encoded = content.encode() if isinstance(content, str) else content
    return _varint(field << 3 | _BYTES) + _varint(len(encoded)) + encoded


def numbers(field: int, values: Iterable[int]) -> bytes:
    """Returns a field that holds several integers, packed."""
    return message(field, b"".join(_varint(value & (1 << 64) - 1) for value in values))


def _varint(value: int) -> bytes:
    """Returns seven bits for each byte, the lowest first; the eighth says that more follow."""
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


# Protocol buffers ---------------------------------------------------------------------------------


# Fields of `Profile` and of the messages in it (github.com/google/pprof, profile.proto).
_SAMPLE_TYPE, _SAMPLE, _LOCATION, _FUNCTION, _STRINGS, _TIME = 1, 2, 4, 5, 6, 9


def memory_profile(platform: str | None) -> bytes:
    """Returns the current contents of the devices' memory, as a compressed `pprof` profile.

    Args:
        platform: The platform of the devices to count; None for all.
    """
    return gzip.compress(_profile(in_use(platform)))


def in_use(platform: str | None) -> dict[tuple[str, str, str], tuple[int, int]]:
    """Returns the number and the bytes of live buffers and programs, by description.

    The keys are kind (`buffer` or `executable`), description and device.
    """
    counts: Counter[tuple[str, str, str]] = Counter()
    sizes: Counter[tuple[str, str, str]] = Counter()
    seen: set[int] = set()
    for found in gc.get_objects():
        memory = _memory_of(found)
        if memory is None:
            continue
        kind, what, device, size, identity = memory
        # Several arrays or buffers may refer to one view of memory, which counts once.
        if identity in seen or platform not in (None, device.platform):
            continue
        seen.add(identity)
        counts[kind, what, str(device)] += 1
        sizes[kind, what, str(device)] += size
    return {key: (counts[key], sizes[key]) for key in counts}


def _memory_of(found: object) -> tuple[str, str, BufferDevice, int, int] | None:
    """Returns kind, description, device, size and identity of an object's memory, or None."""
    match found:
        # An array without a buffer counts for the default device, like uncommitted results.
        case ConcreteArray(_buffer=None, _host=np.ndarray() as host):
            what = _described(found.type.dtype, found.type.shape)
            return "buffer", what, default_device(), host.nbytes, id(host)
        case Buffer(ref=ref) if ref is not None:
            what = _described(found.dtype, found.shape)
            return "buffer", what, found.device, found.nbytes, id(ref)
        case Program():
            what = ", ".join(found.function_names)
            return "executable", what, found.device, found.size, id(found)
        case NativeExecutable():
            return "executable", found.name, found.device, found.program.size, id(found)
    return None


def _described(dtype: Dtype, shape: tuple[int, ...]) -> str:
    return f"{dtype}[{','.join(map(str, shape))}]"


def _profile(found: dict[tuple[str, str, str], tuple[int, int]]) -> bytes:
    strings = {"": 0}

    def index(text: str) -> int:
        return strings.setdefault(text, len(strings))

    def sample_type(kind: str, unit: str) -> bytes:
        return message(_SAMPLE_TYPE, number(1, index(kind)) + number(2, index(unit)))

    def label(key: str, text: str) -> bytes:
        return message(3, number(1, index(key)) + number(2, index(text)))

    parts = [sample_type("allocations", "count"), sample_type("space", "bytes")]
    for position, ((kind, what, device), values) in enumerate(sorted(found.items()), 1):
        labels = label("kind", kind) + label("device", device)
        parts.append(message(_SAMPLE, numbers(1, [position]) + numbers(2, values) + labels))
        parts.append(message(_LOCATION, number(1, position) + message(4, number(1, position))))
        name = index(f"{what} on {device}")
        parts.append(message(_FUNCTION, number(1, position) + number(2, name)))
    parts.append(number(_TIME, time.time_ns()))
    parts += [message(_STRINGS, text) for text in strings]
    return b"".join(parts)
