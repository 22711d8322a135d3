"""Shared code of all decompositions: declaration, checks, batching, lowering, and samples.

The ops take any batch axes in front, so batching only moves an axis there. They are lowered to
LAPACK in the calling process if possible, else to a function of elementary ops.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import Options, Params, UserFunction
from axir.dialect.core.config import config
from axir.dialect.core.errors import DTypeError, HostCallNeededError, MatrixShapeError
from axir.dialect.core.symbolic_zeros import Zero
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.shape.movement import batch_size
from axir.dialect.ops.shape.rearranging import move_batch_axis
from axir.dialect.program.function import Function
from axir.dialect.program.function_rules import LoweringContext, LowerRule
from axir.dialect.program.function_tracing import trace_function
from axir.dialect.program.module_writer import embed_captures
from axir.dialect.program.op_table import declare
from axir.dialect.program.operation import Sample
from axir.dialect.program.primitive import Primitive
from axir.dialect.program.rules import ResultAxes, Rule, Tangent, Value

from .blas_threads import in_fitting_threads

DOMAIN = (dtypes.float32, dtypes.float64, dtypes.complex64, dtypes.complex128)
Results = Callable[..., Any]
"""From operands and parameters to an array or a list of arrays."""
Small = Callable[..., list[Any] | None]
# Up to this extent a kernel is faster than a call of LAPACK, which costs about 10 us.
KERNEL_EXTENT = 32
_NOT_LINEAR = {"transpose": "a decomposition is not linear; differentiate it with jvp first."}


def declare_decomposition(
    name: str,
    *,
    evaluate: Results,
    samples: Callable[[], list[Sample]],
    portable: Results | None = None,
    small: Small | None = None,
    small_extent: int = KERNEL_EXTENT,
    public_name: str | None = None,
    unsupported: dict[str, str] | None = None,
    **rules: Rule,
) -> Primitive:
    """Declares an op that takes batch axes in front of all operands.

    Args:
        name: Its name in the table.
        evaluate: The evaluation by LAPACK; the lowering calls it where host calls are allowed.
        samples: The samples; a stack of rank 6 is added to them.
        portable: An equivalent traceable function of elementary ops, for all other cases; None if
            absent.
        small: From MLIR values, the types of the results and the parameters to the results of a
            kernel for small real matrices on CPUs. Returns None for parameters without a kernel.
        small_extent: The largest extent of small matrices.
        public_name: The name for users, if it differs.
        unsupported: For missing rules, the reason why they cannot exist.
        **rules: Further rules.
    """

    @functools.wraps(samples)
    def all_samples() -> list[Sample]:
        return _with_stack_beside_nan(samples())

    evaluate = in_fitting_threads(evaluate)
    is_linear = {} if "transpose" in rules else _NOT_LINEAR
    primitive = declare(
        name,
        evaluate=evaluate,
        lower=_lower(public_name or name, evaluate, portable, small, small_extent),
        samples=all_samples,
        unsupported={**is_linear, **(unsupported or {})},
        **rules,
    )
    if primitive.batch is None:
        primitive.batch = _batch_in_front(primitive)
    return primitive


# Checks ----------------------------------------------------------------------------------------


def check_dtype(name: str, *types: ShapedArray) -> None:
    """Raises `DTypeError` unless all operands have one dtype of LAPACK.

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


def zero_tangents(tangent: Tangent, outs: Sequence[Value]) -> Sequence[Tangent] | None:
    """Returns zero tangents of the results if the operand's tangent is zero or empty."""
    if type(tangent) is not Zero and tangent.type.size:
        return None
    return [Zero(x.aval.to_tangent_aval()) for x in outs]


# Batching --------------------------------------------------------------------------------------


def _batch_in_front(primitive: Primitive) -> UserFunction:
    """Returns the batching rule of ops that take batch axes in front of all operands."""

    def batch(
        operands: Sequence[Value], axes: Sequence[int | None], **params: object
    ) -> tuple[Results, ResultAxes]:
        size = batch_size(operands, axes)
        moved = [move_batch_axis(x, a, size, 0) for x, a in zip(operands, axes, strict=True)]
        results = primitive.bind(*moved, **params)
        return results, [0] * len(results) if primitive.multiple_results else 0

    return batch


# Lowering --------------------------------------------------------------------------------------


def _lower(
    name: str,
    evaluate: Results,
    portable: Results | None,
    small: Small | None,
    small_extent: int,
) -> LowerRule:
    def lower(context: LoweringContext, *values: ir.Value, **params: object) -> list[ir.Value]:
        if not any(t.size for t in context.types_in):
            empty = [np.zeros(t.shape, t.dtype) for t in context.types_in]
            results = _in_types(evaluate, context.types_out, params, *empty)
            return [hlo.constant(x) for x in results]
        if small is not None and _suits_kernel(context, small_extent):
            made = small(values, context.types_out, **params)
            if made is not None:
                return made
        # A GPU runs the portable algorithm if there is one: the elements stay on the device.
        is_near = getattr(context, "platform", None) == "cpu" or portable is None
        if is_near and getattr(context, "allows_host_calls", False):
            function = functools.partial(_in_types, evaluate, tuple(context.types_out), params)
            return list(context.host_call(function, values, context.types_out))
        if portable is None:
            raise HostCallNeededError(
                f"{name} runs on the CPU, by LAPACK in the calling process, and cannot be part of "
                "an exported program.",
                "Export the parts before and after it.",
            )
        key = tuple(sorted(params.items()))
        return list(context.call(_traced(name, portable, tuple(context.types_in), key), *values))

    return lower


