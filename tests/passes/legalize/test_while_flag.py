"""`unflag-while`: loops that run on a flag of their own."""

from __future__ import annotations

import numpy as np
import pytest
from stablehlo_runner import (
    CompilationError,
    Example,
    build,
    compile_module,
    deviations,
    run_examples,
)

from axir.dialect import stablehlo as hlo


def halve_until_small(flag, x):
    """Returns whether it is still running (never), and the halved number."""

    def step(_, y):
        half = hlo.multiply(y, hlo.scalar_like(y, 0.5))
        return [hlo.compare(half, hlo.scalar_like(half, 1), "GT"), half]

    return hlo.while_([flag, x], lambda flag, _: flag, step)


EXAMPLES = [
    Example("runs", (True, np.float32(100)), halve_until_small, [False, np.float32(0.78125)]),
    Example("does_not_run", (False, np.float32(100)), halve_until_small, [False, np.float32(100)]),
]


def test_values() -> None:
    results = run_examples(EXAMPLES, "unflag-while")
    assert [d for e in EXAMPLES for d in deviations(results[e.name], e)] == []


def test_without_the_pass_the_compiler_crashes() -> None:
    with pytest.raises(CompilationError):
        compile_module(build({"f": (EXAMPLES[0].arguments, halve_until_small)}))
