"""`pure_callback` and `io_callback`: under every transformation, eager and compiled."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir.dialect.core.errors import (
    CallbackError,
    HostCallNeededError,
    MissingRuleError,
    NonArrayArgumentError,
    ParameterError,
    UnsupportedRuleError,
)
from axir.experimental import io_callback

SCALAR = axir.ShapeDtypeStruct((), "float32")
MODES: dict[str, Callable[..., Any]] = {"eager": lambda f: f, "jit": axir.jit}


@pytest.fixture(params=MODES)
def run(request: pytest.FixtureRequest) -> Callable[..., Any]:
    return MODES[request.param]


def host_sin(x: Any, vmap_method: str | None = None) -> Any:
    like = axir.ShapeDtypeStruct(x.shape, x.dtype)
    return axir.pure_callback(np.sin, like, x, vmap_method=vmap_method)


def test_pure_callback_computes(run: Callable[..., Any]) -> None:
    x = jnp.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(run(host_sin)(x), np.sin(np.asarray(x)))


def test_trees_travel_both_ways(run: Callable[..., Any]) -> None:
    def swap(pair: Any, *, scale: Any) -> Any:
        return {"first": pair[1], "second": (pair[0] * scale, None)}

    x, y = jnp.arange(3), jnp.ones((2, 2), jnp.bfloat16)
    like = {"first": axir.ShapeDtypeStruct((2, 2), jnp.bfloat16), "second": (x, None)}
    result = run(lambda x, y: axir.pure_callback(swap, like, (x, y), scale=2))(x, y)
    assert result["first"].dtype == jnp.bfloat16
    assert result["second"][0].tolist() == [0, 2, 4]
    assert result["second"][1] is None


def test_callbacks_get_arrays_that_they_may_keep() -> None:
    kept = []
    f = axir.jit(
        lambda x: axir.pure_callback(lambda v: (kept.append(v), v)[1], x, x + 1).at[0].set(-1.0)
    )
    for start in (0.0, 10.0):
        f(jnp.full(3, start))
    assert all(isinstance(x, axir.Array) for x in kept)
    assert [x.tolist() for x in kept] == [[1.0] * 3, [11.0] * 3]


@pytest.mark.parametrize(
    "result",
    [np.zeros(2, np.float32), np.zeros(3, np.int32), (np.zeros(3, np.float32),) * 2, None],
    ids=["shape", "dtype", "structure", "nothing"],
)
def test_results_must_be_as_declared(run: Callable[..., Any], result: Any) -> None:
    like = axir.ShapeDtypeStruct((3,), "float32")

    def wrong(_: Any) -> Any:
        return result

    with pytest.raises(CallbackError, match=r"'wrong' returned .*result_shape_dtypes") as caught:
        run(lambda x: axir.pure_callback(wrong, like, x))(1.0)
    assert isinstance(caught.value, RuntimeError)


def test_lists_may_stand_for_tuples_in_results(run: Callable[..., Any]) -> None:
    f = run(lambda x: axir.pure_callback(lambda v: [v, [v + 1]], (SCALAR, SCALAR), x))
    assert f(1.0) == (1, 2)


def test_python_scalars_and_wide_results_take_the_declared_dtype(run: Callable[..., Any]) -> None:
    assert run(lambda x: axir.pure_callback(lambda _: 2.5, SCALAR, x))(1.0) == 2.5
    assert run(lambda x: axir.pure_callback(lambda _: np.float64(2.5), SCALAR, x))(1.0) == 2.5


def test_arguments_are_checked() -> None:
    with pytest.raises(NonArrayArgumentError, match="takes a function first, not 3"):
        axir.pure_callback(3, SCALAR, 1.0)  # type: ignore[arg-type]
    with pytest.raises(NonArrayArgumentError, match="pure_callback of sin.*'a' of type 'str'"):
        axir.pure_callback(np.sin, SCALAR, "a")
    with pytest.raises(ParameterError, match="no shape and dtype"):
        axir.pure_callback(np.sin, "float32", 1.0)
    with pytest.raises(ParameterError, match="64-bit dtypes are disabled"):
        axir.pure_callback(np.sin, axir.ShapeDtypeStruct((), "float64"), 1.0)
    with pytest.raises(ParameterError, match="vmap_method must be one of"):
        axir.pure_callback(np.sin, SCALAR, 1.0, vmap_method="parallel")
    with pytest.raises(ParameterError, match="vmap_method and vectorized"):
        axir.pure_callback(np.sin, SCALAR, 1.0, vmap_method="sequential", vectorized=True)


# Transformations --------------------------------------------------------------------------------

SHAPES = {
    "sequential": [((), ())] * 3,
    "sequential_unrolled": [((), ())] * 3,
    "expand_dims": [((3,), (1,))],
    "broadcast_all": [((3,), (3,))],
    "legacy_vectorized": [((3,), ())],
}


@pytest.mark.parametrize("method", SHAPES)
def test_vmap_calls_as_the_method_says(run: Callable[..., Any], method: str) -> None:
    seen = []

    def add(x: Any, y: Any) -> Any:
        seen.append((x.shape, y.shape))
        return np.asarray(x) + np.asarray(y)

    def f(x: Any, y: Any) -> Any:
        return axir.pure_callback(add, SCALAR, x, y, vmap_method=method)

    result = run(axir.vmap(f, in_axes=(0, None)))(jnp.arange(3.0), 10.0)
    assert result.tolist() == [10, 11, 12]
    assert seen == SHAPES[method]


@pytest.mark.parametrize("method", SHAPES)
def test_vmap_of_vmap_is_a_loop_of_loops(run: Callable[..., Any], method: str) -> None:
    x = jnp.arange(6.0).reshape(2, 3)
    twice = axir.vmap(axir.vmap(lambda v: host_sin(v, method)), in_axes=1, out_axes=1)
    np.testing.assert_allclose(run(twice)(x), np.sin(np.asarray(x)), rtol=1e-6)


def test_vectorized_is_the_old_form_of_vmap_method() -> None:
    def f(x: Any, flag: bool) -> Any:
        return axir.pure_callback(np.sin, SCALAR, x, vectorized=flag)

    for flag, method in ((True, "legacy_vectorized"), (False, "sequential")):
        (equation,) = axir.make_jaxpr(lambda x, flag=flag: f(x, flag))(1.0).eqns
        assert equation.params["vmap_method"] == method


def test_vmap_without_method_is_refused() -> None:
    with pytest.raises(MissingRuleError, match="Pass vmap_method to pure_callback") as caught:
        axir.vmap(host_sin)(jnp.ones(3))
    assert f"{__file__}:" in str(caught.value)


@pytest.mark.parametrize("method", [None, "expand_dims"])
def test_devices_call_without_a_method(run: Callable[..., Any], method: str | None) -> None:
    seen = []

    def double(x: Any) -> Any:
        seen.append(x.shape)
        return np.asarray(x) * 2

    def f(x: Any) -> Any:
        like = axir.ShapeDtypeStruct(x.shape, x.dtype)
        return axir.pure_callback(double, like, x, vmap_method=method)

    x, over = jnp.arange(3.0).reshape(1, 3), axir.P("i")
    mesh = axir.make_mesh((1,), ("i",))
    sharded = axir.shard_map(f, mesh=mesh, in_specs=over, out_specs=over)
    for mapped in (axir.pmap(f), axir.pmap(axir.jit(f)), sharded):
        assert run(mapped)(x).tolist() == [[0.0, 2.0, 4.0]]
    assert seen == [(3,), (3,), (1, 3)]


def test_vmap_of_devices_is_refused_without_a_method() -> None:
    for mapped in (axir.vmap(axir.pmap(host_sin)), axir.pmap(axir.vmap(host_sin))):
        with pytest.raises(MissingRuleError, match="Pass vmap_method to pure_callback"):
            mapped(jnp.ones((1, 1, 3)))


def test_an_empty_batch_calls_nothing(run: Callable[..., Any]) -> None:
    def fails(_: Any) -> Any:
        raise AssertionError

    f = axir.vmap(lambda x: axir.pure_callback(fails, SCALAR, x, vmap_method="sequential"))
    assert run(f)(jnp.zeros((0,))).shape == (0,)


@pytest.mark.parametrize("callback", [host_sin, lambda x: io_callback(np.sin, SCALAR, x)])
def test_callbacks_have_no_derivative_but_custom_jvp(
    run: Callable[..., Any], callback: Callable[..., Any]
) -> None:
    with pytest.raises(UnsupportedRuleError, match=r"custom_jvp.*custom_vjp") as caught:
        run(axir.grad(callback))(jnp.float32(1.0))
    assert f"{__file__}:" in str(caught.value)


def test_derivatives_go_around_callbacks_of_constants(run: Callable[..., Any]) -> None:
    def f(x: Any) -> Any:
        return x * axir.pure_callback(lambda: np.float32(3), SCALAR)

    assert run(axir.grad(f))(2.0) == 3


def test_jaxprs_show_callbacks() -> None:
    text = str(axir.make_jaxpr(host_sin)(jnp.float32(1.0)))
    assert "pure_callback[callback=sin result_avals=(ShapedArray(float32[]),)" in text
    text = str(axir.make_jaxpr(lambda x: io_callback(np.sin, SCALAR, x, ordered=True))(1.0))
    assert "io_callback[callback=sin ordered=True result_avals=(ShapedArray(float32[]),)" in text


# Effects ----------------------------------------------------------------------------------------


def test_pure_callbacks_run_when_the_program_runs() -> None:
    calls: list[int] = []
    f = axir.jit(lambda: axir.pure_callback(lambda: np.float32(calls.append(1) or 1), SCALAR))
    assert axir.make_jaxpr(f)().eqns
    assert calls == []
    f(), f()
    assert len(calls) == 2


def test_unused_results_drop_pure_callbacks_only() -> None:
    calls: list[str] = []

    @axir.jit
    def f(x: Any) -> Any:
        axir.pure_callback(lambda: np.float32(calls.append("pure") or 1), SCALAR)
        io_callback(lambda: np.float32(calls.append("io") or 1), SCALAR)
        io_callback(lambda: calls.append("none"), None)
        return x

    f(1.0)
    assert calls == ["io", "none"]


def test_io_callbacks_keep_state_in_order(run: Callable[..., Any]) -> None:
    numbers = iter(range(100))

    def f(x: Any) -> Any:
        first = io_callback(lambda: np.int32(next(numbers)), jnp.int32(0), ordered=True)
        second = io_callback(lambda: np.int32(next(numbers)), jnp.int32(0), ordered=True)
        return x + first, second

    assert [int(x) for x in run(f)(0)] == [0, 1]
    assert [int(x) for x in run(f)(0)] == [2, 3]


def test_vmap_multiplies_unordered_io_callbacks_only(run: Callable[..., Any]) -> None:
    seen: list[float] = []

    def f(x: Any, ordered: bool) -> Any:
        return io_callback(lambda v: seen.append(float(v)), None, x, ordered=ordered)

    run(axir.vmap(lambda x: f(x, False)))(jnp.arange(3.0))
    assert seen == [0, 1, 2]
    with pytest.raises(MissingRuleError, match="is ordered"):
        run(axir.vmap(lambda x: f(x, True)))(jnp.arange(3.0))


def test_a_nested_jit_keeps_its_effects_for_the_run() -> None:
    calls: list[float] = []
    inner = axir.jit(lambda x: (io_callback(lambda v: calls.append(float(v)), None, x), x)[1])
    inner(1.0)
    outer = axir.jit(lambda: inner(2.0))
    assert calls == [1.0]
    outer(), outer()
    assert calls == [1.0, 2.0, 2.0]
    axir.effects_barrier()


def test_ensure_compile_time_eval_runs_callbacks_while_tracing() -> None:
    def f(x: Any) -> Any:
        with axir.ensure_compile_time_eval():
            return x * int(axir.pure_callback(lambda: np.int32(3), jnp.int32(0)))

    assert axir.jit(f)(2.0) == 6


# Programs ---------------------------------------------------------------------------------------


class UsersError(Exception):
    pass


def test_exceptions_surface_as_themselves(run: Callable[..., Any]) -> None:
    error = UsersError("mine")

    def fails(x: Any) -> Any:
        if x > 0:
            raise error
        return np.asarray(x)

    f = run(lambda x: axir.pure_callback(fails, SCALAR, x))
    for _ in range(2):
        with pytest.raises(UsersError) as caught:
            f(1.0)
        assert caught.value is error
        assert f(-1.0) == -1


def test_programs_of_the_same_text_call_their_own_functions() -> None:
    def made(scale: float) -> Callable[..., Any]:
        return axir.jit(lambda x: axir.pure_callback(lambda v: np.float32(v * scale), SCALAR, x))

    functions = [made(scale) for scale in (2.0, 3.0)]
    texts = {f.lower(1.0).as_text() for f in functions}
    assert len(texts) == 1
    assert [float(f(5.0)) for f in functions] == [10, 15]


def test_callbacks_may_call_compiled_functions() -> None:
    inner = axir.jit(lambda x: host_sin(x) + 1)

    def callback(x: Any) -> Any:
        return inner(x) + axir.grad(lambda y: y * y)(x)

    f = axir.jit(lambda x: axir.pure_callback(callback, SCALAR, 2 * x))
    np.testing.assert_allclose(f(0.5), np.sin(1.0) + 1 + 2, rtol=1e-6)


def test_callbacks_are_outside_of_the_trace_that_goes_on_around_them() -> None:
    seen: list[float] = []

    def callback(x: Any) -> Any:
        axir.debug.callback(lambda v: seen.append(float(v)), 7.0)
        return x

    def f(x: Any) -> Any:
        return x * axir.pure_callback(callback, SCALAR, 2.0)

    assert axir.grad(f)(1.0) == 2
    assert seen == [7]


def test_threads_call_side_by_side() -> None:
    together = threading.Barrier(3, timeout=30)

    def callback(x: Any) -> Any:
        together.wait()
        return np.asarray(x) * 10

    f = axir.jit(lambda x: axir.pure_callback(callback, SCALAR, x))
    results: dict[int, float] = {}

    def work(number: int) -> None:
        results[number] = float(f(float(number)))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {0: 0.0, 1: 10.0, 2: 20.0}


def test_exported_programs_cannot_call_python() -> None:
    exported = axir.export.export(axir.jit(host_sin))(jnp.float32(1.0))
    with pytest.raises(HostCallNeededError, match="pure_callback: the callback 'sin'") as caught:
        exported.stablehlo()
    assert f"{__file__}:" in str(caught.value)
    with pytest.raises(axir.errors.AxirError, match="pure_callback") as caught_too:
        exported.module()
    assert f"{__file__}:" in str(caught_too.value)
    assert "host.callback_0" in axir.jit(host_sin).lower(jnp.float32(1.0)).as_text()


def test_a_process_ends_quietly() -> None:
    program = """
