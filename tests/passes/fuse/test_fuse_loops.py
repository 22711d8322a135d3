"""`fuse-loops` and `fuse-small-programs`: the kernels, and their results."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.op_programs import Programs

import axir
import axir.numpy as jnp
from axir import lax
from axir.dialect.core.types import ShapedArray
from axir.dialect.program.function import Function
from axir.dialect.program.function_tracing import trace_function
from axir.passes.framework.pipeline import run_passes
from axir.passes.transforms.lower_to_stablehlo import lower_functions

RNG = np.random.default_rng(7)


def floats(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32)


def newton(a: Any) -> Any:
    def improve(state: Any) -> Any:
        x = (state[0] + a / state[0]) / 2
        return x, abs(x - state[0])

    return lax.while_loop(lambda state: state[1] > 1e-5, improve, (a, a))


def exchanged(x: Any, y: Any, z: Any) -> Any:
    def rotate(_: Any, state: Any) -> Any:
        x, y, z = state
        return y + 1, z, x

    return lax.fori_loop(0, 4, rotate, (x, y, z))


def mirrored(x: Any, y: Any) -> Any:
    """All new arrays read each old array, in another order."""

    def step(_: Any, state: Any) -> Any:
        x, y, z = state
        return x[::-1] + y[::-1] * z, x[::-1] - y[::-1], z[::-1] * 0.5 + x

    return lax.fori_loop(0, 3, step, (x, y, x * y))


def scattered_into_itself(x: Any, i: Any) -> Any:
    def step(k: Any, x: Any) -> Any:
        y = x.at[k].set(x[k] * 2)
        return y.at[i].add(y).at[::-1].add(x)

    return lax.fori_loop(0, 3, step, x)


def read_after_update(x: Any) -> Any:
    """Elements that replace others depend on both the old and the new array."""

    def step(i: Any, state: Any) -> Any:
        x, total = state
        new = x.at[i].set(x[i] * 2 + x[(i + 1) % 7])
        return new, total + x.sum() - new[::-1].sum()

    return lax.fori_loop(0, 7, step, (x, jnp.float32(0)))


def began_elsewhere(x: Any) -> Any:
    """A loop changes a value that it also captures."""
    y = x * 2
    return lax.fori_loop(0, 3, lambda i, z: z * 0.5 + y[::-1], y), y


def began_with_what_is_read(x: Any) -> Any:
    """The initial value of a loop, which the loop also captures, is not stored yet."""

    def step(y: Any, _: Any) -> Any:
        z = jnp.exp(y) * 2
        inner = lax.fori_loop(0, 2, lambda i, u: u * 0.5 + z.sum(), z)
        return inner * 0.1, inner

    return lax.scan(step, x, None, length=2)


def handed_on(x: Any) -> Any:
    """Blocks return values from outside, which later operations read, too."""
    y = lax.fori_loop(0, 2, lambda i, y: y * 0.5 + 1, x)
    z = lax.cond(x.sum() > 0, lambda: y, lambda: y * 2)
    w = lax.fori_loop(0, 3, lambda i, u: lax.cond(i == 1, lambda: y, lambda: u + z), z)
    return y, z, lax.fori_loop(0, 3, lambda i, u: u * 2, w), w


def updated_from_outside(x: Any) -> Any:
    """Every iteration replaces a part of the same array, and then reads all of the old one."""
    y = jnp.exp(x) * 2

    def step(i: Any, total: Any) -> Any:
        z = y.at[i].set(0)
        return total + z.sum() * (i + 1) + (z - y).sum()

    total = lax.fori_loop(0, 4, step, jnp.float32(0))
    u = jnp.cos(x) - 3
    chosen = lax.cond(total > 0, lambda: (u.at[1].set(7), u * 2), lambda: (u, u.at[0].set(1)))
    return total, chosen


def spread(x: Any, y: Any) -> Any:
    """Expensive arrays that are broadcast to many elements are stored, in spite of unit axes."""

    def step(_: Any, x: Any) -> Any:
        near = jnp.exp(x * 0.1)[:, None] / (jnp.exp(y) + 1)[None]
        return (near[..., None] * jnp.ones(3)).sum((1, 2)) * 0.01 - x

    return lax.fori_loop(0, 3, step, x)


def shifted_in_place(x: Any) -> Any:
    return lax.fori_loop(0, 5, lambda i, x: jnp.concatenate([x[1:], x[:1] + i]), x)


def nested(x: Any) -> Any:
    def outer(carry: Any, row: Any) -> Any:
        inner = lax.fori_loop(0, 3, lambda i, r: r * 0.5 + carry, row)
        chosen = lax.cond(inner.sum() > 0, lambda r: r - 1, lambda r: r[::-1], inner)
        return chosen, inner.max()

    return lax.scan(outer, jnp.zeros(x.shape[1], x.dtype), x)


def never(x: Any) -> Any:
    return lax.while_loop(
        lambda state: state[0] < 0, lambda state: (state[0] + 1, state[1] * 2), (0, x)
    )


def counted_words(x: Any) -> Any:
    def count(i: Any, counts: Any) -> Any:
        return counts.at[x[i]].add(1)

    return lax.fori_loop(0, x.shape[0], count, jnp.zeros(5, jnp.int32))


def outside(x: Any) -> Any:
    """Indices outside: reads are clamped, writes are dropped."""

    def step(i: Any, y: Any) -> Any:
        return y.at[i * 3 - 4].set(x[i * 4]).at[i].add(y[i * 5 - 9])

    return lax.fori_loop(0, 6, step, jnp.zeros(6, x.dtype))


def products(a: Any, b: Any, v: Any) -> Any:
    def step(state: Any, _: Any) -> Any:
        m, v = state
        m = jnp.tanh(a @ m @ b.T) + jnp.outer(v, v)
        return (m, m.T @ v / 9), jnp.trace(m)

    return lax.scan(step, (a, v), None, length=4)


def tiles(m: Any, a: Any, b: Any) -> Any:
    """Products with tiles of rows and vectors, and remainders of both; batches; other dtypes."""

    def step(m: Any, _: Any) -> Any:
        m = jnp.tanh(m @ a * 0.1)
        counts = (m > 0).astype(jnp.int32) @ (a > 0).astype(jnp.int32)
        halves = m.astype(jnp.float16) @ a.astype(jnp.float16)
        rows = jnp.einsum("ik,jk->ij", m, a)
        swapped = jnp.einsum("kj,ik->ji", a, m)
        batched = jnp.einsum("nik,nkj->nij", b * m[0, 0], b), jnp.einsum("nik,njk->nij", b, b)
        return m, (counts, halves, rows, swapped, *batched)

    return lax.scan(step, m, None, length=2)


def long_rows(a: Any, v: Any) -> Any:
    """Sums along rows of both factors: of a matrix and a vector, of two matrices, of integers."""

    def step(state: Any, _: Any) -> Any:
        m, v, counts = state
        u = a @ v * 0.01
        grown = counts + (a > 0).astype(jnp.int32) @ (v > 0).astype(jnp.int32)
        halves = a.astype(jnp.float16) @ v.astype(jnp.float16)
        return (m * 0.5 + a @ m.T @ a * 0.001, v.at[: u.shape[0]].add(u), grown), halves

    return lax.scan(step, (a, v, jnp.zeros(a.shape[0], jnp.int32)), None, length=3)


def trained(x: Any, *weights: Any) -> Any:
    """Many arrays: weights, and two moments of each, as an optimizer has them."""

    def loss(weights: Any) -> Any:
        y = x
        for w, b in zip(weights[::2], weights[1::2], strict=True):
            y = jnp.tanh(y @ w + b)
        return (y**2).sum()

    def step(state: Any, _: Any) -> Any:
        weights, means, squares, count, is_odd = state
        slopes = axir.grad(loss)(weights)
        means = tuple(0.9 * m + 0.1 * g for m, g in zip(means, slopes, strict=True))
        squares = tuple(0.99 * s + g * g for s, g in zip(squares, slopes, strict=True))
        moved = zip(weights, means, squares, strict=True)
        weights = tuple(w - 0.1 * m / (jnp.sqrt(s) + 0.1) for w, m, s in moved)
        return (weights, means, squares, count + 1, ~is_odd), None

    zeros = tuple(jnp.zeros_like(w) for w in weights)
    start = (weights, zeros, zeros, jnp.int32(0), jnp.array([False]))
    return lax.scan(step, start, None, length=3)[0]


def with_nothing(x: Any, empty: Any) -> Any:
    """Empty arrays, which are carried, changed, joined, summed and multiplied."""

    def inner(_: Any, state: Any) -> Any:
        nothing, total = state
        return jnp.sin(nothing), total + nothing.sum() + jnp.pad(nothing, ((0, 0), (1, 0))).sum()

    def step(state: Any, row: Any) -> Any:
        x, nothing, same, counts = state
        nothing = jnp.exp(nothing + x[:, None]) * row
        joined = jnp.concatenate([nothing, x[:, None] * 0.5, same], axis=1)
        both, total = lax.fori_loop(0, 2, inner, (nothing, jnp.float32(0)))
        chosen = lax.cond(total > 1, lambda: (both, x), lambda: (nothing, x + 1))
        x = joined[:, 0] + nothing @ nothing.T @ x + chosen[1].at[:0].set(row[:0].sum())
        none = jnp.arange(0)
        return (x.at[none].add(x[none]), chosen[0], same, counts + none), (nothing, joined, row)

    start = (x, empty, empty, jnp.zeros(0, jnp.int32))
    return lax.scan(step, start, jnp.zeros((3, 0), jnp.float32))


def solved(a: Any, b: Any) -> Any:
    """A kernel of small matrices becomes part of the loop's kernel."""

    def step(x: Any, _: Any) -> Any:
        return jnp.linalg.solve(a + jnp.diag(x), b), x

    return lax.scan(step, b, None, length=3)


