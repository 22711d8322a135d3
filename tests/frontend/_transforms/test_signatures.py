"""What tells calls apart that need no flattening, and the leaves in their order."""

from __future__ import annotations

import random
import warnings
from collections import OrderedDict, namedtuple

import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir import tree_util
from axir._transforms.signatures import signature
from axir._trees import tree
from axir.dialect.core.config import config

Pair = namedtuple("Pair", "first second")
Swapped = namedtuple("Swapped", "first second")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of optree: a named tuple that is registered
    tree_util.register_pytree_node(
        Swapped, lambda x: ((x.second, x.first), None), lambda _, x: Swapped(x[1], x[0])
    )
A, B, C = (jnp.full(2, float(n)) for n in range(3))


def key_of(*args, **kwargs):
    return signature(args, kwargs, None)[0]


def random_tree(generator, depth=3):
    kind = generator.choice(["array", "array", "none", "list", "tuple", "dict", "pair", "number"])
    if depth == 0 or kind == "array":
        return jnp.zeros(generator.choice([(), (2,)]))
    if kind == "none":
        return None
    if kind == "number":
        return generator.choice([True, 1, 2.5, 1j, np.arange(3), np.ones((2, 1), np.float64)])
    children = [random_tree(generator, depth - 1) for _ in range(generator.randint(0, 3))]
    if kind == "dict":
        names = generator.sample("abcd", len(children))
        return dict(zip(names, children, strict=True))
    if kind == "pair":
        return Pair(*(random_tree(generator, depth - 1) for _ in range(2)))
    return children if kind == "list" else tuple(children)


def test_leaves_and_keys_are_those_of_the_tree():
    generator = random.Random(0)
    seen = {}
    for _ in range(400):
        args = tuple(random_tree(generator) for _ in range(generator.randint(0, 3)))
        kwargs = {n: random_tree(generator) for n in generator.sample("xyz", 2)}
        key, leaves = signature(args, kwargs, None)
        expected, structure = tree.flatten((args, kwargs))
        for leaf, x in zip(leaves, expected, strict=True):
            assert leaf is x or not isinstance(x, axir.Array)
        types = tuple(axir.typeof(x) for x in expected)
        assert seen.setdefault(key, (structure, types)) == (structure, types)
    assert len(set(seen.values())) == len(seen)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (((A, B), {}), (((A, B),), {})),
        (([A, B],), ((A, B),)),
        (([[A], B],), ([A, [B]],)),
        (({"a": A, "b": B},), ({"a": A, "c": B},)),
        ((A, None), (None, A)),
        ((1,), (True,)),
        ((1.0,), (1,)),
        ((A,), (jnp.zeros(3),)),
        ((Pair(A, B),), ((A, B),)),
    ],
)
def test_different_calls_have_different_keys(one, other):
    assert key_of(*one) is not None
    assert key_of(*one) != key_of(*other)


def test_positional_dictionaries_are_no_keyword_arguments():
    assert key_of({"a": A}) != key_of(a=A)


def test_keys_depend_on_options_and_static_arguments():
    plain = key_of(A)
    assert plain == key_of(B)
    with config(axir_opt_level=1):
        assert key_of(A) != plain
    assert signature((A,), {}, 1)[0] != plain


@pytest.mark.parametrize(
    "x",
    [
        np.array([None]),
        "text",
        Swapped(A, B),
        OrderedDict(a=A),
        {1: A},
        [1 << 80],
    ],
    ids=str,
)
def test_other_arguments_are_left_to_the_tree(x):
    assert key_of(x) is None
    assert key_of(A, [x]) is None


def test_keys_depend_on_where_arrays_are_committed_to_lie():
    here = axir.device_put(A, axir.devices()[0])
    assert key_of(here) == key_of(axir.device_put(B, axir.devices()[0]))
    assert key_of(here) != key_of(A)
    assert key_of([here, A]) != key_of([A, here])


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_calls_with_nested_arguments_give_the_same_every_time(order):
    @axir.jit
    def f(pair, scale, *, d, e=None):
        assert e is None
        return Pair(pair.second * scale, {k: v - pair.first for k, v in d.items()})

    d = {name: {"a": B, "b": C}[name] for name in order}
    for _ in range(30):
        result = f(Pair(A, B), 3.0, d=d)
        assert result.first.tolist() == [3, 3]
        assert {k: v.tolist() for k, v in result.second.items()} == {"a": [1, 1], "b": [2, 2]}
        assert f(Swapped(A, B), 2, d=d).first.tolist() == [2, 2]
