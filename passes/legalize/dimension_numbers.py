"""Reading the dimension numbers of gather, scatter and dot_general from their attributes."""

from __future__ import annotations

import functools
import re

from iree.compiler import ir

_ENTRY = re.compile(r"(\w+) = (?:\[([^\]]*)\]|(\d+))")


class DimensionNumbers(dict[str, tuple[int, ...]]):
    """Lists of dimensions by name; a list that the attribute leaves out is empty.

    `index_vector_dim` is a list of one number.
    """

    def __missing__(self, name: str) -> tuple[int, ...]:
        return (0,) if name == "index_vector_dim" else ()


def dimension_numbers(attribute: ir.Attribute) -> DimensionNumbers:
    """Returns the lists in `#stablehlo.gather<offset_dims = [1], …>` and its relatives.

    The text is parsed because the wheel has no Python classes for these attributes.
    """
    return _parse(str(attribute))


@functools.lru_cache(maxsize=1024)
def _parse(text: str) -> DimensionNumbers:
    numbers = DimensionNumbers()
    for name, entries, single in _ENTRY.findall(text):
        numbers[name] = tuple(int(n) for n in (single or entries).split(",") if n.strip())
    return numbers