def extrema(x: Any) -> Any:
    def step(x: Any, _: Any) -> Any:
        return x * -0.5, (x.argmax(0), x.argmin(1), x.max(), (x > 0).any(1))

    return lax.scan(step, x, None, length=3)


def large_state(x: Any) -> Any:
    """A loop that needs more memory than fits on the stack."""
    return lax.fori_loop(0, 3, lambda i, x: (x[::-1] @ x.T / 99) @ x + x * 0.5, x)


def began_alike(x: Any) -> Any:
    """An array of the kernel that one carry keeps and another one changes."""

    def step(state: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        kept, changed, n = state
        return kept, jnp.roll(changed, 1) * 0.75, n + 1

    rows = jnp.concatenate([x, x * 0.5, -x])
    return lax.while_loop(lambda state: state[2] < 3, step, (rows, rows, 0))


def running(x: Any) -> Any:
    """Sums and extrema along both axes, from both ends."""

    def step(_: Any, x: Any) -> Any:
        x = lax.cumsum(x * 0.5, axis=1) - lax.cummax(x, axis=0, reverse=True)
        return lax.cumsum(x, axis=0, reverse=True) * 0.25 + lax.cummin(x, axis=1)

    return lax.fori_loop(0, 4, step, x)


CASES: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = {
    "newton": (newton, (np.float32(7),)),
    "exchanged": (exchanged, (floats(37), floats(37), floats(37))),
    "mirrored": (mirrored, (floats(23), floats(23))),
    "scattered_into_itself": (
        scattered_into_itself,
        (floats(6), RNG.integers(0, 6, 6).astype(np.int32)),
    ),
    "read_after_update": (read_after_update, (floats(7),)),
    "began_alike": (began_alike, (floats(5),)),
    "began_elsewhere": (began_elsewhere, (floats(19),)),
    "began_with_what_is_read": (began_with_what_is_read, (floats(5),)),
    "handed_on": (handed_on, (floats(21),)),
    "handed_on_other": (handed_on, (np.ones(21, np.float32),)),
    "updated_from_outside": (updated_from_outside, (floats(6),)),
    "shifted_in_place": (shifted_in_place, (floats(18),)),
    "spread": (spread, (floats(17), floats(19))),
    "nested": (nested, (floats(6, 11),)),
    "never": (never, (floats(3),)),
    "counted_words": (counted_words, (RNG.integers(0, 5, 40).astype(np.int32),)),
    "outside": (outside, (floats(9),)),
    "products": (products, (floats(5, 5), floats(5, 5), floats(5))),
    "tiles": (tiles, (floats(11, 53), floats(53, 53), floats(2, 6, 6))),
    "rows_of_tiles": (tiles, (floats(8, 70), floats(70, 70), floats(3, 19, 19))),
    "long_rows": (long_rows, (floats(7, 519), floats(519))),
    "trained": (trained, (floats(4, 3), *(floats(*s) for _ in range(4) for s in ((3, 3), (3,))))),
    "with_nothing": (with_nothing, (floats(5), floats(5, 0))),
    "one_long_row": (long_rows, (floats(1, 530), floats(530))),
    "solved": (solved, (floats(3, 3) + 4 * np.eye(3, dtype=np.float32), floats(3))),
    "extrema": (extrema, (floats(4, 21),)),
    "running": (running, (floats(5, 7),)),
    "running_halves": (running, (floats(6, 3).astype(np.float16),)),
    "large_state": (large_state, (floats(64, 50),)),
}  # fmt: skip


def traced(name: str) -> Function:
    function, arguments = CASES[name]
    types = [ShapedArray(np.shape(x), np.asarray(x).dtype) for x in arguments]
    return trace_function(lambda *args: _leaves(function(*args)), types, name=name)


def _leaves(tree: Any) -> list[Any]:
    return [leaf for part in tree for leaf in _leaves(part)] if isinstance(tree, tuple) else [tree]


@pytest.fixture(scope="module")
def programs() -> Programs:
    return Programs({name: traced(name) for name in CASES}, fuses=True)


@pytest.mark.parametrize("name", CASES)
def test_values(programs: Programs, name: str) -> None:
    assert programs.failures == {}
    arguments = [np.asarray(x) for x in CASES[name][1]]
    captured = [x.host() for x in traced(name).captured]
    expected = [x.host() for x in traced(name).evaluate(*arguments)]
    for got, want in zip(programs(name, *arguments, *captured), expected, strict=True):
        if np.issubdtype(want.dtype, np.floating):
            scale = np.abs(want).max(initial=0)
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5 * scale)
        else:
            np.testing.assert_array_equal(got, want)


