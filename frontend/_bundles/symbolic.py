"""`SymbolicExported`: a function with several open dimensions, traced for the sizes that come.

Where one dimension is open, in front, the function is traced once (`batching.py`). What does not
live here: symbolic dimensions as such (`frontend/_arguments/`).
"""

from __future__ import annotations

import functools
import itertools
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import NoReturn

import numpy as np

from axir._arguments.dimensions import (
    Extent,
    Product,
    SymbolicDim,
    is_symbolic_dim,
    names_of,
    value_of,
)
from axir._arguments.symbolic_shapes import check_sizes, constraints_of, solved
from axir._devices.shape_dtype_struct import ShapeDtypeStruct
from axir._trees import tree
from axir.dialect.core.annotations import Options, UserFunction, UserObject
from axir.dialect.core.errors import ParameterError, ShapeError
from axir.dialect.core.types import ShapedArray

from .bundle import Bundle
from .captures import shared
from .exported import Exported
from .tracing import Traced, specs_of, trace

# Sizes of which functions are remembered.
_MOST_SIZES = 64
# Sizes that are tried to find out how those of results depend on them.
_TRIED = (2, 3, 4, 5, 6, 7, 8, 12, 16, 32, 64)
_TRIALS = 2000


def needs_sizes(shapes: Sequence[Sequence[Extent]]) -> bool:
    """Tells whether shapes have more open than one leading dimension, a name, for rows."""
    extents = [extent for shape in shapes for extent in shape if isinstance(extent, SymbolicDim)]
    behind = [x for shape in shapes for x in shape[1:] if isinstance(x, SymbolicDim)]
    is_simple = len(set(extents)) <= 1 and not behind and all(x.is_name for x in extents)
    return not is_simple or bool(constraints_of(shapes))


