"""Products of matrices in floats of few bits, with a scale for each block of elements.

Formats: "OCP Microscaling Formats (MX) Specification", 2023; NVFP4 has blocks of 16 elements,
scales of float8_e4m3fn, and one scale for the whole array.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import ml_dtypes
import numpy as np

import axir.numpy as jnp
from axir import lax
from axir.custom_derivatives import custom_vjp
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import DTypeLike, UserObject
from axir.dialect.core.array import ArrayLike
from axir.dialect.core.errors import ParameterError, ShapeError
from axir.dialect.program.rules import Value


@dataclass(frozen=True)
class BlockScaleConfig:
    """How the elements of an array become floats of few bits.

    Attributes:
        mode: `"mxfp8"` or `"nvfp4"`.
        block_size: How many elements along the contracted axis share a scale.
        data_type: dtype of the elements.
        scale_type: dtype of the scales.
        global_scale: Scale of the whole array, or None.
        infer_only: Whether no derivative will be asked for.
    """

    mode: str
    block_size: int
    data_type: DTypeLike
    scale_type: DTypeLike
    global_scale: Value | None
    infer_only: bool


def get_scaled_dot_general_config(
    mode: str, global_scale: ArrayLike | None = None
) -> BlockScaleConfig:
    """Returns one of the two formats that `scaled_dot_general` knows.

    Args:
        mode: `"mxfp8"`: elements of float8_e4m3fn, in blocks of 32 with powers of two as scales;
            `"nvfp4"`: elements of float4_e2m1fn, in blocks of 16.
        global_scale: Scale of the whole array, for `"nvfp4"`; 1 by default.

    Raises:
        ParameterError: for another mode.

    >>> get_scaled_dot_general_config("mxfp8").block_size
    32
    """
    if mode == "mxfp8":
        types = np.dtype(ml_dtypes.float8_e4m3fn), np.dtype(ml_dtypes.float8_e8m0fnu)
        return BlockScaleConfig(mode, 32, *types, None, False)
    if mode == "nvfp4":
        types = np.dtype(ml_dtypes.float4_e2m1fn), np.dtype(ml_dtypes.float8_e4m3fn)
        scale = jnp.ones((1,), jnp.float32) if global_scale is None else jnp.asarray(global_scale)
        return BlockScaleConfig(mode, 16, *types, scale, False)
    raise ParameterError(
        f"get_scaled_dot_general_config: there is no mode {mode!r}.", "Pass 'mxfp8' or 'nvfp4'."
    )


def scaled_matmul(
    lhs: ArrayLike,
    rhs: ArrayLike,
    lhs_scales: ArrayLike,
    rhs_scales: ArrayLike,
    preferred_element_type: DTypeLike = np.float32,
) -> Value:
    """Multiplies batches of matrices with scales for blocks of elements.

    Args:
        lhs: Array of shape (B, M, K).
        rhs: Array of shape (B, N, K).
        lhs_scales: Array of shape (B, M, k), where k divides K: a scale for K / k elements.
        rhs_scales: Array of shape (B, N, k).
        preferred_element_type: dtype of the result; products are added in float32.

    Returns:
        Array of shape (B, M, N): sums of products over the last axes.

    Raises:
        ShapeError: for other shapes.

    >>> import axir.numpy as jnp
    >>> a, b = jnp.array([[[1, 2, 3]]]), jnp.array([[[4, 5, 6]]])
    >>> half = jnp.full((1, 1, 1), 0.5)
    >>> scaled_matmul(a, b, half, half)
    Array([[[8.]]], dtype=float32)
    """
    a, b, a_scales, b_scales = (jnp.asarray(x) for x in (lhs, rhs, lhs_scales, rhs_scales))
    shapes = [x.shape for x in (a, b, a_scales, b_scales)]
    if any(len(shape) != 3 for shape in shapes):
        raise ShapeError(
            f"scaled_matmul requires all inputs to be 3-dimensional arrays, not {shapes}."
        )
    fits = shapes[0][0] == shapes[1][0] and shapes[0][2] == shapes[1][2]
    fits = fits and shapes[2][2] == shapes[3][2]
    if not fits or shapes[2][:2] != shapes[0][:2] or shapes[3][:2] != shapes[1][:2]:
        raise ShapeError(
            "scaled_matmul takes arrays of shape (B, M, K) and (B, N, K) with scales of shape "
            f"(B, M, k) and (B, N, k), not {shapes}."
        )
    product = lax.scaled_dot(
        a, b, lhs_scale=a_scales, rhs_scale=b_scales, preferred_element_type=jnp.float32,
        dimension_numbers=(((2,), (2,)), ((0,), (0,))),
    )  # fmt: skip
    return product.astype(preferred_element_type)


def scaled_dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    dimension_numbers: UserObject,
    preferred_element_type: DTypeLike = np.float32,
    configs: Sequence[BlockScaleConfig] | None = None,
    implementation: str | None = None,
) -> Value:
    """Sums products as `lax.dot_general` does, of operands rounded to floats of few bits.

    Rounding counts as identity for derivatives; theirs are products of rounded operands, too, in
    the mode `"mxfp8"`, where the axes can be divided into blocks.

    Args:
        lhs: Array of floats.
        rhs: Array of floats.
        dimension_numbers: ((lhs contracting, rhs contracting), (lhs batch, rhs batch)) axes.
        preferred_element_type: dtype of the result.
        configs: How lhs, rhs and the cotangents are rounded, of `get_scaled_dot_general_config`. By
            default nothing is.
        implementation: Ignored, with a warning.

    Raises:
        ShapeError: if the number of elements that are summed is no multiple of the block size.

    >>> import axir.numpy as jnp
    >>> x = jnp.ones((2, 64))
    >>> config = get_scaled_dot_general_config("mxfp8")
    >>> scaled_dot_general(x, x, (((1,), (1,)), ((), ())), configs=[config] * 3)
    Array([[64., 64.],
           [64., 64.]], dtype=float32)
    """
    if implementation is not None:
        warnings.warn(
            "scaled_dot_general: implementation is ignored; leave it out.",
            DeprecationWarning,
            stacklevel=2,
        )
    lhs, rhs = jnp.asarray(lhs), jnp.asarray(rhs)
    if configs is None:
        return lax.dot_general(
            lhs, rhs, dimension_numbers, preferred_element_type=preferred_element_type
        )
    contract, batch = dimension_numbers
    kept = [
        [d for d in range(x.ndim) if d not in (*c, *b)]
        for x, c, b in zip((lhs, rhs), contract, batch, strict=True)
    ]
    left, right = (
        _as_matrices(x, b, k, c)
        for x, b, k, c in zip((lhs, rhs), batch, kept, contract, strict=True)
    )
    product = _product(left, right, tuple(configs)).astype(preferred_element_type)
    extents = [[x.shape[d] for d in axes] for x, axes in zip((lhs, rhs), kept, strict=True)]
    return product.reshape([*(lhs.shape[d] for d in batch[0]), *extents[0], *extents[1]])


def _as_matrices(
    x: Value, batch: Sequence[int], kept: Sequence[int], contract: Sequence[int]
) -> Value:
    """Returns an array as a batch of matrices; their last axis is contracted."""
    extents = [int(np.prod([x.shape[d] for d in axes])) for axes in (batch, kept, contract)]
    return jnp.transpose(x, (*batch, *kept, *contract)).reshape(extents)


def _product(lhs: Value, rhs: Value, configs: tuple[BlockScaleConfig, ...]) -> Value:
    """Multiplies batches of matrices (B, M, K) and (B, N, K), rounded, in float32."""

    @custom_vjp
    def multiply(lhs: Value, rhs: Value) -> Value:
        return _rounded_product(lhs, rhs, configs[0], configs[1])

    def forward(lhs: Value, rhs: Value) -> tuple[Value, tuple[Value, Value]]:
        return multiply(lhs, rhs), (lhs, rhs)

    def backward(residuals: tuple[Value, Value], ct: Value) -> tuple[Value, Value]:
        first, second = residuals
        config = configs[-1]
        of_lhs = _cotangent_product(ct, jnp.matrix_transpose(second), config, configs[1])
        turned = jnp.matrix_transpose(ct)
        of_rhs = _cotangent_product(turned, jnp.matrix_transpose(first), config, configs[0])
        return of_lhs.astype(first.dtype), of_rhs.astype(second.dtype)

    multiply.defvjp(forward, backward)
    return multiply(lhs, rhs)


def _cotangent_product(
    ct: Value, other: Value, config: BlockScaleConfig, other_config: BlockScaleConfig
) -> Value:
    if config.mode == "mxfp8" and ct.shape[-1] % config.block_size == 0:
        return _rounded_product(ct, other, config, other_config)
    return jnp.einsum("bmk,bnk->bmn", ct, other, preferred_element_type=jnp.float32)


def _rounded_product(
    lhs: Value, rhs: Value, lhs_config: BlockScaleConfig, rhs_config: BlockScaleConfig
) -> Value:
    left, left_scales = _quantized(lhs, lhs_config)
    right, right_scales = _quantized(rhs, rhs_config)
    product = scaled_matmul(left, right, left_scales, right_scales)
    for config in (lhs_config, rhs_config):
        if config.global_scale is not None:
            product = product * config.global_scale
    return product


def _quantized(x: Value, config: BlockScaleConfig) -> tuple[Value, Value]:
    """Returns elements of few bits, and the scales of blocks along the last axis."""
    size = config.block_size
    if x.shape[-1] % size or not x.shape[-1]:
        raise ShapeError(
            f"scaled_dot_general: the {x.shape[-1]} elements that are summed cannot be divided "
            f"into blocks of {size}.",
            "Pad the contracted axes with zeros.",
        )
    blocks = x.astype(jnp.float32).reshape(*x.shape[:-1], -1, size)
    if config.global_scale is not None:
        blocks = blocks / config.global_scale
    data, scale = (dtypes.as_dtype(t) for t in (config.data_type, config.scale_type))
    largest = float(ml_dtypes.finfo(data).max)
    needed = jnp.max(jnp.abs(blocks), axis=-1, keepdims=True) / largest
    if config.mode == "mxfp8":  # the next power of two
        mantissa, exponent = jnp.frexp(needed)
        power = jnp.where(mantissa == 0.5, exponent - 1, exponent)
        scales = jnp.exp2(jnp.clip(power, -126, 127).astype(jnp.float32)).astype(scale)
    else:
        scales = jnp.clip(needed, 0, float(ml_dtypes.finfo(scale).max)).astype(scale)
    factors = scales.astype(jnp.float32)
    scaled = jnp.where(factors == 0, 0, blocks / jnp.where(factors == 0, 1, factors))
    elements = jnp.clip(scaled, -largest, largest).astype(data)
    return elements.reshape(x.shape), scales[..., 0]
