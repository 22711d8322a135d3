"""Parameters as a safetensors file with arrays at offsets that kernels can read.

The format leaves no gaps between arrays. Arrays with a size that is a multiple of 64 bytes come
first, so that they are aligned; the others are small, and are copied when the model is opened.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np

from axir.runtime.cpp.emitting.types import byte_size, stored_dtype, stored_shape
from axir.runtime.cpp.program.interface import Parameter

_ALIGNMENT = 64


def parameter_file(parameters: Sequence[Parameter]) -> bytes:
    """Returns the content of the file."""
    ordered = sorted(parameters, key=lambda x: byte_size(x.type) % _ALIGNMENT != 0)
    table: dict[str, dict[str, str | list[int]]] = {}
    parts, offset = [], 0
    for x in ordered:
        content = np.ascontiguousarray(x.value).tobytes()
        table[x.label] = {
            "dtype": stored_dtype(x.type),
            "shape": list(stored_shape(x.type)),
            "data_offsets": [offset, offset + len(content)],
        }
        parts.append(content)
        offset += len(content)
    header = json.dumps(table, separators=(",", ":"), ensure_ascii=False).encode()
    header += b" " * (-(len(header) + 8) % _ALIGNMENT)
    return len(header).to_bytes(8, "little") + header + b"".join(parts)
