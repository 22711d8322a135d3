"""`renew-loop-operands`: arrays that a loop changes in place are renewed in each iteration."""

from __future__ import annotations

import numpy as np
import pytest
from support.stablehlo_runner import Example, deviations, run_examples

import axir as jax
import axir.numpy as jnp
from axir import lax
from axir.dialect.builders import stablehlo as hlo
from axir.dialect.builders.kernels import dispatch
from axir.dialect.builders.scalars import constant, float32

KEYS = np.array([[2, 0, 1], [1, 2, 0], [2, 1, 0]], np.int32)


def orders(keys, enumeration):
    """Sorts an iota along with each row of keys."""

    def step(row, result):
        zero = hlo.constant(0, np.int32)
        entries = hlo.reshape(hlo.dynamic_slice(keys, [row, zero], (1, 3)), (3,))
        _, order = hlo.sort([entries, enumeration], 0, lambda a, b, *_: hlo.compare(a, b, "LT"))
        result = hlo.dynamic_update_slice(result, hlo.reshape(order, (1, 3)), [row, zero])
        return [hlo.add(row, hlo.constant(1, np.int32)), result]

    def goes_on(row, _):
        return hlo.compare(row, hlo.constant(3, np.int32), "LT")

    return hlo.while_([hlo.constant(0, np.int32), hlo.full_like(keys, 0)], goes_on, step)[1]


@pytest.mark.parametrize("is_renewed", [False, True])
def test_enumeration_in_a_loop(is_renewed: bool) -> None:
    arguments = KEYS, np.arange(3, dtype=np.int32)
    example = Example("orders", arguments, orders, np.argsort(KEYS, axis=1).astype(np.int32))
    passes = "protect-inputs,renew-loop-operands" if is_renewed else "protect-inputs"
    results = run_examples([example], passes)
    assert (deviations(results["orders"], example) == []) == is_renewed


def add_to(x, y):
    for place in range(3):
        y[place] = x[place] + y[place]


def fill(y):
    for place in range(3):
        y[place] = constant(7, float32())


def with_kernels(start, fixed):
    """Runs a kernel that overwrites its second operand, and a kernel without operands."""

    def step(row, total):
        (added,) = dispatch(add_to, [total, fixed], [fixed.type], in_place={0: 1})
        (filled,) = dispatch(fill, [], [fixed.type])
        return [hlo.add(row, hlo.constant(1, np.int32)), hlo.add(added, filled)]

    def goes_on(row, _):
        return hlo.compare(row, hlo.constant(3, np.int32), "LT")

    return hlo.while_([hlo.constant(0, np.int32), start], goes_on, step)[1]


def test_kernels_in_a_loop() -> None:
    arguments = np.float32([1, 2, 3]), np.float32([10, 20, 30])
    expected = arguments[0] + 3 * (arguments[1] + 7)
    example = Example("kernels", arguments, with_kernels, expected)
    results = run_examples([example], "protect-inputs,renew-loop-operands")
    assert deviations(results["kernels"], example) == []


def test_arrays_of_the_surroundings() -> None:
    """Tests captured arrays, arrays computed from them, constants, branches, and iotas."""

    def steps(xs, fixed):
        def step(place, x):
            start = (place,)
            updated = [
                lax.dynamic_update_slice(fixed, x[:2], start),
                lax.dynamic_update_slice(jnp.cos(fixed), x[:2], start),
                lax.dynamic_update_slice(lax.iota("float32", 6), x[:2], start),
                lax.cond(
                    place % 2 == 0,
                    lambda: lax.dynamic_update_slice(fixed, x[:2], start),
                    lambda: fixed,
                ),
                jnp.argsort(x),
            ]
            return place + 1, updated

        return lax.scan(step, 0, xs)[1]

    xs = np.cos(np.arange(24, dtype=np.float32)).reshape(4, 6)
    fixed = np.arange(6, 12, dtype=np.float32)
    for compiled, eager in zip(jax.jit(steps)(xs, fixed), steps(xs, fixed), strict=True):
        np.testing.assert_allclose(compiled, eager, atol=1e-5)
    np.testing.assert_array_equal(jax.jit(steps)(xs, fixed)[-1], np.argsort(xs, axis=1))
