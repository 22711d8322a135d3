"""Open dimensions of the arguments of a module: their names, and what is learned of these.

Each `?` of an argument gets a name of its own. Operations whose operands must be alike tell that
two names are one, or a number; checks of shapes that JAX writes tell constraints. What is learned
holds from the beginning: the module is raised again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from iree.compiler import ir

from axir.dialect.core.annotations import Extent, HostArray
from axir.dialect.core.errors import ShapeError
from axir.dialect.core.symbolic_dims import (
    SymbolicDim,
    is_same,
    is_symbolic_dim,
    names_of,
    value_of,
)
from axir.dialect.core.symbolic_texts import constraint, read_extent, with_constraints
from axir.passes.transforms.open_modules import DIMENSIONS, GLOBAL

from .extents import is_name


class Discovery(Exception):
    """An operation told more of open dimensions than was known: the module is raised again."""

    def added_to(self, learned: Learned) -> Learned:
        """Returns what is known with it."""
        raise NotImplementedError


class SameDimension(Discovery):
    """Two open dimensions turned out to be one, or a number.

    Attributes:
        name: The name of one.
        extent: What it is.
    """

    def __init__(self, name: str, extent: Extent):
        super().__init__(f"{name} is {extent}")
        self.name, self.extent = name, extent

    def added_to(self, learned: Learned) -> Learned:
        """Returns what is known if the name is something else."""
        return learned.with_equal(self.name, self.extent)


class DimensionArgument(Discovery):
    """A shape is computed of a number that a function takes: it is an open dimension.

    Older programs of JAX take their dimensions so, before the arrays that have them.

    Attributes:
        name: The name of the argument.
    """

    def __init__(self, name: str):
        super().__init__(f"{name} is a dimension")
        self.name = name

    def added_to(self, learned: Learned) -> Learned:
        """Returns what is known if the argument is a dimension."""
        return learned._replace(arguments=learned.arguments | {self.name})


class Learned(NamedTuple):
    """What is known of the names of open dimensions.

    Attributes:
        equal: By name the extent that it is.
        constraints: What holds of the others.
        arguments: Names of arguments that are dimensions themselves.
    """

    equal: Mapping[str, Extent]
    constraints: tuple[str, ...]
    arguments: frozenset[str] = frozenset()

    def extent(self, extent: Extent) -> Extent:
        """Returns an extent of names that are known to be different."""
        return with_constraints(value_of(extent, self.equal), self.constraints)

    def with_equal(self, name: str, extent: Extent) -> Learned:
        """Returns what is known if a name is something else.

        Raises:
            ShapeError: if a constraint does not hold then.
        """
        bare = with_constraints(extent, ())
        equal = {n: value_of(x, {name: bare}) for n, x in self.equal.items()}
        renamed = [_renamed(text, name, bare) for text in self.constraints]
        known = Learned({**equal, name: bare}, (), self.arguments)
        return known.with_constraints(text for text in renamed if text is not None)

    def with_constraints(self, texts: Iterable[str]) -> Learned:
        """Returns what is known if comparisons hold."""
        return self._replace(constraints=tuple(sorted({*self.constraints, *texts})))


def _renamed(text: str, name: str, extent: Extent) -> str | None:
    """Returns a constraint with an extent in the place of a name; None if it holds always."""
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
    """Returns what is said of the names in shapes, whose extents may be texts."""
    extents = [_read(extent) for shape in shapes for extent in shape]
    return tuple(sorted({text for x in extents for text in getattr(x, "constraints", ())}))


def _read(extent: Extent) -> Extent:
    return read_extent(extent) if isinstance(extent, str) else extent


def plain_name(name: str) -> str:
    """Returns the name of an argument as one of dimensions."""
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
        ShapeError: if it is none of the argument's type.
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
    """Returns the shape of an argument whose open extents are given: numbers, or texts of extents.

    Raises:
        ShapeError: if the shape is none of the argument.
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
    """Returns for each argument of a function the dimension of JAX's that it is, or None."""
    count = len(list(op.regions[0].blocks[0].arguments))
    entries = _entries(op) or [{}] * count
    return [ir.StringAttr(x[GLOBAL]).value if GLOBAL in x else None for x in entries]


def _entries(op: ir.Operation) -> list[ir.DictAttr] | None:
    """Returns what a function says of its arguments; None if it says nothing."""
    if "arg_attrs" not in op.attributes:
        return None
    return list(map(ir.DictAttr, ir.ArrayAttr(op.attributes["arg_attrs"])))


def check_name(name: str, extents: HostArray) -> None:
    """Raises `SameDimension` if an open dimension has a name of its own where JAX gave one."""
    (extent,) = extents.reshape(-1).tolist()
    if is_name(extent) and str(extent) != name and name.isidentifier():
        raise SameDimension(str(extent), SymbolicDim(name))
