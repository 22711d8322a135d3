"""`debug.print`, `debug.callback`, `debug.breakpoint`: how often, in which order, with what."""

from __future__ import annotations

import bdb
import io
import signal
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir.dialect.core.errors import NonArrayArgumentError, ParameterError

MODES: dict[str, Callable[..., Any]] = {"eager": lambda f: f, "jit": axir.jit}


@pytest.fixture(params=MODES)
def run(request: pytest.FixtureRequest) -> Callable[..., Any]:
    return MODES[request.param]


@pytest.fixture
def lines(capsys: pytest.CaptureFixture[str]) -> Callable[[], list[str]]:
    return lambda: capsys.readouterr().out.splitlines()


def printing(x: Any) -> Any:
    axir.debug.print("x = {}", x)
    return x * x


def test_print_formats_as_python_does(run: Callable[..., Any], lines: Any) -> None:
    def f(x: Any) -> None:
        axir.debug.print(
            "{0} {0.shape} {1:.2f}|{n:>4}|{s!r} {t[a]} {{}}",
            x, x[1], n=3, s="text", t={"a": x[0]},
        )  # fmt: skip

    run(f)(jnp.array([1.5, 2.0]))
    assert lines() == ["[1.5 2. ] (2,) 2.00|   3|'text' 1.5 {}"]


@pytest.mark.parametrize(
    ("fmt", "args", "kwargs", "error", "message"),
    [
        ("{}", (1, 2), {}, ParameterError, "uses no argument 1"),
        ("{x}", (), {"x": 1, "y": 2}, ParameterError, "uses no argument 'y'"),
        ("{x", (), {"x": 1}, ParameterError, "is no format string: expected '}'"),
        ("{} {}", (1,), {}, IndexError, "2 positional arguments are needed, but 1 were passed"),
        ("{0} {1}", (1,), {}, IndexError, "more positional arguments are needed than the 1"),
        ("{y}", (), {"x": 1}, KeyError, "no argument named 'y' was passed. Named arguments: 'x'."),
        ("{y}", (), {}, KeyError, "Pass a value for each {} and {name}."),
        (3, (), {}, NonArrayArgumentError, "a format string first, not 3"),
    ],
)
def test_formats_are_checked_while_tracing(
    fmt: Any, args: Any, kwargs: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message) as caught:
        axir.make_jaxpr(lambda: axir.debug.print(fmt, *args, **kwargs))()
    if isinstance(caught.value, axir.errors.AxirError):
        assert f"{__file__}:" in str(caught.value)


def test_the_check_of_the_format_can_be_skipped(lines: Any) -> None:
    axir.debug.print("{}", 1, 2, skip_format_check=True)
    assert lines() == ["1"]


def test_a_wrong_format_of_a_value_fails_when_the_program_runs() -> None:
    f = axir.jit(lambda x: axir.debug.print("{:d}", x))
    with pytest.raises(ValueError, match="Unknown format code 'd'"):
        f(1.5)


DERIVATIVES: dict[str, Callable[..., Any]] = {
    "grad": axir.grad,
    "value_and_grad": axir.value_and_grad,
    "grad of grad": lambda f: axir.grad(axir.grad(f)),
    "jvp": lambda f: lambda x: axir.jvp(f, (x,), (x,)),
    "linearize": lambda f: lambda x: axir.linearize(f, x)[1](x),
    "jacfwd": axir.jacfwd,
    "jacrev": axir.jacrev,
}


@pytest.mark.parametrize("inner", MODES)
@pytest.mark.parametrize("kind", DERIVATIVES)
def test_derivatives_print_once_what_the_forward_computation_has(
    run: Callable[..., Any], kind: str, inner: str, lines: Any
) -> None:
    run(DERIVATIVES[kind](MODES[inner](printing)))(jnp.float32(3.0))
    assert lines() == ["x = 3.0"]


def test_the_order_of_lines_is_that_of_the_source(lines: Any) -> None:
    def f(x: Any) -> Any:
        axir.debug.print("1")
        y = axir.jit(printing)(x)
        axir.debug.print("3 {}", y)
        if y > 0:
            axir.debug.print("4")
        return jnp.sin(y)

    expected = ["1", "x = 2.0", "3 4.0", "4"]
    for g in (f, axir.grad(f), axir.value_and_grad(f)):
        g(2.0)
        assert lines() == expected


def test_what_is_known_while_tracing_is_printed_by_the_program(lines: Any) -> None:
    def f(x: Any) -> Any:
        axir.debug.print("1")
        y = axir.jit(printing)(jnp.float32(2.0))
        axir.debug.print("3 {}", y)
        return x

    g = axir.jit(axir.grad(f))
    g.lower(1.0)
    assert lines() == []
    for _ in range(2):
        g(1.0)
        assert lines() == ["1", "x = 2.0", "3 4.0"]


