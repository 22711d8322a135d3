"""Trees: which containers there are, registration, and errors."""

from __future__ import annotations

import collections
import copy
import dataclasses
import functools
from collections import OrderedDict, defaultdict
from typing import Any

import jax
import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir import errors, tree, tree_util
from axir._trees.registration import StaticFieldError
from axir._trees.tree import broadcast_prefix

Point = collections.namedtuple("Point", ["x", "y"])


@pytest.mark.parametrize(
    "value",
    [
        {"b": 1, "a": (2, None, [3])},
        Point(1, {"k": 2}),
        collections.OrderedDict([("z", 1), ("a", 2)]),
        collections.defaultdict(list, {"a": [1]}),
        None,
        5,
        [],
    ],
)
def test_containers_round_trip(value) -> None:
    leaves, structure = tree.flatten(value)
    again = structure.unflatten(leaves)
    assert again == value
    assert type(again) is type(value)
    assert hash(structure) == hash(tree.structure(value))


def test_keys_are_sorted_and_none_is_a_node() -> None:
    assert tree.leaves({"b": 1, "a": None, "c": 0}) == [1, 0]
    assert tree.leaves(collections.OrderedDict([("b", 1), ("a", 2)])) == [1, 2]


def test_registered_classes_pass_through_transformations() -> None:
    class Pair:
        def __init__(self, x, y, tag):
            self.x, self.y, self.tag = x, y, tag

    tree_util.register_pytree_node(
        Pair, lambda p: ((p.x, p.y), p.tag), lambda tag, children: Pair(*children, tag)
    )

    @tree_util.register_dataclass
    @dataclasses.dataclass
    class Layer:
        w: object
        name: str = dataclasses.field(metadata={"static": True}, default="layer")

    @tree_util.register_pytree_node_class
    class Box:
        def __init__(self, value):
            self.value = value

        def tree_flatten(self):
            return (self.value,), None

        @classmethod
        def tree_unflatten(cls, auxiliary, children):
            return cls(*children)

    def f(pair, layer, box):
        assert (pair.tag, layer.name) == ("t", "first")
        return jnp.sum(pair.x * pair.y * layer.w) * box.value

    arguments = Pair(2.0, jnp.ones(3), "t"), Layer(jnp.arange(3.0), "first"), Box(2.0)
    for transform in (lambda g: g, axir.jit):
        pair, layer, box = transform(axir.grad(f, argnums=(0, 1, 2)))(*arguments)
        assert float(pair.x) == 6.0
        assert layer.w.shape == (3,)
        assert layer.name == "first"
        assert float(box.value) == 6.0


def test_map_reduce_transpose_paths() -> None:
    value = {"a": [1, 2], "b": 3}
    assert tree.map(lambda x, y: x * y, value, value) == {"a": [1, 4], "b": 9}
    assert tree.reduce(lambda x, y: x + y, value, 10) == 16
    assert tree.all({"a": True, "b": [1]})
    assert not tree.all([True, 0])
    assert tree_util.tree_map_with_path(lambda p, x: tree_util.keystr(p), value) == {
        "a": ["['a'][0]", "['a'][1]"],
        "b": "['b']",
    }
    pairs = {"a": (1, 2), "b": (3, 4)}
    outer, inner = tree.structure({"a": 0, "b": 0}), tree.structure((0, 0))
    assert tree.transpose(outer, inner, pairs) == ({"a": 1, "b": 3}, {"a": 2, "b": 4})
    assert tree_util.treedef_tuple([outer, inner]) == tree.structure(({"a": 0, "b": 0}, (0, 0)))
    assert tree_util.tree_multimap is tree_util.tree_map


def test_errors() -> None:
    with pytest.raises(errors.TreeError, match="the trees do not match"):
        tree.map(lambda x, y: x, {"a": 1}, {"b": 1})
    with pytest.raises(errors.TreeError, match="in_axes .* is not a prefix of the tree"):
        broadcast_prefix((0, 1), (1, 2, 3), "in_axes")


def test_leaves_with_path() -> None:
    pairs = tree_util.tree_leaves_with_path({"a": 1, "b": (2, None)})
    named = [(tree_util.keystr(path), leaf) for path, leaf in pairs]
    assert named == [("['a']", 1), ("['b'][0]", 2)]


def test_trees_whose_containers_know_their_children_are_transposed() -> None:
    class Cached:
        def __init__(self, children, shape):
            self.children, self.shape = children, shape

    tree_util.register_pytree_node(
        Cached,
        lambda x: (x.children, tree.structure(x.children)),
        lambda shape, children: Cached(tuple(children), shape),
    )
    outer = tree.structure(Cached((0, 0), None))
    pairs = Cached(((1, 2), (3, 4)), None)
    first, second = tree.transpose(outer, tree.structure((0, 0)), pairs)
    assert (first.children, second.children) == ((1, 3), (2, 4))
    assert tree.transpose(tree.structure([0, 0]), None, [(1, 2), (3, 4)]) == ([1, 3], [2, 4])
    with pytest.raises(errors.TreeError, match=r"have 6 leaves, but the tree has 4"):
        tree.transpose(tree.structure([0, 0]), tree.structure((0, 0, 0)), [(1, 2), (3, 4)])


