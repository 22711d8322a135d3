"""`axir.scipy.spatial.transform`: rotations of space, and interpolation between them.

Rotations are unit quaternions (x, y, z, w), one or any number along leading axes. Elsewhere: how
quaternions become other descriptions and back (`_quaternions.py`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import axir.numpy as jnp
from axir import random as axir_random
from axir.dialect.core.annotations import DTypeLike, IndexLike, UserObject
from axir.dialect.core.array import ArrayLike
from axir.dialect.core.errors import ShapeError
from axir.dialect.program.rules import Value
from axir.numpy._arguments.promotion import promote_inexact
from axir.tree_util import register_pytree_node_class

from . import _quaternions as quaternions
from ._quaternions import EulerAxesError

__all__ = ["EulerAxesError", "Rotation", "RotationShapeError", "Slerp"]


def __dir__() -> list[str]:
    return __all__


class RotationShapeError(ShapeError, ValueError):
    """Arrays that should describe rotations, or belong to them, have other shapes."""


@register_pytree_node_class
@dataclasses.dataclass(frozen=True, eq=False)
class Rotation:
    """Rotations of space: a tree, so an argument and a result of transformed functions.

    Attributes:
        quat: Unit quaternions (x, y, z, w) along the last axis.

    >>> import axir.numpy as jnp
    >>> from axir.scipy.spatial.transform import Rotation
    >>> turn = Rotation.from_euler("z", 90, degrees=True)
    >>> (turn * turn).apply(jnp.array([1.0, 0.0, 0.0])).round(4) + 0
    Array([-1.,  0.,  0.], dtype=float32)
    """

    quat: Value

    def tree_flatten(self) -> tuple[tuple[UserObject], None]:
        """Returns the quaternions."""
        return (self.quat,), None

    @classmethod
    def tree_unflatten(cls, aux_data: None, children: tuple[UserObject]) -> Rotation:
        """Makes rotations of their quaternions."""
        return cls(children[0])

    # Made of other descriptions ------------------------------------------------------------

    @classmethod
    def from_quat(cls, quat: ArrayLike) -> Rotation:
        """Makes rotations of quaternions (x, y, z, w) of any length but 0."""
        return cls(quaternions.normalized(_vectors("from_quat", quat, 4)))

    @classmethod
    def from_matrix(cls, matrix: ArrayLike) -> Rotation:
        """Makes rotations of orthogonal matrices of shape (..., 3, 3)."""
        (values,) = promote_inexact("Rotation.from_matrix", jnp.asarray(matrix))
        if values.shape[-2:] != (3, 3):
            raise RotationShapeError(
                f"Rotation.from_matrix takes arrays of shape (..., 3, 3), not {values.shape}."
            )
        return cls(quaternions.from_matrix(values))

    @classmethod
    def from_rotvec(cls, rotvec: ArrayLike, degrees: bool = False) -> Rotation:
        """Makes rotations around vectors (..., 3), by angles that are their lengths."""
        values = _vectors("from_rotvec", rotvec, 3)
        return cls(quaternions.from_rotvec(jnp.where(degrees, jnp.deg2rad(values), values)))

    @classmethod
    def from_mrp(cls, mrp: ArrayLike) -> Rotation:
        """Makes rotations of modified Rodrigues parameters: axes times tan(angle / 4)."""
        return cls(quaternions.from_mrp(_vectors("from_mrp", mrp, 3)))

    @classmethod
    def from_euler(cls, seq: str, angles: ArrayLike, degrees: bool = False) -> Rotation:
        """Makes rotations of up to three turns around axes.

        Args:
            seq: The axes, as 'zyx'; of space if small, of the turned body if capital.
            angles: The angles along the last axis; with one axis any array of angles.
            degrees: Whether angles are in degrees.

        Raises:
            EulerAxesError: for other axes, or two equal ones in a row.
            RotationShapeError: for another number of angles.
        """
        axes, is_intrinsic = quaternions.euler_axes(seq)
        (values,) = promote_inexact("Rotation.from_euler", jnp.asarray(angles))
        values = jnp.where(degrees, jnp.deg2rad(values), values)
        if len(axes) == 1 and values.shape[-1:] != (1,):
            values = values[..., None]
        if values.shape[-1:] != (len(axes),):
            raise RotationShapeError(
                f"Rotation.from_euler: {len(axes)} axes need as many angles along the last axis, "
                f"but the angles have shape {values.shape}."
            )
        return cls(quaternions.from_euler(axes, is_intrinsic, values))

    @classmethod
    def identity(cls, num: int | None = None, dtype: DTypeLike = float) -> Rotation:
        """Returns rotations that change nothing: one, or `num`."""
        quat = jnp.array([0.0, 0.0, 0.0, 1.0], dtype=dtype)
        return cls(quat if num is None else jnp.broadcast_to(quat, (num, 4)))

    @classmethod
    def random(cls, random_key: Value, num: int | None = None) -> Rotation:
        """Draws uniformly distributed rotations: one, or `num`."""
        shape = (4,) if num is None else (num, 4)
        return cls(quaternions.normalized(axir_random.normal(random_key, shape)))

    @classmethod
    def concatenate(cls, rotations: Sequence[Rotation]) -> Rotation:
        """Returns the rotations of several objects, one after another."""
        return cls(jnp.concatenate([jnp.atleast_2d(rotation.quat) for rotation in rotations]))

    # As other descriptions -----------------------------------------------------------------

    def as_quat(self, canonical: bool = False, scalar_first: bool = False) -> Value:
        """Returns quaternions.

        Args:
            canonical: Whether to negate quaternions so that w, or else the first nonzero element,
                is positive.
            scalar_first: Whether w stands first.
        """
        quat = quaternions.canonical(self.quat) if canonical else self.quat
        return jnp.roll(quat, 1, axis=-1) if scalar_first else quat

    def as_matrix(self) -> Value:
        """Returns orthogonal matrices of shape (..., 3, 3)."""
        return quaternions.as_matrix(self.quat)

    def as_rotvec(self, degrees: bool = False) -> Value:
        """Returns axes times angles, which are at most half a turn."""
        values = quaternions.as_rotvec(self.quat)
        return jnp.where(degrees, jnp.rad2deg(values), values)

    def as_mrp(self) -> Value:
        """Returns modified Rodrigues parameters: axes times tan(angle / 4)."""
        sign = jnp.where(self.quat[..., 3:] < 0, -1, 1)
        return sign * self.quat[..., :3] / (1 + sign * self.quat[..., 3:])

    def as_euler(self, seq: str, degrees: bool = False) -> Value:
        """Returns angles of turns around three axes, along the last axis.

        Where the second turn leaves the first and third axis parallel, the third angle is 0.

        Args:
            seq: As of `from_euler`.
            degrees: Whether angles are in degrees.

        Raises:
            EulerAxesError: for other than three axes, and as `from_euler` does.
        """
        angles = quaternions.as_euler(seq, self.quat)
        return jnp.where(degrees, jnp.rad2deg(angles), angles)

    def magnitude(self) -> Value:
        """Returns the angles, from 0 to pi."""
        size = jnp.sqrt(jnp.sum(jnp.square(self.quat[..., :3]), axis=-1))
        return 2 * jnp.arctan2(size, abs(self.quat[..., 3]))

    # Computing with rotations --------------------------------------------------------------

    def __mul__(self, other: Rotation) -> Rotation:
        """Returns the rotations that first turn as the other, then as this."""
        return Rotation(quaternions.normalized(quaternions.product(self.quat, other.quat)))

    def inv(self) -> Rotation:
        """Returns the rotations back."""
        return Rotation(self.quat * jnp.array([-1, -1, -1, 1], self.quat.dtype))

    def apply(self, vectors: ArrayLike, inverse: bool = False) -> Value:
        """Turns vectors (..., 3), or with `inverse` turns them back; shapes broadcast."""
        matrix = self.as_matrix()
        matrix = jnp.where(inverse, jnp.swapaxes(matrix, -2, -1), matrix)
        return (matrix @ _vectors("apply", vectors, 3)[..., None])[..., 0]

    def mean(self, weights: ArrayLike | None = None) -> Rotation:
        """Returns the rotation with the least squared distances from these, as of matrices.

        Raises:
            RotationShapeError: for a single rotation, or weights of another number.
        """
        size = len(self)
        if weights is None:
            shares = jnp.ones(size, self.quat.dtype)
        else:
            shares = jnp.asarray(weights, self.quat.dtype)
        if shares.shape != (size,):
            raise RotationShapeError(
                f"Rotation.mean: {size} rotations need as many weights in a vector, but those have "
                f"shape {shares.shape}."
            )
        # Source: F. L. Markley et al., Averaging quaternions, 2007.
        _, vectors = jnp.linalg.eigh((shares * self.quat.T) @ self.quat)
        return Rotation(vectors[:, -1])

    @property
    def single(self) -> bool:
        """Whether this is one rotation, and not an array of them."""
        return self.quat.ndim == 1

    def __len__(self) -> int:
        if self.single:
            raise TypeError("A single rotation has no len().")
        return self.quat.shape[0]

    def __bool__(self) -> bool:
        return True

    def __getitem__(self, index: IndexLike) -> Rotation:
        if self.single:
            raise TypeError("A single rotation cannot be indexed.")
        return Rotation(self.quat[index])


@register_pytree_node_class
@dataclasses.dataclass(frozen=True, eq=False)
class Slerp:
    """Interpolation between rotations with constant angular velocity; made by `Slerp.init`.

    Attributes:
        times: When the rotations are reached.
        timedelta: Differences of the times.
        rotations: All rotations but the last.
        rotvecs: From each of them to the following, as vectors.

    >>> import axir.numpy as jnp
    >>> from axir.scipy.spatial.transform import Rotation, Slerp
    >>> turns = Rotation.from_euler("z", jnp.array([0.0, 90.0]), degrees=True)
    >>> Slerp.init(jnp.array([0.0, 1.0]), turns)(0.5).as_rotvec(degrees=True).round(3)
    Array([ 0.,  0., 45.], dtype=float32)
    """

    times: Value
    timedelta: Value
    rotations: Rotation
    rotvecs: Value

    def tree_flatten(self) -> tuple[tuple[UserObject, ...], None]:
        """Returns the fields."""
        return (self.times, self.timedelta, self.rotations, self.rotvecs), None

    @classmethod
    def tree_unflatten(cls, aux_data: None, children: tuple[UserObject, ...]) -> Slerp:
        """Makes an interpolation of its fields."""
        return cls(*children)

    @classmethod
    def init(cls, times: ArrayLike, rotations: Rotation) -> Slerp:
        """Makes an interpolation.

        Args:
            times: Vector of increasing times, one for each rotation.
            rotations: Two or more.

        Raises:
            TypeError: if `rotations` is no `Rotation`.
            RotationShapeError: for fewer rotations, or another number of times.
        """
        if not isinstance(rotations, Rotation):
            raise TypeError(f"Slerp.init: rotations must be a Rotation, not {type(rotations)}.")
        moments = jnp.asarray(times, dtype=rotations.quat.dtype)
        if rotations.single or len(rotations) < 2 or moments.shape != (len(rotations),):
            raise RotationShapeError(
                "Slerp.init takes two or more rotations and a vector of as many times, but the "
                f"shapes are {rotations.quat.shape[:-1]} and {moments.shape}."
            )
        first, following = rotations[:-1], rotations[1:]
        steps = (first.inv() * following).as_rotvec()
        return cls(moments, jnp.diff(moments), first, steps)

    def __call__(self, times: ArrayLike) -> Rotation:
        """Returns the rotations at times, a number or a vector."""
        moments = jnp.asarray(times, dtype=self.times.dtype)
        if moments.ndim > 1:
            raise RotationShapeError(
                f"Slerp takes a number or a vector of times, not an array of shape {moments.shape}."
            )
        index = jnp.clip(jnp.searchsorted(self.times, moments) - 1, 0, len(self.rotations) - 1)
        share = (moments - self.times[index]) / self.timedelta[index]
        return self.rotations[index] * Rotation.from_rotvec(self.rotvecs[index] * share[..., None])


def _vectors(name: str, x: ArrayLike, size: int) -> Value:
    (values,) = promote_inexact(f"Rotation.{name}", jnp.asarray(x))
    if not values.ndim or values.shape[-1] != size:
        raise RotationShapeError(
            f"Rotation.{name} takes arrays of shape (..., {size}), not {values.shape}."
        )
    return values
