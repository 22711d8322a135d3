"""Values that several threads want at once: made once, and no thread waits for ever."""

from __future__ import annotations

import threading

import pytest

from axir.dialect.core import single_flight as module
from axir.dialect.core.single_flight import made_once, single_flight


def in_threads(count, work):
    """Runs `work(number)` in threads that begin together; returns their results or exceptions."""
    barrier = threading.Barrier(count)
    results = [None] * count

    def run(number):
        barrier.wait()
        try:
            results[number] = work(number)
        except BaseException as error:
            results[number] = error

    threads = [threading.Thread(target=run, args=(n,), daemon=True) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()
    return results


class Slow:
    """Makes a new object when all others have begun to wait."""

    def __init__(self, waiting, error=None):
        self.waiting = waiting
        self.error = error
        self.calls = 0

    def __call__(self):
        self.calls += 1
        while len(module._waiting) < self.waiting:
            threading.Event().wait(0.001)
        if self.error is not None:
            raise self.error
        return object()


def test_a_value_is_made_once_for_all_who_wait():
    make = Slow(waiting=7)
    table = {}
    results = in_threads(8, lambda _: made_once(table, "key", make))
    assert make.calls == 1
    assert results == [table["key"]] * 8
    assert not module._flights
    assert not module._waiting


def test_all_who_wait_get_the_error():
    make = Slow(waiting=3, error=ValueError("no"))
    table = {}
    results = in_threads(4, lambda _: made_once(table, "key", make))
    assert make.calls == 1
    assert [str(error) for error in results] == ["no"] * 4
    assert made_once(table, "key", lambda: 5) == 5


def test_after_an_interrupt_another_thread_makes_the_value():
    make = Slow(waiting=2, error=KeyboardInterrupt())

    def first_interrupted():
        if make.calls:
            return 5
        return make()

    results = in_threads(3, lambda _: single_flight("key", first_interrupted)[0])
    assert sorted(type(x).__name__ for x in results) == ["KeyboardInterrupt", "int", "int"]


def test_what_is_not_to_be_shared_is_made_by_each():
    make = Slow(waiting=2)

    def own():
        return (make() if not make.calls else object(), threading.get_ident())

    table = {}
    results = in_threads(3, lambda _: made_once(table, "key", own, lambda value: False))
    assert len({ident for _, ident in results}) == 3
    assert table == {}


def test_a_value_that_needs_itself_is_made_again():
    depth = []

    def make():
        depth.append(0)
        return 1 if len(depth) == 3 else single_flight("key", make)[0] + 1

    assert single_flight("key", make) == (3, True)


@pytest.mark.parametrize("count", [2, 3])
def test_threads_that_need_each_others_values_do_not_wait_for_ever(count):
    begun = threading.Barrier(count)

    def make(number):
        begun.wait()
        other = (number + 1) % count
        return number, single_flight(other, lambda: (other,))[0][0]

    results = in_threads(count, lambda number: single_flight(number, lambda: make(number))[0])
    assert results == [(n, (n + 1) % count) for n in range(count)]