def test_arguments_of_a_python_partial_are_no_children_of_a_partial() -> None:
    named = functools.partial(lambda name, x, y: {name: x - y}, "difference")
    partial = tree_util.Partial(named, 3.0)
    assert (partial.args, tree.leaves(partial)) == ((3.0,), [3.0])
    assert partial.func == named == tree_util.Partial(named).func
    assert hash(tree.structure(partial)) == hash(tree.structure(tree_util.Partial(named, 4.0)))
    assert axir.jit(lambda f: f(1.0))(partial) == {"difference": 2.0}
    assert tree.leaves(tree_util.Partial(partial, 1.0)) == [1.0]


def test_named_tuples_may_be_registered_with_other_children() -> None:
    class Tagged(collections.namedtuple("Tagged", ["tag", "value"])):
        pass

    tree_util.register_pytree_node(
        Tagged, lambda x: ((x.value,), x.tag), lambda tag, children: Tagged(tag, *children)
    )
    ((path, leaf),), structure = tree.flatten_with_path(Tagged("t", 2))
    assert (tree_util.keystr(path), leaf) == ("[<flat index 0>]", 2)
    assert structure.unflatten([3]) == Tagged("t", 3)


def test_dicts_have_their_keys_in_order_as_in_jax() -> None:
    given = {"b": 1.0, "a": OrderedDict(z=2.0, y=3.0), "c": [defaultdict(int, d=4.0, c=5.0)]}

    def keys(node: Any) -> Any:
        return list(node), list(node["a"]), list(node["c"][0])

    expected = keys(jax.tree.map(lambda x: x, given))
    assert expected == (["a", "b", "c"], ["z", "y"], ["c", "d"])
    gradient = axir.grad(lambda x: sum(axir.tree.leaves(x)))(given)
    leaves, structure = axir.tree.flatten(given)
    for found in (
        axir.tree.map(lambda x: x, given),
        axir.jit(lambda: given)(),
        gradient,
        structure.unflatten(leaves),
    ):
        assert keys(found) == expected
    assert type(gradient["c"][0]) is defaultdict
    assert structure == axir.tree.structure(dict(reversed(given.items())))
    assert axir.tree.map(lambda x: x, {"b": [2], "a": {"d": 1, "c": 0}}) == {
        "a": {"c": 0, "d": 1},
        "b": [2],
    }


def test_static_fields_that_cannot_be_compared_are_named() -> None:
    @functools.partial(tree_util.register_dataclass, data_fields=["x"], meta_fields=["name", "c"])
    @dataclasses.dataclass
    class Scaled:
        x: Any
        name: str
        c: Any

    def made(name: str = "a", size: int = 3) -> Scaled:
        return Scaled(1.0, name, np.ones(size))

    scale = axir.jit(lambda m: m.x * 2)
    scale(made())
    for other in (made(), made(size=4)):
        with pytest.raises(StaticFieldError, match="static field 'c' of 'Scaled', of type 'ndarr"):
            scale(other)
        with pytest.raises(ValueError, match="make a field that holds arrays a data field"):
            assert tree_util.tree_structure(made()) == tree_util.tree_structure(other)
    assert tree_util.tree_structure(made("a")) != tree_util.tree_structure(made("b"))
    # The same array, numbers, and their copies by pickle, are compared as they are.
    same, halve = made(), axir.jit(lambda m: m.x / 2)
    assert halve(same) == halve(same) == 0.5
    plain = tree_util.tree_structure(Scaled(1.0, "a", (1, 2)))
    assert plain == tree_util.tree_structure(Scaled(2.0, "a", (1, 2)))
    assert plain == copy.deepcopy(plain)


def test_map_goes_as_deep_as_flatten() -> None:
    tree = [1, None]
    for _ in range(700):
        tree = [tree]
    mapped = axir.tree.map(lambda x: x + 1, tree)
    assert axir.tree.leaves(mapped) == [2]
    assert axir.tree.structure(mapped) == axir.tree.structure(tree)


class Held:
    """A container with auxiliary data of any kind."""

    def __init__(self, x: Any, auxiliary: Any) -> None:
        self.x, self.auxiliary = x, auxiliary


tree_util.register_pytree_node(
    Held, lambda held: ((held.x,), held.auxiliary), lambda auxiliary, xs: Held(*xs, auxiliary)
)


def test_auxiliary_data_that_cannot_be_compared_are_told_of() -> None:
    def held(x: Any = 1.0) -> Held:
        return Held(x, (jnp.ones(2), "a"))

    def refused(what: str) -> Any:
        return pytest.raises(StaticFieldError, match=rf"{what}.*: auxiliary data of a container")

    double = axir.jit(lambda h: h.x * 2)
    kept = held()
    assert double(kept) == 2
    assert double(kept) == 2
    with refused("jit of '<lambda>'"):
        double(held())
    with refused("scan"):
        axir.lax.scan(lambda h, _: (held(h.x), None), held(), None, length=2)
    with refused("while_loop: body_fun"):
        axir.lax.while_loop(lambda h: h.x < 9.0, lambda h: held(h.x * 2), held())
    with pytest.raises(ValueError, match="make arrays children"):
        axir.lax.cond(True, lambda h: h, lambda h: held(h.x), held())
    with pytest.raises(ValueError, match="mine"):
        axir.jit(lambda h: [][: int("mine")])(kept)
