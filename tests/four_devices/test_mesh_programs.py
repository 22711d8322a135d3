"""Programs of parts on four devices: collectives, loops, donation, failures, one after the other.

The oracle is the same program vectorized under the names of the axes, on one device.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir import errors, lax
from axir.dialect.core.types import ShapedArray
from axir.dialect.program.effects import named_axis
from axir.dialect.program.function_tracing import trace_function
from axir.runtime.errors import MeshExecutionError, UnequalProgramsError
from axir.runtime.spmd.placement import Placement, ShardedBuffer
from axir.runtime.spmd.program import MeshProgram

AXES = (("x", 2), ("y", 2))
PART = (4, 2)
LAYOUT = (("x", "y"),)


def place(*layout: Sequence[str]) -> Placement:
    return Placement(axir.devices(), AXES, layout)


def program(body: Callable[..., Sequence[Any]], *dtypes: Any, **options: Any) -> MeshProgram:
    """Compiles a function of parts, whose arguments and results are cut along all axes."""
    types = [ShapedArray(PART, dtype) for dtype in dtypes]
    with named_axis("x", 2), named_axis("y", 2):
        function = trace_function(lambda *parts: list(body(*parts)), types, name="body")
    places = [place(*LAYOUT)] * len(types)
    results = [place(*LAYOUT)] * len(function.outputs)
    return MeshProgram(function, axir.devices(), AXES, places, results, **options)


def on_one_device(body: Callable[..., Sequence[Any]], *wholes: np.ndarray) -> list[np.ndarray]:
    """Returns what the vectorized function gives, all parts along the first dimension."""
    mapped = axir.vmap(axir.vmap(body, axis_name="y"), axis_name="x")
    results = mapped(*[jnp.asarray(x.reshape(2, 2, *PART)) for x in wholes])  # op by op
    return [np.asarray(x).reshape(-1, *x.shape[3:]) for x in results]


def check(body: Callable[..., Sequence[Any]], *wholes: np.ndarray) -> None:
    found = program(body, *[x.dtype for x in wholes]).run([jnp.asarray(x) for x in wholes])
    expected = on_one_device(body, *wholes)
    for result, whole in zip(found, expected, strict=True):
        assert type(result._buffer) is ShardedBuffer
        np.testing.assert_allclose(np.asarray(result), whole, rtol=1e-5)


def whole(seed: int = 0, dtype: Any = np.float32) -> np.ndarray:
    return (10 * np.random.default_rng(seed).normal(size=(16, 2))).astype(dtype)


def test_collectives_are_those_of_vectorized_axes() -> None:
    def body(x: Any, n: Any) -> Sequence[Any]:
        index = lax.axis_index(("x", "y"))
        return [
            lax.psum(x, "x"),
            lax.psum(n, ("x", "y")),
            lax.pmean(x, "y"),
            lax.pmax(x, ("y", "x")),
            lax.pmin(n, "x"),
            lax.psum(x, "x", axis_index_groups=[[1, 0]]),
            jnp.full(PART, index, jnp.int32) + n,
            lax.all_gather(x, "y"),
            lax.all_gather(n, "x", axis=1, tiled=True),
            lax.psum_scatter(x, "y", scatter_dimension=1, tiled=True),
            lax.all_to_all(x, "x", 0, 1, tiled=True),
            lax.ppermute(x, "y", [(0, 1)]),
            lax.pshuffle(n, "x", [1, 0]),
            lax.psum(x > 0, "y"),
        ]

    check(body, whole(), whole(1, np.int32))


def test_dtypes_that_devices_exchange() -> None:
    with axir.enable_x64(True):
        wholes = [whole(n, t) for n, t in enumerate((np.float64, np.uint8, np.int64, np.complex64))]
        check(
            lambda *xs: [lax.psum(x, "x") for x in xs] + [lax.all_gather(x, "y") for x in xs],
            *wholes,
        )
    halves = [whole(0, np.float16), np.asarray(whole(), jnp.bfloat16)]
    check(lambda *xs: [lax.ppermute(x, "x", [(0, 1), (1, 0)]) for x in xs], *halves)


def test_loops_and_branches_communicate_in_their_order() -> None:
    def body(x: Any) -> Sequence[Any]:
        def step(carry: Any, k: Any) -> Any:
            carry = lax.cond(
                k % 2 == 0,
                lambda c: lax.psum(c, "x") / 2,
                lambda c: c - lax.pmean(c, "y"),
                carry,
            )
            return carry.at[0].set(lax.pmax(carry[0], "x")), carry.sum()

        last, sums = lax.scan(step, x, jnp.arange(5))
        count = lax.while_loop(
            lambda s: lax.psum(s, ("x", "y")).sum() < 1000.0, lambda s: 2 * s, jnp.abs(x) + 1
        )
        return [last, jnp.broadcast_to(sums, (4, 5)), count]

    check(body, whole())


def test_results_of_collectives_are_not_overwritten() -> None:
    def body(x: Any) -> Sequence[Any]:
        total = lax.psum(x, "x")
        changed = total.at[0].set(lax.axis_index("x").astype(jnp.float32))
        rows = lax.all_gather(x, "x").at[0, 0].add(1.0)
        return [changed, total, lax.psum(total, "y"), rows[0], jnp.sort(total, 0)]

    check(body, whole())


def test_large_parts_are_exchanged_without_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    from axir.runtime.device import devices as module

    types = [ShapedArray((1 << 16,), np.float32)]
    with named_axis("x", 2), named_axis("y", 2):
        function = trace_function(lambda x: [lax.psum(x, ("x", "y")) * 2], types, name="large")
    made = MeshProgram(function, axir.devices(), AXES, [place(*LAYOUT)], [place(*LAYOUT)])
    x = axir.device_put(np.ones(1 << 18, np.float32), place_of_user())
    made.run([x])[0].block_until_ready()
    copied = []
    plain = module.Device._copy_in

    def counting(device: Any, array: np.ndarray, element: Any) -> Any:
        copied.append(array.nbytes)
        return plain(device, array, element)

    monkeypatch.setattr(module.Device, "_copy_in", counting)
    monkeypatch.setattr(module.CpuDevice, "_copy_in", counting)
    result = made.run([x])[0].block_until_ready()
    assert not [n for n in copied if n > 1000]
    np.testing.assert_array_equal(result, np.full(1 << 18, 8.0))


def place_of_user() -> Any:
    mesh = axir.sharding.Mesh(np.array(axir.devices()).reshape(2, 2), ("x", "y"))
    return axir.sharding.NamedSharding(mesh, axir.sharding.PartitionSpec(("x", "y")))


def test_calls_return_before_they_are_done_and_follow_each_other() -> None:
    def body(x: Any) -> Sequence[Any]:
        return [lax.fori_loop(0, 200, lambda _, c: jnp.sin(lax.pmean(c, "x")) + x, x)]

    step = program(body, np.float32)
    x = first = jnp.asarray(whole())
    expected = np.asarray(first)
    for _ in range(3):
        (x,) = step.run([x])
        (expected,) = on_one_device(body, expected)
    np.testing.assert_allclose(np.asarray(x), expected, rtol=1e-4)


def test_threads_may_call_at_the_same_time() -> None:
    step = program(lambda x: [lax.psum(x, ("x", "y")) / 4 + x], np.float32)
    wholes = [axir.device_put(whole(n), place_of_user()) for n in range(4)]
    expected = [x + np.tile(x.reshape(4, *PART).sum(0) / 4, (4, 1)) for x in map(whole, range(4))]
    results: list[Any] = [None] * 4

    def run(n: int) -> None:
        results[n] = [np.asarray(step.run([wholes[n]])[0]) for _ in range(10)]

    threads = [threading.Thread(target=run, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    for found, wanted in zip(results, expected, strict=True):
        for x in found:
            np.testing.assert_allclose(x, wanted, rtol=1e-5)


def test_donated_parts_are_deleted_and_shared_ones_are_left_alone() -> None:
    def body(x: Any, y: Any) -> Sequence[Any]:
        return [x.at[0].add(lax.psum(y, "x")[0]), lax.psum(y, ("x", "y"))]

    step = program(body, np.float32, np.float32, donated=(0,))
    x, y = whole(), whole(1)
    expected = on_one_device(body, x, y)
    a, b = (axir.device_put(v, place_of_user()) for v in (x, y))
    alias = np.asarray(a)
    first, total = step.run([a, b])
    assert a.is_deleted()
    assert not b.is_deleted()
    np.testing.assert_allclose(np.asarray(first), expected[0], rtol=1e-5)
    np.testing.assert_array_equal(alias, x)
    # All devices share the memory of what they exchanged: nobody may write there.
    again, _ = step.run([total, b])
    assert total.is_deleted()
    np.testing.assert_allclose(np.asarray(again), on_one_device(body, expected[1], y)[0], rtol=1e-5)
    with pytest.raises(errors.DeletedArrayError):
        step.run([a, b])
    with pytest.raises(errors.DonationError, match="is argument 1 of the call is donated"):
        step.run([b, b])
    np.testing.assert_array_equal(np.asarray(b), y)


def test_a_failure_on_one_device_names_it_and_ends_all() -> None:
    def fail(position: Any) -> Any:
        if position == 2:
            raise KeyError("mine")
        return np.int64(position)

    def body(x: Any) -> Sequence[Any]:
        index = lax.axis_index(("x", "y"))
        checked = axir.pure_callback(fail, axir.ShapeDtypeStruct((), np.int64), index)
        return [lax.psum(x + checked, ("x", "y"))]

    with axir.enable_x64(True):  # which holds in the callbacks as well
        step = program(body, np.float32)
        (result,) = step.run([jnp.asarray(whole())])
    for _ in range(2):
        with pytest.raises(MeshExecutionError, match="failed on cpu:2, one of 4 devices") as caught:
            result.block_until_ready()
        assert "KeyError: 'mine'" in str(caught.value)
        assert isinstance(caught.value.__cause__, KeyError)
    (dependent,) = step.run([result])
    with pytest.raises(MeshExecutionError, match="cpu:2"):
        np.asarray(dependent)


def test_unequal_programs_are_found() -> None:
    def body(x: Any) -> Sequence[Any]:
        first = lax.axis_index(("x", "y")) == 0
        return [lax.cond(first, lambda c: lax.psum(c, "x"), lambda c: c, x)]

    (result,) = program(body, np.float32).run([jnp.asarray(whole())])
    with pytest.raises(UnequalProgramsError, match="cpu:0 waits in psum .* has finished"):
        result.block_until_ready()


def test_an_unknown_axis_is_named() -> None:
    types = [ShapedArray(PART, np.float32)]
    with named_axis("z", 2):
        function = trace_function(lambda x: [lax.psum(x, "z")], types, name="body")
    with pytest.raises(errors.UnboundAxisNameError, match="axis name: 'z'. The axes of the mesh"):
        MeshProgram(function, axir.devices(), AXES, [place(*LAYOUT)], [place(*LAYOUT)])