def _suits_kernel(context: LoweringContext, extent: int) -> bool:
    types = (*context.types_in, *context.types_out)
    rank = context.types_in[0].ndim
    extents = [extent for t in types if t.ndim == rank for extent in t.shape[-2:]]
    return (
        getattr(context, "platform", None) == "cpu"
        and not any(dtypes.is_complex(t.dtype) for t in types)
        and not any(t.is_open for t in types)
        and all(t.size for t in types)
        and max(extents) <= extent
    )


def _in_types(
    evaluate: Results, types: Sequence[ShapedArray], params: Params, *operands: np.ndarray
) -> list[np.ndarray]:
    with np.errstate(all="ignore"):
        results = evaluate(*operands, **params)
    return [np.asarray(x, dtype=t.dtype) for x, t in zip(_listed(results), types, strict=True)]


def _listed(results: Any) -> Sequence[Value]:
    return results if isinstance(results, (list, tuple)) else [results]


@functools.lru_cache(maxsize=256)
def _traced(
    name: str,
    portable: Results,
    types: tuple[ShapedArray, ...],
    params: tuple[tuple[str, object], ...],
) -> Function:
    strong = [ShapedArray(t.shape, t.dtype) for t in types]
    with config(jax_enable_x64=True):  # keeps the dtypes of the operands
        apply = functools.partial(portable, **dict(params))
        return embed_captures(trace_function(lambda *xs: _listed(apply(*xs)), strong, name=name))


# Evaluation ------------------------------------------------------------------------------------


def each_matrix(
    decompose: Callable[[np.ndarray], Sequence[object] | None],
    x: np.ndarray,
    results: list[np.ndarray],
) -> list[np.ndarray]:
    """Fills results with a routine's values for each matrix of a stack; NaN where it fails."""
    for place in np.ndindex(*x.shape[:-2]):
        found = decompose(x[place])
        for result, value in zip(results, found or [np.nan] * len(results), strict=False):
            result[place] = value
    return results


def decomposed_or_nan(
    decompose: Callable[[np.ndarray], list[np.ndarray]],
    x: np.ndarray,
    infer: Callable[[ShapedArray], Sequence[ShapedArray]],
) -> list[np.ndarray]:
    """Decomposes a stack of matrices at once; matrices with a failure get NaN."""
    try:
        return decompose(x)
    except np.linalg.LinAlgError:
        if x.ndim == 2:
            types = infer(ShapedArray(x.shape, x.dtype))
            return [np.full(t.shape, np.nan, t.dtype) for t in types]
        parts = [decomposed_or_nan(decompose, matrix, infer) for matrix in x]
        return [np.stack(results) for results in zip(*parts, strict=True)]


# Samples ---------------------------------------------------------------------------------------


def _with_stack_beside_nan(samples: list[Sample]) -> list[Sample]:
    """Adds the first sample in a stack of rank 6, beside a matrix of nan."""

    def stack(x: np.ndarray) -> np.ndarray:
        other = np.full_like(x, np.nan) if dtypes.is_inexact(x.dtype) else x
        return np.stack([x, other]).reshape(1, 2, 1, 1, *x.shape)

    args = tuple(stack(np.asarray(x)) for x in samples[0].args)
    return [*samples, dataclasses.replace(samples[0], args=args, is_smooth=False)]


Draw: TypeAlias = "Callable[[np.random.Generator, tuple[int, ...], np.dtype], np.ndarray]"


def drawn_samples(
    seed: int,
    shapes: Sequence[tuple[int, ...]],
    draw: Draw,
    params: Callable[[int], dict[str, object]] = lambda index: {},
    **options: Options,
) -> list[Sample]:
    """Returns samples of one operand, in each dtype in turn.

    Args:
        seed: Seed of the random numbers.
        shapes: Shapes of the operand.
        draw: Draws it.
        params: From the number of a sample to its parameters.
        **options: Further attributes of the samples.
    """
    generator = np.random.default_rng(seed)
    return [
        Sample((draw(generator, shape, DOMAIN[index % 4]),), params(index), **options)
        for index, shape in enumerate(shapes)
    ]


def random_general(
    generator: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype
) -> np.ndarray:
    """Draws normally distributed numbers."""
    drawn = generator.standard_normal(shape)
    if dtypes.is_complex(dtype):
        drawn = drawn + 1j * generator.standard_normal(shape)
    return drawn.astype(dtype)


def random_matrix(
    generator: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype
) -> np.ndarray:
    """Draws matrices with well separated singular values: 1, 1.5, 2, ... in some order."""
    size = min(shape[-2:])
    left = _orthonormal(generator, (*shape[:-2], shape[-2], size), dtype)
    right = _orthonormal(generator, (*shape[:-2], shape[-1], size), dtype)
    values = 1 + generator.permutation(size) / 2
    return ((left * values) @ np.swapaxes(right.conj(), -1, -2)).astype(dtype)


def random_hermitian(
    generator: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype, least: float = 1.0
) -> np.ndarray:
    """Draws Hermitian matrices with well separated eigenvalues: from `least` in steps of 1/2."""
    vectors = _orthonormal(generator, shape, dtype)
    values = least + generator.permutation(shape[-1]) / 2
    return ((vectors * values) @ np.swapaxes(vectors.conj(), -1, -2)).astype(dtype)


def _orthonormal(
    generator: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype
) -> np.ndarray:
    wide = np.result_type(dtype, np.float64)
    return np.linalg.qr(random_general(generator, shape, wide))[0]
