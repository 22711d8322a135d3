"""Ops that reach over the edges of parts, and ops that look up elements of a part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from support.partitions import collectives_of, on_one_device

import axir
import axir.numpy as jnp
from axir import lax
from axir.dialect.core.array import as_array
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.calls.jit_call import set_executor
from axir.dialect.program.function_tracing import trace_function
from axir.dialect.program.meshes.layouts import Layout
from axir.experimental import kernels
from axir.passes.partition.partition import partition_function

ROWS = (("x", 2), ("y", 2))
random = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def _evaluated() -> Iterator[None]:
    executor = set_executor(None)
    yield
    set_executor(executor)


def check(
    function: Callable[..., Any], args: Sequence[np.ndarray], ins: Sequence[Layout | None],
    outs: Sequence[Layout | None] | None = None,
) -> tuple[Counter[str], tuple[Layout, ...], list[str]]:  # fmt: skip
    """Compares the results; returns the collectives, the layouts of the results, and the notes."""
    types = [ShapedArray(x.shape, x.dtype) for x in args]
    traced = trace_function(lambda *xs: axir.tree.leaves(function(*xs)), types)
    values = [as_array(x) for x in (*args, *traced.captured)]
    layouts = [*ins, *(((),) * x.ndim for x in traced.captured)]
    parts = partition_function(traced, ROWS, layouts, outs)
    found = on_one_device(parts, ROWS, values)
    for got, want in zip(found, traced.interpret(values), strict=True):
        np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=2e-4, atol=2e-4)
    return collectives_of(parts.local), parts.out_layouts, [note.text for note in parts.notes]


IMAGES = random.normal(size=(2, 16, 8, 3)).astype(np.float32)
ALONG = ((), ("x",), (), ())
ALONG_BOTH = ((), ("x", "y"), (), ())
NAMES = ("NHWC", "HWIO", "NHWC")


def kernel(*shape: int) -> np.ndarray:
    return random.normal(size=(*shape, 3, 5)).astype(np.float32)


@pytest.mark.parametrize(
    ("size", "step", "options", "exchanges"),
    [
        ((3, 3), (1, 1), {"padding": "SAME"}, 2),
        ((5, 3), (1, 2), {"padding": "SAME"}, 2),
        ((3, 3), (2, 2), {"padding": "SAME"}, 1),
        ((2, 2), (2, 2), {"padding": "VALID"}, 0),
        ((3, 1), (1, 1), {"padding": ((2, 2), (0, 0)), "rhs_dilation": (2, 1)}, 2),
        ((2, 1), (1, 1), {"padding": ((1, 0), (0, 0))}, 1),
    ],
)
def test_images_are_cut_in_space(
    size: tuple[int, int], step: tuple[int, int], options: dict[str, Any], exchanges: int
) -> None:
    def apply(x: Any, w: Any) -> Any:
        return lax.conv_general_dilated(x, w, step, dimension_numbers=NAMES, **options)

    found, layouts, notes = check(apply, (IMAGES, kernel(*size)), [ALONG, ((),) * 4])
    assert found == Counter({"ppermute": exchanges} if exchanges else {})
    assert layouts == (ALONG,)
    assert not notes


def test_neighbours_along_two_axes_of_the_mesh() -> None:
    def apply(x: Any, w: Any) -> Any:
        return lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=NAMES)

    found, layouts, _ = check(apply, (IMAGES, kernel(5, 3)), [ALONG_BOTH, ((),) * 4])
    assert found == Counter(ppermute=6)
    assert layouts == (ALONG_BOTH,)


def test_networks_of_images_cut_in_space_are_trained() -> None:
    def loss(w: Any, v: Any, x: Any) -> Any:
        hidden = jnp.tanh(lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=NAMES))
        return (
            lax.conv_general_dilated(hidden, v, (1, 1), "SAME", dimension_numbers=NAMES) ** 2
        ).mean()

    second = random.normal(size=(3, 3, 5, 2)).astype(np.float32)
    found, layouts, notes = check(
        axir.grad(loss, (0, 1, 2)), (kernel(3, 3), second, IMAGES), [((),) * 4, ((),) * 4, ALONG]
    )
    assert "all_gather" not in found
    assert layouts == (((),) * 4, ((),) * 4, ALONG)
    assert not notes


def test_pools_are_cut_in_space() -> None:
    def pooled(x: Any) -> Any:
        largest = lax.reduce_window(x, -np.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        return largest, lax.reduce_window(x, 0.0, lax.add, (1, 4, 1, 1), (1, 4, 1, 1), "VALID")

    def slope(x: Any) -> Any:
        return axir.grad(lambda x: (pooled(x)[0] ** 2).sum())(x)

    for function in (pooled, slope):
        found, layouts, notes = check(function, (IMAGES,), [ALONG])
        assert set(found) <= {"psum"}  # the value that is differentiated
        assert set(layouts) == {ALONG}
        assert not notes


def test_windows_that_reach_too_far_need_all() -> None:
    wide = random.normal(size=(11, 1, 3, 5)).astype(np.float32)
    apply = lambda x: lax.conv_general_dilated(x, wide, (1, 1), "SAME", dimension_numbers=NAMES)  # noqa: E731
    found, _, _ = check(apply, (IMAGES,), [ALONG_BOTH])
    assert found["all_gather"]


# Tables ------------------------------------------------------------------------------------------

TABLE = random.normal(size=(64, 3)).astype(np.float32)
WORDS = np.array([[0, 5, 63], [3, 3, 40], [-1, 64, -70]], np.int32)
CUT = (("x", "y"), ())


@pytest.mark.parametrize("mode", ["clip", "fill", "promise_in_bounds"])
@pytest.mark.parametrize("dtype", [np.int32, np.int8])
def test_tables_are_cut_along_their_rows(mode: str, dtype: Any) -> None:
    words = WORDS.astype(dtype)[: 1 if mode == "promise_in_bounds" else 3]

    def read(table: Any, words: Any) -> Any:
        return table.at[words].get(mode=mode)

    found, _, notes = check(read, (TABLE, words), [CUT, ((), ())])
    assert found == Counter(psum=1)
    assert not notes


def test_tables_that_are_cut_are_trained() -> None:
    def loss(table: Any, words: Any) -> Any:
        return (jnp.take(table, words, axis=0, mode="clip") ** 2).sum()

    def step(table: Any, words: Any) -> Any:
        return table - 0.1 * axir.grad(loss)(table, words)

    found, layouts, notes = check(step, (TABLE, WORDS), [CUT, ((), ())])
    assert found == Counter(psum=1)
    assert layouts == (CUT,)
    assert not notes


@pytest.mark.parametrize("mode", ["clip", "drop"])
@pytest.mark.parametrize("kind", ["add", "set", "min", "max", "multiply"])
def test_elements_are_written_where_they_are(kind: str, mode: str) -> None:
    words = np.unique(WORDS[:2])[: None if kind != "set" else 4]  # no two of the same place
    rows = random.normal(size=(words.size, 3)).astype(np.float32)

    def write(table: Any, words: Any, rows: Any) -> Any:
        return getattr(table.at[words], kind)(rows, mode=mode)

    found, layouts, _ = check(write, (TABLE, words, rows), [CUT, ((),), ((), ())])
    assert not found
    assert layouts == (CUT,)


# Functions and kernels in ops --------------------------------------------------------------------


def test_elements_are_replaced_by_functions_of_them_where_they_are() -> None:
    def write(table: Any, words: Any) -> Any:
        return table.at[words].apply(jnp.sin)

    found, layouts, _ = check(write, (TABLE, WORDS[:2]), [CUT, ((), ())])
    assert not found
    assert layouts == (CUT,)


def test_systems_are_solved_in_parts() -> None:
    diagonal = np.arange(1, 9, dtype=np.float32)

    def solve(d: Any, b: Any) -> Any:
        return lax.custom_linear_solve(
            lambda x: d * x, b, lambda matvec, b: b / matvec(jnp.ones_like(b)), symmetric=True
        )

    rows = (("x", "y"),)
    gradient = axir.grad(lambda d, b: jnp.sum(jnp.sin(solve(d, b))), (0, 1))
    for function in (solve, gradient):
        found, layouts, notes = check(function, (diagonal, diagonal**2), [rows, rows])
        assert set(found) <= {"psum"}  # the value that is differentiated
        assert set(layouts) == {rows}
        assert not notes


def test_kernels_are_cut_along_their_batch() -> None:
    def doubled(x: Any, result: Any) -> None:
        result[...] = 2 * x[...]

    shape = axir.ShapeDtypeStruct((3,), np.float32)
    kernel_of_rows = axir.vmap(kernels.kernel_call(doubled, shape))
    found, layouts, notes = check(kernel_of_rows, (TABLE,), [CUT])
    assert not found
    assert layouts == (CUT,)
    assert not notes
