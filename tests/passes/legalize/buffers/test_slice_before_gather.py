"""The rows `slice-before-gather` and `slice-before-sort` of `separate-dispatches`.

Gathers from slices, their reversals and their sorts compile.
"""

from __future__ import annotations

import numpy as np
import pytest
from support.stablehlo_runner import (
    CompilationError,
    Compiled,
    Example,
    build,
    deviations,
    parse,
    run_examples,
)

from axir.dialect.builders import stablehlo as hlo
from axir.passes.framework.pipeline import run_passes

PASSES = ",".join(
    f"separate-dispatches{{row={row}}}" for row in ("slice-before-gather", "slice-before-sort")
)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(4, 6, 8)).astype(np.float32)
BYTES = RNG.integers(0, 256, size=(4, 6, 8)).astype(np.uint8)
ROWS = np.array([[2], [0], [1]], np.int32)
PAIRS = np.array([[2, 7, 0], [1, 7, 3]], np.int32)
SLICES = {
    "rows": np.s_[1:4, :, :],
    "every_other_row": np.s_[::2, :, :],
    "middle": np.s_[:, 1:5, :],
    "columns": np.s_[:, :, 2:7],
    "every_other_column": np.s_[:, :, ::2],
    "single_column": np.s_[:, :, 3:4],
    "single_row": np.s_[:, 2:3, ::3],
    "single_element": np.s_[2:3, 2:3, 3:4],
}


def sliced(x, places):
    bounds = [p.indices(size) for p, size in zip(places, hlo.shape_of(x), strict=True)]
    return hlo.slice(x, *zip(*bounds, strict=True))


def taken(x, indices, axis):
    shape = hlo.shape_of(x)
    return hlo.gather(
        x,
        indices,
        offset_dims=[d for d in range(len(shape)) if d != axis],
        collapsed_slice_dims=(axis,),
        start_index_map=(axis,),
        index_vector_dim=1,
        slice_sizes=[1 if d == axis else size for d, size in enumerate(shape)],
    )


def at_pairs(x, pairs):
    """Indices that are themselves a strided slice."""
    return hlo.gather(
        x,
        sliced(pairs, np.s_[:, ::2]),
        offset_dims=(1,),
        collapsed_slice_dims=(0, 1),
        start_index_map=(0, 1),
        index_vector_dim=1,
        slice_sizes=(1, 1, 8),
    )


def ordered(x, axis):
    return hlo.sort([x], axis, lambda a, b: hlo.compare(a, b, "LT"))


def columns(x):
    return sliced(x, np.s_[:, :, ::2])


def from_slices():
    for name, places in SLICES.items():
        y = X[places]
        for axis in range(3):
            rows = ROWS % y.shape[axis]
            yield Example(
                f"gather_{name}_{axis}",
                (X, rows),
                lambda x, i, places=places, axis=axis: taken(sliced(x, places), i, axis),
                np.take(y, rows[:, 0], axis),
            )
            yield Example(
                f"reverse_{name}_{axis}",
                (X,),
                lambda x, places=places, axis=axis: hlo.reverse(sliced(x, places), (axis,)),
                np.flip(y, axis),
            )
            yield Example(
                f"sort_{name}_{axis}",
                (X,),
                lambda x, places=places, axis=axis: ordered(sliced(x, places), axis),
                np.sort(y, axis),
            )


def start(value):
    return hlo.constant(np.int32(value))


def computed_of_bytes(x, rows):
    wide = hlo.convert(columns(x), np.int32)
    return taken(hlo.add(hlo.multiply(wide, wide), wide), rows, 0)


def totals_of_bytes(x, rows):
    """Sums over no dimension, as `vmap` makes them."""
    zero = hlo.full(0, (), np.int32)
    (same,) = hlo.reduce([hlo.convert(columns(x), np.int32)], [zero], [], hlo.add)
    return taken(hlo.abs(same), rows, 0)


Y, TAKEN = X[:, :, ::2], ROWS[:, 0]
WIDE = BYTES[:, :, ::2].astype(np.int32)
EXAMPLES = [
    *from_slices(),
    Example("indices", (X, PAIRS), at_pairs, X[PAIRS[:, 0], PAIRS[:, 2]]),
    Example("totals_of_bytes", (BYTES, ROWS), totals_of_bytes, WIDE[TAKEN]),
    Example(
        "computed_of_bytes",
        (BYTES, ROWS),
        computed_of_bytes,
        WIDE[TAKEN] * WIDE[TAKEN] + WIDE[TAKEN],
    ),
    Example("bytes", (BYTES, ROWS), lambda x, i: taken(columns(x), i, 1), BYTES[:, TAKEN, ::2]),
    Example(
        "transposed",
        (X, ROWS),
        lambda x, i: taken(hlo.transpose(columns(x), (2, 1, 0)), i, 0),
        Y.T[TAKEN],
    ),
    Example(
        "reshaped",
        (X, ROWS),
        lambda x, i: taken(hlo.reshape(columns(x), (4, 6, 4, 1)), i, 0),
        Y[TAKEN][..., None],
    ),
    Example(
        "converted",
        (BYTES, ROWS),
        lambda x, i: taken(hlo.convert(columns(x), np.int32), i, 0),
        BYTES[TAKEN][:, :, ::2].astype(np.int32),
    ),
    Example(
        "dynamic",
        (X, ROWS),
        lambda x, i: taken(hlo.dynamic_slice(x, [start(0), start(1), start(5)], (4, 3, 1)), i, 0),
        X[TAKEN][:, 1:4, 5:6],
    ),
    Example(
        "slice_of_slice",
        (X, ROWS),
        lambda x, i: taken(sliced(columns(x), np.s_[:, 1:5, 1:3]), i, 0),
        Y[TAKEN][:, 1:5, 1:3],
    ),
    Example(
        "reversed_before",
        (X, ROWS),
        lambda x, i: taken(hlo.reverse(columns(x), (2,)), i, 0),
        Y[TAKEN][:, :, ::-1],
    ),
    Example(
        "sorted_rows_of_transposed",
        (X,),
        lambda x: ordered(hlo.transpose(sliced(x, np.s_[1:, :, :]), (1, 0, 2)), 1),
        np.sort(X[1:].transpose(1, 0, 2), 1),
    ),
]


