"""`use-window-results`: window reductions of which not every result is used."""

from __future__ import annotations

import numpy as np
import pytest
from support.stablehlo_runner import Example, build, deviations, run_examples

from axir.dialect.builders import stablehlo as hlo
from axir.runtime import CompileError, Target, compile_module

X = np.array([[4, 2, 3, 6], [1, 5, 5, 2], [3, 3, 2, 1]], np.float32)


def companions(x, *others):
    """For each of the other arrays: what stands where `x` is larger, of two neighbours."""

    def pick(value, other, new_value, new_other):
        is_larger = hlo.compare(value, new_value, "GE")
        return [
            hlo.select(is_larger, value, new_value),
            hlo.select(is_larger, other, new_other),
        ]

    zero = hlo.full(0, (), np.float32)

    def reduced(other):
        start = zero if other.type == x.type else hlo.full(0, (), hlo.element_type_of(other))
        return hlo.reduce_window([x, other], [zero, start], (1, 2), pick, padding=[(0, 0), (0, 1)])[
            1
        ]

    return [reduced(other) for other in others]


def expected(*others):
    following = np.pad(X[:, 1:], ((0, 0), (0, 1)), constant_values=0)
    index = np.where(X >= following, 0, 1) + np.arange(4)
    return [np.take_along_axis(other, index, 1) for other in others]


INTEGERS = np.arange(12, dtype=np.int32).reshape(3, 4)
ARGUMENTS = {
    "floats": (2 * X, X + 1),
    "integers": (INTEGERS, INTEGERS * 3),
    "one": (X * X,),
}
EXAMPLES = [
    Example(name, (X, *others), companions, expected(*others)) for name, others in ARGUMENTS.items()
]


def test_values() -> None:
    results = run_examples(EXAMPLES, "use-window-results")
    assert [d for e in EXAMPLES for d in deviations(results[e.name], e)] == []


def test_without_the_pass_two_reductions_do_not_compile() -> None:
    module = build({"f": (EXAMPLES[0].arguments, companions)})
    with pytest.raises(CompileError, match="workgroup distribut"):
        compile_module(module.operation.get_asm(), Target(), "f")
