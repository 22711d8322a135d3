"""`store-window-results`: window reductions of which the results are padded."""

from __future__ import annotations

import numpy as np
import pytest
from support.stablehlo_runner import Example, build, deviations, run_examples

from axir.dialect.builders import stablehlo as hlo
from axir.runtime import CompileError, Target, compile_module

X = np.array([[4, 2, 3, 6], [1, 5, 5, 2], [3, 3, 2, 1]], np.float32)


def sums(*arrays):
    zero = hlo.full(0, (), np.float32)
    return [hlo.reduce_window([x], [zero], (1, 2), lambda a, b: [hlo.add(a, b)])[0] for x in arrays]


def padded(x, low=(0, 0), high=(0, 1)):
    return hlo.pad(x, hlo.full(0, (), np.float32), low, high, (0,) * len(low))


def padded_sums(*arrays):
    return [padded(x) for x in sums(*arrays)]


def cut_and_padded_sums(*arrays):
    return [padded(x, (-1, 0), (0, -1)) for x in sums(*arrays)]


def padded_views(*arrays):
    views = [hlo.broadcast_in_dim(hlo.reshape(x, (9,)), (2, 9), (1,)) for x in sums(*arrays)]
    return [padded(x) for x in views]


def summed_again(*arrays):
    zero = hlo.full(0, (), np.float32)
    return [
        hlo.reduce_window(
            [x], [zero], (2, 1), lambda a, b: [hlo.add(a, b)], padding=[(0, 1), (0, 0)]
        )[0]
        for x in sums(*arrays)
    ]


def one_padded(x, y):
    first, second = sums(x, y)
    return [padded(first), second]


Y = X[::-1] + 1
SUMS = [x[:, 1:] + x[:, :-1] for x in (X, Y)]
PADDED = {
    padded_sums: [np.pad(x, ((0, 0), (0, 1))) for x in SUMS],
    cut_and_padded_sums: [x[1:, :-1] for x in SUMS],
    padded_views: [np.pad(np.tile(x.ravel(), (2, 1)), ((0, 0), (0, 1))) for x in SUMS],
    summed_again: [x + np.pad(x[1:], ((0, 1), (0, 0))) for x in SUMS],
    one_padded: [np.pad(SUMS[0], ((0, 0), (0, 1))), SUMS[1]],
}
EXAMPLES = [Example(f.__name__, (X, Y), f, expected) for f, expected in PADDED.items()]


def test_values() -> None:
    results = run_examples(EXAMPLES, "store-window-results")
    assert [d for e in EXAMPLES for d in deviations(results[e.name], e)] == []


def test_without_the_pass_two_reductions_do_not_compile() -> None:
    module = build({"f": ((X, Y), padded_sums)})
    with pytest.raises(CompileError, match="workgroup distribut"):
        compile_module(module.operation.get_asm(), Target(), "f")
