"""Unit quaternions (x, y, z, w) along the last axis, and other descriptions of rotations.

Sources: E. Bernardes and S. Viollet, PLOS ONE 17, 2022 (Euler angles); J. Diebel, Representing
attitude, 2006. At angle 0, where the direction is undefined, series give values and derivatives.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import axir.numpy as jnp
from axir.dialect.core.errors import ParameterError
from axir.dialect.program.rules import Value


class EulerAxesError(ParameterError, ValueError):
    """The axes of Euler angles are none."""


def normalized(quat: Value) -> Value:
    """Returns quaternions of length 1."""
    return quat / jnp.sqrt(jnp.sum(jnp.square(quat), axis=-1, keepdims=True))


def canonical(quat: Value) -> Value:
    """Returns each quaternion or its negative, so that the leading number is positive."""
    x, y, z, w = (quat[..., i] for i in range(4))
    leading = jnp.where(w != 0, w, jnp.where(x != 0, x, jnp.where(y != 0, y, z)))
    return jnp.where(leading[..., None] < 0, -quat, quat)


def product(p: Value, q: Value) -> Value:
    """Returns Hamilton's product."""
    u, v, s, t = p[..., :3], q[..., :3], p[..., 3:], q[..., 3:]
    u, v = jnp.broadcast_arrays(u, v)
    vector = s * v + t * u + jnp.cross(u, v)
    return jnp.concatenate([vector, s * t - jnp.sum(u * v, axis=-1, keepdims=True)], axis=-1)


def as_matrix(quat: Value) -> Value:
    """Returns orthogonal matrices."""
    x, y, z, w = (quat[..., i] for i in range(4))
    rows = [
        [x * x - y * y - z * z + w * w, 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), y * y - x * x - z * z + w * w, 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), z * z - x * x - y * y + w * w],
    ]
    return jnp.stack([jnp.stack(row, axis=-1) for row in rows], axis=-2)


def from_matrix(matrix: Value) -> Value:
    """Returns quaternions by one of four formulas: the one with the largest divisor."""
    m = [[matrix[..., i, j] for j in range(3)] for i in range(3)]
    trace = m[0][0] + m[1][1] + m[2][2]
    candidates = []
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        parts = {i: 1 - trace + 2 * m[i][i], j: m[j][i] + m[i][j], k: m[k][i] + m[i][k]}
        candidates.append(jnp.stack([*(parts[n] for n in range(3)), m[k][j] - m[j][k]], axis=-1))
    last = [m[2][1] - m[1][2], m[0][2] - m[2][0], m[1][0] - m[0][1], 1 + trace]
    candidates.append(jnp.stack(last, axis=-1))
    choice = jnp.argmax(jnp.stack([m[0][0], m[1][1], m[2][2], trace], axis=-1), axis=-1)
    chosen = jnp.take_along_axis(jnp.stack(candidates, axis=-2), choice[..., None, None], axis=-2)
    return normalized(chosen[..., 0, :])


def from_rotvec(vector: Value) -> Value:
    """Returns quaternions of axes times angles."""
    square = jnp.sum(jnp.square(vector), axis=-1, keepdims=True)
    is_small = square < 1e-2
    angle = jnp.sqrt(jnp.where(is_small, 1.0, square))
    near = jnp.where(is_small, square, 0.0)
    # sin(angle / 2) / angle and cos(angle / 2) in the square of the angle.
    sine = _series(near, [1 / 2, -1 / 48, 1 / 3840, -1 / 645120, 1 / 185794560])
    cosine = _series(near, [1.0, -1 / 8, 1 / 384, -1 / 46080, 1 / 10321920])
    sine = jnp.where(is_small, sine, jnp.sin(0.5 * angle) / angle)
    cosine = jnp.where(is_small, cosine, jnp.cos(0.5 * angle))
    return jnp.concatenate([sine * vector, cosine], axis=-1)


