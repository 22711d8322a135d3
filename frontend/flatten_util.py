"""Trees of arrays as one vector, and back."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from axir import numpy as jnp
from axir._arguments.arguments import to_values
from axir._trees import tree
from axir.dialect.core.annotations import DTypeLike, UserObject
from axir.dialect.core.dtypes import is_complex
from axir.dialect.core.errors import DTypeError, ShapeError
from axir.dialect.ops.elementwise.conversion import convert_element_type
from axir.dialect.ops.elementwise.family import as_value
from axir.dialect.ops.shape.concatenation import concatenate
from axir.dialect.ops.shape.rearranging import reshape
from axir.dialect.program.rules import Value

__all__ = ["ravel_pytree"]


def __dir__() -> list[str]:
    return __all__


def ravel_pytree(pytree: object) -> tuple[Value, _Unravel]:
    """Returns the elements of a tree of arrays as one vector, and the function back.

    Args:
        pytree: Tree of arrays and scalars of any shapes and dtypes.

    Returns:
        The elements of the leaves, in order, in the dtype to which the leaves' dtypes promote
        (float32 without leaves); and a function from vectors of that length to trees of the same
        structure, shapes and dtypes. If all leaves have one dtype, vectors may have another. It is
        hashable, and equal for trees alike, so that it may be a static argument of `jit`.

    Raises:
        ShapeError: by the function back, for another length.
        DTypeError: by the function back, if dtypes differ among the leaves, for another dtype.

    >>> import axir.numpy as jnp
    >>> vector, unravel = ravel_pytree({"w": jnp.ones((2, 2)), "b": 5.0})
    >>> vector
    Array([5., 1., 1., 1., 1.], dtype=float32)
    >>> unravel(2 * vector)["b"]
    Array(10., dtype=float32)
    """
    leaves, structure = tree.flatten(pytree)
    values = to_values(leaves, pytree, "ravel_pytree")
    if not values:
        return jnp.zeros(0, jnp.float32), _Unravel(structure, (), (), None)
    dtypes = tuple(x.dtype for x in values)
    dtype = jnp.result_type(*dtypes)
    flat = [reshape(convert_element_type(x, dtype, False), (x.size,)) for x in values]
    is_mixed = any(d != dtype for d in dtypes)
    shapes = tuple(x.shape for x in values)
    unravel = _Unravel(structure, shapes, dtypes, dtype if is_mixed else None)
    return concatenate(flat, 0), unravel


class _Unravel:
    """The function from vectors to trees.

    Args:
        structure: Of the tree.
        shapes, dtypes: Of its leaves.
        dtype: The dtype of vectors; None for any dtype.
    """

    def __init__(
        self,
        structure: tree.TreeDef,
        shapes: Sequence[tuple[int, ...]],
        dtypes: Sequence[object],
        dtype: DTypeLike,
    ):
        self._key = (structure, tuple(shapes), tuple(dtypes), dtype)

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Unravel) and self._key == other._key

    def __call__(self, flat: object) -> UserObject:
        """Returns the tree with given elements."""
        structure, shapes, dtypes, dtype = self._key
        vector = as_value(flat)
        sizes = [math.prod(shape) for shape in shapes]
        if vector.shape != (sum(sizes),):
            raise ShapeError(
                f"unravel: the tree has {sum(sizes)} elements, but the vector is of type "
                f"{vector.type}.",
                f"Pass a vector of shape ({sum(sizes)},).",
            )
        if dtype is not None and vector.dtype != dtype:
            raise DTypeError(
                f"unravel function given array of dtype {vector.dtype}, but expected dtype {dtype}:"
                " the leaves have different dtypes, and back from another they may not fit.",
                f"Convert it: vector.astype({str(dtype)!r}).",
            )
        leaves = []
        stops = itertools.accumulate(sizes)
        for stop, size, shape, leaf_dtype in zip(stops, sizes, shapes, dtypes, strict=True):
            leaf = reshape(vector[stop - size : stop], shape)
            leaves.append(leaf if dtype is None else _back(leaf, leaf_dtype))
        return structure.unflatten(leaves)


def _back(leaf: UserObject, dtype: UserObject) -> Value:
    if is_complex(leaf.dtype) and not is_complex(dtype):
        leaf = leaf.real  # the imaginary part was put there
    return convert_element_type(leaf, dtype, False)
