"""Open dimensions of the arguments of a module: their names, and facts learned about them.

Each `?` of an argument gets a separate name. An operation with operands of one shape shows that two
names are equal, or that a name is a number. The shape checks that JAX writes give constraints. A
learned fact holds from the beginning: the module is raised again with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from iree.compiler import ir

from axir.dialect.core.annotations import Extent, HostArray
from axir.dialect.core.errors import ShapeError
from axir.dialect.core.symbolic.texts import constraint, read_extent, with_constraints
from axir.dialect.core.symbolic_dims import (
    SymbolicDim,
    is_same,
    is_symbolic_dim,
    names_of,
    value_of,
)
from axir.passes.transforms.open_modules import DIMENSIONS, GLOBAL

from .extents import is_name


class Discovery(Exception):
    """An operation showed a new fact about open dimensions: the module is raised again."""

    def added_to(self, learned: Learned) -> Learned:
        """Returns the known facts together with this one."""
        raise NotImplementedError


class SameDimension(Discovery):
    """An open dimension is equal to another one, or to a number.

    Attributes:
        name: The name of the dimension.
        extent: The extent that it equals.
    """

    def __init__(self, name: str, extent: Extent):
        super().__init__(f"{name} is {extent}")
        self.name, self.extent = name, extent

    def added_to(self, learned: Learned) -> Learned:
        """Returns the known facts with the name replaced by the extent."""
        return learned.with_equal(self.name, self.extent)


class DimensionArgument(Discovery):
    """A shape is computed from an integer argument, which is therefore an open dimension.

    Older programs of JAX take their dimensions as arguments, before the arrays that have them.

    Attributes:
        name: The name of the argument.
    """

    def __init__(self, name: str):
        super().__init__(f"{name} is a dimension")
        self.name = name

    def added_to(self, learned: Learned) -> Learned:
        """Returns the known facts with the argument as a dimension."""
        return learned._replace(arguments=learned.arguments | {self.name})


class Learned(NamedTuple):
    """The known facts about the names of open dimensions.

    Attributes:
        equal: The extents that names are equal to, by name.
        constraints: The constraints on the other names.
        arguments: Names of arguments that are dimensions themselves.
    """

    equal: Mapping[str, Extent]
    constraints: tuple[str, ...]
    arguments: frozenset[str] = frozenset()

    def extent(self, extent: Extent) -> Extent:
        """Returns an extent with equal names replaced, and with the constraints."""
        return with_constraints(value_of(extent, self.equal), self.constraints)

    def with_equal(self, name: str, extent: Extent) -> Learned:
        """Returns the known facts with a name replaced by an extent.

        Raises:
            ShapeError: if a constraint then does not hold.
        """
        bare = with_constraints(extent, ())
        equal = {n: value_of(x, {name: bare}) for n, x in self.equal.items()}
        renamed = [_renamed(text, name, bare) for text in self.constraints]
        known = Learned({**equal, name: bare}, (), self.arguments)
        return known.with_constraints(text for text in renamed if text is not None)

    def with_constraints(self, texts: Iterable[str]) -> Learned:
        """Returns the known facts with more constraints."""
        return self._replace(constraints=tuple(sorted({*self.constraints, *texts})))


def _renamed(text: str, name: str, extent: Extent) -> str | None:
    """Returns a constraint with a name replaced by an extent; None if it always holds."""
    old = constraint(text)
    if name not in (*names_of(old.left), *names_of(old.right)):
        return text
    sides = [value_of(side, {name: extent}) for side in (old.left, old.right)]
    new = f" {old.sign} ".join(map(str, sides))
    if any(map(is_symbolic_dim, sides)):
        return new
    if not constraint(new).holds({}):
        raise ShapeError(
            f"The constraint {text!r} does not hold: the module makes {name!r} {extent}.",
            "Give its arguments shapes, and constraints, that fit each other.",
        )
    return None


def given_constraints(shapes: Iterable[Sequence[Extent]]) -> tuple[str, ...]:
    """Returns the constraints on names in shapes; extents may be texts."""
    extents = [_read(extent) for shape in shapes for extent in shape]
    return tuple(sorted({text for x in extents for text in getattr(x, "constraints", ())}))


def _read(extent: Extent) -> Extent:
    return read_extent(extent) if isinstance(extent, str) else extent


def plain_name(name: str) -> str:
    """Returns the name of an argument as the name of a dimension."""
    plain = re.sub(r"\W+", "_", name).strip("_") or "arg"
    return plain if plain.isidentifier() else f"arg_{plain}"


def open_shape(kind: ir.RankedTensorType, name: str) -> list[Extent]:
    """Returns the shape of an argument, with a name for each dimension that is open."""
    plain = plain_name(name)
    return [
        SymbolicDim(f"{plain}_{axis}") if extent < 0 else extent
        for axis, extent in enumerate(kind.shape)
    ]


def written_shape(op: ir.Operation, argument: ir.Value) -> list[Extent] | None:
    """Returns the shape of an argument that axir wrote as StableHLO; None for others.

    Raises:
        ShapeError: if it does not fit the argument's type.
    """
    entries = _entries(op)
    known = entries[argument.arg_number] if entries else {}
    if DIMENSIONS not in known:
        return None
    texts = [ir.StringAttr(text).value for text in ir.ArrayAttr(known[DIMENSIONS])]
    kind = argument.type
    if len(texts) != sum(extent < 0 for extent in kind.shape):
        raise ShapeError(
            f"{kind} has other dimensions that are open than its {DIMENSIONS} {texts}.",
            "Correct the one or the other.",
        )
    named = iter(texts)
    return [read_extent(next(named)) if extent < 0 else extent for extent in kind.shape]


def filled(kind: ir.RankedTensorType, given: Sequence[Extent], name: str) -> list[Extent]:
    """Returns an argument's shape with the given extents: numbers, or texts of extents.

    Raises:
        ShapeError: if the shape does not fit the argument.
    """
    extents = list(map(_read, given))
    if len(extents) != kind.rank or any(
        m >= 0 and not is_same(n, m) for n, m in zip(extents, kind.shape, strict=True)
    ):
        example = "x".join(str(extent if extent >= 0 else 8) for extent in kind.shape)
        raise ShapeError(
            f"The shape {tuple(given)} is none of the argument {name!r}, {kind}.",
            f"It is like {example}.",
        )
    return extents


def global_names(op: ir.Operation) -> list[str | None]:
    """Returns for each argument of a function its name as a dimension of JAX, or None."""
    count = len(list(op.regions[0].blocks[0].arguments))
    entries = _entries(op) or [{}] * count
    return [ir.StringAttr(x[GLOBAL]).value if GLOBAL in x else None for x in entries]


def _entries(op: ir.Operation) -> list[ir.DictAttr] | None:
    """Returns the attributes of a function's arguments; None if absent."""
    if "arg_attrs" not in op.attributes:
        return None
    return list(map(ir.DictAttr, ir.ArrayAttr(op.attributes["arg_attrs"])))


def check_name(name: str, extents: HostArray) -> None:
    """Raises `SameDimension` if an open dimension has another name than JAX gave it."""
    (extent,) = extents.reshape(-1).tolist()
    if is_name(extent) and str(extent) != name and name.isidentifier():
        raise SameDimension(str(extent), SymbolicDim(name))
