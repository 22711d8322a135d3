"""User containers that `vmap` maps by rules: which of their arrays, and along which axis.

A rule `to_elt(cont, get_idx, x, spec)` makes the element of a container `x`, with `cont(array,
axis)` for each array in it, and `from_elt(cont, axis_size, element, spec)` makes the container of
elements, with `cont(axis_size, array, axis)`. Each is called twice: once to record its requests,
and once with the arrays of the mapped function. Elsewhere: `vmap` (`vectorize.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from axir._trees import tree
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import Options, PyTree, Tree, UserFunction, UserObject
from axir.dialect.ops.elementwise.family import as_value
from axir.dialect.ops.shape.constants import iota


class _Rules(NamedTuple):
    """The rules of a container class."""

    spec_type: type
    to_element: UserFunction
    from_element: UserFunction


_RULES: dict[type, _Rules] = {}


def is_vmappable(x: object) -> bool:
    """Tells whether `vmap` maps a container by rules of its class."""
    return type(x) in _RULES


def register_vmappable(
    data_type: type,
    spec_type: type,
    axis_size_type: type,
    to_elt: Callable[..., object],
    from_elt: Callable[..., object],
    make_iota: Callable[..., object] | None,
) -> None:
    """Defines how `vmap` maps the containers of a class.

    Args:
        data_type: The class.
        spec_type: The class of its entries in `in_axes` and `out_axes`.
        axis_size_type: Is of no consequence: extents are integers.
        to_elt: `(cont, get_idx, x, spec) -> element`; `get_idx()` is the element's number.
        from_elt: `(cont, axis_size, element, spec) -> container`.
        make_iota: Is of no consequence, as the class of extents.

    >>> import axir, axir.numpy as jnp
    >>> class Named:
    ...     def __init__(self, name, values):
    ...         self.name, self.values = name, values
    >>> register_vmappable(
    ...     Named, int, int,
    ...     lambda cont, get_idx, x, axis: Named(x.name, cont(x.values, axis)),
    ...     lambda cont, size, x, axis: Named(x.name, cont(size, x.values, axis)), None)
    >>> axir.vmap(lambda x: Named(x.name, -x.values))(Named("speeds", jnp.arange(3))).values
    Array([ 0, -1, -2], dtype=int32)
    """
    _RULES[data_type] = _Rules(spec_type, to_elt, from_elt)


def unregister_vmappable(data_type: type) -> None:
    """Removes the rules of a class: `vmap` treats its containers as trees again."""
    _RULES.pop(data_type, None)


def is_spec(x: object) -> bool:
    """Tells whether a leaf of `in_axes` or `out_axes` is one that a rule takes."""
    return any(isinstance(x, rules.spec_type) for rules in _RULES.values())


def holds_containers(*trees: Tree) -> bool:
    """Tells whether containers that rules map are in trees."""
    return bool(_RULES) and any(_is_mapped(x) for t in trees for x in _leaves(t)[0])


def _is_mapped(x: object) -> bool:
    return type(x) in _RULES


def _leaves(x: Tree) -> tuple[list[UserObject], tree.TreeDef]:
    return tree.flatten(x, is_leaf=_is_mapped)


def _with_specs(
    x: Tree, axes: Tree, what: str
) -> tuple[list[UserObject], list[UserObject], tree.TreeDef]:
    """Returns the leaves, the axis entry of each, and the tree structure."""
    leaves, structure = _leaves(x)
    places = structure.unflatten(range(len(leaves)))
    return leaves, tree.broadcast_prefix(axes, places, what), structure


class Opened:
    """Arguments of a mapped function, with the arrays of their containers in place of these.

    Args:
        fun: The function.
        args: Its arguments.
        kwargs: Its keyword arguments, mapped over axis 0.
        in_axes: As `vmap` takes it.
        out_axes: As `vmap` takes it.
        axis_size: As `vmap` takes it.

    Attributes:
        arguments: For each leaf the list of arrays in it; then the numbers of the elements.
        in_axes: Along which axes to map these.
        out_axes: The same for the results of `function`: known after its call.
    """

    def __init__(
        self,
        fun: UserFunction,
        args: Sequence[Options],
        kwargs: dict[str, Options],
        in_axes: PyTree,
        out_axes: PyTree,
        axis_size: int | None,
    ):
        self._fun, self._said = fun, out_axes
        given, axes_given = (tuple(args), kwargs), (in_axes, 0)
        self._leaves, self._specs, self._structure = _with_specs(given, axes_given, "in_axes")
        asked = [_asked(x, spec) for x, spec in zip(self._leaves, self._specs, strict=True)]
        arrays = [[x for x, _ in pairs] for pairs in asked]
        axes = [[axis for _, axis in pairs] for pairs in asked]
        sizes = [
            as_value(x).shape[axis] for pairs in asked for x, axis in pairs if axis is not None
        ]
        self.size = axis_size if axis_size is not None else sizes[0] if sizes else 0
        self.arguments = (arrays, iota(dtypes.int32, self.size))
        self.in_axes = (axes, 0 if self.size else None)
        self.out_axes: list[list[int | None]] = []

    def function(self, arrays: Sequence[Sequence[object]], number: object) -> UserObject:
        """Calls the function with elements; returns for each leaf of the result its arrays."""
        elements = [
            _element(x, spec, parts, lambda: number)
            for x, spec, parts in zip(self._leaves, self._specs, arrays, strict=True)
        ]
        args, kwargs = self._structure.unflatten(elements)
        result = self._fun(*args, **kwargs)
        self._results, self._said_of, self._around = _with_specs(result, self._said, "out_axes")
        asked = [
            _asked_of_element(x, spec, self.size)
            for x, spec in zip(self._results, self._said_of, strict=True)
        ]
        self.out_axes[:] = [[axis for _, axis in pairs] for pairs in asked]
        return [[x for x, _ in pairs] for pairs in asked]

    def closed(self, results: Sequence[Sequence[object]]) -> UserObject:
        """Returns the result of the mapped function, given the arrays of its leaves."""
        whole = []
        for x, spec, parts in zip(self._results, self._said_of, results, strict=True):
            given = iter(parts)
            if _is_mapped(x):
                rule = _RULES[type(x)].from_element
                whole.append(rule(_handing_out(given), self.size, x, spec))
            else:
                whole.append(next(given))
        return self._around.unflatten(whole)


def _handing_out(given: UserObject) -> Callable[..., UserObject]:
    return lambda *_: next(given)


def _asked(x: UserObject, spec: UserObject) -> list[tuple[UserObject, int | None]]:
    """Returns the arrays of a leaf that are mapped, and their axes."""
    if not _is_mapped(x):
        return [(x, spec)]
    found: list[tuple[UserObject, int | None]] = []

    def collect(array: object, axis: int | None) -> UserObject:
        found.append((array, axis))
        return array

    _RULES[type(x)].to_element(collect, lambda: 0, x, spec)
    return found


def _element(
    x: object, spec: object, parts: Sequence[object], number: Callable[..., object]
) -> UserObject:
    if not _is_mapped(x):
        return parts[0]
    return _RULES[type(x)].to_element(_handing_out(iter(parts)), number, x, spec)


def _asked_of_element(
    x: UserObject, spec: UserObject, size: int
) -> list[tuple[UserObject, int | None]]:
    """Returns the arrays of a leaf of a result, and where their mapped axes go."""
    if not _is_mapped(x):
        return [(x, spec)]
    found: list[tuple[UserObject, int | None]] = []

    def collect(_: int, array: object, axis: int | None) -> UserObject:
        found.append((array, axis))
        return array

    _RULES[type(x)].from_element(collect, size, x, spec)
    return found
