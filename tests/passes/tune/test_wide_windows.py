"""`unroll-wide-windows`."""

from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np
import pytest
from support.stablehlo_runner import Example, build, run_examples

from axir.dialect.builders import stablehlo as hlo
from axir.passes.framework.pipeline import run_passes

RNG = np.random.default_rng(0)


def dilated(array, axes, dilations):
    for axis, dilation in zip(axes, dilations, strict=True):
        shape = list(array.shape)
        shape[axis] = (shape[axis] - 1) * dilation + 1
        spread = np.zeros(shape)
        index = [slice(None)] * array.ndim
        index[axis] = slice(None, None, dilation)
        spread[tuple(index)] = array
        array = spread
    return array


def convolved(lhs, rhs, layouts, strides, padding, lhs_dilation, rhs_dilation, groups):
    """The definition, position by position, on (batch, feature, *spatial) and (o, i, *spatial)."""
    lhs_layout, rhs_layout, result_layout = layouts
    rank = len(strides)
    x = dilated(lhs.astype(np.float64).transpose(lhs_layout), range(2, 2 + rank), lhs_dilation)
    k = dilated(rhs.astype(np.float64).transpose(rhs_layout), range(2, 2 + rank), rhs_dilation)
    x = np.pad(x, [(0, 0), (0, 0), *[(max(a, 0), max(b, 0)) for a, b in padding]])
    for axis, (low, high) in enumerate(padding, 2):
        x = np.take(x, range(max(-low, 0), x.shape[axis] - max(-high, 0)), axis)
    feature_groups, batch_groups = groups
    sizes = [(x.shape[a + 2] - k.shape[a + 2]) // strides[a] + 1 for a in range(rank)]
    outputs = np.zeros((x.shape[0] // batch_groups, k.shape[0], *sizes))
    count = max(feature_groups, batch_groups)
    for group in range(count):
        part = np.split(x, count, 1 if feature_groups > 1 else 0)[group] if count > 1 else x
        features = slice(group * k.shape[0] // count, (group + 1) * k.shape[0] // count)
        for place in itertools.product(*map(range, sizes)):
            window = tuple(
                slice(p * s, p * s + n) for p, s, n in zip(place, strides, k.shape[2:], strict=True)
            )
            product = np.tensordot(
                part[(..., *window)],
                k[features],
                (list(range(1, rank + 2)), list(range(1, rank + 2))),
            )
            outputs[(slice(None), features, *place)] = product
    return outputs.transpose(np.argsort(result_layout)).astype(lhs.dtype)


def example(
    name,
    lhs,
    rhs,
    layouts=((0, 1, 2, 3), (0, 1, 2, 3), (0, 1, 2, 3)),
    strides=(1, 1),
    padding=((0, 0), (0, 0)),
    lhs_dilation=(1, 1),
    rhs_dilation=(1, 1),
    groups=(1, 1),
    dtype=np.float32,
):
    lhs, rhs = (RNG.integers(-4, 5, size=shape).astype(dtype) for shape in (lhs, rhs))

    def builder(x, k):
        return hlo.convolution(
            x,
            k,
            dimension_numbers=layouts,
            window_strides=strides,
            padding=padding,
            lhs_dilation=lhs_dilation,
            rhs_dilation=rhs_dilation,
            feature_group_count=groups[0],
            batch_group_count=groups[1],
        )

    expected = convolved(lhs, rhs, layouts, strides, padding, lhs_dilation, rhs_dilation, groups)
    return Example(name, (lhs, rhs), builder, expected)


GRADIENT = ((3, 0, 1, 2), (3, 0, 1, 2), (2, 3, 0, 1))
ONE = ((0, 1, 2), (0, 1, 2), (0, 1, 2))
WIDE = [
    example("gradient", (3, 8, 8, 5), (3, 8, 8, 4), GRADIENT, padding=((1, 1), (1, 1))),
    example("double", (2, 7, 6, 3), (2, 7, 6, 2), GRADIENT, padding=((1, 1), (0, 0)), dtype="f8"),
    example(
        "bfloat16",
        (2, 6, 6, 2),
        (2, 6, 6, 3),
        GRADIENT,
        padding=((1, 1), (0, 0)),
        dtype=ml_dtypes.bfloat16,
    ),
    example(
        "strided_layer",
        (2, 15, 15, 3),
        (2, 7, 7, 2),
        GRADIENT,
        rhs_dilation=(2, 2),
        padding=((0, 0), (-1, 1)),
    ),
    example("one_position", (4, 3, 6, 5), (7, 3, 6, 5)),
    example("strides", (2, 3, 13, 12), (4, 3, 9, 9), strides=(3, 2)),
    example(
        "dilated_lhs", (2, 3, 5, 5), (4, 3, 8, 8), lhs_dilation=(2, 2), padding=((0, 1), (0, 0))
    ),
    example("feature_groups", (2, 6, 6, 6), (4, 3, 5, 5), groups=(2, 1)),
    example("batch_groups", (6, 2, 6, 6), (9, 2, 5, 5), groups=(1, 3)),
    example(
        "line",
        (2, 3, 33),
        (4, 3, 31),
        ONE,
        strides=(1,),
        padding=((1, 0),),
        lhs_dilation=(1,),
        rhs_dilation=(1,),
    ),
]
NARROW = example("narrow", (2, 3, 8, 8), (4, 3, 3, 3))


def convolution_count(cases) -> int:
    module = build({case.name: (case.arguments, case.builder) for case in cases})
    run_passes(module, "unroll-wide-windows")
    return str(module).count("stablehlo.convolution")


@pytest.fixture(scope="module")
def results():
    return run_examples([*WIDE, NARROW], "unroll-wide-windows")


@pytest.mark.parametrize("case", [*WIDE, NARROW], ids=lambda case: case.name)
def test_values(results, case: Example) -> None:
    # Sums of small integers are exact in every dtype but bfloat16, which rounds once.
    result = results[case.name][0]
    assert result.dtype == np.asarray(case.expected).dtype
    np.testing.assert_array_equal(result, case.expected)


def test_all_wide_windows_become_products() -> None:
    assert convolution_count(WIDE) == 0


def test_narrow_windows_stay() -> None:
    assert convolution_count([NARROW]) == 1


def test_integers_and_complex_numbers_stay() -> None:
    cases = [
        example("integers", (2, 3, 6, 6), (4, 3, 5, 5), dtype=np.int32),
        example("complex", (2, 3, 6, 6), (4, 3, 5, 5), dtype=np.float32),
    ]
    complex_arguments = tuple(np.asarray(x, np.complex64) for x in cases[1].arguments)
    module = build(
        {
            "integers": (cases[0].arguments, cases[0].builder),
            "complex": (complex_arguments, cases[1].builder),
        }
    )
    run_passes(module, "unroll-wide-windows")
    assert str(module).count("stablehlo.convolution") == 2
