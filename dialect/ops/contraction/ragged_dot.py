"""Matrix products of groups of different sizes: `ragged_dot`, `ragged_dot_general`.

Each is one ordinary contraction. Its left operand is repeated for each group, with zeros in the
rows of the other groups.
"""

from __future__ import annotations

from collections.abc import Sequence

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import DTypeLike, PrecisionLike, UserObject
from axir.dialect.core.errors import DTypeError, ParameterError, ShapeError, check_layout
from axir.dialect.ops.elementwise.arithmetic import sub
from axir.dialect.ops.elementwise.comparison import and_, ge, lt, select_n
from axir.dialect.ops.elementwise.conversion import convert_element_type
from axir.dialect.ops.elementwise.family import as_value, full
from axir.dialect.ops.reductions.cumulative import cumsum
from axir.dialect.ops.shape.broadcasting import broadcast, broadcast_in_dim
from axir.dialect.ops.shape.constants import iota
from axir.dialect.ops.shape.rearranging import moveaxis, transpose
from axir.dialect.program.rules import Value

from .dot_general import dot_general


class RaggedDotDimensionNumbers:
    """The contracted dimensions of `ragged_dot_general`, and the dimensions of the groups.

    Attributes:
        dot_dimension_numbers: As in `dot_general`.
        lhs_ragged_dimensions: The dimension of lhs that the groups divide (one).
        rhs_group_dimensions: The dimension of rhs that counts the groups, if it has one.
    """

    def __init__(
        self,
        dot_dimension_numbers: UserObject,
        lhs_ragged_dimensions: Sequence[int],
        rhs_group_dimensions: Sequence[int],
    ):
        self.dot_dimension_numbers = tuple(
            tuple(tuple(map(int, axes)) for axes in pair) for pair in dot_dimension_numbers
        )
        self.lhs_ragged_dimensions = tuple(map(int, lhs_ragged_dimensions))
        self.rhs_group_dimensions = tuple(map(int, rhs_group_dimensions))


def ragged_dot(
    lhs: object,
    rhs: object,
    group_sizes: object,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike = None,
    group_offset: None = None,
    out_sharding: None = None,
) -> Value:
    """Multiplies consecutive groups of rows, each by another matrix.

    Args:
        lhs: Matrix of shape (m, k).
        rhs: A matrix for each group, of shape (g, k, n).
        group_sizes: Integers of shape (g,): how many rows each group has.
        precision: As in `dot_general`.
        preferred_element_type: As in `dot_general`.
        group_offset: Only None.
        out_sharding: Only None; there is one layout.

    Returns:
        Matrix of shape (m, n); rows that are in no group are zero.

    >>> import axir.numpy as jnp
    >>> from axir import lax
    >>> rhs = jnp.array([[[1.0]], [[10.0]]])
    >>> lax.ragged_dot(jnp.ones((3, 1)), rhs, jnp.array([1, 2])).ravel()
    Array([ 1., 10., 10.], dtype=float32)
    """
    numbers = RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,))
    return ragged_dot_general(
        lhs, rhs, group_sizes, numbers, precision, preferred_element_type, group_offset,
        out_sharding,
    )  # fmt: skip


