"""`geqrf`: QR in LAPACK's packed form, with the reflections below the triangle."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from axir.dialect.core.symbolic_dims import smaller
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.elementwise.family import as_value
from axir.dialect.program.dimensions import stack_of
from axir.dialect.program.operation import Sample
from axir.dialect.program.primitive import Primitive
from axir.dialect.program.rules import Operand, Value

from . import kernels
from .householder import factor_qr
from .kernels import matrix_kernel
from .rules import DOMAIN, check_matrix, declare_decomposition, random_matrix


def geqrf(x: Operand) -> tuple[Value, Value]:
    """Factors matrices by Householder reflections, which stay packed.

    Args:
        x: Matrices of shape (..., m, n).

    Returns:
        Matrices (..., m, n) with r on and above the diagonal, and below it the vectors of the
        reflections; and the factors of these, of shape (..., min(m, n)). `householder_product` and
        `axir.lax.linalg.ormqr` take both.

    Raises:
        MatrixShapeError: for arrays of fewer than two axes.
        DTypeError: for dtypes other than float32, float64, complex64 and complex128.

    >>> packed, taus = geqrf(np.array([[3.0], [4.0]], np.float32))
    >>> packed, taus
    (Array([[-5. ],
           [ 0.5]], dtype=float32), Array([1.6], dtype=float32))
    """
    packed, taus = _geqrf.bind(as_value(x))
    return packed, taus


def _infer(x: ShapedArray) -> list[ShapedArray]:
    check_matrix("geqrf", x)
    taus = (*x.shape[:-2], smaller(*x.shape[-2:]))
    return [ShapedArray(x.shape, x.dtype), ShapedArray(taus, x.dtype)]


def _evaluate(x: np.ndarray) -> list[np.ndarray]:
    columns, taus = np.linalg.qr(x, "raw")
    return [np.ascontiguousarray(np.swapaxes(columns, -1, -2)), taus]


def _packed(x: Value) -> Sequence[Value]:
    return factor_qr(x)[:2]


def _small(values: Sequence[Value], types: Sequence[ShapedArray]) -> list[Value]:
    return matrix_kernel(kernels.reflections, values, types, types[0].shape[:-2])


def _samples() -> list[Sample]:
    generator = np.random.default_rng(29)
    shapes = [(3, 3), (4, 2), (2, 4), (2, 4, 3), (1, 1), (3, 0)]
    return [
        Sample(
            (random_matrix(generator, shape, DOMAIN[index % 4]),), is_smooth=False, tolerance=256.0
        )
        for index, shape in enumerate(shapes)
    ]


_geqrf: Primitive = declare_decomposition(
    "geqrf",
    multiple_results=True,
    dimensions=stack_of(2),
    infer=_infer,
    evaluate=_evaluate,
    portable=_packed,
    small=_small,
    samples=_samples,
    unsupported={"jvp": "reflections are an intermediate form; differentiate qr instead."},
)
