"""Parts of `jax._src.util`, `tree_util` and `public_test_util`: functions on sequences, trees."""

from __future__ import annotations

import functools
from collections.abc import Callable, Container, Iterable, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias, TypeVar

import numpy as np
import optree

from axir._trees import tree
from axir._trees.paths import NAMESPACE
from axir.dialect.core.annotations import Foreign, Tree, UserFunction, UserObject
from axir.dialect.core.array import ArrayLike
from axir.tree_util import DictKey, FlattenedIndexKey, GetAttrKey, SequenceKey

Item = TypeVar("Item")


class HashablePartial:
    """A function with its first arguments and some by name, equal to another one of the same.

    Args:
        f: The function; functions with the same code are equal.
        *args: First arguments, hashable.
        **kwargs: Arguments by name, hashable.

    >>> HashablePartial(max, 3)(1, 2)
    3
    """

    def __init__(self, f: UserFunction, *args: UserObject, **kwargs: UserObject):
        self.f, self.args, self.kwargs = f, args, kwargs

    def _key(self) -> tuple[object, ...]:
        code = getattr(self.f, "__code__", self.f)
        return code, self.args, tuple(sorted(self.kwargs.items()))

    def __eq__(self, other: object) -> bool:
        return type(other) is HashablePartial and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __call__(self, *args: object, **kwargs: object) -> UserObject:
        return self.f(*self.args, *args, **self.kwargs, **kwargs)


def safe_zip(*sequences: Sequence[object]) -> list[tuple[UserObject, ...]]:
    """Returns the items of sequences of one length as tuples; ValueError if the lengths differ."""
    return list(zip(*sequences, strict=True))


def unzip2(pairs: Iterable[tuple[object, object]]) -> tuple[tuple[UserObject, ...], ...]:
    """Returns the first items of pairs, and the second ones."""
    return tuple(zip(*pairs, strict=True)) or ((), ())


def unzip3(triples: Iterable[Sequence[object]]) -> tuple[tuple[UserObject, ...], ...]:
    """Returns the first, the second and the third items of triples."""
    return tuple(zip(*triples, strict=True)) or ((), (), ())


def split_list(items: Sequence[Item], lengths: Sequence[int]) -> list[list[Item]]:
    """Returns the first items, the next ones, and so on, and the rest.

    >>> split_list([1, 2, 3, 4], [1, 2])
    [[1], [2, 3], [4]]
    """
    parts, start = [], 0
    for length in lengths:
        parts.append(list(items[start : start + length]))
        start += length
    return [*parts, list(items[start:])]


def partition_list(marks: Sequence[bool], items: Sequence[Item]) -> tuple[list[Item], list[Item]]:
    """Returns the unmarked items, and the marked items.

    >>> partition_list([True, False], ["a", "b"])
    (['b'], ['a'])
    """
    pairs = list(zip(items, marks, strict=True))
    return [x for x, mark in pairs if not mark], [x for x, mark in pairs if mark]


def wraps(
    wrapped: Callable[..., object], namestr: str | None = None, docstr: str | None = None
) -> Callable[[UserFunction], UserFunction]:
    """Gives a function the name and docstring of another one, or texts made of them.

    Args:
        wrapped: The other function.
        namestr: A format string that may mention `{fun}`, its name.
        docstr: A format string that may mention `{fun}` and `{doc}`, its docstring.
    """

    def named(function: Callable[..., object]) -> Callable[..., object]:
        functools.update_wrapper(function, wrapped)
        name = getattr(wrapped, "__name__", "<unnamed function>")
        if namestr is not None:
            function.__name__ = namestr.format(fun=name)
        if docstr is not None:
            function.__doc__ = docstr.format(fun=name, doc=wrapped.__doc__ or "")
        return function

    return named


# Trees --------------------------------------------------------------------------------------------


class RegistryEntry(NamedTuple):
    """How containers of a class are flattened and rebuilt.

    Attributes:
        to_iter: From a container to its children and its auxiliary data.
        from_iter: From the auxiliary data, and children, to a container.
    """

    to_iter: UserFunction
    from_iter: UserFunction


class _Registry(Container[type]):
    """The classes that are containers of trees."""

    def __contains__(self, kind: object) -> bool:
        known: Foreign = optree.register_pytree_node.get
        return kind in known(namespace=NAMESPACE)

    def __getitem__(self, kind: type) -> RegistryEntry:
        if kind is dict:  # optree keeps its keys in an object that cannot be hashed
            return RegistryEntry(
                lambda x: (tuple(x[key] for key in sorted(x)), tuple(sorted(x))),
                lambda keys, children: dict(zip(keys, children, strict=True)),
            )
        known: Foreign = optree.register_pytree_node.get
        entry = known(namespace=NAMESPACE)[kind]

        def to_iter(container: Tree) -> tuple[Tree, object]:
            children, auxiliary, *_ = entry.flatten_func(container)
            return tuple(children), auxiliary

        return RegistryEntry(to_iter, entry.unflatten_func)


_registry = _Registry()
# The key of a child in one of JAX's own containers.
BuiltInKeyEntry: TypeAlias = SequenceKey | DictKey | GetAttrKey | FlattenedIndexKey

# Returns the reasons that a tree is no prefix of another: functions that make an error, given a
# name.
prefix_errors: Callable[..., list[Callable[[str], ValueError]]] = partial(
    optree.prefix_errors, namespace=NAMESPACE
)


# Tests of libraries -------------------------------------------------------------------------------


# Relative and absolute tolerances, by the dtype of lower precision.
_TOLERANCES = {"float64": 1e-15, "complex128": 1e-15, "float32": 1e-6, "complex64": 1e-6}
_COARSE = 1e-2


def check_close(
    xs: Tree,
    ys: Tree,
    atol: float | None = None,
    rtol: float | None = None,
    err_msg: str = "",
) -> None:
    """Raises an `AssertionError` if the arrays of two trees differ.

    Args:
        xs, ys: The trees.
        atol, rtol: How far elements may differ, absolutely and relatively to the elements of `ys`;
            by default within the precision of their dtypes.
        err_msg: A text to add to the error.

    >>> check_close({"a": np.float32(1.0)}, {"a": np.float32(1.0000001)})
    """

    def check(x: ArrayLike, y: ArrayLike) -> None:
        found, expected = np.asarray(x), np.asarray(y)
        known = [_TOLERANCES.get(str(a.dtype), _COARSE) for a in (found, expected)]
        default = 0.0 if found.dtype.kind in "biu" and expected.dtype.kind in "biu" else max(known)
        np.testing.assert_allclose(
            found,
            expected,
            rtol=default if rtol is None else rtol,
            atol=default if atol is None else atol,
            err_msg=err_msg,
        )

    tree.map(check, xs, ys)