def text_after(name: str, passes: str) -> str:
    module = lower_functions({"main": traced(name)})
    run_passes(module, passes)
    return str(module)


@pytest.mark.parametrize("name", CASES)
def test_each_is_one_kernel(name: str) -> None:
    text = text_after(name, "legalize-for-iree")
    assert text.count("stream.executable private") == 1
    assert text.count("flow.dispatch @") == 1
    assert "cf.br" not in text


@pytest.mark.parametrize("shape", [(), (11,)])
def test_functions_of_doubles_are_called_in_the_kernel(shape: tuple[int, ...]) -> None:
    """Functions of the C library: IREE's loop around a kernel for each took 50 times as long."""

    def step(_: Any, x: Any) -> Any:
        waves = lax.sin(x) + lax.cos(x * 3.0) * 0.5 + lax.tan(x * 0.25)
        angles = lax.asin(waves * 0.25) + lax.acos(waves * 0.125) + lax.atan(waves)
        return lax.atan2(angles, waves)

    with axir.enable_x64(True):
        x = RNG.normal(size=shape)
        kind = ShapedArray(shape, np.dtype(np.float64))
        function = trace_function(lambda x: [lax.fori_loop(0, 9, step, x)], [kind], name="angles")
        module = lower_functions({"main": function})
        run_passes(module, "legalize-for-iree")
        assert str(module).count("flow.dispatch @") == 1
        assert "cf.br" not in str(module)
        (found,) = Programs({"angles": function}, fuses=True)("angles", x)
        np.testing.assert_allclose(found, function.evaluate(x)[0].host(), rtol=1e-13)


