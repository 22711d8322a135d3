"""Functions of flat values made of functions of trees, under the names of `jax.api_util`.

>>> import axir
>>> from axir.extend import linear_util
>>> leaves, structure = axir.tree.flatten(((1, {"a": 2}), {}))
>>> flat, out_tree = flatten_fun(linear_util.wrap_init(lambda x, y: (x, [y["a"]])), structure)
>>> flat.call_wrapped(*leaves), out_tree()
([1, 2], PyTreeSpec((*, [*])))
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from axir._arguments.arguments import type_of
from axir._trees import tree
from axir.dialect.core.annotations import Options, Tree, UserFunction, UserObject
from axir.dialect.core.errors import StaticArgumentError, TreeError
from axir.dialect.core.types import ShapedArray
from axir.dialect.program.function_tracing import function_name
from axir.extend.linear_util import Store, WrappedFun, transformation2, transformation_with_aux2

__all__ = [
    "DebugInfo", "argnums_partial", "debug_info", "donation_vector", "flatten_axes", "flatten_fun",
    "flatten_fun_nokwargs", "rebase_donate_argnums", "safe_map", "shaped_abstractify",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


@dataclass(frozen=True)
class DebugInfo:
    """The names of a traced function, its arguments and its results, as far as they are known.

    Attributes:
        traced_for: Which transformation traces.
        func_name: Name of the function.
        arg_names: Names of the leaves of its arguments, or None where nothing is known.
    """

    traced_for: str
    func_name: str
    arg_names: tuple[str, ...] | None


def debug_info(
    traced_for: str,
    fun: Callable[..., object],
    args: Sequence[object],
    kwargs: dict[str, Options],
    *,
    static_argnums: Sequence[int] = (),
    static_argnames: Sequence[str] = (),
    result_paths_thunk: object = None,
    sourceinfo: str | None = None,
    signature: inspect.Signature | None = None,
) -> DebugInfo:
    """Returns the names of a function and of its arguments, as far as they are known.

    Args:
        traced_for: Which transformation traces.
        fun: The function.
        args: Its arguments.
        kwargs: Its keyword arguments.
        static_argnums: Numbers of the arguments that are no arrays.
        static_argnames: Names of the keyword arguments that are no arrays.
        result_paths_thunk: Names of the results; messages here do without.
        sourceinfo: Where the function stands; messages here have the line.
        signature: The function's signature, if it is known already.
    """
    try:
        bound = (signature or inspect.signature(fun)).bind(*args, **kwargs)
    except (ValueError, TypeError):  # a builtin, or arguments that do not fit
        return DebugInfo(traced_for, function_name(fun), None)
    named = bound.arguments
    static = {*static_argnames, *(name for n, name in enumerate(named) if n in static_argnums)}
    moving = {name: value for name, value in named.items() if name not in static}
    return DebugInfo(traced_for, function_name(fun), tuple(tree.paths(moving)))


@transformation_with_aux2
def flatten_fun(
    f: UserFunction, store: Store[tree.TreeDef], in_tree: tree.TreeDef, *leaves: UserObject
) -> list[UserObject]:
    """Makes a function one of the leaves of its arguments and keyword arguments.

    Args:
        f: A `WrappedFun`.
        store: Filled in by the decorator.
        in_tree: Structure of the pair of arguments and keyword arguments.
        *leaves: The leaves that callers of the result pass.

    Returns:
        The function of leaves, and a function that returns the structure of its last result.
    """
    args, kwargs = in_tree.unflatten(leaves)
    flat, structure = tree.flatten(f(*args, **kwargs))
    store.store(structure)
    return flat


@transformation_with_aux2
def flatten_fun_nokwargs(
    f: Callable[..., object], store: Store[tree.TreeDef], in_tree: tree.TreeDef, *leaves: object
) -> list[UserObject]:
    """Makes a function one of the leaves of its arguments; see `flatten_fun`."""
    flat, structure = tree.flatten(f(*in_tree.unflatten(leaves)))
    store.store(structure)
    return flat


@transformation2
def _with_static(
    f: Callable[..., object],
    moving: tuple[int, ...],
    static: tuple[tuple[int, object], ...],
    *args: object,
    **kwargs: object,
) -> object:
    full: list[UserObject] = [None] * (len(moving) + len(static))
    for number, value in (*zip(moving, args, strict=True), *static):
        full[number] = value
    return f(*full, **kwargs)


def argnums_partial(
    f: WrappedFun,
    dyn_argnums: int | Sequence[int],
    args: Sequence[object],
    require_static_args_hashable: bool = True,
) -> tuple[WrappedFun, tuple[UserObject, ...]]:
    """Fixes all arguments but some.

    Args:
        f: The function.
        dyn_argnums: Numbers of the arguments that stay arguments.
        args: All arguments.
        require_static_args_hashable: Whether the others must be hashable.

    Returns:
        The function of the remaining arguments, and these.

    Raises:
        StaticArgumentError: if an argument must be hashable and is not.
    """
    wanted = (dyn_argnums,) if isinstance(dyn_argnums, int) else tuple(dyn_argnums)
    moving = tuple(number % len(args) for number in wanted)
    static = tuple((n, value) for n, value in enumerate(args) if n not in moving)
    for number, value in static if require_static_args_hashable else ():
        if not isinstance(value, Hashable):
            raise StaticArgumentError(
                f"Argument {number} of {f.__name__!r} is static, and {type(value).__name__!r} is "
                "not hashable.",
                "Pass a tuple for a list, or make the argument an array.",
            )
    return _with_static(f, moving, static), tuple(args[number] for number in moving)


def donation_vector(
    donate_argnums: Sequence[int],
    donate_argnames: Sequence[str],
    in_tree: tree.TreeDef,
    kws: bool = True,
) -> tuple[bool, ...]:
    """Tells for each leaf of the arguments whether results may take its memory.

    >>> import axir
    >>> _, structure = axir.tree.flatten((([1, 2], 3), {"a": 4}))
    >>> donation_vector((0,), ("a",), structure)
    (True, True, False, True)
    """
    numbers = tree.unflatten(in_tree, range(in_tree.num_leaves))
    args, kwargs = numbers if kws else (numbers, {})
    donated = {leaf for n in donate_argnums if n < len(args) for leaf in tree.leaves(args[n])}
    donated |= {
        leaf for name in donate_argnames if name in kwargs for leaf in tree.leaves(kwargs[name])
    }
    return tuple(number in donated for number in range(in_tree.num_leaves))


def rebase_donate_argnums(
    donate_argnums: Sequence[int], static_argnums: Sequence[int]
) -> tuple[int, ...]:
    """Returns the numbers of donated arguments as counted without the static ones.

    Raises:
        StaticArgumentError: if an argument is both.

    >>> rebase_donate_argnums((1, 3), (0, 2))
    (0, 1)
    """
    both = {*donate_argnums} & {*static_argnums}
    if both:
        raise StaticArgumentError(
            f"Arguments {sorted(both)} are both static and donated.",
            "Only arrays have memory to donate: name each argument in one of the two.",
        )
    return tuple(
        number - sum(other < number for other in static_argnums)
        for number in sorted(donate_argnums)
    )


def flatten_axes(
    name: str,
    treedef: tree.TreeDef,
    axis_tree: Tree,
    *,
    kws: bool = False,
    tupled_args: bool = False,
) -> list[UserObject]:
    """Returns one entry of a prefix of a tree for each of the tree's leaves.

    Args:
        name: Name of the prefix in errors.
        treedef: Structure of the tree.
        axis_tree: The prefix, in which None is a value.
        kws: Whether the tree is a pair of arguments and keyword arguments. The prefix then covers
            only the arguments, and leaves of keyword arguments get 0.
        tupled_args: Whether an error should say that the arguments are a tuple.

    Raises:
        TreeError: if it is no prefix.

    >>> import axir
    >>> flatten_axes("in_axes", axir.tree.structure((1, [2, 3])), (None, 0))
    [None, 0, 0]
    """
    dummy = tree.unflatten(treedef, range(treedef.num_leaves))
    whole = (axis_tree, 0) if kws else axis_tree
    try:
        return tree.broadcast_prefix(whole, dummy, name)
    except TreeError as error:
        if not tupled_args:
            raise
        raise TreeError(
            error.message, f"{error.way_out or ''} The arguments are a tuple.", error.where
        ) from None


def safe_map(f: Callable[..., object], *sequences: Sequence[object]) -> list[UserObject]:
    """Returns the results of a function on the items of sequences of one length, as a list.

    Raises:
        ValueError: if the lengths differ.

    >>> safe_map(max, [1, 5], [3, 2])
    [3, 5]
    """
    return [f(*items) for items in zip(*sequences, strict=True)]


def shaped_abstractify(x: object) -> ShapedArray:
    """Returns the type of an array or scalar.

    >>> shaped_abstractify(2.0)
    ShapedArray(float32[], weak_type=True)
    """
    return type_of(x)
