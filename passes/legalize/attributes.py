"""Attributes of StableHLO's operations that the wheel does not decode.

Here: convolutions, and the dimension numbers of gather, scatter and dot_general.
Elsewhere: attributes in raising rules (`passes/raising/dimensions/attributes.py`).
"""

from __future__ import annotations

import dataclasses
import functools
import re

from iree.compiler import ir

_LAYOUT = re.compile(r"\[([^\]]*)\]x\[([^\]]*)\]->\[([^\]]*)\]")


@dataclasses.dataclass(frozen=True)
class Convolution:
    """The attributes of a convolution, and its axes as (batch, feature, *spatial).

    The axes of rhs are (output feature, input feature, *spatial).
    """

    lhs: tuple[int, ...]
    rhs: tuple[int, ...]
    result: tuple[int, ...]
    strides: list[int]
    padding: list[list[int]]
    lhs_dilation: list[int]
    rhs_dilation: list[int]
    reversal: list[bool]
    feature_groups: int
    batch_groups: int

    @classmethod
    def read(cls, operation: ir.Operation) -> Convolution:
        """Returns the attributes of a `stablehlo.convolution`."""
        attributes = operation.attributes
        layouts = _LAYOUT.search(str(attributes["dimension_numbers"]))
        if layouts is None:
            raise ValueError(f"no layout in {attributes['dimension_numbers']}")
        rank = len(layouts[1].split(",")) - 2
        lhs, rhs, result = (
            tuple(
                layout.replace(" ", "").split(",").index(name)
                for name in (*letters, *map(str, range(rank)))
            )
            for layout, letters in zip(layouts.groups(), ("bf", "oi", "bf"), strict=True)
        )

        def integers(name: str) -> list[int]:
            return list(attributes[name]) if name in attributes else [1] * rank

        padding = [[0, 0]] * rank
        if "padding" in attributes:
            flat = list(ir.DenseIntElementsAttr(attributes["padding"]))
            padding = [flat[2 * axis : 2 * axis + 2] for axis in range(rank)]
        reversal = [False] * rank
        if "window_reversal" in attributes:
            reversal = list(attributes["window_reversal"])
        return cls(
            lhs,
            rhs,
            result,
            integers("window_strides"),
            padding,
            integers("lhs_dilation"),
            integers("rhs_dilation"),
            reversal,
            ir.IntegerAttr(attributes["feature_group_count"]).value,
            ir.IntegerAttr(attributes["batch_group_count"]).value,
        )

    def without_lhs_dilation(self) -> Convolution:
        """Returns the attributes for an array that has been dilated."""
        return dataclasses.replace(self, lhs_dilation=[1] * len(self.lhs_dilation))


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
