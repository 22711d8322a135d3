"""`jit`: static and donated arguments, caching, nesting, constants, options, and errors."""

from __future__ import annotations

import functools
import threading
from typing import Any

import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir import errors


def test_results_agree_with_eager_and_keep_types() -> None:
    def f(x, y):
        return {"sum": x + y, "weak": 2.0 * jnp.array(1.0), "int": jnp.arange(3) * 2, "none": None}

    compiled, eager = axir.jit(f)(1.0, jnp.ones(3)), f(1.0, jnp.ones(3))
    for key in ("sum", "weak", "int"):
        np.testing.assert_array_equal(compiled[key], eager[key])
        assert compiled[key].aval is eager[key].aval
    assert axir.jit(lambda x: x * 2)(1.0).weak_type
    assert compiled["none"] is None


@pytest.mark.parametrize("static", [0, (0,), [0]])
def test_static_arguments_by_position(static: object) -> None:
    def f(n: int, x: object) -> object:
        return x if n > 1 else n

    assert int(axir.jit(f, static)(2, 3)) == 3
    assert int(axir.jit(f, static_argnums=static)(1, 3)) == 1


def test_a_partial_function_keeps_its_name_and_a_cache_its_size() -> None:
    def scaled(x: object, factor: float) -> object:
        return x

    f = axir.jit(functools.partial(scaled, factor=2.0))
    assert f.__name__ == "scaled"
    assert f._cache_size() == 0
    axir.make_jaxpr(f)(1.0)
    assert f._cache_size() == 1


def test_static_arguments_by_number_and_by_name() -> None:
    seen = []

    @functools.partial(axir.jit, static_argnums=1, static_argnames=("flag",))
    def f(x, n, flag=False):
        seen.append((n, flag))
        return x**n if flag else x * n

    assert float(f(2.0, 3)) == 6.0
    assert float(f(3.0, 3)) == 9.0
    assert float(f(2.0, n=3, flag=True)) == 8.0
    assert float(f(2.0, 3, True)) == 8.0
    assert seen.count((3, False)) == 1
    # 1 and True are equal in Python, yet different static arguments.
    g = axir.jit(lambda x, k: x + (10 if k is True else 20), static_argnums=1)
    assert (float(g(1.0, 1)), float(g(1.0, True))) == (21.0, 11.0)


def test_static_arguments_of_wrappers_that_take_more_than_what_they_wrap() -> None:
    def method(self: object, x: Any, name: str) -> Any:
        return {name: x}

    def wrapper(key: str, values: Any, x: Any, *, name: str) -> Any:
        return method(values, x, name)

    f = axir.jit(functools.wraps(method)(wrapper), static_argnums=0, static_argnames=("name",))
    assert axir.eval_shape(lambda x: f("key", {}, x, name="a"), 1.0)["a"].shape == ()


def test_one_trace_for_each_type() -> None:
    traces = []

    def f(x):
        traces.append(x.shape)
        return x + 1

    jitted = axir.jit(f)
    for _ in range(3):
        jitted(jnp.ones(3))
        axir.jit(f)(jnp.zeros(3))
    jitted(jnp.ones(4))
    jitted(jnp.ones(3, jnp.int32))
    assert len(traces) == 3
    with axir.enable_x64(True):
        jitted(jnp.ones(3, np.float32))
    assert len(traces) == 4


def test_constants_travel_as_arguments() -> None:
    big = jnp.arange(10000.0) * 1.5

    def f(x):
        return x + big

    np.testing.assert_array_equal(axir.jit(f)(1.0), 1 + np.asarray(big))
    closed = axir.make_jaxpr(f)(1.0)
    assert len(closed.consts) == 1
    assert len(str(closed.module())) < 2000
    text = axir.jit(lambda x: x + jnp.zeros((1000, 1000))).lower(1.0).as_text()
    assert "dense" not in text or len(text) < 2000


