"""The axes of a mesh along which devices may hold different values, within `shard_map`.

They are part of a value's type (`types.py`), and in MLIR the encoding of its tensor type. The rules
`varying` of ops determine the axes of results (`dialect/program/meshes/varying_axes.py`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from iree.compiler import ir

from .context import bare_context

Axes = frozenset[Hashable]
NOWHERE: Axes = frozenset()


@dataclass(frozen=True, kw_only=True)
class ManualAxisType:
    """The relation of an array's parts along manual axes of a mesh.

    Attributes:
        varying: Names of the axes along which the parts differ.
        unreduced: Names of the axes along which the parts are not summed yet.
        reduced: Names of the axes along which the parts have been summed.
    """

    varying: Axes = NOWHERE
    unreduced: Axes = NOWHERE
    reduced: Axes = NOWHERE


def in_order(axes: Iterable[Hashable]) -> tuple[Hashable, ...]:
    """Returns names of axes in an order that does not depend on the process.

    >>> in_order(frozenset("ji"))
    ('i', 'j')
    """
    return tuple(sorted(axes, key=lambda name: (type(name).__name__, str(name))))


def as_encoding(axes: Axes) -> ir.Attribute:
    """Returns the encoding of a tensor type with values that differ along axes.

    >>> print(as_encoding(frozenset(["i", 0])))
    [0, "i"]
    """
    with bare_context():
        return ir.ArrayAttr.get(
            [
                ir.IntegerAttr.get(ir.IntegerType.get_signless(64), name)
                if type(name) is int
                else ir.StringAttr.get(str(name))
                for name in in_order(axes)
            ]
        )


def from_encoding(encoding: ir.Attribute | None) -> Axes:
    """Returns the axes that an encoding names.

    >>> sorted(from_encoding(as_encoding(frozenset("ij"))))
    ['i', 'j']
    """
    if not isinstance(encoding, ir.ArrayAttr):
        return NOWHERE
    return frozenset(attribute.value for attribute in encoding)