class SymbolicExported:
    """A function of arrays with open dimensions, which is traced for each size that comes.

    Args:
        fun: The function.
        args: What its arguments are like.
        kwargs: Those by keyword.
        updates: As for `export`.

    Attributes:
        specs: What the arguments are like, flat.
        symbols: The names of the open dimensions.
        constraints: What holds of them.

    Raises:
        ShapeError: if a name does not follow from the shapes of arguments.

    >>> import axir, numpy as np
    >>> from axir.export import export, symbolic_args_specs
    >>> x = np.ones((4, 6), np.float32)
    >>> mean = export(lambda x: x.reshape(-1, 2).mean(0))(*symbolic_args_specs((x,), "b, 2*t"))
    >>> mean
    <Exported main(x: float32[b, 2*t]), open: b, t>
    >>> mean(x), mean.of_sizes(b=3, t=5).in_avals
    (Array([1., 1.], dtype=float32), (ShapedArray(float32[3,10]),))
    >>> mean.with_sizes(b=(1, 8), t=[3])
    <Bundle of main_b1_t3(x), main_b8_t3(x)>
    """

    def __init__(
        self,
        fun: UserFunction,
        args: tuple[UserObject, ...],
        kwargs: dict[str, Options],
        updates: Mapping[str, str] = MappingProxyType({}),
    ):
        self._call = functools.partial(trace, fun, updates=updates)
        self._given = (args, kwargs)
        self._made: dict[tuple[int, ...], Traced] = {}
        self.specs = specs_of(fun, args, kwargs)
        shapes = [x.shape for x in self.specs if isinstance(x, ShapeDtypeStruct)]
        self.constraints = constraints_of(shapes)
        self.symbols = tuple(sorted({n for s in shapes for x in s for n in names_of(x)}))
        self._first = self.of_sizes(**next(self._allowed()))
        # Names that do not follow from shapes are told of now.
        of_first = [kind.shape for kind in self._first.in_avals]
        solved(self.fun_name, self.argument_names, self._shapes, of_first)

    @property
    def fun_name(self) -> str:
        """What the function was called."""
        return self._first.fun_name

    @property
    def argument_names(self) -> list[str]:
        """Where each argument comes from: `x`, `params['w']`."""
        return self._first.argument_names

    @property
    def in_tree(self) -> tree.TreeDef:
        """Structure of `(args, kwargs)`."""
        return self._first.in_tree

    @property
    def out_tree(self) -> tree.TreeDef:
        """Structure of the result."""
        return self._first.out_tree

    @property
    def _shapes(self) -> list[tuple[Extent, ...]]:
        return [kind.shape for kind in self.in_avals]

    @property
    def in_avals(self) -> tuple[ShapedArray | ShapeDtypeStruct, ...]:
        """Types of the arguments, flat; with open dimensions as `ShapeDtypeStruct`."""
        return tuple(
            spec
            if isinstance(spec, ShapeDtypeStruct) and any(map(is_symbolic_dim, spec.shape))
            else kind
            for spec, kind in zip(self.specs, self._first.in_avals, strict=True)
        )

    @functools.cached_property
    def out_avals(self) -> tuple[ShapedArray | ShapeDtypeStruct, ...]:
        """Types of the results, flat, whose extents are found by tracing for several sizes.

        Raises:
            ShapeError: if one is neither that of an argument nor a polynomial of degree two.
        """
        sizes = list(itertools.islice(self._allowed(), _most_terms(len(self.symbols)) + 2))
        results = [self.of_sizes(**given).out_avals for given in sizes]
        extents = [x for shape in self._shapes for x in shape if isinstance(x, SymbolicDim)]
        found = []
        for number, kind in enumerate(self._first.out_avals):
            shape = [
                _fitted(sizes, [kinds[number].shape[axis] for kinds in results], extents)
                for axis in range(len(kind.shape))
            ]
            is_open = any(map(is_symbolic_dim, shape))
            found.append(
                ShapeDtypeStruct(shape, kind.dtype, weak_type=kind.weak_type) if is_open else kind
            )
        return tuple(found)

    def _allowed(self) -> Iterator[dict[str, int]]:
        """Yields sizes that the constraints allow, all of them different where that is allowed."""
        generator = random.Random(0)
        tried = [tuple(generator.choices(_TRIED, k=len(self.symbols))) for _ in range(_TRIALS)]
        tried = list(dict.fromkeys(tried))
        for given in sorted(tried, key=lambda given: -len(set(given))):
            sizes = dict(zip(self.symbols, given, strict=True))
            if all(c.holds(sizes) for c in self.constraints):
                yield sizes
        if not self._made:
            raise ParameterError(
                "export: no small sizes fulfil the constraints "
                f"{', '.join(repr(c.text) for c in self.constraints)}.",
                "Weaken them.",
            )

    def of_sizes(self, **sizes: int) -> Exported:
        """Returns the function for sizes of its open dimensions.

        Raises:
            ParameterError: if these are not the names of its dimensions.
            ShapeError: if a constraint does not hold.
        """
        traced = self._traced(sizes)
        return traced.exported(traced.found)

    def _traced(self, sizes: Mapping[str, int]) -> Traced:
        if set(sizes) != set(self.symbols):
            raise ParameterError(
                f"The open dimensions are {', '.join(self.symbols)}, not "
                f"{', '.join(sizes) or 'none'}.",
                "Give a size for each of them by its name.",
            )
        key = tuple(sizes[name] for name in self.symbols)
        if key not in self._made:
            check_sizes("export", sizes, self.constraints)
            if len(self._made) >= _MOST_SIZES:
                self._made.clear()
            args, kwargs = tree.map(lambda x: _sized(x, sizes), self._given)
            self._made[key] = self._call(args, kwargs)
        return self._made[key]

    def with_sizes(self, **sizes: int | Sequence[int]) -> Bundle:
        """Returns a bundle with a function for all combinations of some sizes, which can be saved.

        Args:
            sizes: By name of a dimension, one size or several.

        Raises:
            ParameterError, ShapeError: as for `of_sizes`.
        """
        lists = {name: (x,) if isinstance(x, int) else tuple(x) for name, x in sizes.items()}
        traced = {}
        for values in itertools.product(*lists.values()):
            given = dict(zip(lists, values, strict=True))
            name = "_".join([self.fun_name, *(f"{n}{size}" for n, size in given.items())])
            made = self._traced(given)
            traced[name] = made._replace(entry=replace(made.entry, name=name))
        found = shared({name: each.found for name, each in traced.items()})
        return Bundle({name: each.exported(found[name]) for name, each in traced.items()})

    def save(self, path: str | Path) -> NoReturn:
        """Raises a `ParameterError`: what is saved has fixed sizes (`with_sizes`)."""
        some = ", ".join(f"{name}=(1, 8)" for name in self.symbols)
        raise ParameterError(
            f"{self.fun_name!r} has several open dimensions, or one that is not the number of "
            "rows, and is traced for the sizes that come. What is saved has fixed sizes.",
            f"Name them: exported.with_sizes({some}).save(...).",
        )

    def serialize(self, vjp_order: int = 0) -> NoReturn:
        """Raises a `ParameterError`, as `save` does."""
        self.save("")

    def call(self, *args: Options, **kwargs: Options) -> UserObject:
        """Calls the function, traced and compiled for the sizes of the arguments.

        Raises:
            TreeError: if the arguments are not the tree it was exported for.
            ShapeError: if their shapes do not fit each other, or a constraint does not hold.
        """
        leaves, structure = tree.flatten((args, kwargs))
        if structure != self.in_tree:
            return self._first.call(*args, **kwargs)  # which says what is wrong
        shapes = list(map(np.shape, leaves))
        names, wanted = self.argument_names, self._shapes
        sizes = solved(self.fun_name, names, wanted, shapes, self.constraints)
        return self.of_sizes(**sizes).call(*args, **kwargs)

    __call__ = call

    def __repr__(self) -> str:
        arguments = ", ".join(
            f"{name}: {kind.dtype}{list(kind.shape)}"
            for name, kind in zip(self.argument_names, self.in_avals, strict=True)
        )
        return f"<Exported {self.fun_name}({arguments}), open: {', '.join(self.symbols)}>"


