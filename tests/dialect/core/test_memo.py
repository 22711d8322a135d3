"""Values derived from an object: made once, kept with it, and freed with it."""

from __future__ import annotations

import gc
import threading
import weakref

import pytest

import axir
import axir.numpy as jnp
from axir.dialect.core.memo import LIMIT, Memo, derived, quickly_derived
from axir.dialect.program.derived_functions import derive


class Owner:
    def __init__(self):
        self.derived = Memo()


class Made:
    def __init__(self, *arguments):
        self.arguments = arguments


@derived
def made(owner, *arguments, **options):
    return Made(*arguments, *options.items())


@derived
def made_otherwise(owner, *arguments):
    return Made(*arguments)


def test_a_value_is_made_once_for_each_owner_and_arguments():
    first, second = Owner(), Owner()
    assert made(first, 1) is made(first, 1)
    others = [
        made(first),
        made(first, 2),
        made(second, 1),
        made(first, 1, a=1),
        made(first, 1, a=2),
    ]
    assert len({id(x) for x in [made(first, 1), *others]}) == 6
    assert made(first, 1, a=2).arguments == (1, ("a", 2))


def test_what_is_made_quickly_is_kept_as_well():
    calls = []

    @quickly_derived
    def count(owner, start):
        calls.append(start)
        return len(calls)

    first, second = Owner(), Owner()
    assert [count(first, 0), count(first, 0), count(second, 0), count(first, 1)] == [1, 1, 2, 3]


def test_functions_do_not_share_values():
    owner = Owner()
    assert made(owner, 1) is not made_otherwise(owner, 1)


def test_the_first_of_several_owners_keeps_the_value():
    first, second, third = Owner(), Owner(), Owner()
    value = made((first, second))
    assert made((first, second)) is value
    assert made((first, third)) is not value
    assert made((second, first)) is not value
    assert len(first.derived) == 2
    assert len(second.derived) == 1


def test_false_and_nothing_are_values():
    calls = []

    @derived
    def is_empty(owner):
        calls.append(owner)
        return False

    owner = Owner()
    assert [is_empty(owner), is_empty(owner)] == [False, False]
    assert calls == [owner]


def test_an_error_is_not_kept():
    fails = [True]

    @derived
    def fallible(owner):
        if fails.pop():
            raise ZeroDivisionError
        return "value"

    owner = Owner()
    fails.insert(0, False)
    with pytest.raises(ZeroDivisionError):
        fallible(owner)
    assert fallible(owner) == "value"


def test_threads_share_one_making():
    calls = []
    barrier = threading.Barrier(4)

    @derived
    def slow(owner):
        calls.append(threading.get_ident())
        threading.Event().wait(0.05)
        return Made()

    def ask():
        barrier.wait()
        results.append(slow(owner))

    owner, results = Owner(), []
    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(calls) == 1
    assert len(set(map(id, results))) == 1


def test_an_owner_keeps_a_bounded_number_of_values():
    owner = Owner()
    oldest, kept = weakref.ref(made(owner, 0)), made(owner, LIMIT)
    for number in range(1, 3 * LIMIT):
        made(owner, number + LIMIT)
    assert len(owner.derived) == LIMIT
    assert oldest() is None
    assert kept.arguments == (LIMIT,)
    assert made(owner, 0).arguments == (0,)


def test_threads_that_store_at_once_keep_the_bound():
    owner = Owner()

    def store(start):
        for number in range(start, start + 2 * LIMIT):
            made(owner, number)

    threads = [threading.Thread(target=store, args=(n * 10_000,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert len(owner.derived) <= LIMIT


def test_a_function_keeps_a_bounded_number_of_its_vectorized_forms():
    inner = axir.jit(lambda x: jnp.sin(x))
    (call,) = axir.make_jaxpr(inner)(1.0).eqns
    function = call.params["jaxpr"]
    for size in range(1, LIMIT + 50):
        derive(function, "vmap", size, (0,))
    assert len(function.derived) == LIMIT
    assert derive(function, "vmap", 7, (0,)).function.input_types[0].shape == (7,)


def test_values_go_with_their_owner():
    owner = Owner()
    value = weakref.ref(made(owner, 1))
    assert value() is not None
    del owner
    gc.collect()
    assert value() is None
