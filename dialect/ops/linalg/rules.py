"""What all decompositions share: checks, batching, lowering, and matrices for samples.

The ops take any batch axes in front, so batching only moves an axis there. They are lowered to
LAPACK in the calling process where that is possible, and else to a function of elementary ops.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import dtypes
from ... import stablehlo as hlo
from ...config import config
from ...errors import DTypeError, HostCallNeededError, MatrixShapeError
from ...function import Function
from ...primitive import Primitive
from ...symbolic import Zero
from ...trace import trace_function
from ...types import ShapedArray
from ..family import Value
from ..movement import batch_size
from ..shape import move_batch_axis

DOMAIN = (dtypes.float32, dtypes.float64, dtypes.complex64, dtypes.complex128)
Evaluate = Callable[..., Any]  # returns an array or a list of them
NOT_LINEAR = {"transpose": "a decomposition is not linear; differentiate it with jvp first."}


# Checks ----------------------------------------------------------------------------------------


def check_dtype(name: str, *types: ShapedArray) -> None:
    """Raises `DTypeError` unless all operands have one dtype that LAPACK has.

    Raises:
        DTypeError: so.
    """
    if types[0].dtype not in DOMAIN:
        raise DTypeError(
            f"{name} does not accept {types[0].dtype}; it takes {', '.join(map(str, DOMAIN))}.",
            "Cast with x.astype(dtype).",
        )
    if any(t.dtype != types[0].dtype for t in types):
        raise DTypeError(
            f"{name} requires operands of equal dtype, but got {' and '.join(map(str, types))}.",
            "Cast with x.astype(dtype).",
        )


def check_matrix(name: str, x: ShapedArray, *, is_square: bool = False) -> None:
    """Raises the user's error unless an operand holds (square) matrices of a dtype of LAPACK.

    Raises:
        MatrixShapeError: for fewer than two axes, or matrices that are not square.
        DTypeError: for other dtypes.
    """
    if x.ndim < 2:
        raise MatrixShapeError(
            f"{name} requires a matrix or a stack of matrices, but got {x}.",
            "Reshape it to at least two dimensions.",
        )
    if is_square and x.shape[-1] != x.shape[-2]:
        raise MatrixShapeError(
            f"{name} requires square matrices in the last two dimensions, but got {x}, whose "
            f"matrices are {x.shape[-2]} by {x.shape[-1]}.",
            "For other matrices there are qr, svd and lstsq.",
        )
    check_dtype(name, x)


# Derivatives -----------------------------------------------------------------------------------


def zero_tangents(tangent: Any, outs: Sequence[Value]) -> list[Any] | None:
    """Returns zero tangents of the results if that of the operand is zero or has no elements."""
    if type(tangent) is not Zero and tangent.type.size:
        return None
    return [Zero(x.aval.to_tangent_aval()) for x in outs]


# Batching --------------------------------------------------------------------------------------


def batch_in_front(primitive: Primitive) -> Callable[..., Any]:
    """Returns the batching rule of ops that take batch axes in front of all operands."""

    def batch(operands: Sequence[Value], axes: Sequence[int | None], **params: Any) -> Any:
        size = batch_size(operands, axes)
        moved = [move_batch_axis(x, a, size, 0) for x, a in zip(operands, axes, strict=True)]
        results = primitive.bind(*moved, **params)
        return results, [0] * len(results) if primitive.multiple_results else 0

    return batch


# Lowering --------------------------------------------------------------------------------------


# Up to this extent a kernel is faster than a call of LAPACK, which costs about 10 us.
_KERNEL_EXTENT = 32


def lower_decomposition(
    name: str,
    evaluate: Evaluate,
    portable: Callable[..., Sequence[Value]] | None,
    small: Callable[..., list[Any] | None] | None = None,
) -> Callable[..., Any]:
    """Returns the lowering rule of a decomposition.

    Args:
        name: Of the primitive.
        evaluate: LAPACK: called in the calling process where the lowering may do that.
        portable: The same as a traceable function of elementary ops, for all other places; None if
            there is none.
        small: From MLIR values, the types of the results and the parameters to the results of a
            kernel of small real matrices, for CPUs; None if there is none for the parameters.
    """

    def lower(context: Any, *values: Any, **params: Any) -> list[Any]:
        if not any(t.size for t in context.types_in):
            empty = [np.zeros(t.shape, t.dtype) for t in context.types_in]
            results = _in_types(evaluate, context.types_out, params, *empty)
            return [hlo.constant(x) for x in results]
        if small is not None and _suits_kernel(context):
            made = small(values, context.types_out, **params)
            if made is not None:
                return made
        if getattr(context, "allows_host_calls", False):
            function = functools.partial(_in_types, evaluate, tuple(context.types_out), params)
            return list(context.host_call(function, values, context.types_out))
        if portable is None:
            raise HostCallNeededError(
                f"{name} runs on the CPU, by LAPACK in the calling process, and cannot be part of "
                "an exported program or of one for a GPU.",
                "Export the parts before and after it.",
            )
        key = tuple(sorted(params.items()))
        return list(context.call(_traced(name, portable, tuple(context.types_in), key), *values))

    return lower


def _suits_kernel(context: Any) -> bool:
    types = (*context.types_in, *context.types_out)
    rank = context.types_in[0].ndim
    extents = [extent for t in types if t.ndim == rank for extent in t.shape[-2:]]
    return (
        getattr(context, "platform", None) == "cpu"
        and not any(dtypes.is_complex(t.dtype) for t in types)
        and all(t.size > 1 for t in types)
        and max(extents) <= _KERNEL_EXTENT
    )


def _in_types(
    evaluate: Evaluate, types: Sequence[ShapedArray], params: dict[str, Any], *operands: np.ndarray
) -> list[np.ndarray]:
    with np.errstate(all="ignore"):
        results = evaluate(*operands, **params)
    arrays = [results] if isinstance(results, np.ndarray) else results
    return [np.asarray(x, dtype=t.dtype) for x, t in zip(arrays, types, strict=True)]


@functools.lru_cache(maxsize=256)
def _traced(
    name: str,
    portable: Callable[..., Sequence[Value]],
    types: tuple[ShapedArray, ...],
    params: tuple[tuple[str, Any], ...],
) -> Function:
    from ...writing import embed_captures

    strong = [ShapedArray(t.shape, t.dtype) for t in types]
    with config(jax_enable_x64=True):  # the dtypes of the operands stay what they are
        function = trace_function(lambda *xs: portable(*xs, **dict(params)), strong, name=name)
        return embed_captures(function)


# Samples ---------------------------------------------------------------------------------------


def random_matrix(
    generator: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype
) -> np.ndarray:
    """Draws matrices whose singular values lie well apart: 1, 1.5, 2, ... in some order."""
    size = min(shape[-2:])
    left = _orthonormal(generator, (*shape[:-2], shape[-2], size), dtype)
    right = _orthonormal(generator, (*shape[:-2], shape[-1], size), dtype)
    values = 1 + generator.permutation(size) / 2
    return ((left * values) @ np.swapaxes(right.conj(), -1, -2)).astype(dtype)


def random_hermitian(
    generator: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype, least: float = 1.0
) -> np.ndarray:
    """Draws Hermitian matrices whose eigenvalues lie well apart: from `least` in steps of 1/2."""
    vectors = _orthonormal(generator, shape, dtype)
    values = least + generator.permutation(shape[-1]) / 2
    return ((vectors * values) @ np.swapaxes(vectors.conj(), -1, -2)).astype(dtype)


def _orthonormal(
    generator: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype
) -> np.ndarray:
    drawn = generator.standard_normal(shape)
    if dtypes.is_complex(dtype):
        drawn = drawn + 1j * generator.standard_normal(shape)
    return np.linalg.qr(drawn)[0]
