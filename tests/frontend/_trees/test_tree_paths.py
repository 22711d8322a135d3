"""Keys and paths of trees, registration with keys, and computations along trees."""

from __future__ import annotations

import collections
import dataclasses
from typing import Any

import jax
import jax.flatten_util
import pytest

import axir
import axir.numpy as jnp
from axir import tree, tree_util
from axir.dialect.core.errors import DTypeError, ShapeError, TreeError
from axir.flatten_util import ravel_pytree

Point = collections.namedtuple("Point", ["x", "y"])
TREE = {
    "b": [1, (2, None)],
    "a": Point(3, {"z": 4}),
    "c": collections.OrderedDict(k=1, a=(2,)),
    "d": collections.defaultdict(list, {3: 5}),
}


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"is_leaf": lambda x: isinstance(x, tuple)},
        {"is_leaf": lambda path, x: len(path) == 2, "is_leaf_takes_path": True},
        {"is_leaf": lambda path, x: x is None, "is_leaf_takes_path": True},
    ],
)
def test_paths_are_those_of_jax(options: dict[str, Any]) -> None:
    ours, structure = tree_util.tree_flatten_with_path(TREE, **options)
    theirs, _ = jax.tree_util.tree_flatten_with_path(TREE, **options)
    assert [repr(path) for path, _ in ours] == [repr(path) for path, _ in theirs]
    assert [leaf for _, leaf in ours] == [leaf for _, leaf in theirs]
    assert structure.unflatten([leaf for _, leaf in ours]) == TREE
    for keywords in ({}, {"simple": True, "separator": "/"}):
        assert [tree_util.keystr(path, **keywords) for path, _ in ours] == [
            jax.tree_util.keystr(path, **keywords) for path, _ in theirs
        ]
    mapped = tree.map_with_path(lambda path, x: tree_util.keystr(path), TREE, **options)
    assert mapped == jax.tree.map_with_path(
        lambda path, x: jax.tree_util.keystr(path), TREE, **options
    )


def test_keys_compare_and_hash_by_what_they_name() -> None:
    for ours, theirs, argument in (
        (tree_util.DictKey, jax.tree_util.DictKey, "k"),
        (tree_util.SequenceKey, jax.tree_util.SequenceKey, 1),
        (tree_util.GetAttrKey, jax.tree_util.GetAttrKey, "name"),
        (tree_util.FlattenedIndexKey, jax.tree_util.FlattenedIndexKey, 2),
    ):
        assert ours(argument) == ours(argument)
        assert len({ours(argument), ours(argument)}) == 1
        assert (str(ours(argument)), repr(ours(argument))) == (
            str(theirs(argument)),
            repr(theirs(argument)),
        )
    assert tree_util.DictKey(1) != tree_util.SequenceKey(1)


def test_classes_register_with_keys() -> None:
    class Pair:
        def __init__(self, x: Any, y: Any):
            self.x, self.y = x, y

    key = tree_util.GetAttrKey
    tree_util.register_pytree_with_keys(
        Pair,
        lambda p: (((key("x"), p.x), (key("y"), p.y)), None),
        lambda _, children: Pair(*children),
    )

    @tree_util.register_pytree_with_keys_class
    class Box:
        def __init__(self, value: Any):
            self.value = value

        def tree_flatten_with_keys(self) -> Any:
            return ((tree_util.DictKey("value"), self.value),), "tag"

        @classmethod
        def tree_unflatten(cls, auxiliary: Any, children: Any) -> Any:
            assert auxiliary == "tag"
            return cls(*children)

    class Plain:
        pass

    tree_util.register_pytree_node(Plain, lambda p: ((1, 2), None), lambda _, c: Plain())
    value = [Pair(1, Box(2)), Plain()]
    paths = [tree_util.keystr(path) for path, _ in tree.leaves_with_path(value)]
    assert paths == [
        "[0].x",
        "[0].y['value']",
        "[1][<flat index 0>]",
        "[1][<flat index 1>]",
    ]
    doubled = axir.jit(lambda p: tree.map(lambda x: 2 * x, p))(value[0])
    assert int(doubled.y.value) == 4
    with pytest.raises(ValueError, match="already registered"):
        tree_util.register_pytree_with_keys_class(Box)


def test_dataclasses_register_with_fields_of_each_kind() -> None:
    @tree_util.register_dataclass
    @dataclasses.dataclass
    class Layer:
        weight: Any
        kind: str = tree.static(default="dense", metadata={"unit": "m"})

    assert dataclasses.fields(Layer)[1].metadata == {"unit": "m", "static": True}
    assert tree.leaves_with_path(Layer(5)) == [((tree_util.GetAttrKey("weight"),), 5)]
    assert tree.structure(Layer(5)) != tree.structure(Layer(5, "sparse"))

    @dataclasses.dataclass
    class Cached:
        value: Any
        scale: int
        cache: Any = None

    tree_util.register_dataclass(Cached, ["value"], ["scale"], drop_fields=["cache"])
    assert tree.map(lambda x: x + 1, Cached(1, 2, "c")) == Cached(2, 2, None)

    class Bare:
        pass

    with pytest.raises(TreeError, match="'Bare' is not a dataclass"):
        tree_util.register_dataclass(Bare)

    @dataclasses.dataclass
    class Wrong:
        x: Any
        y: Any

    with pytest.raises(TreeError, match=r"\['z'\] are no fields of its constructor, \['y'\]"):
        tree_util.register_dataclass(Wrong, ["x", "z"], [])