@pytest.mark.parametrize(("width", "is_transposed"), [(500, True), (512, False)])
def test_matrices_of_long_rows_are_read_as_they_lie(width: int, is_transposed: bool) -> None:
    def many(a: Any, v: Any) -> Any:
        return [lax.fori_loop(0, 9, lambda _, v: v.at[:20].set(a @ v), v)]

    kinds = [ShapedArray(shape, np.dtype(np.float32)) for shape in ((20, width), (width,))]
    module = lower_functions({"main": trace_function(many, kinds, name="many")})
    run_passes(module, "fuse-loops")
    assert ("stablehlo.transpose" in str(module)) == is_transposed


def test_a_loop_without_elements_is_nothing() -> None:
    kind = ShapedArray((2, 0), np.dtype(np.float32))
    function = trace_function(
        lambda x: [lax.fori_loop(0, 3, lambda i, x: x * x, x)], [kind], name="nothing"
    )
    module = lower_functions({"main": function})
    run_passes(module, "fuse-loops")
    assert "stablehlo.while" not in str(module)
    assert "dispatch" not in str(module)


def test_elsewhere_loops_are_blocks() -> None:
    for option in ("fuses=false", "platform=vulkan"):
        text = text_after("newton", f"legalize-for-iree{{{option}}}")
        assert "stream.executable" not in text
        assert "cf.br" in text