def test_donated_arguments_are_deleted_and_others_untouched() -> None:
    f = axir.jit(lambda x, y: (x.at[1].set(7.0), x + y), donate_argnums=0)
    x, y = jnp.arange(4.0) + 0, jnp.ones(4)
    seen = np.asarray(x)
    out, total = f(x, y)
    np.testing.assert_array_equal(out, [0, 7, 2, 3])
    np.testing.assert_array_equal(total, [1, 2, 3, 4])
    assert x.is_deleted()
    assert not y.is_deleted()
    np.testing.assert_array_equal(seen, [0, 1, 2, 3])
    with pytest.raises(errors.DeletedArrayError, match=r"float32\[4\] array has been deleted"):
        x + 1


def test_a_result_never_shares_memory_with_a_donated_array() -> None:
    x = axir.jit(lambda v: v * 1.0)(jnp.arange(4.0))
    same = axir.jit(lambda v: v)(x)
    axir.jit(lambda v: v.at[0].set(9.0), donate_argnums=0)(same)
    np.testing.assert_array_equal(x, [0, 1, 2, 3])


def test_inputs_are_never_overwritten() -> None:
    x = axir.jit(lambda v: v * 1.0)(jnp.arange(4.0))
    host = np.arange(4, dtype=np.float32)
    f = axir.jit(lambda v: v.at[1].set(7.0))
    for _ in range(2):
        np.testing.assert_array_equal(f(x), [0, 7, 2, 3])
        np.testing.assert_array_equal(f(host), [0, 7, 2, 3])
    np.testing.assert_array_equal(x, [0, 1, 2, 3])
    np.testing.assert_array_equal(host, [0, 1, 2, 3])


def test_arrays_do_not_change_with_the_numpy_array_they_were_made_of() -> None:
    source = np.arange(4, dtype=np.float32)
    x = jnp.asarray(source)
    y = axir.jit(lambda v: v)(source)
    source[:] = 9
    np.testing.assert_array_equal(x, [0, 1, 2, 3])
    np.testing.assert_array_equal(y, [0, 1, 2, 3])


def test_nothing_in_nothing_out_and_empty_arrays() -> None:
    assert axir.jit(lambda: ())() == ()
    assert axir.jit(lambda x: None)(1.0) is None
    assert float(axir.jit(lambda: jnp.float32(3.0))()) == 3.0
    empty = axir.jit(lambda x: (x * 2, x.sum(), x @ jnp.ones((0, 3))))(jnp.ones((2, 0)))
    assert empty[0].shape == (2, 0)
    assert float(empty[1]) == 0
    np.testing.assert_array_equal(empty[2], np.zeros((2, 3)))


def test_many_operands() -> None:
    xs = [jnp.full(3, float(i)) for i in range(80)]
    np.testing.assert_array_equal(axir.jit(lambda xs: sum(xs))(xs), [3160.0] * 3)


def test_methods_and_decorators() -> None:
    class Model:
        def __init__(self, k):
            self.k = k

        @functools.partial(axir.jit, static_argnums=0)
        def scaled(self, x):
            return self.k * x

    assert float(Model(3.0).scaled(2.0)) == 6.0

    @axir.jit
    def documented(x):
        """Adds one."""
        return x + 1

    assert documented.__doc__ == "Adds one."
    assert documented.__name__ == "documented"


def test_disable_jit_runs_python() -> None:
    with axir.disable_jit():
        assert axir.jit(lambda x: x if x > 0 else -x)(-2.0) == 2.0


