"""Control flow apart from values: types, effects, named axes, the number of traces."""

from __future__ import annotations

import itertools
from typing import Any

import jax
import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir import lax
from axir.dialect.ops.calls.jit_call import set_executor
from axir.dialect.ops.control_flow import execution, while_loop
from axir.dialect.program.function import Function, functions_in

# Types -----------------------------------------------------------------------------------------

WEAK_CASES = {
    "int grows to float": lambda np_, lax_: lax_.scan(lambda c, x: (c + x, c), 0, np_.arange(3.0)),
    "weak body": lambda np_, lax_: lax_.scan(lambda c, x: (1.0, c), np_.float32(0), None, length=2),
    "weak all through": lambda np_, lax_: lax_.scan(lambda c, x: (c + 1, c), 0.0, None, length=2),
    "strong body": lambda np_, lax_: lax_.scan(
        lambda c, x: (c + np_.float32(1), c), 0.0, None, length=2
    ),
    "narrow": lambda np_, lax_: lax_.scan(
        lambda c, x: (c * np_.bfloat16(2), x), 1.0, np_.ones(2, np_.int8)
    ),
    "while": lambda np_, lax_: lax_.while_loop(lambda c: c < 5, lambda c: c + 1.0, 0),
    "while strong": lambda np_, lax_: lax_.while_loop(
        lambda c: c < 5, lambda c: c + np_.float32(1), 0.0
    ),
    "fori index": lambda np_, lax_: lax_.fori_loop(0, 3, lambda i, c: c * i, np_.float16(1)),
    "fori weak": lambda np_, lax_: lax_.fori_loop(0, 3, lambda i, c: c + i, 1),
    "fori of arrays": lambda np_, lax_: lax_.fori_loop(
        np_.int8(0), np_.int8(3), lambda i, c: c + i, np_.int8(1)
    ),
    "fori index of known bounds": lambda np_, lax_: lax_.fori_loop(
        np_.int16(0), np.int16(3), lambda i, c: c + i, np_.int8(1)
    ),
    "cond": lambda np_, lax_: lax_.cond(True, lambda: 1, lambda: np_.int32(2)),
    "cond of a weak second": lambda np_, lax_: lax_.cond(True, lambda: np_.int32(2), lambda: 1),
    "switch of a weak first": lambda np_, lax_: lax_.switch(
        1, [lambda: 1.0, lambda: np_.float32(2), lambda: 3.0]
    ),
    "scan of a whole length": lambda np_, lax_: lax_.scan(
        lambda c, _: (c * 2, c), 1, None, length=4 / 2
    ),
    "cond weak": lambda np_, lax_: lax_.cond(2, lambda x: x, lambda x: x + 1, 1.0),
    "switch": lambda np_, lax_: lax_.switch(np_.uint8(1), [lambda x: x, lambda x: -x], 1),
    "switch of one": lambda np_, lax_: lax_.switch(5, [lambda x: x + 1], np_.int8(1)),
    "none": lambda np_, lax_: lax_.cond(True, lambda x: x, lambda x: x, None),
    "map": lambda np_, lax_: lax_.map(lambda x: x * 2.0, np_.arange(5), batch_size=2),
    "map of nothing": lambda np_, lax_: lax_.map(lambda x: x * 2.0, np_.zeros((0, 2))),
    "operand": lambda np_, lax_: lax_.cond(True, lambda x: x, lambda x: x, operand=1.0),
}


@pytest.mark.parametrize("name", WEAK_CASES)
def test_result_types_are_those_of_jax(name: str) -> None:
    case = WEAK_CASES[name]
    ours = axir.tree.leaves(case(jnp, lax))
    theirs = jax.tree.leaves(case(jax.numpy, jax.lax))
    for got, want in zip(ours, theirs, strict=True):
        assert (got.shape, got.dtype, got.weak_type) == (want.shape, want.dtype, want.weak_type)
        np.testing.assert_array_equal(np.asarray(got), np.asarray(want))


def test_trees_come_back_as_they_went_in() -> None:
    init = {"a": (jnp.zeros(2), None), "b": [1]}
    carry, ys = lax.scan(lambda c, x: (c, {"y": x, "n": None}), init, (jnp.ones(3),))
    assert axir.tree.structure(carry) == axir.tree.structure(init)
    assert ys["n"] is None
    assert ys["y"][0].shape == (3,)


