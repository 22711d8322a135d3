"""The one adapter to optree, with JAX's notion of a tree.

Trees are dicts (keys sorted), lists, tuples, named tuples, OrderedDicts, defaultdicts, None (a node
without leaves), and classes registered here. Public names are in `axir.tree_util` and
`axir.tree`.
"""

from __future__ import annotations

import builtins
import dataclasses
import functools
from collections.abc import Callable, Iterable

import optree
from optree import PyTreeSpec

from axir.dialect.core.annotations import Foreign, Options, PyTree, Tree, UserObject
from axir.dialect.core.errors import TreeError

from .paths import NAMESPACE, KeyPath, keystr, leaves_and_paths
from .plain import map_plain

TreeDef = PyTreeSpec


def flatten(
    tree: PyTree, is_leaf: Callable[[UserObject], bool] | None = None
) -> tuple[list[UserObject], TreeDef]:
    """Flattens a tree.

    Returns:
        The leaves, and the structure, which is hashable and has `unflatten(leaves)`.

    >>> leaves, structure = flatten({"b": 1, "a": (2, None)})
    >>> leaves, structure.unflatten([20, 10])
    ([2, 1], {'a': (20, None), 'b': 10})
    """
    found, spec = optree.tree_flatten(tree, is_leaf, namespace=NAMESPACE)
    return found, _in_key_order(spec)


def _in_key_order(spec: TreeDef) -> TreeDef:
    """Returns a structure with the keys of its dicts in the order of the leaves, as JAX's have.

    optree keeps the order of the dicts that were flattened.
    """
    described: Foreign = spec
    nodes, *rest = described.__getstate__()
    ordered = []
    is_changed = False
    for node in nodes:
        original = node[-1]
        if original is not None:  # a dict: its keys in the order that they had
            keys = node[2] if type(node[2]) is list else node[2][1]
            if list(original) != keys:
                is_changed = True
                node = (*node[:-1], dict.fromkeys(keys))
        ordered.append(node)
    if not is_changed:
        return spec
    made: Foreign = PyTreeSpec.__new__(PyTreeSpec)
    made.__setstate__((tuple(ordered), *rest))
    return made


def unflatten(treedef: TreeDef, leaves: Iterable[object]) -> PyTree:
    """Rebuilds a tree from its structure and leaves."""
    return treedef.unflatten(leaves)


def leaves(tree: PyTree, is_leaf: Callable[[UserObject], bool] | None = None) -> list[UserObject]:
    """Returns the leaves of a tree."""
    return optree.tree_leaves(tree, is_leaf, namespace=NAMESPACE)


def structure(tree: Tree, is_leaf: Callable[[UserObject], bool] | None = None) -> TreeDef:
    """Returns the structure of a tree."""
    return flatten(tree, is_leaf)[1]


def map(
    f: Callable[..., object],
    tree: Tree,
    *rest: object,
    is_leaf: Callable[[UserObject], bool] | None = None,
) -> PyTree:
    """Applies a function to the leaves of trees of one structure.

    >>> map(lambda x, y: x + y, {"a": 1}, {"a": 2})
    {'a': 3}
    """
    if not rest and is_leaf is None:
        return map_plain(f, tree, _map_others)
    first, spec = flatten(tree, is_leaf)
    columns = [first, *(flatten_like(spec, other, "tree map") for other in rest)]
    return spec.unflatten([f(*row) for row in zip(*columns, strict=True)])


def _map_others(f: Callable[..., object], tree: Tree) -> Tree:
    values, spec = flatten(tree)
    return spec.unflatten([f(value) for value in values])


def flatten_like(spec: TreeDef, tree: PyTree, what: str) -> list[UserObject]:
    """Flattens a tree up to the leaves of a structure, which may be a prefix of the tree's.

    Raises:
        TreeError: if the tree does not have that structure.
    """
    try:
        return spec.flatten_up_to(tree)
    except (ValueError, TypeError, KeyError) as error:
        # Libraries look for JAX's words.
        reason = str(error).replace("dictionary key mismatch", "Dict key mismatch")
        raise TreeError(
            f"{what}: the trees do not match: expected {spec}, got {structure(tree)}. {reason}",
            "Give both the same nesting of containers.",
        ) from None


