"""Reductions by one associative operation: `reduce_sum`, `reduce_max`, `reduce_and` ...

What does not live here: reductions that yield positions (`arg_reduce.py`), running reductions
(`cumulative.py`), and reductions by a function of the user's (`variadic_reduce.py`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import dtypes
from .. import stablehlo as hlo
from ..errors import AxisError, DTypeError, axis_error
from ..primitive import Primitive, Sample
from ..symbolic import Zero
from ..types import ShapedArray
from .family import ANY, BITS, NUMBER, Value, as_value, full, random_values
from .table import declare


@functools.lru_cache(maxsize=4096)
def canonical_axes(name: str, axes: tuple[int, ...], ndim: int) -> tuple[int, ...]:
    """Returns axes as non-negative Python integers.

    Raises:
        AxisError: for an axis out of range, or named twice.
    """
    canonical = []
    for axis in axes:
        if not -ndim <= axis < ndim:
            raise axis_error(name, axis, ndim)
        canonical.append(int(axis) % ndim)
    if len(set(canonical)) != len(canonical):
        raise AxisError(f"{name}: axes {axes} name an axis twice.", "Name each axis once.")
    return tuple(canonical)


def without(shape: Sequence[int], axes: Sequence[int]) -> tuple[int, ...]:
    """Returns a shape less some of its axes."""
    return tuple(extent for axis, extent in enumerate(shape) if axis not in axes)


def spread(value: Value, shape: tuple[int, ...], axes: Sequence[int]) -> Value:
    """Broadcasts the result of a reduction over `axes` to the shape of its operand."""
    from .shape import broadcast_in_dim

    kept = tuple(axis for axis in range(len(shape)) if axis not in axes)
    return broadcast_in_dim(value, shape, kept)


def check_dtype(name: str, dtype: np.dtype, domain: Sequence[np.dtype]) -> None:
    """Raises `DTypeError` unless the dtype is one that the op takes."""
    if dtype not in domain:
        raise DTypeError(
            f"{name} does not accept {dtype}; it takes {', '.join(map(str, domain))}.",
            "Cast with x.astype(dtype).",
        )


def batch_axes(axis: int, axes: Sequence[int]) -> tuple[tuple[int, ...], int]:
    """Returns the reduced axes of a batched operand, and where its batch axis ends up."""
    shifted = tuple(a + (a >= axis) for a in axes)
    return shifted, axis - sum(a < axis for a in shifted)


def accumulator_dtype(dtype: np.dtype) -> np.dtype:
    """Returns the dtype to accumulate in: half precision would lose the small terms."""
    return dtypes.float32 if dtype in (dtypes.float16, dtypes.bfloat16) else dtype


def least(dtype: np.dtype) -> Any:
    """Returns the identity of max."""
    if dtypes.is_float(dtype):
        return -np.inf
    if dtypes.is_complex(dtype):
        return complex(-np.inf, -np.inf)
    return False if dtype == dtypes.bool_ else np.iinfo(dtype).min


def greatest(dtype: np.dtype) -> Any:
    """Returns the identity of min."""
    if dtypes.is_float(dtype):
        return np.inf
    if dtypes.is_complex(dtype):
        return complex(np.inf, np.inf)
    return True if dtype == dtypes.bool_ else np.iinfo(dtype).max


def all_ones(dtype: np.dtype) -> Any:
    """Returns the identity of bitwise and."""
    return True if dtype == dtypes.bool_ else np.array(-1).astype(dtype)


def _evaluator(ufunc: np.ufunc, identity: Callable[[np.dtype], Any]) -> Callable[..., Any]:
    reduce = ufunc.reduce

    def evaluate(x: np.ndarray, *, axes: tuple[int, ...]) -> Any:
        dtype = x.dtype
        if x.size == 0:
            return np.full(without(x.shape, axes), identity(dtype)).astype(dtype)
        return reduce(x, axis=axes, dtype=dtype)

    return evaluate


def _accumulating_evaluator(ufunc: np.ufunc) -> Callable[..., Any]:
    reduce = ufunc.reduce

    def evaluate(x: np.ndarray, *, axes: tuple[int, ...]) -> Any:
        dtype = x.dtype
        if dtype.itemsize == 2 and dtype.kind not in "iu":
            return reduce(x.astype(np.float32), axis=axes)
        return reduce(x, axis=axes, dtype=dtype)

    return evaluate


def _lowering(
    build: Callable[..., Any], identity: Callable[[np.dtype], Any], accumulates: bool
) -> Callable[..., Any]:
    def lower(context: Any, x: Any, *, axes: tuple[int, ...]) -> Any:
        dtype = context.types_in[0].dtype
        wide = accumulator_dtype(dtype) if accumulates else dtype
        operand = x if wide == dtype else hlo.convert(x, wide)
        init = hlo.full(identity(wide), (), wide)
        result = hlo.reduce([operand], [init], axes, build)[0]
        return result if wide == dtype else hlo.convert(result, dtype)

    return lower


def _declare(
    name: str,
    ufunc: np.ufunc,
    build: Callable[..., Any],
    identity: Callable[[np.dtype], Any],
    domain: Sequence[np.dtype],
    *,
    accumulates: bool = False,
    **rules: Any,
) -> Primitive:
    """Declares the reduction by `ufunc`; one that `accumulates` does so in float32 at least."""

    def infer(x: ShapedArray, *, axes: tuple[int, ...]) -> ShapedArray:
        check_dtype(name, x.dtype, domain)
        canonical_axes(name, axes, x.ndim)
        return ShapedArray(without(x.shape, axes), x.dtype, x.weak_type)

    def batch(operands: Any, axes_in: Any, *, axes: tuple[int, ...]) -> Any:
        shifted, axis = batch_axes(axes_in[0], axes)
        return primitive.bind(operands[0], axes=shifted), axis

    primitive = declare(
        name,
        infer=infer,
        evaluate=_accumulating_evaluator(ufunc) if accumulates else _evaluator(ufunc, identity),
        batch=batch,
        lower=_lowering(build, identity, accumulates),
        samples=lambda: _samples(name, domain),
        **rules,
    )
    return primitive


def _function(primitive: Primitive, what: str) -> Callable[..., Value]:
    bind, name = primitive.bind, primitive.name

    def reduce(x: Any, axes: Sequence[int]) -> Value:
        x = as_value(x)
        return bind(x, axes=canonical_axes(name, tuple(axes), x.ndim))

    reduce.__name__ = reduce.__qualname__ = name
    reduce.__doc__ = f"""Reduces `axes` of an array to {what}; the identity where there is nothing.

    Raises:
        AxisError: for an axis out of range or named twice.
        DTypeError: for a dtype without this operation.
    """
    reduce.primitive = primitive  # type: ignore[attr-defined]
    return reduce


def _sum_jvp(primals: Any, tangents: Any, out: Value, *, axes: tuple[int, ...]) -> Any:
    return tangents[0] if type(tangents[0]) is Zero else reduce_sum(tangents[0], axes)


def _sum_transpose(ct: Value, x: Any, *, axes: tuple[int, ...]) -> list[Any]:
    return [spread(ct, x.shape, axes)]


def _samples(name: str, domain: Sequence[np.dtype]) -> list[Sample]:
    generator = np.random.default_rng(len(name))
    samples = [
        Sample((random_values(generator, (3, 2, 4), dtype, 0.5, 2),), {"axes": axes})
        for dtype, axes in zip(domain, [(1,), (0, 2), (0, 1, 2), (2,)] * 4, strict=False)
    ]
    return samples


reduce_sum = _function(
    _declare(
        "reduce_sum", np.add, hlo.add, lambda dtype: 0, NUMBER,
        accumulates=True, jvp=_sum_jvp, transpose=_sum_transpose,
    ),
    "their sum",
)  # fmt: skip