@pytest.fixture(scope="module")
def results() -> dict[str, list[np.ndarray]]:
    return run_examples(EXAMPLES, PASSES)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.name)
def test_values(results: dict[str, list[np.ndarray]], example: Example) -> None:
    assert deviations(results[example.name], example) == []


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("gather_every_other_column_0", "unrealized_conversion_cast"),
        ("gather_single_column_0", "unrealized_conversion_cast"),
        ("reverse_every_other_column_1", "unrealized_conversion_cast"),
        ("totals_of_bytes", "unrealized_conversion_cast"),
        ("computed_of_bytes", "unrealized_conversion_cast"),
        ("indices", "unrealized_conversion_cast"),
        ("sort_rows_0", "write affecting operations"),
    ],
)
def test_the_pass_is_still_needed(name: str, message: str) -> None:
    (example,) = (example for example in EXAMPLES if example.name == name)
    with pytest.raises(CompilationError, match=message):
        Compiled(build({"f": (example.arguments, example.builder)}))


@pytest.mark.parametrize("name", ["gather_rows_0", "gather_middle_1", "gather_columns_0"])
def test_gathers_from_slices_of_rows_stay(name: str) -> None:
    (example,) = (example for example in EXAMPLES if example.name == name)
    module = build({"f": (example.arguments, example.builder)})
    before = str(module)
    run_passes(module, PASSES)
    assert str(module) == before


def test_functions_called_with_slices() -> None:
    module = parse(
        """
        func.func @main(%x: tensor<4x6xf32>) -> tensor<4x3xf32> {
          %0 = stablehlo.slice %x [0:4, 0:6:2] : (tensor<4x6xf32>) -> tensor<4x3xf32>
          %1 = func.call @reversed(%0) : (tensor<4x3xf32>) -> tensor<4x3xf32>
          return %1 : tensor<4x3xf32>
        }
        func.func private @reversed(%x: tensor<4x3xf32>) -> tensor<4x3xf32> {
          %0 = stablehlo.reverse %x, dims = [0] : tensor<4x3xf32>
          return %0 : tensor<4x3xf32>
        }
        """
    )
    run_passes(module, PASSES)
    x = X[0, :4, :6]
    np.testing.assert_array_equal(Compiled(module)("main", x)[0], x[::-1, ::2])


def identity_slice(x):
    return sliced(x, np.s_[:, :, :])


MAY_WORK_IN_PLACE = {
    "everything": (identity_slice, X),
    "rows": (lambda x: sliced(x, np.s_[1:, :, :]), X[1:]),
    "strided": (columns, X[:, :, ::2]),
    "reshaped": (
        lambda x: sliced(hlo.reshape(x, (24, 8)), np.s_[:23, :]),
        X.reshape(24, 8)[:23],
    ),
    "reshaped_everything": (
        lambda x: hlo.reshape(identity_slice(x), (24, 8)),
        X.reshape(24, 8),
    ),
    "line": (lambda x: sliced(hlo.reshape(x, (192,)), np.s_[:191,]), X.reshape(-1)[:191]),
}


def test_arguments_do_not_change() -> None:
    """Tests sorts of their slices, and updates of the sliced arrays."""

    def sorting(slicing):
        return lambda x: ordered(slicing(x), 0)

    def updating(slicing):
        def builder(x):
            rows = [start(0)] * 3
            changed = hlo.dynamic_update_slice(x, sliced(x, np.s_[1:2, :, :]), rows)
            return [hlo.reverse(slicing(x), (0,)), changed]

        return builder

    functions = {
        f"{kind.__name__}_{name}": ((X,), kind(slicing))
        for name, (slicing, _) in MAY_WORK_IN_PLACE.items()
        for kind in (sorting, updating)
    }
    module = build(functions)
    run_passes(module, "legalize-for-iree")
    compiled = Compiled(module)
    for name, (_, y) in MAY_WORK_IN_PLACE.items():
        on_device = compiled.put(X)
        results = compiled.call_on_device(f"sorting_{name}", on_device)
        results += compiled.call_on_device(f"updating_{name}", on_device)
        first, backwards, _ = (result.to_host() for result in results)
        np.testing.assert_array_equal(on_device.to_host(), X, err_msg=name)
        np.testing.assert_array_equal(first, np.sort(y, 0), err_msg=name)
        np.testing.assert_array_equal(backwards, y[::-1], err_msg=name)