# Traces and compilations -----------------------------------------------------------------------


def test_a_body_is_traced_once_for_each_combination_of_types() -> None:
    calls = []

    def step(c: Any, x: Any) -> Any:
        calls.append(c.dtype)
        return c + x, c

    for _ in range(3):
        lax.scan(step, jnp.float32(0), jnp.ones(3))
    assert len(calls) == 1
    lax.scan(step, jnp.float32(0), jnp.ones(4))
    assert len(calls) == 1
    lax.scan(step, jnp.float16(0), jnp.ones(3, jnp.float16))
    assert len(calls) == 2
    axir.jit(lambda x: lax.scan(step, jnp.float32(0), x))(jnp.ones(5))
    assert len(calls) == 2


def test_a_body_that_uses_a_tracer_is_traced_again() -> None:
    calls = []

    def outer(a: Any) -> Any:
        def step(c: Any, x: Any) -> Any:
            calls.append(a)
            return c + x * a, None

        return lax.scan(step, 0.0, jnp.ones(3))[0]

    assert [float(axir.jit(outer)(a)) for a in (1.0, 2.0)] == [3.0, 6.0]
    assert float(axir.grad(outer)(5.0)) == 3.0


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Names of the functions that run compiled: functions of more than 100 us.

    The clock of the test advances by a microsecond at each reading, so these are loops of more than
    100 iterations.
    """
    names: list[str] = []
    clock = itertools.count()

    def run(function: Function, operands: Any) -> Any:
        names.append(function.name)
        [equation] = function.equations
        return equation.primitive._evaluate(operands, equation.params)

    for module in (execution, while_loop):
        monkeypatch.setattr(module, "compilation_time", lambda params: 100.0)
    monkeypatch.setattr(while_loop, "perf_counter", lambda: next(clock) * 1e-6)
    previous = set_executor(run)
    yield names
    set_executor(previous)


def test_short_loops_are_interpreted_and_long_ones_compiled(compilations: list[str]) -> None:
    def step(c: Any, x: Any) -> Any:
        return jnp.sin(c) * x + jnp.cos(x), c

    lax.scan(step, 0.5, jnp.ones(4))
    assert compilations == []
    long = lax.scan(step, 0.5, jnp.ones(400))[1]
    assert compilations == ["scan"]
    assert long.shape == (400,)
    lax.scan(step, 0.5, jnp.ones(400))
    assert compilations == ["scan", "scan"]


def test_a_while_that_takes_long_goes_on_compiled(compilations: list[str]) -> None:
    def run(limit: float) -> float:
        return float(lax.while_loop(_below(limit), _increase, 0.0))

    assert run(3) == 3
    assert compilations == []
    assert run(3000) == 3000
    assert compilations == ["while"]


def _below(limit: float) -> Any:
    return lambda c: c < limit


def _increase(c: Any) -> Any:
    return jnp.floor(c + 1.25)


def test_loops_of_single_ops_stay_interpreted(compilations: list[str]) -> None:
    assert float(lax.fori_loop(0, 2000, lambda i, c: c + 1.0, 0.0)) == 2000
    assert float(lax.while_loop(lambda c: c < 2000, lambda c: c + 1.0, 0.0)) == 2000
    assert compilations == []


def _ops(function: Function) -> int:
    return sum(
        1 + sum(_ops(f) for value in equation.params.values() for f in functions_in(value))
        for equation in function.equations
    )


@pytest.mark.parametrize(
    "transform",
    [
        lambda f: f,
        axir.grad,
        lambda f: axir.vmap(f, (0, None)),
        lambda f: axir.hessian(f),
        lambda f: lambda x, xs: axir.jvp(lambda y: f(y, xs), (x,), (x,)),
    ],
)
def test_the_size_of_a_program_does_not_depend_on_the_length(transform: Any) -> None:
    def loop(x: Any, xs: Any) -> Any:
        return lax.scan(lambda c, y: (jnp.sin(c) * y, None), x, xs)[0].sum()

    sizes = set()
    for length in (3, 300):
        x = jnp.ones(2)
        sizes.add(_ops(axir.make_jaxpr(transform(loop))(x, jnp.ones(length)).function))
    assert len(sizes) == 1


def test_gradient_stores_only_what_changes_from_pass_to_pass() -> None:
    def loss(w: Any, h: Any, xs: Any) -> Any:
        return lax.scan(lambda h, x: (jnp.exp(w) @ h * x, None), h, xs)[0].sum()

    shown = axir.make_jaxpr(axir.grad(loss))(jnp.ones((3, 3)), jnp.ones(3), jnp.ones((7, 3)))
    names = [equation.primitive.name for equation in shown.eqns]
    # exp is computed before the loop, its residual too; the slices of xs are not stored again.
    assert names.index("exp") < names.index("scan")
    forward = next(e for e in shown.eqns if e.primitive.name == "scan")
    stored = [v.type.shape for v in forward.results[1:]]
    assert stored == [(7, 3)]


def test_unused_results_are_not_computed() -> None:
    from axir.passes.transforms.simplify import simplify_function

    def last(x: Any, xs: Any) -> Any:
        def step(c: Any, y: Any) -> Any:
            return (c[0] + 1.0, jnp.sin(c[1])), (y * 2, c[1])

        return lax.scan(step, (x, x), xs)[0][0]

    function = simplify_function(axir.jit(last).lower(1.0, jnp.ones(5)).function)
    [loop] = [e for e in function.equations if e.primitive.name == "scan"]
    assert (len(loop.operands), len(loop.results)) == (1, 1)
    assert [e.primitive.name for e in loop.params["jaxpr"].equations] == ["add"]


def test_known_branch_replaces_the_choice() -> None:
    from axir.passes.transforms.simplify import simplify_function

    def chosen(x: Any) -> Any:
        return lax.switch(9, [jnp.sin, jnp.cos, jnp.exp], x)

    function = simplify_function(axir.jit(chosen).lower(1.0).function)
    assert [e.primitive.name for e in function.equations] == ["exp"]


def test_captured_arrays_are_operands_not_text() -> None:
    table = jnp.arange(1000.0)

    def loop(x: Any) -> Any:
        return lax.fori_loop(0, 3, lambda i, c: c + table, x)

    assert 'dense<"0x' not in axir.jit(loop).lower(table).as_text()


def test_jaxpr_shows_bodies_on_lines_of_their_own() -> None:
    def loop(x: Any, xs: Any) -> Any:
        return lax.scan(lambda c, y: (lax.cond(y > 0, jnp.sin, jnp.cos, c), c * y), x, xs)

    text = str(axir.make_jaxpr(loop)(1.0, jnp.ones(4)))
    expected = """
    c:f32[] d:f32[4] = scan[
      jaxpr={ lambda ; e:f32[] f:f32[]. let
          g:bool[] = gt f 0.0:f32[]
          h:i32[] = convert_element_type[new_dtype=int32 weak_type=False] g
          i:f32[] = cond[
            branches=(
              { lambda ; j:f32[]. let k:f32[] = cos j in (k,) }
              { lambda ; l:f32[]. let m:f32[] = sin l in (m,) }
            )
          ] h e
          n:f32[] = mul e f
        in (i, n) }
      length=4
"""
    assert expected in text


# Effects and axes --------------------------------------------------------------------------------


def _printing_loop(x: Any) -> Any:
    def step(c: Any, i: Any) -> Any:
        axir.debug.print("{} {}", i, c)
        return c * 2, c

    return lax.scan(step, x, jnp.arange(3))[0]


@pytest.mark.parametrize(
    "run",
    [
        lambda f: f(1.0),
        lambda f: axir.jit(f)(1.0),
        lambda f: axir.grad(f)(1.0),
        lambda f: axir.jit(axir.grad(f))(1.0),
        lambda f: axir.jvp(f, (1.0,), (1.0,)),
    ],
)
def test_effects_happen_in_order_once_in_each_pass(run: Any, capfd: Any) -> None:
    axir.block_until_ready(run(_printing_loop))
    assert capfd.readouterr().out == "0 1.0\n1 2.0\n2 4.0\n"


def test_effects_of_loops_without_operands_happen_in_each_call(capfd: Any) -> None:
    def body(i: Any, c: Any) -> Any:
        axir.debug.print("{}", i)
        return c + 1

    program = axir.jit(lambda: lax.fori_loop(0, 2, body, 0))
    for _ in range(2):
        axir.block_until_ready(program())
    assert capfd.readouterr().out == "0\n1\n0\n1\n"


@pytest.mark.parametrize("compile_it", [False, True])
def test_bodies_communicate_over_mapped_axes(compile_it: bool) -> None:
    def program(np_: Any, lax_: Any) -> Any:
        def mapped(v: Any) -> Any:
            def step(c: Any, _: Any) -> Any:
                return c + lax_.psum(c * 0.1, "i"), lax_.axis_index("i")

            c, ys = lax_.scan(step, v, None, length=3)
            d = lax_.cond(
                lax_.psum(v.sum(), "i") > 1, lambda u: u + lax_.pmean(u, "i"), lambda u: u, c
            )
            e = lax_.while_loop(
                lambda u: lax_.pmax(u.sum(), "i") < 40, lambda u: u * 1.5 + lax_.psum(u, "i"), d
            )
            return c, ys, d, e

        return mapped

    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    mapped = axir.vmap(program(jnp, lax), axis_name="i")
    ours = (axir.jit(mapped) if compile_it else mapped)(x)
    theirs = jax.vmap(program(jax.numpy, jax.lax), axis_name="i")(x)
    for got, want in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-5)


# Without jit -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lower", "upper", "dtype", "total"),
    [(0.5, 4.0, np.float32, 8.0), (np.int8(1), 4, np.int8, 6), (0.0, np.float16(3), np.float16, 3)],
)
def test_fori_loop_counts_in_the_dtype_of_its_bounds(
    lower: Any, upper: Any, dtype: type, total: float
) -> None:
    def loop(lower: Any) -> Any:
        return lax.fori_loop(lower, upper, lambda i, s: s + i, jnp.zeros((), dtype))

    for result in (loop(lower), axir.jit(loop)(lower)):
        assert (result.dtype, float(result)) == (dtype, total)


@pytest.mark.parametrize("outer", [axir.vmap, axir.checkpoint])
def test_disable_jit_traces_choices_by_values_that_an_outer_trace_does_not_know(outer: Any) -> None:
    def chosen(x: Any) -> Any:
        return lax.cond(x > 1, jnp.sin, jnp.cos, x) + lax.switch(x.astype(int), [jnp.exp] * 2, x)

    x = np.array([0.5, 1.5], np.float32)
    wanted = np.exp(x) + np.array([-np.sin(0.5), np.cos(1.5)])
    with axir.disable_jit():
        if outer is axir.vmap:
            np.testing.assert_allclose(axir.vmap(axir.grad(chosen))(x), wanted, rtol=1e-6)
        else:
            slope = axir.checkpoint(axir.grad(chosen))(x[1])
            np.testing.assert_allclose(slope, wanted[1], rtol=1e-6)


def test_disable_jit_runs_control_flow_in_python() -> None:
    seen: list[Any] = []

    def note(x: Any) -> Any:
        seen.append(float(x))
        return x + 1

    with axir.disable_jit():
        c, ys = lax.scan(lambda c, x: (note(c), {"y": c * x}), 0.0, jnp.ones(3), reverse=True)
        assert seen == [0.0, 1.0, 2.0]
        assert float(c) == 3.0
        assert ys["y"].tolist() == [2.0, 1.0, 0.0]
        assert float(lax.while_loop(lambda c: c < 2, note, 0.0)) == 2.0
        assert float(lax.fori_loop(0, 2, lambda i, c: note(c) + i, 0.0)) == 3.0
        assert float(lax.cond(c > 9, lambda v: 1 / 0, note, c)) == 4.0
        assert float(lax.switch(5, [lambda v: 1 / 0, note], c)) == 4.0
        assert lax.map(note, jnp.arange(2)).tolist() == [1, 2]
        assert float(axir.grad(lambda x: lax.cond(x > 0, lambda v: v * v, abs, x))(3.0)) == 6.0
    assert len(seen) == 3 + 2 + 2 + 1 + 1 + 2


def test_associative_scan_has_logarithmic_depth() -> None:
    def applications(count: int) -> int:
        calls = []

        def combine(a: Any, b: Any) -> Any:
            calls.append(a.shape)
            return a + b

        x = jnp.arange(count)
        np.testing.assert_array_equal(lax.associative_scan(combine, x), np.cumsum(np.arange(count)))
        return len(calls)

    assert [applications(2**n) for n in (1, 4, 10)] == [1, 7, 19]


@pytest.mark.parametrize("length", [97, 128, 300])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("unroll", [1, 3])
def test_long_stacks_of_compiled_loops_are_whole(length: int, reverse: bool, unroll: int) -> None:
    def loop(c: Any, xs: Any) -> Any:
        return lax.scan(
            lambda c, x: (c * 0.5 + x, (c, x > 0)), c, xs, reverse=reverse, unroll=unroll
        )

    xs = jnp.array(np.random.default_rng(length).normal(size=(length, 65)).astype(np.float32))
    compiled = axir.tree.leaves(axir.jit(loop)(xs[0], xs))
    for got, want in zip(compiled, axir.tree.leaves(loop(xs[0], xs)), strict=True):
        np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-5, atol=1e-6)


def test_branches_that_are_not_chosen_have_no_derivative_in_a_batch() -> None:
    def root(x, scale):
        return lax.cond(x < 1e-3, lambda: 1e-3, lambda: jnp.sqrt(x * scale))

    def total(x, scale):
        return axir.vmap(root, in_axes=(0, None))(x, scale).sum()

    x = np.array([0.0, 1.0, 4.0], np.float32)
    by_x, by_scale = axir.jit(axir.grad(total, (0, 1)))(x, np.float32(1))
    assert by_x.tolist() == [0, 0.5, 0.25]
    assert by_scale == 1.5


def test_what_all_branches_hand_on_stays_unmapped() -> None:
    def f(x, y):
        return lax.cond(x < 3, lambda x, y: (x * 2, y), lambda x, y: (x * 3, y), x, y)

    doubled, y = axir.vmap(f, in_axes=(0, None), out_axes=(0, None))(jnp.arange(5), 3.0)
    assert (doubled.tolist(), y) == ([0, 2, 4, 9, 12], 3)


def test_operands_of_conditions_may_be_callable() -> None:
    @axir.tree_util.register_pytree_node_class
    class Layer:
        def __init__(self, weight):
            self.weight = weight

        def __call__(self, x):
            raise AssertionError("an operand is no branch")

        def tree_flatten(self):
            return (self.weight,), None

        @classmethod
        def tree_unflatten(cls, _, children):
            return cls(*children)

    def add(x, layer):
        return x + layer.weight

    assert lax.cond(True, add, add, 3, Layer(4)) == 7
    assert lax.cond(False, 1, lambda x: x, Layer(5), lambda layer: layer.weight) == 5


def test_loops_in_python_leave_numpy_arrays_as_they_are() -> None:
    start = np.array(1.0, np.float32)

    def advance(carry):
        x, y = carry
        x += 1
        return x, y + x

    with axir.disable_jit():
        assert lax.while_loop(lambda c: c[0] < 10, advance, (start, start))[1] == 55
    assert start == 1


def test_what_a_batched_loop_does_not_change_is_not_chosen_anew() -> None:
    from axir.passes.transforms.simplify import simplify_function

    def summed(x: Any, table: Any) -> Any:
        def step(s: Any) -> Any:
            return s[0] + s[1].sum(), s[1], lax.select(s[0] > 1, s[2], s[2])

        return lax.while_loop(lambda s: s[0] < 9.0, step, (x, table, x))

    batched = axir.vmap(summed)
    x, table = jnp.array([0.0, 4.0]), jnp.ones((2, 3))
    function = simplify_function(axir.jit(batched).lower(x, table).function)
    [loop] = [e for e in function.equations if e.primitive.name == "while"]
    names = [e.primitive.name for e in loop.params["body_jaxpr"].equations]
    assert names.count("select_n") == 1  # of the sum
    expected = [[9.0, 10.0], table, x]
    for found, value in zip(axir.jit(batched)(x, table), expected, strict=True):
        np.testing.assert_array_equal(found, value)
