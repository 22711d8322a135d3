"""`take-complex-parts`: two products with conjugates, of which IREE mixes up the parts."""

from __future__ import annotations

import numpy as np
from support.stablehlo_runner import Example, run_examples, text_after

from axir.dialect.builders import stablehlo as hlo

FLAGS = ("--iree-opt-level=O2", "--iree-global-optimization-opt-level=O0")

_GENERATOR = np.random.default_rng(0)
Z = (_GENERATOR.standard_normal((2, 3, 4)).astype(np.float32).T @ [1, 1j]).T.astype(np.complex64)


def _conjugate(z):
    return hlo.complex(hlo.real(z), hlo.negate(hlo.imag(z)))


def _products(z):
    """z.T conj(z), and the squared lengths of z's columns as products of 1 x 3 and 3 x 1."""
    flipped = hlo.transpose(z, (1, 0))
    product = hlo.dot_general(flipped, _conjugate(z), ((1,), (0,)))
    rows = hlo.reshape(_conjugate(flipped), (4, 1, 3))
    columns = hlo.reshape(flipped, (4, 3, 1))
    lengths = hlo.dot_general(rows, columns, ((2,), (1,)), ((0,), (0,)))
    return product, lengths


EXPECTED = (Z.T @ Z.conj(), (Z.conj() * Z).sum(0).reshape(4, 1, 1))
EXAMPLE = Example("products", (Z,), _products, EXPECTED)


def test_values() -> None:
    results = run_examples([EXAMPLE], "split-complex-dot,take-complex-parts", FLAGS)["products"]
    for result, expected in zip(results, EXPECTED, strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)


def test_the_pass_is_still_needed() -> None:
    first, _ = run_examples([EXAMPLE], "split-complex-dot", FLAGS)["products"]
    assert np.abs(first - EXPECTED[0]).max() > 1


def test_parts_are_moved_as_the_numbers_were() -> None:
    def real_of_slice(a, b):
        number = hlo.broadcast_in_dim(hlo.complex(a, b), (2, 3), (1,))
        return hlo.imag(hlo.slice(hlo.transpose(number, (1, 0)), (1, 0), (3, 2), (1, 1)))

    parts = np.arange(3, dtype=np.float32), np.arange(3, dtype=np.float32) + 5
    expected = np.broadcast_to(parts[1], (2, 3)).T[1:]
    example = Example("moved", parts, real_of_slice, expected)
    assert "imag" not in text_after(example, "take-complex-parts")
    (result,) = run_examples([example], "take-complex-parts")["moved"]
    np.testing.assert_array_equal(result, expected)
