"""`axir.scipy.cluster.vq`: vector quantization."""

from __future__ import annotations

import axir.numpy as jnp
from axir.dialect.core.array import ArrayLike
from axir.dialect.core.errors import ShapeError
from axir.dialect.program.rules import Value
from axir.numpy._arguments.promotion import promote_inexact

__all__ = ["vq"]


def __dir__() -> list[str]:
    return __all__


def vq(obs: ArrayLike, code_book: ArrayLike, check_finite: bool = True) -> tuple[Value, Value]:
    """Finds for each observation the nearest code.

    Args:
        obs: Observations, of shape (m, n), or (m,) for one feature; integers become floats.
        code_book: Codes, of shape (k, n), or (k,).
        check_finite: Ignored: nonfinite values give NaN.

    Returns:
        The numbers of the codes, int32 of shape (m,), and the Euclidean distances from them, of
        shape (m,).

    Raises:
        ShapeError: if the arguments are of different ranks, of another rank than 1 or 2, have
            different numbers of features, or if the codebook is empty.

    >>> import axir.numpy as jnp
    >>> vq(jnp.array([[0.0, 1.0], [5.0, 5.0]]), jnp.array([[4.0, 5.0], [0.0, 0.0]]))
    (Array([1, 0], dtype=int32), Array([1., 1.], dtype=float32))
    """
    obs, code_book = promote_inexact("scipy.cluster.vq.vq", obs, code_book)
    if obs.ndim != code_book.ndim or obs.ndim not in (1, 2):
        raise ShapeError(
            f"vq: obs of shape {obs.shape} and code_book of shape {code_book.shape} must both be "
            "of rank 1 or both of rank 2.",
            "Observations are rows.",
        )
    if obs.ndim == 1:
        obs, code_book = obs[:, None], code_book[:, None]
    if obs.shape[1] != code_book.shape[1] or not code_book.shape[0]:
        raise ShapeError(
            f"vq: codes of shape {code_book.shape} do not fit observations of shape {obs.shape}.",
            "There must be a code, with as many features as the observations.",
        )
    distances = jnp.linalg.norm(obs[:, None] - code_book, axis=-1)
    codes = jnp.argmin(distances, axis=1).astype(jnp.int32)
    return codes, jnp.min(distances, axis=1)