def _sized(x: UserObject, sizes: Mapping[str, int]) -> UserObject:
    """Returns the type for sizes, where it has symbolic dimensions."""
    if not isinstance(x, ShapeDtypeStruct):
        return x
    shape = [value_of(extent, sizes) for extent in x.shape]
    return ShapeDtypeStruct(shape, x.dtype, weak_type=x.weak_type)


def _most_terms(count: int) -> int:
    """Returns how many terms a polynomial of degree two has."""
    return (count + 1) * (count + 2) // 2


def _fitted(
    sizes: Sequence[Mapping[str, int]], found: Sequence[int], extents: Sequence[Extent]
) -> Extent:
    """Returns the extent that has given values for given sizes."""
    for extent in (found[0], *extents):
        if [value_of(extent, given) for given in sizes] == list(found):
            return extent
    names = list(sizes[0])
    terms = [(), *((n,) for n in names), *itertools.combinations_with_replacement(names, 2)]
    table = [[math.prod(given[n] for n in term) for term in terms] for given in sizes]
    factors = np.rint(np.linalg.lstsq(np.array(table, float), np.array(found), rcond=None)[0])
    kept: dict[Product, int] = {term: int(x) for term, x in zip(terms, factors, strict=True) if x}
    fitted = SymbolicDim(terms=kept)
    if [fitted.value(given) for given in sizes] != list(found):
        raise ShapeError(
            f"The extent of a result is {found[0]} with {dict(sizes[0])}, {found[1]} with "
            f"{dict(sizes[1])}, which is neither that of an argument nor a polynomial.",
            "Ask for it with of_sizes(...).out_avals.",
        )
    return fitted
