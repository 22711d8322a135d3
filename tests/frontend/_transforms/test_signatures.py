"""Keys of calls without general flattening, and the order of their leaves."""

from __future__ import annotations

import random
import warnings
from collections import OrderedDict, namedtuple

import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir import tree_util
from axir._transforms.signatures import kept_number, signature
from axir._trees import tree
from axir.dialect.core.config import config
from axir.dialect.core.errors import TransferGuardError

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


# Numbers ----------------------------------------------------------------------------------------


def test_equal_numbers_of_other_types_and_signs_stay_apart() -> None:
    identity = axir.jit(lambda x: x)
    for _ in range(2):
        for x in (1, True, 1.0, 1 + 0j, 1 - 0j, 0.0, -0.0, 0, False, float("nan"), float("inf")):
            result, dtype = identity(x), jnp.asarray(x).dtype
            assert result.dtype == dtype
            assert repr(np.asarray(result)) == repr(np.asarray(x, dtype))


def test_a_number_lies_on_the_device_after_its_first_call() -> None:
    _, [first] = signature((2.5,), {}, None, kept_number)
    _, [again] = signature(([2.5],), {}, None, kept_number)
    _, [of_its_own] = signature((2.5,), {}, None)
    assert first is again
    assert of_its_own is not first


def test_many_numbers_are_not_all_kept() -> None:
    first = kept_number(0.25)
    for x in range(1, 400):
        assert int(kept_number(x)) == x
    assert kept_number(0.25) is not first


def test_a_number_that_is_donated_can_be_passed_again() -> None:
    product = axir.jit(lambda x, y: x * y, donate_argnums=(0, 1))
    assert [float(product(1.5, 2.5)) for _ in range(3)] == [3.75] * 3
    assert float(axir.jit(lambda x: x + 1)(1.5)) == 2.5


def test_a_guard_sees_a_number_that_is_kept() -> None:
    double = axir.jit(lambda x: 2 * x)
    double(4.5)
    with axir.transfer_guard_host_to_device("disallow"), pytest.raises(TransferGuardError):
        double(4.5)