def refused(function: Callable[..., Any], *types: ShapedArray) -> Function:
    return trace_function(lambda *args: _leaves(function(*args)), types, name="refused")


REFUSED = {
    "there is no rule for stablehlo.sort": (
        lambda x: lax.fori_loop(0, 3, lambda i, x: lax.sort((x, x), num_keys=2)[0] - x, x),
        ShapedArray((6,), np.dtype(np.float32)),
    ),
    "there is no rule for stablehlo.reduce_window of windows that do not run": (
        lambda x: lax.fori_loop(
            0, 3, lambda i, x: lax.reduce_window(x, 0.0, lax.add, (3,), (1,), "SAME"), x
        ),
        ShapedArray((6,), np.dtype(np.float32)),
    ),
    "numbers of type complex<f32>": (
        lambda x: lax.fori_loop(0, 3, lambda i, x: x * x, x),
        ShapedArray((2,), np.dtype(np.complex64)),
    ),
    "more than one thread should": (
        lambda x: lax.fori_loop(0, 3, lambda i, x: jnp.tanh(x @ x), x),
        ShapedArray((600, 600), np.dtype(np.float32)),
    ),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_what_stays_says_why(reason: str, caplog: pytest.LogCaptureFixture) -> None:
    function, kind = REFUSED[reason]
    module = lower_functions({"main": refused(function, kind)})
    with caplog.at_level(logging.INFO, "axir.passes.fuse.fuse_loops"):
        run_passes(module, "fuse-loops")
    assert "stablehlo.while" in str(module)
    assert any(reason in record.getMessage() for record in caplog.records), caplog.text


def test_updates_of_complex_arrays_are_no_kernel(caplog: pytest.LogCaptureFixture) -> None:
    def update(x: Any) -> Any:
        return lax.dynamic_update_slice(x * x, x[:1] * 2, (jnp.argmax(x.real),)) + x[::-1].sum()

    module = lower_functions({"main": refused(update, ShapedArray((4,), np.dtype(np.complex64)))})
    with caplog.at_level(logging.INFO, "axir.passes.fuse.fuse_programs"):
        run_passes(module, "fuse-small-programs")
    assert "stablehlo.dynamic_update_slice" in str(module)
    assert "numbers of type complex<f32>" in caplog.text
