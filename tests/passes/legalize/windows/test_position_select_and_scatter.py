"""`position-select-and-scatter`: overlapping windows, windows in the padding, equal elements."""

from __future__ import annotations

import numpy as np
import pytest
from support.stablehlo_runner import (
    CompilationError,
    Example,
    build,
    compile_module,
    deviations,
    run_examples,
)

from axir.dialect.builders import stablehlo as hlo

PASSES = "position-select-and-scatter,clamp-gather,drop-scatter"
X = np.array([1, 5, 5, 2, 7, 0], np.float32)


def spread(window, strides, padding, direction="GE", scatter=hlo.add, init=0.0):
    def builder(x, source):
        return hlo.select_and_scatter(
            x,
            source,
            hlo.constant(init, hlo.element_type_of(x)),
            lambda a, b: hlo.compare(a, b, direction),
            scatter,
            window_dimensions=(window,),
            window_strides=(strides,),
            padding=(padding,),
        )

    return builder


def floats(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


FIVE = floats(1, 10, 100, 1000, 10000)
EXAMPLES = [
    Example("apart", (X, floats(1, 2, 3)), spread(2, 2, (0, 0)), floats(0, 1, 2, 0, 3, 0)),
    Example("overlapping", (X, FIVE), spread(2, 1, (0, 0)), floats(0, 11, 100, 0, 11000, 0)),
    Example("padded", (X, floats(1, 2, 3, 4)), spread(3, 2, (1, 2)), floats(0, 3, 0, 0, 3, 4)),
    Example("only_padding", (X, floats(1, 2, 4)), spread(2, 5, (3, 3)), floats(0, 0, 2, 0, 0, 0)),
    Example("least", (X, FIVE), spread(2, 1, (0, 0), "LE"), floats(1, 10, 0, 1100, 0, 10000)),
    Example(
        "products",
        (X, FIVE),
        spread(2, 1, (0, 0), scatter=hlo.multiply, init=2.0),
        floats(2, 20, 200, 2, 2e7, 2),
    ),
]


def test_values() -> None:
    results = run_examples(EXAMPLES, PASSES)
    problems = [text for e in EXAMPLES for text in deviations(results[e.name], e)]
    assert problems == []


@pytest.mark.parametrize("example", EXAMPLES[1:3], ids=lambda e: e.name)
def test_without_the_pass_it_does_not_compile(example: Example) -> None:
    with pytest.raises(CompilationError):
        compile_module(build({"f": (example.arguments, example.builder)}))