def test_one_level_at_a_time() -> None:
    children, _ = tree_util.flatten_one_level(TREE)
    assert children == [TREE[key] for key in "abcd"]
    pairs, _ = tree_util.flatten_one_level_with_keys(Point(1, 2))
    assert pairs == [(tree_util.GetAttrKey("x"), 1), (tree_util.GetAttrKey("y"), 2)]
    with pytest.raises(ValueError, match="leaf"):
        tree_util.flatten_one_level(3)
    assert [tree_util.is_tree_node(t) for t in (dict, Point, type(None), int)] == [
        True,
        True,
        True,
        False,
    ]
    structures = tree_util.treedef_children(tree.structure((1, [2, 3], None)))
    assert [s.num_leaves for s in structures] == [1, 2, 0]


def test_broadcast_and_associative_reduction() -> None:
    full = (0, {"a": 0, "b": (0, None)}, [0, 0])
    prefix = (1, {"a": 2, "b": 3}, 4)
    assert tree.broadcast(prefix, full) == jax.tree.broadcast(prefix, full)
    assert tree.broadcast((1, (2, 2), 3), (0, [0], 0), is_leaf=lambda x: x == (2, 2)) == (
        1,
        [(2, 2)],
        3,
    )
    with pytest.raises(TreeError, match="tree broadcast: the trees do not match"):
        tree.broadcast((1, 2), (0, 0, 0))
    for size in range(1, 9):
        letters = ["abcdefgh"[:size], ("x",)]
        assert tree.reduce_associative(lambda x, y: x + y, letters) == letters[0] + "x"
    assert tree.reduce_associative(max, [], identity=0) == 0
    with pytest.raises(TreeError, match="without leaves has no sum"):
        tree.reduce_associative(max, [])


def test_ravel_and_back() -> None:
    value = {"w": jnp.arange(4.0).reshape(2, 2), "b": 5.0, "n": None}
    flat, unravel = ravel_pytree(value)
    assert flat.tolist() == [5, 0, 1, 2, 3]
    again = unravel(2 * flat)
    assert again["w"].tolist() == [[0, 2], [4, 6]]
    assert again["n"] is None
    # One dtype in, any dtype back: as integers.
    assert unravel(flat.astype("int32"))["w"].dtype == jnp.int32
    mixed = {"i": jnp.arange(2), "z": jnp.array([1 + 2j]), "f": jnp.float16(0.5)}
    flat, unravel = ravel_pytree(mixed)
    theirs, _ = jax.flatten_util.ravel_pytree(jax.tree.map(jax.numpy.asarray, mixed))
    assert flat.dtype == theirs.dtype
    assert tree.map(lambda x: x.dtype, unravel(flat)) == tree.map(lambda x: x.dtype, mixed)
    assert unravel(flat)["i"].tolist() == [0, 1]
    assert hash(unravel) == hash(ravel_pytree(mixed)[1])
    assert unravel == ravel_pytree(mixed)[1]
    assert ravel_pytree({})[0].shape == (0,)
    assert ravel_pytree([])[1](jnp.zeros(0)) == []


def test_ravel_in_transformations() -> None:
    value = {"w": jnp.ones(2), "b": 3.0}
    gradient = axir.grad(lambda t: (ravel_pytree(t)[0] ** 2).sum())(value)
    assert gradient["w"].tolist() == [2, 2]
    assert float(gradient["b"]) == 6
    flat, unravel = ravel_pytree(value)
    assert axir.jit(lambda v, u: u(v)["w"], static_argnums=1)(flat, unravel).tolist() == [1, 1]
    assert axir.vmap(lambda v: unravel(v)["w"])(jnp.stack([flat, flat])).shape == (2, 2)


def test_unravel_checks_its_vector() -> None:
    _, unravel = ravel_pytree({"a": jnp.arange(2), "b": 1.5})
    with pytest.raises(ShapeError, match="the tree has 3 elements"):
        unravel(jnp.zeros(2))
    with pytest.raises(DTypeError, match="given array of dtype int32, but expected dtype float32"):
        unravel(jnp.arange(3))


@pytest.mark.parametrize("takes_path", [False, True])
def test_is_leaf_is_asked_once_about_each_value(takes_path: bool) -> None:
    asked: list[object] = []

    def is_leaf(*arguments: object) -> bool:
        asked.append(arguments[-1])
        return arguments[-1] == (2, 3)

    tree = {"b": [1, (2, 3)], "a": {"c": None}}
    pairs, structure = tree_util.tree_flatten_with_path(tree, is_leaf, takes_path)
    assert asked == [tree, {"c": None}, None, [1, (2, 3)], 1, (2, 3)]
    assert [leaf for _, leaf in pairs] == [1, (2, 3)]
    assert structure.unflatten([5, 6]) == {"b": [5, 6], "a": {"c": None}}


def test_the_registry_looks_one_level_deep_as_jax_does() -> None:
    ours, theirs = tree_util.default_registry, jax.tree_util.default_registry
    assert ours.flatten_one_level(3) is theirs.flatten_one_level(3) is None
    for container in (None, (1, [2]), {"b": 1, "a": (2,)}, []):
        children, _ = ours.flatten_one_level(container)
        assert children == list(theirs.flatten_one_level(container)[0])
    assert ours.flatten([1, (2,)])[0] == [1, 2]
    assert ours.flatten_one_level_with_keys([5]) == ([(tree_util.SequenceKey(0), 5)], None)
