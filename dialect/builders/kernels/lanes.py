"""Lanes of vectors: numbers, masks, extraction, insertion, shuffles and reductions of lanes.

All other operations act on vectors as on numbers (`dialect/builders/scalars.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.builders.errors import KernelPositionError, KernelTypeError
from axir.dialect.builders.scalars import Scalar, boolean, operation

from .building import index_value

_NEVER_KNOWN = -(2**63)  # MLIR's mark for an index that is an operand


def lanes(width: int) -> Scalar:
    """Returns the numbers of the lanes, 0, 1, 2, ..., as indices."""
    return operation("vector.step", (), ir.VectorType.get([width], ir.IndexType.get()))


def first_lanes(width: int, count: Scalar | int) -> Scalar:
    """Returns a mask of the first lanes; all of them where `count` is larger than the width."""
    kind = ir.VectorType.get([width], boolean())
    return operation("vector.create_mask", (Scalar(index_value(count)),), kind)


def lane(x: Scalar, number: Scalar | int) -> Scalar:
    """Returns the number in a lane."""
    positions, operands = _position(x, number)
    return operation("vector.extract", (x, *operands), x.element, {"static_position": positions})


def with_lane(x: Scalar, number: Scalar | int, value: Scalar) -> Scalar:
    """Returns a vector with another number in a lane."""
    positions, operands = _position(x, number)
    if value.type != x.element:
        raise KernelTypeError(
            f"{value.type} does not fit into a lane of {x.type}.", f"Convert it to {x.element}."
        )
    return operation("vector.insert", (value, x, *operands), x.type, {"static_position": positions})


def _position(x: Scalar, number: Scalar | int) -> tuple[ir.Attribute, list[Scalar]]:
    width = _width(x)
    if isinstance(number, Scalar):
        return ir.DenseI64ArrayAttr.get([_NEVER_KNOWN]), [Scalar(index_value(number))]
    if not 0 <= number < width:
        raise KernelPositionError(
            f"Lane {number} of a vector of {width}.", f"Lanes run from 0 to {width - 1}."
        )
    return ir.DenseI64ArrayAttr.get([number]), []


def shuffle(x: Scalar, y: Scalar, order: Sequence[int]) -> Scalar:
    """Returns a vector of lanes of two vectors; the numbers of the lanes of `y` follow `x`'s."""
    count = _width(x) + _width(y)
    if x.type != y.type or not all(0 <= number < count for number in order):
        raise KernelTypeError(
            f"Lanes {list(order)} of {x.type} and {y.type}.",
            f"Two vectors of the same type have lanes from 0 to {count - 1}.",
        )
    kind = ir.VectorType.get([len(order)], x.element)
    return operation("vector.shuffle", (x, y), kind, {"mask": ir.DenseI64ArrayAttr.get(order)})


def transposed(rows: Sequence[Scalar]) -> list[Scalar]:
    """Returns the columns of a square of a power of two rows.

    Squares within it are exchanged across the diagonal, the largest first (Eklundh, "A fast
    computer method for matrix transposing", 1972).
    """
    found = list(rows)
    size = len(found)
    step = size // 2
    while step:
        upper = [n if not n & step else size + n - step for n in range(size)]
        lower = [n + step if not n & step else size + n for n in range(size)]
        for n in range(size):
            if not n & step:
                above, below = found[n], found[n + step]
                found[n] = shuffle(above, below, upper)
                found[n + step] = shuffle(above, below, lower)
        step //= 2
    return found


# One number of all lanes -----------------------------------------------------------------------


def sum_of_lanes(x: Scalar) -> Scalar:
    """Returns the sum of all lanes; the machine chooses the order of additions of floats."""
    return combined_lanes("add", x)


def largest_lane(x: Scalar) -> Scalar:
    """Returns the largest number of all lanes (of signed integers), nan if there is one."""
    return combined_lanes("maximumf" if x.is_float else "maxsi", x)


def smallest_lane(x: Scalar) -> Scalar:
    """Returns the smallest number of all lanes (of signed integers), nan if there is one."""
    return combined_lanes("minimumf" if x.is_float else "minsi", x)


def any_lane(x: Scalar) -> Scalar:
    """Tells whether a vector of truth values has a true one."""
    return combined_lanes("or", x)


def all_lanes(x: Scalar) -> Scalar:
    """Tells whether all of a vector of truth values are true."""
    return combined_lanes("and", x)


def combined_lanes(kind: str, x: Scalar) -> Scalar:
    """Returns all lanes combined by one of MLIR's `#vector.kind`: `add`, `maxui`, `xor`, ..."""
    _width(x)
    attributes = {"kind": hlo.attribute(f"#vector.kind<{kind}>")}
    if kind == "add" and x.is_float:
        attributes["fastmath"] = hlo.attribute("#arith.fastmath<reassoc>")
    return operation("vector.reduction", (x,), x.element, attributes)


def _width(x: Scalar) -> int:
    if x.lanes is None:
        raise KernelTypeError(
            f"{x.type} is a single number and has no lanes.", "Make a vector with `broadcast`."
        )
    return x.lanes