@pytest.mark.parametrize("inner", MODES)
def test_vmap_prints_each_place_in_order(run: Callable[..., Any], inner: str, lines: Any) -> None:
    run(axir.vmap(MODES[inner](printing)))(jnp.arange(3.0))
    assert lines() == ["x = 0.0", "x = 1.0", "x = 2.0"]
    run(axir.vmap(axir.vmap(printing)))(jnp.arange(4.0).reshape(2, 2))
    assert lines() == ["x = 0.0", "x = 1.0", "x = 2.0", "x = 3.0"]
    run(axir.vmap(axir.grad(MODES[inner](printing))))(jnp.arange(2.0))
    assert lines() == ["x = 0.0", "x = 1.0"]


def test_vmap_hands_values_without_batch_axis_to_each_call(
    run: Callable[..., Any], lines: Any
) -> None:
    y = jnp.arange(2)

    def f(x: Any) -> None:
        axir.debug.print("{} {}", x, y)
        axir.debug.print("once")

    run(axir.vmap(f, in_axes=1))(jnp.arange(6).reshape(3, 2))
    assert lines() == ["[0 2 4] [0 1]", "[1 3 5] [0 1]", "once"]


def test_compiled_functions_print_each_time(lines: Any) -> None:
    f = axir.jit(printing)
    for x in (1.0, 2.0, 3.0):
        f(x)
    assert lines() == ["x = 1.0", "x = 2.0", "x = 3.0"]


def test_a_function_without_results_runs(run: Callable[..., Any], lines: Any) -> None:
    assert run(lambda: axir.debug.print("hello"))() is None
    assert lines() == ["hello"]


def test_jaxprs_show_the_call_and_drop_nothing() -> None:
    def f(x: Any) -> Any:
        axir.debug.print("{}", x, ordered=True)
        return x

    assert "debug_callback[callback=debug.print('{}') ordered=True] a" in str(
        axir.make_jaxpr(f)(1.0)
    )


def test_callback_gets_trees_and_other_objects_as_they_are(run: Callable[..., Any]) -> None:
    seen: list[Any] = []
    marker = object()

    def f(x: Any) -> Any:
        axir.debug.callback(lambda *a, **k: seen.append((a, k)), {"x": x}, marker, name="n", y=2)
        return x

    run(f)(jnp.arange(2))
    (((tree, other), keywords),) = seen
    assert tree["x"].tolist() == [0, 1]
    assert other is marker
    assert keywords["name"] == "n"
    assert int(keywords["y"]) == 2


def test_callback_needs_a_function() -> None:
    with pytest.raises(NonArrayArgumentError, match="debug.callback takes a function first"):
        axir.debug.callback(3, 1.0)  # type: ignore[arg-type]


def test_exceptions_of_callbacks_surface(run: Callable[..., Any]) -> None:
    def fails(x: Any) -> None:
        raise LookupError(float(x))

    with pytest.raises(LookupError, match=r"2\.0"):
        run(lambda x: axir.debug.callback(fails, x + 1))(1.0)


# Breakpoints ------------------------------------------------------------------------------------


def stopping(commands: str) -> tuple[Callable[[Any], Any], io.StringIO]:
    output = io.StringIO()

    def f(x: Any) -> Any:
        doubled, name = 2 * x, "a name"
        axir.debug.breakpoint(stdin=io.StringIO(commands), stdout=output)
        return doubled, name is not None

    return f, output


def test_breakpoint_shows_the_line_and_its_variables(run: Callable[..., Any]) -> None:
    f, output = stopping("p doubled\np name\np np.pi\nc\n")
    of_signals = signal.getsignal(signal.SIGINT)
    doubled, _ = run(f)(jnp.float32(4.0))
    assert doubled == 8
    assert signal.getsignal(signal.SIGINT) == of_signals
    text = output.getvalue()
    assert f"{__file__}(" in text
    assert "axir.debug.breakpoint(" in text
    assert "(Pdb) Array(8., dtype=float32" in text
    assert "'a name'" in text
    assert str(np.pi) in text


def test_quitting_the_debugger_ends_the_program(run: Callable[..., Any]) -> None:
    f, _ = stopping("q\n")
    with pytest.raises(bdb.BdbQuit):
        run(f)(4.0)


def test_options_may_come_in_a_call_of_their_own(run: Callable[..., Any], lines: Any) -> None:
    seen: list[Any] = []

    def f(x: Any) -> None:
        axir.debug.print(ordered=True)("x = {x}, {ordered}", x=x, ordered="always")
        axir.debug.callback(ordered=True)(
            lambda v, ordered: seen.append((v, ordered)), x, ordered=2
        )

    run(f)(3)
    assert (lines(), seen) == (["x = 3, always"], [(3, 2)])
    with pytest.raises(ParameterError, match=r"debug.print: arguments \{'a': 4\} without what"):
        axir.debug.print(a=4)
    with pytest.raises(ParameterError, match=r"debug.callback: arguments"):
        axir.debug.callback(a=4)
