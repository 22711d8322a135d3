"""`sort-by-rank`: the sorts of rows of any length for GPUs, tested on the CPU."""

from __future__ import annotations

import numpy as np
import pytest
from support.stablehlo_runner import Example, build, deviations, run_examples

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.core.errors import UnsupportedByDeviceError
from axir.passes.framework.pipeline import run_passes

RNG = np.random.default_rng(0)


def rising(*operands):
    return hlo.sort(list(operands), 0, lambda a, b, *_: hlo.compare(a, b, "LT"), is_stable=True)


def example(length: int) -> Example:
    """Few different keys, some of them nan and zeros of both signs, with their positions."""
    keys = RNG.integers(-9, 9, length).astype(np.float32)
    keys[::7] = -0.0
    positions = np.arange(length, dtype=np.int32)
    order = np.argsort(keys + 0.0, kind="stable")
    return Example(f"of_{length}", (keys, positions), rising, [keys[order], positions[order]])


def test_rows_of_all_lengths() -> None:
    # One element, few elements, the longest row without runs, and merged rows with full and partial
    # runs.
    examples = [example(n) for n in (1, 5, 512, 513, 1024, 3000)]
    results = run_examples(examples, "sort-by-rank,legalize-for-iree{fuses=false}")
    assert [d for e in examples for d in deviations(results[e.name], e)] == []


def test_several_keys_and_dimensions() -> None:
    first = RNG.integers(0, 3, (2, 700, 2)).astype(np.int64) - 2**40
    second = RNG.integers(0, 200, (2, 700, 2)).astype(np.uint8)

    def sort(x, y):
        def before(a, b, c, d):
            return hlo.or_(
                hlo.compare(a, b, "GT"),
                hlo.and_(hlo.compare(a, b, "EQ"), hlo.compare(c, d, "LT")),
            )

        return hlo.sort([x, y], 1, before, is_stable=True)

    order = np.lexsort((second, -first), axis=1)
    expected = [np.take_along_axis(x, order, 1) for x in (first, second)]
    two_keys = Example("two_keys", (first, second), sort, expected)
    results = run_examples([two_keys], "sort-by-rank,legalize-for-iree{fuses=false}")
    assert list(deviations(results["two_keys"], two_keys)) == []


def test_a_comparator_without_keys_is_refused() -> None:
    def sort(x):
        return hlo.sort([x], 0, lambda a, b: hlo.compare(hlo.add(a, b), a, "LT"))

    module = build({"f": ((np.ones(4, np.float32),), sort)})
    with pytest.raises(UnsupportedByDeviceError, match="is no comparison of keys") as caught:
        run_passes(module, "sort-by-rank")
    assert "devices('cpu')" in str(caught.value)
