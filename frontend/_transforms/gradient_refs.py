"""Pullbacks that add cotangents to refs: the results of `pullback.with_refs(...)`.

A function that is differentiated in a ref takes the ref's first value and returns its last value.
The gradient ref holds the cotangent of the last value. The pullback replaces it by the cotangent of
the first value: if the ref is only read, this is the sum of both.

Elsewhere: refs in transformed functions (`carried_refs.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from axir._arguments.wrapping import boundary
from axir._trees import tree
from axir._trees.registration import register_pytree_node
from axir.dialect.core.annotations import Options, Tree, UserFunction, UserObject
from axir.dialect.core.errors import GradientError, TreeError
from axir.dialect.program.function_tracing import function_name

from .carried_refs import Values, carrying, values_of
from .refs import Ref


@dataclass(frozen=True)
class GradValue:
    """Asks for the gradient of an argument as a value."""


@dataclass(frozen=True)
class DontWant:
    """Asks for no gradient of an argument."""


@dataclass(frozen=True)
class GradRef:
    """Stands for a gradient that was added to a ref."""


@dataclass(frozen=True)
class DidntWant:
    """Stands for a gradient that was not requested."""


register_pytree_node(GradRef, lambda _: ((), None), lambda _, __: GradRef())
register_pytree_node(DidntWant, lambda _: ((), None), lambda _, __: DidntWant())

_WAY_OUT = (
    "Give for each argument, in its structure, a ref, axir.ad.GradValue() or axir.ad.DontWant()."
)


def is_ref(x: object) -> bool:
    """Tells whether a leaf is a ref."""
    return getattr(x, "_is_ref", False)


def checked_entries(
    entries: tuple[object, ...], in_tree: tree.TreeDef, name: str
) -> list[UserObject]:
    """Returns the destination of the cotangent of each argument leaf.

    Raises:
        TreeError: if the entries have another structure than the arguments.
        GradientError: for an entry that is no destination.
    """
    leaves, structure = tree.flatten((entries, {}))
    if structure != in_tree:
        raise TreeError(
            f"with_refs of the pullback of {name!r} was called with entries of structure "
            f"{structure}, expected {in_tree}.",
            _WAY_OUT,
        )
    for x in leaves:
        if not is_ref(x) and not isinstance(x, (GradValue, DontWant)):
            raise GradientError(f"with_refs: {x!r} is no ref.", _WAY_OUT)
    return leaves


def settle(entry: UserObject, cotangent: Callable[[], UserObject]) -> UserObject:
    """Sends an argument's cotangent to its destination; returns the value for the user."""
    if isinstance(entry, DontWant):
        return DidntWant()
    if isinstance(entry, GradValue):
        return cotangent()
    ref: Ref = entry
    ref.addupdate(cotangent())
    return GradRef()


def vjp_in_refs(
    vjp: Callable[..., tuple[UserObject, ...]],
    fun: UserFunction,
    primals: tuple[UserObject, ...],
    has_aux: bool,
) -> tuple[UserObject, ...]:
    """Returns the results of `vjp` for arguments that include refs."""
    leaves, structure = tree.flatten((primals, {}))
    places = tuple(n for n, x in enumerate(leaves) if is_ref(x))
    refs: list[Ref] = [leaves[n] for n in places]
    if len({id(ref) for ref in refs}) < len(refs):
        raise GradientError(
            f"vjp of {function_name(fun)!r}: a ref is passed as more than one argument.",
            "Pass each ref once: two names of one ref have one gradient.",
        )

    def of_values(values: Values, others: Sequence[object]) -> UserObject:
        remaining = iter(others)
        full = [x if n in places else next(remaining) for n, x in enumerate(leaves)]
        result: UserObject = structure.unflatten(full)
        out, after = carrying(fun, refs)(values, *result[0])
        return ((out[0], after), out[1]) if has_aux else (out, after)

    of_values.__name__ = function_name(fun)
    values = values_of(refs)
    others = [x for n, x in enumerate(leaves) if n not in places]
    (out, after), pullback, *auxiliary = vjp(of_values, values, others, has_aux=has_aux)
    for ref, value in zip(refs, after, strict=True):
        ref.store(value)
    return (out, RefPullback(pullback, structure, places), *auxiliary)


class AccumulatingPullback(Protocol):
    """A pullback that may leave cotangents in refs: `Pullback`."""

    def with_refs(self, *entries: object) -> UserFunction:
        """Returns the pullback with a destination for the cotangent of each argument."""
        ...


class RefPullback:
    """The pullback of a function of refs: `pullback.with_refs(...)(cotangent)`."""

    def __init__(
        self, pullback: AccumulatingPullback, in_tree: tree.TreeDef, places: tuple[int, ...]
    ):
        self._pullback, self._in_tree, self._places = pullback, in_tree, places

    @boundary
    def __call__(self, cotangent: Tree) -> tuple[UserObject, ...]:
        """Raises: the gradient of a ref goes into a ref."""
        raise GradientError(
            "A pullback was called whose function takes a ref, and a ref's gradient must be "
            "accumulated into a ref.",
            "Write pullback.with_refs(...)(cotangent). " + _WAY_OUT,
        )

    def with_refs(self, *entries: object) -> UserFunction:
        """Returns the pullback with a destination for each gradient: a ref or a word."""
        leaves = checked_entries(entries, self._in_tree, "a function of refs")
        if not all(is_ref(leaves[n]) for n in self._places):
            raise GradientError(
                "with_refs: the gradient of a ref must be accumulated into a ref.", _WAY_OUT
            )
        refs: list[Ref] = [leaves[n] for n in self._places]
        others = [x for n, x in enumerate(leaves) if n not in self._places]

        def pull(cotangent: Tree) -> tuple[UserObject, ...]:
            values = tuple(GradValue() for _ in refs)
            both = (cotangent, values_of(refs))
            found, rest = self._pullback.with_refs(values, others)(both)
            for ref, gradient in zip(refs, found, strict=True):
                ref.store(gradient)
            remaining = iter(rest)
            full = [GradRef() if n in self._places else next(remaining) for n in range(len(leaves))]
            arguments: UserObject = self._in_tree.unflatten(full)
            return tuple(arguments[0])

        return pull


def _rebuilt(kept: Options, children: Sequence[UserObject]) -> RefPullback:
    return RefPullback(children[0], *kept)


register_pytree_node(RefPullback, lambda f: ((f._pullback,), (f._in_tree, f._places)), _rebuilt)
