"""Engines: parts reach every device, and devices that cannot meet get an error instead of waiting.

Each test runs the threads of a few devices; programs are Python functions that communicate.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

from axir.dialect.core.types import ShapedArray
from axir.dialect.program.meshes.communication import Collective
from axir.runtime.device.buffers import ALIGNMENT
from axir.runtime.errors import (
    CollectiveAbortedError,
    CollectiveTimeoutError,
    UnequalProgramsError,
)
from axir.runtime.spmd.engines import ThreadEngine

PART = ShapedArray((4, 6), np.float32)
ALL = ((0, 1, 2, 3),)
PAIRS = ((0, 2), (1, 3))


def collective(
    kind: str,
    groups: tuple = ALL,
    shape: tuple = (4, 6),
    dtype: object = np.float32,
    **rest: object,
) -> Collective:
    return Collective(kind, groups, PART, ShapedArray(shape, dtype), **rest)


def run(engine: ThreadEngine, program: Callable[[int], object], size: int = 4) -> list:
    """Runs a program on every device; returns the results, or errors in their places."""
    results: list = [None] * size

    def run_one(position: int) -> None:
        try:
            results[position] = program(position)
            engine.finish(position)
        except Exception as error:
            results[position] = error
            engine.abort(error)

    threads = [threading.Thread(target=run_one, args=(p,), daemon=True) for p in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert not any(thread.is_alive() for thread in threads), "somebody waits for ever"
    return results


def parts(dtype: object = np.float32, count: int = 4) -> list[np.ndarray]:
    random = np.random.default_rng(0)
    return [random.integers(-9, 9, PART.shape).astype(dtype) for _ in range(count)]


def one(c: Collective, given: list[np.ndarray]) -> list[np.ndarray]:
    engine = ThreadEngine(len(given))
    return run(engine, lambda p: engine.communicate(c, p, given[p]), len(given))


@pytest.mark.parametrize("groups", [ALL, PAIRS])
@pytest.mark.parametrize(("kind", "reduce"), [("psum", np.sum), ("pmax", np.max), ("pmin", np.min)])
def test_reductions_give_each_member_that_of_its_group(kind, reduce, groups) -> None:
    for dtype in (np.float32, np.int32, ml_dtypes.bfloat16):
        given = parts(dtype)
        found = one(collective(kind, groups, dtype=dtype), given)
        for group in groups:
            expected = reduce([given[p] for p in group], axis=0)
            for p in group:
                np.testing.assert_array_equal(found[p], expected.astype(dtype))
                assert found[p] is found[group[0]], "members share one result"
                assert not found[p].flags.writeable


def test_sums_of_scalars() -> None:
    kind = ShapedArray((), np.float32)
    for groups in (ALL, PAIRS):
        given = [np.array(2.0**n, np.float32) for n in range(4)]
        found = one(Collective("psum", groups, kind, kind), given)
        for group in groups:
            for p in group:
                assert type(found[p]) is np.ndarray
                assert found[p] == sum(2.0**n for n in group)


def test_large_sums_are_those_of_numpy() -> None:
    big = [np.random.default_rng(n).normal(size=100_003).astype(np.float32) for n in range(4)]
    kind = ShapedArray(big[0].shape, np.float32)
    found = one(Collective("psum", ALL, kind, kind), big)
    np.testing.assert_array_equal(found[3], big[0] + big[1] + big[2] + big[3])
    # So devices use it without a copy; small arrays they copy.
    assert found[3].__array_interface__["data"][0] % ALIGNMENT == 0


def test_narrow_sums_are_rounded_once() -> None:
    given = [np.full(PART.shape, x, np.float16) for x in (2048, 1, 1, 1)]
    found = one(collective("psum", dtype=np.float16), given)
    assert found[0][0, 0] == np.float16(2051)


@pytest.mark.parametrize("tiled", [True, False])
@pytest.mark.parametrize("dimension", [0, 1])
def test_all_gather_and_its_transpose(tiled: bool, dimension: int) -> None:
    given = parts()
    join = np.concatenate if tiled else np.stack
    expected = [join([given[p] for p in group], axis=dimension) for group in PAIRS]
    c = collective("all_gather", PAIRS, expected[0].shape, dimension=dimension, is_tiled=tiled)
    found = one(c, given)
    for group, whole in zip(PAIRS, expected, strict=True):
        for p in group:
            np.testing.assert_array_equal(found[p], whole)
    wholes = [found[p] + p for p in range(4)]
    kind = ShapedArray(expected[0].shape, np.float32)
    back = Collective("reduce_scatter", PAIRS, kind, PART, dimension=dimension, is_tiled=tiled)
    scattered = one(back, wholes)
    for group in PAIRS:
        total = sum(wholes[p] for p in group)
        pieces = np.split(total, 2, axis=dimension)
        for p, piece in zip(group, pieces, strict=True):
            np.testing.assert_array_equal(scattered[p].ravel(), piece.ravel())
            assert scattered[p].shape == PART.shape


def test_all_to_all_exchanges_pieces() -> None:
    given = parts()
    c = collective("all_to_all", shape=(1, 24), dimension=0, concat_dimension=1)
    found = one(c, given)
    for receiver in range(4):
        pieces = [given[sender][receiver : receiver + 1] for sender in range(4)]
        np.testing.assert_array_equal(found[receiver], np.concatenate(pieces, 1))


def test_ppermute_sends_copies_and_zeros() -> None:
    given = parts()
    found = one(collective("ppermute", permutation=((0, 1), (1, 2), (2, 3))), given)
    np.testing.assert_array_equal(found[0], np.zeros(PART.shape))
    for p in (1, 2, 3):
        np.testing.assert_array_equal(found[p], given[p - 1])
        assert not np.shares_memory(found[p], given[p - 1]), "a sender's memory is used again"


def test_groups_go_on_at_their_own_pace() -> None:
    engine = ThreadEngine(4)
    c = collective("psum", PAIRS)

    def program(position: int) -> np.ndarray:
        x = np.ones(PART.shape, np.float32)
        for _ in range(50 if position % 2 else 3):
            x = engine.communicate(c, position, x) / 2
        return x

    for found in run(engine, program):
        np.testing.assert_array_equal(found, np.ones(PART.shape))


def test_another_collective_is_an_error_on_all() -> None:
    engine = ThreadEngine(4)
    found = run(
        engine,
        lambda p: engine.communicate(collective("pmax" if p == 2 else "psum"), p, parts()[0]),
    )
    assert all(isinstance(x, UnequalProgramsError) for x in found)
    assert "do not run the same collectives in the same order" in str(found[0])
    assert "pmax of float32[4,6]" in str(found[0])


def test_a_device_that_ends_early_leaves_nobody_waiting() -> None:
    engine = ThreadEngine(4, name_of=lambda p: f"cpu:{p}")

    def program(position: int) -> None:
        if position != 1:
            engine.communicate(collective("psum"), position, parts()[0])

    found = run(engine, program)
    assert found[1] is None
    for p in (0, 2, 3):
        assert isinstance(found[p], UnequalProgramsError)
        assert "cpu:1 has finished; cpu:2 waits in psum" in str(found[p])


def test_groups_that_wait_for_each_other_are_found() -> None:
    engine = ThreadEngine(4)

    def program(position: int) -> None:
        groups = PAIRS if position < 2 else ALL
        engine.communicate(collective("psum", groups), position, parts()[0])

    assert all(isinstance(x, UnequalProgramsError) for x in run(engine, program))


def test_a_failure_reaches_those_who_wait() -> None:
    engine = ThreadEngine(4)

    def program(position: int) -> None:
        if position == 3:
            raise KeyError("mine")
        engine.communicate(collective("psum"), position, parts()[0])

    found = run(engine, program)
    assert isinstance(found[3], KeyError)
    for p in range(3):
        assert isinstance(found[p], CollectiveAbortedError)
        assert "Another device of the mesh has failed: KeyError('mine')" in str(found[p])
        assert found[p].__cause__ is found[3]


def test_a_device_that_computes_for_too_long_is_named() -> None:
    engine = ThreadEngine(2, time_limit=0.05)
    c = Collective("psum", ((0, 1),), PART, PART)
    release = threading.Event()

    def program(position: int) -> None:
        if position == 1:
            release.wait(20)
        try:
            engine.communicate(c, position, parts()[0])
        finally:
            release.set()

    found = run(engine, program, 2)
    assert all(isinstance(x, CollectiveTimeoutError) for x in found)
    assert "device 0 has waited 0.05 seconds in psum of float32[4,6]" in str(found[0])
    assert "for device 1" in str(found[0])
    assert "axir_collective_timeout" in str(found[0])


def test_a_combination_that_fails_fails_for_all() -> None:
    engine = ThreadEngine(2)
    c = Collective("psum", ((0, 1),), PART, PART)
    given = [np.ones((2, 2), np.float32), np.ones(3, np.float32)]
    found = run(engine, lambda p: engine.communicate(c, p, given[p]), 2)
    assert sorted(type(x).__name__ for x in found) == ["CollectiveAbortedError", "ValueError"]
