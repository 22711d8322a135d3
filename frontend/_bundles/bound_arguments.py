"""Arguments that `functools.partial` binds: arrays among them become parameters of a bundle.

Elsewhere: arrays in a function's surroundings (`captures.py`).
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from axir._arguments.wrapping import wraps
from axir._trees import text as tree_text
from axir._trees import tree
from axir.dialect.core.annotations import UserFunction, UserObject
from axir.dialect.core.array import ConcreteArray, as_array
from axir.dialect.program.function import Function
from axir.dialect.text.signature import Argument, Signature


class Bound(NamedTuple):
    """The arguments that partial applications have bound to a function.

    Attributes:
        args: The first positional arguments.
        kwargs: The arguments by keyword.
    """

    args: tuple[UserObject, ...]
    kwargs: dict[str, UserObject]

    @property
    def is_empty(self) -> bool:
        """Whether nothing is bound."""
        return not (self.args or self.kwargs)

    def taking_them_last(self, fun: Callable[..., object]) -> UserFunction:
        """Returns `fun` as a function of the other arguments, then of the bound ones."""

        @wraps(fun)
        def called(
            args: tuple[object, ...],
            kwargs: dict[str, object],
            first: tuple[object, ...],
            named: dict[str, object],
        ) -> UserObject:
            return fun(*first, *args, **named, **kwargs)

        return called

    def by_name(self, fun: Callable[..., object]) -> dict[str, ConcreteArray]:
        """Returns the arrays in them, named as `fun` names its parameters, in their order."""
        positional, rest = parameter_names(fun)
        names = [*positional, *(f"{rest}[{n}]" for n in range(len(self.args)))]
        groups = [*zip(names, self.args, strict=False), *sorted(self.kwargs.items())]
        return {
            name + path: as_array(leaf)
            for name, value in groups
            for path, leaf in zip(tree.paths(value), tree.leaves(value), strict=True)
        }


def unbound(fun: Callable[..., object]) -> tuple[UserFunction, Bound]:
    """Returns the function behind partial applications, and the arguments that they bound.

    Only trees of arrays are taken out. Other arguments, such as a number or the name of an
    activation, stay bound, and so do the arrays before them.
    """
    if not isinstance(fun, functools.partial) or not all(map(_holds_arrays, fun.args)):
        return fun, Bound((), {})
    kept = {name: value for name, value in fun.keywords.items() if not _holds_arrays(value)}
    taken = {name: value for name, value in fun.keywords.items() if name not in kept}
    inner = functools.partial(fun.func, **kept) if kept else fun.func
    return inner, Bound(fun.args, taken)


def _holds_arrays(value: object) -> bool:
    leaves = tree.leaves(value)
    return bool(leaves) and all(isinstance(x, (ConcreteArray, np.ndarray)) for x in leaves)


def parameter_names(fun: Callable[..., object]) -> tuple[list[str], str]:
    """Returns the names of the positional parameters, and of the parameter `*args`."""
    try:
        parameters = inspect.signature(fun).parameters.values()
    except (ValueError, TypeError):
        return [], "args"
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    rest = [p.name for p in parameters if p.kind is inspect.Parameter.VAR_POSITIONAL]
    return [p.name for p in parameters if p.kind in positional], rest[0] if rest else "args"


# Signatures ---------------------------------------------------------------------------------------


def trees_of(signature: Signature, where: str) -> tuple[tree.TreeDef, tree.TreeDef]:
    """Returns the structures of arguments and results; flat ones if the signature has no notation.

    Raises:
        ParseError: if a notation is not a tree's.
        VerificationError: if it has other leaves.
    """
    count, results = len(signature.arguments), len(signature.results)
    in_tree = tree_text.structure(signature.in_tree, count, where)
    out_tree = tree_text.structure(signature.out_tree, results, where)
    # A tree without leaves counts as false.
    if in_tree is None:
        in_tree = tree.structure(((0,) * count, {}))
    if out_tree is None:
        out_tree = tree.structure(0 if results == 1 else (0,) * results)
    return in_tree, out_tree


def signature_of(
    function: Function, in_tree: tree.TreeDef, out_tree: tree.TreeDef, names: Sequence[str]
) -> Signature:
    """Returns the signature of a traced function, with the given names of arguments."""
    skeleton = out_tree.unflatten(range(out_tree.num_leaves))
    results = [f"result{path}" for path in tree.paths(skeleton)]
    return Signature(
        tuple(map(Argument, names, function.input_types)),
        tuple(map(Argument, results, function.output_types)),
        tree_text.write(in_tree),
        tree_text.write(out_tree),
        True,
    )
