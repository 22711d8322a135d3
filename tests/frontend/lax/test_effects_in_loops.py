"""Callbacks inside control flow: as often as the loop goes, where the branch is taken, in order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir import lax
from axir.dialect.core.errors import UnsupportedRuleError
from axir.experimental import io_callback


def jit_on_all_cores(f: Callable[..., Any]) -> Callable[..., Any]:
    def run(*args: Any) -> Any:
        with axir.config(axir_driver="local-task"):
            return axir.jit(f)(*args)

    return run


MODES: dict[str, Callable[..., Any]] = {
    "eager": lambda f: f,
    "jit": axir.jit,
    "jit on all cores": jit_on_all_cores,
}
SCALAR = axir.ShapeDtypeStruct((), "float32")


@pytest.fixture(params=MODES)
def run(request: pytest.FixtureRequest) -> Callable[..., Any]:
    return MODES[request.param]


@pytest.fixture
def lines(capsys: pytest.CaptureFixture[str]) -> Callable[[], list[str]]:
    return lambda: capsys.readouterr().out.splitlines()


def scanned(x: Any) -> Any:
    def step(carry: Any, a: Any) -> Any:
        axir.debug.print("{} {}", carry, a)
        return carry + a * x, carry * carry

    return jnp.sum(lax.scan(step, x, jnp.arange(3.0))[1])


LINES = ["1.0 0.0", "1.0 1.0", "2.0 2.0"]


@pytest.mark.parametrize("inner", ["eager", "jit"])
def test_scan_prints_each_step(run: Callable[..., Any], inner: str, lines: Any) -> None:
    f = MODES[inner](scanned)
    assert run(f)(1.0) == 6
    assert lines() == LINES
    assert run(axir.grad(f))(1.0) == 12
    assert lines() == LINES
    run(lambda x: axir.jvp(f, (x,), (x,)))(1.0)
    assert lines() == LINES


def test_differentiating_a_loop_that_has_run_prints_nothing_again(lines: Any) -> None:
    def f(x: Any) -> Any:
        axir.debug.print("before")
        y = scanned(x)
        axir.debug.print("after")
        return 2 * y if y > 0 else y

    assert axir.grad(f)(1.0) == 24
    assert lines() == ["before", *LINES, "after"]


def test_vmap_of_scan_prints_step_by_step(run: Callable[..., Any], lines: Any) -> None:
    run(axir.vmap(scanned))(jnp.arange(2.0))
    assert lines() == ["0.0 0.0", "1.0 0.0", "0.0 1.0", "1.0 1.0", "0.0 2.0", "2.0 2.0"]


def chosen(x: Any) -> Any:
    def positive(y: Any) -> Any:
        axir.debug.print("positive {}", y)
        return y * y

    def negative(y: Any) -> Any:
        axir.debug.print("negative {}", y)
        return -y

    return lax.cond(x > 0, positive, negative, x)


@pytest.mark.parametrize(("x", "line"), [(2.0, "positive 2.0"), (-2.0, "negative -2.0")])
def test_only_the_branch_that_is_taken_prints(
    run: Callable[..., Any], x: float, line: str, lines: Any
) -> None:
    assert run(chosen)(x) == (4 if x > 0 else 2)
    assert lines() == [line]
    assert run(axir.grad(chosen))(x) == (4 if x > 0 else -1)
    assert lines() == [line]


def test_a_mapped_choice_looks_at_both_branches(run: Callable[..., Any], lines: Any) -> None:
    assert run(axir.vmap(chosen))(jnp.array([2.0, -1.0])).tolist() == [4, 1]
    assert sorted(lines()) == ["negative -1.0", "negative 2.0", "positive -1.0", "positive 2.0"]


def test_a_mapped_choice_refuses_other_effects(run: Callable[..., Any]) -> None:
    def f(x: Any) -> Any:
        return lax.cond(x > 0, lambda: io_callback(lambda: np.float32(1), SCALAR), lambda: 0.0)

    with pytest.raises(UnsupportedRuleError, match="branch has effects"):
        run(axir.vmap(f))(jnp.array([2.0, -1.0]))


def test_while_prints_each_pass(run: Callable[..., Any], lines: Any) -> None:
    def body(state: Any) -> Any:
        axir.debug.print("{}", state[0])
        return state[0] + 1, state[1] * 2

    run(lambda x: lax.while_loop(lambda state: state[0] < 3, body, (0, x)))(1.0)
    assert lines() == ["0", "1", "2"]


def test_the_condition_of_a_loop_may_ask_python(run: Callable[..., Any]) -> None:
    limit = 4

    def goes_on(count: Any) -> Any:
        return axir.pure_callback(lambda n: np.bool_(int(n) < limit), jnp.bool_(True), count)

    f = run(lambda: lax.while_loop(goes_on, lambda n: n + 1, 0))
    assert f() == 4
    limit = 7
    assert f() == 7


def test_io_callbacks_keep_state_between_passes(run: Callable[..., Any]) -> None:
    total = 0.0

    def accumulate(value: Any) -> Any:
        nonlocal total
        total += float(value)
        return np.float32(total)

    def body(i: Any, carry: Any) -> Any:
        return carry + io_callback(accumulate, SCALAR, i, ordered=True)

    assert run(lambda: lax.fori_loop(0, 4, body, 0.0))() == 0 + 1 + 3 + 6


def test_an_exception_leaves_the_loop(run: Callable[..., Any]) -> None:
    seen: list[int] = []

    def check(n: Any) -> None:
        seen.append(int(n))
        if n == 2:
            raise StopAsyncIteration

    def body(n: Any) -> Any:
        axir.debug.callback(check, n)
        return n + 1

    f = run(lambda: lax.while_loop(lambda n: n < 5, body, 0))
    for _ in range(2):
        with pytest.raises(StopAsyncIteration):
            f()
    assert seen == [0, 1, 2, 0, 1, 2]


def loop_of_logarithms(x: Any) -> Any:
    return lax.fori_loop(0, 3, lambda _, y: jnp.log(y) - 1, x)


def scan_of_logarithms(x: Any) -> Any:
    return lax.scan(lambda y, _: (jnp.log(y) - 1, None), x, None, length=3)[0]


def branch_of_logarithms(x: Any) -> Any:
    return lax.cond(x < 9, lambda y: jnp.log(y - 5), lambda y: y, x)


@pytest.mark.parametrize("function", [loop_of_logarithms, scan_of_logarithms, branch_of_logarithms])
def test_nans_are_traced_to_the_line_in_the_body(
    run: Callable[..., Any], function: Callable[..., Any]
) -> None:
    import inspect

    lines, start = inspect.getsourcelines(function)
    place = f"{__file__}:{start + next(n for n, s in enumerate(lines) if 'log(' in s)}"
    with axir.debug_nans(True), pytest.raises(FloatingPointError) as caught:
        run(function)(2.0)
    assert "invalid value (nan) encountered in log" in str(caught.value)
    assert f"at {place}" in str(caught.value)


def test_what_a_body_prints_of_its_surroundings_is_printed_each_time(lines: Any) -> None:
    def f(y: Any) -> Any:
        def step(i: Any, total: Any) -> Any:
            axir.debug.print("{}", y)
            return total + y

        return lax.fori_loop(0, 3, step, 0.0)

    assert axir.jit(f)(2.0) == 6.0
    assert axir.jit(axir.grad(f))(2.0) == 3.0
    assert lines() == ["2.0"] * 6
