"""Parts of sparse arrays at computed places, and convolutions of sparse arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import index

import axir.numpy as jnp
from axir import lax
from axir._transforms.vectorize import vmap
from axir.dialect.core.annotations import DTypeLike, UserObject
from axir.dialect.core.array import ArrayLike
from axir.dialect.program.rules import Value

from ._base import SparseLayoutError, SparseRuleError, is_sparse
from ._bcoo import BCOO, full_batches, is_inside, to_bcoo
from ._bcoo_shape import bcoo_dynamic_slice, bcoo_reshape, bcoo_squeeze, bcoo_transpose


def bcoo_gather(
    operand: BCOO,
    start_indices: ArrayLike,
    dimension_numbers: lax.GatherDimensionNumbers,
    slice_sizes: Sequence[int],
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: object = None,
    fill_value: None = None,
) -> BCOO:
    """Returns parts of a sparse array that begin at computed places, as `lax.gather`.

    Args:
        operand: The array.
        start_indices: Where the parts begin: vectors along the last axis.
        dimension_numbers: As for `lax.gather`, without batching dimensions.
        slice_sizes: Extents of the parts.
        unique_indices, indices_are_sorted: Ignored.
        mode: `clip` and `promise_in_bounds`: places are moved so that parts lie inside.
        fill_value: Must be None.

    Returns:
        The parts, each stored with as many elements as the array has; the axes of `start_indices`
        are batch dimensions.

    Raises:
        SparseRuleError: for another mode, or batching dimensions.
        SparseLayoutError: if the axes of the result cannot be stored in their order.

    >>> import axir, axir.numpy as jnp
    >>> x = BCOO.fromdense(jnp.array([[0.0, 1.0], [2.0, 3.0], [0.0, 4.0]]))
    >>> rows = axir.lax.GatherDimensionNumbers((1,), (0,), (0,))
    >>> bcoo_gather(x, jnp.array([[2], [0]]), rows, (1, 2)).todense()
    Array([[0., 4.],
           [0., 1.]], dtype=float32)
    """
    numbers = dimension_numbers
    is_batched = getattr(numbers, "operand_batching_dims", ())
    name = "clip" if mode is None else str(getattr(mode, "name", mode)).lower()
    if is_batched or fill_value is not None or name not in ("clip", "promise_in_bounds"):
        raise SparseRuleError(
            f"bcoo_gather: mode {mode} with batching dimensions {tuple(is_batched)} has no rule "
            "for sparse arrays.",
            "Pass mode='clip', or gather from x.todense().",
        )
    starts = jnp.asarray(start_indices)
    outer = starts.shape[:-1]
    axes = {axis: place for place, axis in enumerate(numbers.start_index_map)}
    sizes = tuple(map(index, slice_sizes))

    def part(start: Value) -> tuple[Value, Value]:
        whole = [start[axes[axis]] if axis in axes else 0 for axis in range(operand.ndim)]
        found = full_batches(bcoo_dynamic_slice(operand, whole, sizes))
        return found.data, found.indices

    data, indices = vmap(part)(starts.reshape(-1, starts.shape[-1]))
    found = BCOO((data, indices), shape=(math.prod(outer), *sizes))
    collapsed = [axis + 1 for axis in numbers.collapsed_slice_dims]
    found = bcoo_squeeze(found, dimensions=collapsed) if collapsed else found
    found = bcoo_reshape(found, new_sizes=(*outer, *found.shape[1:]))
    places = [d for d in range(found.ndim) if d not in numbers.offset_dims]
    sources = dict(zip((*places, *numbers.offset_dims), range(found.ndim), strict=True))
    order = [sources[place] for place in range(found.ndim)]
    return bcoo_transpose(found, permutation=order) if order != sorted(order) else found


def bcoo_conv_general_dilated(
    lhs: UserObject,
    rhs: UserObject,
    *,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: object = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: object = None,
    preferred_element_type: DTypeLike | None = None,
    **_: object,
) -> BCOO:
    """Returns the convolution of two sparse arrays of one batch and one feature.

    Each product of two stored elements is stored, so there are as many as products.

    Args:
        lhs: The array, sparse or not.
        rhs: The kernel, sparse or not.
        window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers,
            preferred_element_type: As for `lax.conv_general_dilated`.
        feature_group_count, batch_group_count: Must be 1.
        precision: Ignored.

    Raises:
        SparseRuleError: for several batches, features or groups.

    >>> import axir.numpy as jnp
    >>> x, kernel = jnp.array([[[0.0, 1.0, 0.0, 2.0]]]), jnp.array([[[1.0, 10.0]]])
    >>> bcoo_conv_general_dilated(
    ...     BCOO.fromdense(x), BCOO.fromdense(kernel), window_strides=[1], padding="VALID"
    ... ).todense()
    Array([[[10.,  1., 20.]]], dtype=float32)
    """
    numbers = lax.conv_dimension_numbers(lhs.shape, rhs.shape, dimension_numbers)
    left, right, out = numbers.lhs_spec, numbers.rhs_spec, numbers.out_spec
    ones = [lhs.shape[d] for d in left[:2]] + [rhs.shape[d] for d in right[:2]]
    if {*ones, feature_group_count, batch_group_count} != {1}:
        raise SparseRuleError(
            f"bcoo_conv_general_dilated: shapes {lhs.shape} and {rhs.shape} have several batches, "
            "features or groups, for which sparse arrays have no rule.",
            "Convolve one by one, or make the arrays dense with x.todense().",
        )
    count = len(left) - 2
    stretch = [tuple(d or (1,) * count) for d in (lhs_dilation, rhs_dilation)]
    x, x_places, x_sizes = _elements(lhs, left[2:])
    k, k_places, k_sizes = _elements(rhs, right[2:])
    wide = [(size - 1) * d + 1 for size, d in zip(x_sizes, stretch[0], strict=True)]
    window = [(size - 1) * d + 1 for size, d in zip(k_sizes, stretch[1], strict=True)]
    if isinstance(padding, str):
        padding = lax.padtype_to_pads(wide, window, window_strides, padding)
    lows = jnp.array([low for low, _ in padding])
    sizes = [
        max(0, (size + low + high - part) // stride + 1)
        for size, part, stride, (low, high) in zip(
            wide, window, window_strides, padding, strict=True
        )
    ]
    # Where the window begins in which two elements meet.
    begins = (
        (x_places * jnp.array(stretch[0]) + lows)[:, None]
        - (k_places * jnp.array(stretch[1]))[None]
    ).reshape(-1, count)
    strides = jnp.array(window_strides)
    places = begins // strides
    is_met = is_inside(places, sizes) & jnp.all(begins % strides == 0, axis=-1)
    is_met &= (is_inside(x_places, x_sizes)[:, None] & is_inside(k_places, k_sizes)).reshape(-1)
    columns = [jnp.zeros_like(places[:, 0])] * 2 + list(jnp.moveaxis(places, -1, 0))
    shape = [1, 1, *sizes]
    indices = jnp.stack([columns[out.index(d)] for d in range(len(out))], axis=-1)
    shape = [shape[out.index(d)] for d in range(len(out))]
    limits = jnp.array(shape, indices.dtype)
    data = (x[:, None] * k[None]).reshape(-1)
    if preferred_element_type is not None:
        data = data.astype(preferred_element_type)
    indices = jnp.where(is_met[:, None], indices, limits)
    return BCOO((jnp.where(is_met, data, 0), indices), shape=tuple(shape))


def _elements(x: UserObject, axes: Sequence[int]) -> tuple[Value, Value, list[int]]:
    """Returns the stored elements, their places along some axes, and the extents of these."""
    mat = to_bcoo(x) if is_sparse(x) else BCOO.fromdense(jnp.asarray(x))
    if mat.n_batch or mat.n_dense:
        raise SparseLayoutError(
            "bcoo_conv_general_dilated: an operand has batch or dense dimensions.",
            "Use x.update_layout(n_batch=0, n_dense=0).",
        )
    return mat.data, mat.indices[:, jnp.array(axes)], [mat.shape[d] for d in axes]
