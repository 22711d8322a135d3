"""`split-complex-sums`: small sums of complex numbers."""

from __future__ import annotations

import numpy as np
from support.stablehlo_runner import Example, run_examples, text_after

from axir.dialect.builders import stablehlo as hlo

_GENERATOR = np.random.default_rng(0)


def _complex(*shape: int) -> np.ndarray:
    parts = _GENERATOR.standard_normal((2, *shape))
    return (parts[0] + 1j * parts[1]).astype(np.complex64)


def _sum(x, start=0.0, body=hlo.add):
    return hlo.reduce([x], [hlo.constant(np.complex64(start))], [1], body)[0]


X, LARGE = _complex(4, 5), _complex(2, 9000)
EXAMPLES = [
    Example("sum", (X,), _sum, X.sum(1)),
    Example("from a number", (X,), lambda x: _sum(x, 2 - 3j), X.sum(1) + (2 - 3j)),
    Example("of none", (X[:, :0],), lambda x: _sum(x, 2j), np.full(4, 2j, np.complex64)),
    Example("product", (X,), lambda x: _sum(x, 1, hlo.multiply), X.prod(1)),
    Example("large", (LARGE,), _sum, LARGE.sum(1)),
]


def test_values() -> None:
    results = run_examples(EXAMPLES, "split-complex-sums")
    for example in EXAMPLES:
        np.testing.assert_allclose(results[example.name][0], example.expected, rtol=1e-4)


def test_small_sums_are_of_real_numbers() -> None:
    for example, is_split in zip(EXAMPLES, (True, True, True, False, False), strict=True):
        text = text_after(example, "split-complex-sums")
        sums = [line for line in text.splitlines() if "stablehlo.reduce" in line]
        assert len(sums) == 1 + is_split
        assert any("complex" in line for line in sums) != is_split