def ragged_dot_general(
    lhs: object,
    rhs: object,
    group_sizes: object,
    ragged_dot_dimension_numbers: RaggedDotDimensionNumbers,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike = None,
    group_offset: None = None,
    out_sharding: None = None,
) -> Value:
    """Contracts arrays with one dimension divided into groups.

    If the ragged dimension of lhs is free, each group is multiplied by its part of rhs along the
    group dimension. If it is contracted, each group gives a result, along a new leading dimension.
    If it is a batch dimension, this is `dot_general`.

    Args:
        lhs: Array.
        rhs: Array.
        group_sizes: Integers: the sizes of the groups. With rank 1 they hold everywhere. Else
            leading dimensions precede them: lhs's batch dimensions, and lhs's dimensions before the
            ragged one that are contracted or free like it.
        ragged_dot_dimension_numbers: The contracted dimensions, and the dimensions of the groups.
        precision: As in `dot_general`.
        preferred_element_type: As in `dot_general`.
        group_offset: Only None.
        out_sharding: Only None; there is one layout.

    Raises:
        ParameterError: for more than one ragged dimension, or a group dimension too many or few.
        ShapeError: for sizes of another shape.
        DTypeError: for sizes that are not integers.
    """
    check_layout("ragged_dot_general", out_sharding)
    if group_offset is not None:
        raise ParameterError(
            "ragged_dot: computing starts with the first group; group_offset must be None.",
            "Pass the sizes and matrices of the groups from there on.",
        )
    lhs, rhs, sizes = as_value(lhs), as_value(rhs), as_value(group_sizes)
    numbers = ragged_dot_dimension_numbers
    (lhs_contract, rhs_contract), batch = numbers.dot_dimension_numbers
    (ragged,), groups = _checked(numbers, sizes), numbers.rhs_group_dimensions
    options = {"precision": precision, "preferred_element_type": preferred_element_type}
    if ragged in batch[0]:
        return dot_general(lhs, rhs, numbers.dot_dimension_numbers, **options)
    same_kind = [d for d in range(lhs.ndim) if (d in lhs_contract) == (ragged in lhs_contract)]
    outer = [d for d in same_kind if d < ragged and d not in batch[0]]
    expanded = _expanded(lhs, sizes, ragged, (*batch[0], *outer))
    lhs_axes = tuple(d + 1 for d in lhs_contract)
    shifted_batch = (tuple(d + 1 for d in batch[0]), batch[1])
    if ragged in lhs_contract:
        result = dot_general(expanded, rhs, ((lhs_axes, rhs_contract), shifted_batch), **options)
        return moveaxis(result, len(batch[0]), 0)
    contract = ((0, *lhs_axes), (*groups, *rhs_contract))
    return dot_general(expanded, rhs, (contract, shifted_batch), **options)


def _checked(numbers: RaggedDotDimensionNumbers, sizes: Value) -> tuple[int, ...]:
    """Returns the one ragged dimension."""
    ragged = numbers.lhs_ragged_dimensions
    if len(ragged) != 1:
        raise ParameterError(f"ragged_dot_general: lhs has one ragged dimension, not {ragged}.")
    (contract, _), (batch, _) = numbers.dot_dimension_numbers
    wanted = 0 if ragged[0] in (*contract, *batch) else 1
    if len(numbers.rhs_group_dimensions) != wanted:
        raise ParameterError(
            f"ragged_dot_general: rhs needs {wanted} group dimensions where dimension {ragged[0]} "
            f"of lhs is ragged, not {numbers.rhs_group_dimensions}."
        )
    if not dtypes.is_integer(sizes.dtype):
        raise DTypeError(f"ragged_dot_general: group sizes are integers, not {sizes.dtype}.")
    return ragged


def _expanded(lhs: Value, sizes: Value, ragged: int, before: tuple[int, ...]) -> Value:
    """Returns lhs once for each group, with zeros in place of the other groups."""
    if sizes.ndim == 1:
        before = ()
    if sizes.ndim != len(before) + 1 or sizes.shape[:-1] != tuple(lhs.shape[d] for d in before):
        raise ShapeError(
            f"ragged_dot_general: group sizes of type {sizes.aval} do not fit lhs {lhs.aval}.",
            "They have the shape (groups,), or (*outer dimensions of lhs, groups).",
        )
    order = sorted(range(len(before)), key=before.__getitem__)
    sizes = transpose(convert_element_type(sizes, dtypes.int32), (len(before), *order))
    stops = cumsum(sizes, 0)
    starts = sub(stops, sizes)
    shape = (sizes.shape[0], *lhs.shape)
    dimensions = (0, *(before[i] + 1 for i in order))
    first, last = (broadcast_in_dim(x, shape, dimensions) for x in (starts, stops))
    place = broadcast_in_dim(iota(dtypes.int32, lhs.shape[ragged]), shape, (ragged + 1,))
    is_inside = and_(ge(place, first), lt(place, last))
    return select_n(is_inside, full((), 0, lhs.dtype), broadcast(lhs, (sizes.shape[0],)))