def as_rotvec(quat: Value) -> Value:
    """Returns axes times angles."""
    quat = jnp.where(quat[..., 3:] < 0, -quat, quat)
    vector, w = quat[..., :3], quat[..., 3:]
    square = jnp.sum(jnp.square(vector), axis=-1, keepdims=True)
    is_small = square < 1e-3
    size = jnp.sqrt(jnp.where(is_small, 1.0, square))
    near = jnp.where(is_small, square, 0.0)
    # 2 asin(size) / size in the square of the size.
    series = _series(near, [2.0, 1 / 3, 3 / 20, 5 / 56, 35 / 576, 63 / 1408])
    return jnp.where(is_small, series, 2 * jnp.arctan2(size, w) / size) * vector


def from_mrp(mrp: Value) -> Value:
    """Returns quaternions of axes times tan(angle / 4)."""
    total = 1 + jnp.sum(jnp.square(mrp), axis=-1, keepdims=True)
    return jnp.concatenate([2 * mrp, 2 - total], axis=-1) / total


def _series(x: Value, coefficients: Sequence[float]) -> Value:
    return jnp.polyval(jnp.array(coefficients[::-1], x.dtype), x)


# Euler angles ----------------------------------------------------------------------------------


def euler_axes(seq: str) -> tuple[list[int], bool]:
    """Returns the numbers of axes, and whether they turn with the body.

    Raises:
        EulerAxesError: for anything but one to three axes of one kind without equal neighbours.
    """
    if not re.fullmatch("[xyz]{1,3}|[XYZ]{1,3}", seq) or re.search(r"(.)\1", seq):
        raise EulerAxesError(
            f"Euler angles: {seq!r} does not name one to three axes, all of 'xyz' or all of 'XYZ', "
            "neighbours different.",
            "Write for example 'zyx' for axes of space or 'ZYX' for those of the body.",
        )
    return ["xyz".index(axis) for axis in seq.lower()], seq.isupper()


def from_euler(axes: Sequence[int], is_intrinsic: bool, angles: Value) -> Value:
    """Returns quaternions of turns one after another."""
    result = None
    for place, axis in enumerate(axes):
        half = 0.5 * angles[..., place]
        parts = [jnp.zeros_like(half)] * 3
        parts[axis] = jnp.sin(half)
        turn = jnp.stack([*parts, jnp.cos(half)], axis=-1)
        if result is None:
            result = turn
        else:
            result = product(result, turn) if is_intrinsic else product(turn, result)
    assert result is not None
    return result


def as_euler(seq: str, quat: Value) -> Value:
    """Returns the angles of three turns."""
    axes, is_intrinsic = euler_axes(seq)
    if len(axes) != 3:
        raise EulerAxesError(f"as_euler: {seq!r} does not name three axes.")
    i, j, k = axes[::-1] if is_intrinsic else axes
    is_symmetric = i == k
    k = 3 - i - j if is_symmetric else k
    sign = (i - j) * (j - k) * (k - i) // 2
    w, first, second, third = quat[..., 3], quat[..., i], quat[..., j], sign * quat[..., k]
    if is_symmetric:
        a, b, c, d = w, first, second, third
    else:
        a, b, c, d = w - second, first + third, second + w, third - first
    middle = 2 * jnp.arctan2(jnp.hypot(c, d), jnp.hypot(a, b))
    half_sum, half_difference = jnp.arctan2(b, a), jnp.arctan2(d, c)
    is_flat, is_turned = abs(middle) <= 1e-7, abs(middle - math.pi) <= 1e-7
    low, high = half_sum - half_difference, half_sum + half_difference
    last = 2 * half_difference * (1 if is_intrinsic else -1)
    # Where two axes are parallel, the first turn does all.
    alone = jnp.where(is_flat, 2 * half_sum, last)
    is_lost = is_flat | is_turned
    if is_intrinsic:
        begin, end = jnp.where(is_lost, alone, high), jnp.where(is_lost, 0, low)
        begin = begin if is_symmetric else sign * begin
    else:
        begin, end = jnp.where(is_lost, alone, low), jnp.where(is_lost, 0, high)
        end = end if is_symmetric else sign * end
    middle = middle if is_symmetric else middle - 0.5 * math.pi
    angles = jnp.stack([begin, middle, end], axis=-1)
    return (angles + math.pi) % (2 * math.pi) - math.pi
