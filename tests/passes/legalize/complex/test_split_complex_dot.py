"""`split-complex-dot`: products of complex matrices."""

from __future__ import annotations

import numpy as np
from support.stablehlo_runner import Example, run_examples, text_after

from axir.dialect.builders import stablehlo as hlo

_GENERATOR = np.random.default_rng(0)


def _complex(*shape: int) -> np.ndarray:
    parts = _GENERATOR.standard_normal((2, *shape))
    return (parts[0] + 1j * parts[1]).astype(np.complex64)


def _chain(m, x):
    p = hlo.dot_general(m, x, ((1,), (0,)))
    product = hlo.dot_general(p, m, ((0,), (0,)))
    return hlo.add(p, hlo.dot_general(m, product, ((1,), (0,))))


M, P, STACK = _complex(4, 4), _complex(4), _complex(3, 4, 5)
EXAMPLES = [
    Example("chain", (M, P), _chain, M @ P + M @ ((M @ P) @ M)),
    Example(
        "stack",
        (STACK, STACK),
        lambda x, y: hlo.dot_general(x, y, ((2,), (2,)), ((0,), (0,))),
        STACK @ STACK.swapaxes(1, 2),
    ),
]


def test_values() -> None:
    results = run_examples(EXAMPLES, "split-complex-dot")
    for example in EXAMPLES:
        np.testing.assert_allclose(results[example.name][0], example.expected, rtol=1e-5)


def test_products_are_of_real_numbers() -> None:
    text = text_after(EXAMPLES[1], "split-complex-dot")
    products = [line for line in text.splitlines() if "dot_general" in line]
    assert len(products) == 4
    assert not any("complex" in line for line in products)
