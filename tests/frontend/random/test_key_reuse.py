"""Random keys that are used twice: by operations at once, and inside of programs."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

import axir
import axir.numpy as jnp
from axir import lax, random
from axir.errors import KeyReuseError
from axir.experimental.key_reuse import check_key_reuse, reuse_key


@pytest.fixture(autouse=True)
def keys_are_followed() -> Iterator[None]:
    with axir.debug_key_reuse(True):
        yield


def twice(key: axir.Array) -> axir.Array:
    return random.normal(key) + random.uniform(key)


def after_split(key: axir.Array) -> axir.Array:
    return random.normal(random.split(key)[0]) + random.normal(key)


def same_part(key: axir.Array) -> axir.Array:
    keys = random.split(key)
    return random.normal(keys[1]) + random.normal(keys[1])


def part_and_whole(key: axir.Array) -> axir.Array:
    keys = random.split(key)
    return random.normal(keys[1]) + axir.vmap(random.normal)(keys)[0]


def carried_unchanged(key: axir.Array) -> axir.Array:
    def body(state: tuple, _: object) -> tuple:
        key, total = state
        return (key, total + random.normal(key)), None

    return lax.scan(body, (key, 0.0), None, length=3)[0][1]


def in_a_call(key: axir.Array) -> axir.Array:
    inner = axir.jit(random.normal)
    return inner(key) + inner(key)


def after_a_branch(key: axir.Array) -> axir.Array:
    chosen = lax.cond(random.bits(random.fold_in(key, 1)) > 3, random.normal, lambda k: 0.0, key)
    return chosen + random.normal(key)


def parts(key: axir.Array) -> axir.Array:
    first, second = random.split(key)
    return random.normal(first) + random.normal(second)


def folded(key: axir.Array) -> axir.Array:
    return random.normal(random.fold_in(key, 1)) + random.normal(random.fold_in(key, 2))


def cloned(key: axir.Array) -> axir.Array:
    return random.normal(reuse_key(key)) + random.normal(key)


def split_in_each_pass(key: axir.Array) -> axir.Array:
    def body(key: axir.Array, _: object) -> tuple:
        key, subkey = random.split(key)
        return key, random.normal(subkey)

    return lax.scan(body, key, None, length=3)[1]


def in_one_of_two_branches(key: axir.Array) -> axir.Array:
    return lax.cond(True, random.normal, random.uniform, key)


def one_for_each_pass(key: axir.Array) -> axir.Array:
    return lax.map(random.normal, random.split(key, 4))


REUSES = [twice, after_split, same_part, part_and_whole, carried_unchanged, in_a_call]
REUSES += [after_a_branch]
USES = [parts, folded, cloned, split_in_each_pass, in_one_of_two_branches, one_for_each_pass]


@pytest.mark.parametrize("function", REUSES)
def test_reuse_in_a_program_is_found(function: Callable) -> None:
    with pytest.raises(KeyReuseError, match="consumed|key reuse when repeatedly executed"):
        check_key_reuse(function, random.key(0))
    with pytest.raises(KeyReuseError, match=r"(?s)Split the key.*random\.clone"):
        axir.jit(function)(random.key(0))


@pytest.mark.parametrize("function", USES)
def test_proper_use_is_left_alone(function: Callable) -> None:
    check_key_reuse(function, random.key(0))
    function(random.key(0))


def test_operations_use_keys_at_once() -> None:
    for function in (twice, after_split):
        with pytest.raises(KeyReuseError, match=r"test_key_reuse\.py"):
            function(random.key(0))
    words = random.PRNGKey(0)
    twice(words)  # words are numbers
    with axir.debug_key_reuse(False):
        twice(random.key(1))


def test_a_compiled_function_uses_the_keys_that_it_is_given() -> None:
    draw = axir.jit(lambda key, x: random.normal(key) * x)
    key = random.key(3)
    draw(key, 1.0)
    for call in (lambda: draw(key, 1.0), lambda: random.split(key)):
        with pytest.raises(KeyReuseError, match=r"Previously-consumed key of type key<fry>\[\]"):
            call()
    folding = axir.jit(lambda key, i: jnp.sum(random.key_data(random.fold_in(key, i))))
    other = random.key(4)
    assert folding(other, 1) != folding(other, 2)