def broadcast_prefix(prefix: UserObject, tree: PyTree, what: str) -> list[UserObject]:
    """Spreads the leaves of a prefix tree (None is a leaf of it) over the leaves of a tree.

    >>> broadcast_prefix((0, None), ({"a": 1, "b": 2}, 3), "in_axes")
    [0, 0, None]

    Raises:
        TreeError: if the prefix does not fit the tree.
    """
    result: list[UserObject] = []

    def spread(entry: object, subtree: object) -> None:
        result.extend([entry] * len(leaves(subtree)))

    prefix_leaves, prefix_spec = optree.tree_flatten(
        prefix, lambda x: x is None, none_is_leaf=True, namespace=NAMESPACE
    )[:2]
    try:
        subtrees = prefix_spec.flatten_up_to(tree)
    except (ValueError, TypeError, KeyError) as error:
        raise TreeError(
            f"{what} {prefix!r} is not a prefix of the tree {structure(tree)}: {error}",
            f"Each entry of {what} must stand for one value, or for a whole container.",
        ) from None
    for entry, subtree in zip(prefix_leaves, subtrees, strict=True):
        spread(entry, subtree)
    return result


def paths(tree: Tree, is_leaf: Callable[[UserObject], bool] | None = None) -> list[str]:
    """Returns for each leaf how Python would reach it: `[0]['w']`."""
    return [keystr(path) for path, _ in leaves_and_paths(tree, is_leaf, False)]


def flatten_with_path(
    tree: Tree, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple[KeyPath, UserObject]], TreeDef]:
    """Flattens a tree to pairs of path and leaf; `tree_util.keystr(path)` renders a path.

    Args:
        tree: The tree.
        is_leaf: Tells which values are leaves though they are containers.
        is_leaf_takes_path: Whether `is_leaf` takes the path before the value.

    >>> flatten_with_path({"a": (1,)})[0]
    [((DictKey(key='a'), SequenceKey(idx=0)), 1)]
    """
    if is_leaf is None:
        return list(leaves_and_paths(tree, None, False)), structure(tree)
    # `is_leaf` is called once for each value, because it may have state; both walks visit the
    # values in one order.
    answers: list[bool] = []

    def ask(path: KeyPath, value: object) -> bool:
        answers.append(bool(is_leaf(path, value) if is_leaf_takes_path else is_leaf(value)))
        return answers[-1]

    pairs = list(leaves_and_paths(tree, ask, True))
    remaining = iter(answers)
    return pairs, structure(tree, lambda value: next(remaining))