def test_threads_share_a_compiled_function() -> None:
    f = axir.jit(lambda x: jnp.cumsum(x * 2)[-1])
    results: dict[int, float] = {}

    def work(index: int) -> None:
        results[index] = sum(float(f(jnp.full(10, float(index)))) for _ in range(20))

    threads = [threading.Thread(target=work, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {index: 400.0 * index for index in range(4)}


def test_debug_nans_names_the_op_and_the_line() -> None:
    f = axir.jit(lambda x: jnp.log(x) * 2)
    with axir.debug_nans(True), pytest.raises(FloatingPointError) as caught:
        f(-1.0)
    assert "invalid value (nan) encountered in log." in str(caught.value)
    assert "test_jit.py" in str(caught.value)


def test_debug_nans_is_off_by_default() -> None:
    assert np.isnan(axir.jit(lambda x: jnp.log(x) * 2)(-1.0))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: axir.jit(lambda x: x, static_argnums=0)([1]), errors.StaticArgumentError,
         "static argument [1] of type 'list' is not hashable."),
        (lambda: axir.jit(lambda x: x, static_argnums=3), errors.StaticArgumentError,
         "argument number 3 is out of range"),
        (lambda: axir.jit(lambda x: x, static_argnums=0, donate_argnums=0), errors.DonationError,
         "arguments [0] are both static and donated."),
        (lambda: axir.jit(lambda x: x)("text"), errors.NonArrayArgumentError,
         "is 'text' of type 'str', which is not an array."),
        (lambda: axir.jit(lambda d: d)({"a": {"b": object}}), errors.NonArrayArgumentError,
         "Argument [0]['a']['b'] of '<lambda>'"),
        (lambda: axir.jit(lambda x: "text")(1.0), errors.NonArrayArgumentError,
         "The result of 'lambda' is 'text' of type 'str'"),
        (lambda: axir.jit(3), errors.NonArrayArgumentError, "jit takes a function, not 3"),
        (lambda: axir.jit(lambda x: float(x))(1.0), errors.ConcretizationTypeError,
         "was needed by float(), but while 'lambda' is being traced only its type is known."),
        (lambda: axir.jit(lambda x: [1, 2][x])(1), errors.TracerIntegerConversionError,
         "was needed as a Python integer"),
        (lambda: axir.jit(lambda x: np.sin(x))(1.0), errors.TracerArrayConversionError,
         "Use axir.numpy instead of numpy inside transformed functions."),
        (lambda: axir.jit(lambda x: x if x else -x)(1.0), errors.TracerBoolConversionError,
         "Use jnp.where or lax.cond for a choice by value"),
    ],
)  # fmt: skip
def test_errors(call, error, text) -> None:
    with pytest.raises(error) as caught:
        call()
    message = str(caught.value)
    assert text in message
    assert "test_jit.py" in message
    assert len(message.splitlines()) <= 8


def test_leaked_tracers_name_where_they_came_from() -> None:
    leaked = []

    @axir.jit
    def f(x):
        leaked.append(x + 1)
        return x

    f(1.0)
    for use in (
        lambda: leaked[0] + 1,
        lambda: bool(leaked[0]),
        lambda: axir.jit(jnp.sin)(leaked[0]),
    ):
        with pytest.raises(errors.UnexpectedTracerError, match="leaked") as caught:
            use()
        assert "test_jit.py" in str(caught.value)


def test_numpy_views_keep_the_memory_of_results_alive() -> None:
    """The array is gone when the check comes, only what NumPy made of it is left."""
    f = axir.jit(lambda x: x + 1)
    views = []
    for index in range(40):
        views.append(np.asarray(f(jnp.full(100_000, float(index))))[::2].reshape(-1, 2))
        np.asarray(f(jnp.zeros(100_000)))
    for index, view in enumerate(views):
        np.testing.assert_array_equal(view, np.full(view.shape, index + 1.0))


def test_iteration_over_a_temporary_result() -> None:
    rows = [row for row in axir.jit(lambda x: x * 2)(jnp.ones((50, 20_000)))]
    junk = [axir.jit(lambda x: x * 3)(jnp.ones((50, 20_000))) for _ in range(5)]
    assert len(junk) == 5
    assert all(float(row.max()) == 2.0 == float(row.min()) for row in rows)


def test_stages_and_nested_calls_share_what_was_traced() -> None:
    traced: list[object] = []
    f = axir.jit(lambda x: traced.append(x) or 2 * x)
    x = jnp.ones(3)
    axir.make_jaxpr(f)(x)
    assert f.trace(x).out_info.shape == f.lower(x).out_info.shape == (3,)
    assert f.eval_shape(axir.ShapeDtypeStruct((3,), "float32")).shape == (3,)
    assert len(traced) == 1