import numpy as np, axir, axir.numpy as jnp
f = axir.jit(lambda x: axir.pure_callback(np.sin, axir.ShapeDtypeStruct((), "float32"), x))
keep = [f, f(1.0)]
def fails(x): raise KeyError(f)
g = axir.jit(lambda x: axir.debug.callback(fails, x))
try:
    g(1.0)
except KeyError as error:
    keep.append(error)
print("done")
"""
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "done\n", "")


def test_results_of_callbacks_are_as_weak_as_they_are_said_to_be() -> None:
    for weak in (False, True):
        struct = axir.ShapeDtypeStruct((), "float32", weak_type=weak)
        traced = axir.make_jaxpr(lambda struct=struct: axir.pure_callback(lambda: 1.0, struct))()
        assert traced.out_avals[0].weak_type is weak


@pytest.mark.parametrize(
    "dtype", ["int4", "uint2", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn"]
)
def test_elements_of_few_bits_travel_both_ways(run: Callable[..., Any], dtype: str) -> None:
    seen = []

    def reverse(x: Any) -> Any:
        seen.append(str(x.dtype))
        return np.asarray(x)[::-1]

    x = jnp.array([1, 0, 1, 1], dtype)
    result = run(lambda x: axir.pure_callback(reverse, x, x))(x)
    assert seen == [dtype] == [str(result.dtype)]
    assert result.astype(jnp.float32).tolist() == [1, 1, 0, 1]