def leaves_with_path(
    tree: Tree, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> list[tuple[KeyPath, UserObject]]:
    """Returns the pairs of path and leaf of a tree; see `flatten_with_path`.

    >>> [leaf for path, leaf in leaves_with_path({"a": 1, "b": (2,)})]
    [1, 2]
    """
    return list(leaves_and_paths(tree, is_leaf, is_leaf_takes_path))


def map_with_path(
    f: Callable[..., object],
    tree: Tree,
    *rest: object,
    is_leaf: Callable[..., bool] | None = None,
    is_leaf_takes_path: bool = False,
) -> PyTree:
    """Applies a function to path and leaf (and the leaves of further trees).

    >>> map_with_path(lambda path, x: (keystr(path), x), {"a": 1})
    {'a': ("['a']", 1)}
    """
    pairs, spec = flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    columns = [flatten_like(spec, other, "tree map") for other in rest]
    rows = zip(pairs, *columns, strict=True)
    return spec.unflatten([f(path, leaf, *others) for (path, leaf), *others in rows])


_NOTHING = object()


def reduce(
    function: Callable[[UserObject, UserObject], UserObject],
    tree: Tree,
    initializer: object = _NOTHING,
    is_leaf: Callable[[UserObject], bool] | None = None,
) -> PyTree:
    """Combines the leaves of a tree from the left.

    >>> reduce(lambda x, y: x + y, {"a": 1, "b": (2, 3)})
    6
    """
    values = leaves(tree, is_leaf)
    if initializer is _NOTHING:
        return functools.reduce(function, values)
    return functools.reduce(function, values, initializer)


def all(tree: Tree, *, is_leaf: Callable[[UserObject], bool] | None = None) -> bool:
    """Tells whether all leaves are true."""
    return builtins.all(leaves(tree, is_leaf))


def all_leaves(
    iterable: Iterable[UserObject], is_leaf: Callable[[UserObject], bool] | None = None
) -> bool:
    """Tells whether none of the values is a container."""
    return optree.all_leaves(iterable, is_leaf, namespace=NAMESPACE)


def transpose(
    outer_treedef: TreeDef, inner_treedef: TreeDef | None, pytree_to_transpose: object
) -> PyTree:
    """Turns a tree of trees inside out.

    Args:
        outer_treedef: The structure of the outer containers.
        inner_treedef: The structure of the inner trees, or None for the first one's.
        pytree_to_transpose: The tree; its outer containers may have other auxiliary data.

    Raises:
        TreeError: if the tree is not made of such trees.

    >>> transpose(structure((0, 0)), None, ({"a": 1, "b": 2}, {"a": 3, "b": 4}))
    {'a': (1, 3), 'b': (2, 4)}
    """
    values, found = flatten(pytree_to_transpose)
    if inner_treedef is None:
        subtrees = flatten_like(outer_treedef, pytree_to_transpose, "tree transpose")
        inner_treedef = structure(subtrees[0] if subtrees else None)
    rows, columns = outer_treedef.num_leaves, inner_treedef.num_leaves
    if found.num_leaves != rows * columns:
        raise TreeError(
            f"tree transpose: {rows} trees of structure {inner_treedef} in {outer_treedef} have "
            f"{rows * columns} leaves, but the tree has {found.num_leaves}: {found}.",
            "Give all trees inside the same structure.",
        )
    inside_out = [outer_treedef.unflatten(values[n::columns]) for n in range(columns)]
    return inner_treedef.unflatten(inside_out)


def broadcast(
    prefix_tree: object,
    full_tree: object,
    is_leaf: Callable[[UserObject], bool] | None = None,
) -> PyTree:
    """Spreads the leaves of a tree over the corresponding subtrees of another tree.

    Args:
        prefix_tree: The upper part of `full_tree`.
        full_tree: The tree with the result's structure.
        is_leaf: Tells which values of `prefix_tree` are leaves though they are containers.

    Raises:
        TreeError: if the first tree is not the upper part of the second.

    >>> broadcast((1, 2), (0, {"a": 0, "b": 0}))
    (1, {'a': 2, 'b': 2})
    """
    values, spec = flatten(prefix_tree, is_leaf)
    subtrees = flatten_like(spec, full_tree, "tree broadcast")
    spread = [value for value, t in zip(values, subtrees, strict=True) for _ in leaves(t)]
    return structure(full_tree).unflatten(spread)


def reduce_associative(
    operation: Callable[[UserObject, UserObject], UserObject],
    tree: Tree,
    *,
    identity: object = _NOTHING,
    is_leaf: Callable[[UserObject], bool] | None = None,
) -> PyTree:
    """Combines the leaves of a tree in pairs, pairs of pairs, and so on: in logarithmic depth.

    Args:
        operation: Associative function of two values.
        tree: The tree.
        identity: The result for a tree without leaves.
        is_leaf: Tells which values are leaves though they are containers.

    Raises:
        TreeError: for a tree without leaves, without an `identity`.

    >>> reduce_associative(lambda x, y: x + y, ["a", ("b", "c")])
    'abc'
    """
    values = leaves(tree, is_leaf)
    if not values:
        if identity is _NOTHING:
            raise TreeError(
                "reduce_associative: a tree without leaves has no sum.", "Pass identity."
            )
        return identity
    while len(values) > 1:
        pairs = [operation(*values[n : n + 2]) for n in range(0, len(values) - 1, 2)]
        values = [*pairs, *values[2 * len(pairs) :]]
    return values[0]


def static(**kwargs: Options) -> PyTree:
    """Declares a field of a dataclass that is auxiliary data; see `register_dataclass`.

    Args:
        **kwargs: Arguments of `dataclasses.field`.

    >>> import dataclasses
    >>> from axir import tree_util
    >>> @tree_util.register_dataclass
    ... @dataclasses.dataclass
    ... class Layer:
    ...     weight: float
    ...     kind: str = static(default="dense")
    >>> leaves(Layer(1.0))
    [1.0]
    """
    metadata = {"static": True, **(kwargs.pop("metadata", None) or {})}
    return dataclasses.field(**kwargs, metadata=metadata)
