"""Long loops that sum up, in blocks: each block starts anew, and the results are combined.

A sum of `n` numbers one after the other is off by up to `n` roundings. In blocks of blocks, it is
off by the size of a block for each level, and there are `log n` levels (Higham, "The accuracy of
floating point summation", SIAM J. Sci. Comput. 14, 1993).

Elsewhere: the evaluator's sums in blocks (`dialect/ops/reductions/blocks.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

from axir.dialect.builders.expressions import minimum
from axir.dialect.builders.scalars import Scalar

from .control_flow import loop

Numbers: TypeAlias = tuple[Scalar, ...]
Combine: TypeAlias = Callable[[Sequence[Scalar], Sequence[Scalar]], Sequence[Scalar]]
Extents: TypeAlias = Sequence[tuple[int, int, int]]  # from, to, stride

# The steps of a block, and the largest number of steps without blocks.
_BLOCK = 64
LONGEST = 256


def loop_in_blocks(
    lower: Scalar | int,
    upper: Scalar | int,
    starts: Numbers,
    step: Callable[..., Sequence[Scalar]],
    combine: Combine,
    *,
    stride: int = 1,
    most: int | None = None,
    weight: int = 1,
) -> Numbers:
    """Runs `step(index, *numbers) -> numbers` as `loop` does, in blocks that are combined.

    Args:
        lower: Start of the index.
        upper: End of the index.
        starts: Neutral numbers of `combine`: each block begins with them.
        step: Combines the numbers with the data of the index.
        combine: Combines the numbers of two blocks; takes the first block's numbers first.
        stride: Increment of the index.
        most: The largest possible number of steps; needed if the limits are not known.
        weight: How many numbers a step combines one after the other.

    Returns:
        The numbers of all blocks combined.
    """
    if most is None:
        if isinstance(lower, Scalar) or isinstance(upper, Scalar):
            raise TypeError("loop_in_blocks: limits that are not known need `most`.")
        most = -(-(upper - lower) // stride)
    if most * weight <= LONGEST or most <= 1:
        found: Numbers = loop(
            lower, upper, starts, lambda i, *numbers: tuple(step(i, *numbers)), stride
        )
        return found
    inner = _block_steps(most, weight)
    length = inner * stride

    def part(first: Scalar | int, end: Scalar | int, steps: int, numbers: Numbers) -> Numbers:
        found = loop_in_blocks(
            first, end, starts, step, combine, stride=stride, most=steps, weight=weight
        )
        return tuple(combine(numbers, found))

    if isinstance(lower, Scalar) or isinstance(upper, Scalar):
        blocks: Numbers = loop(
            lower,
            upper,
            starts,
            lambda i, *numbers: part(i, minimum(i + length, upper), inner, numbers),
            length,
        )
        return blocks
    # Blocks of a known length are faster; the rest is a short block.
    whole = lower + (upper - lower) // length * length
    found = loop(lower, whole, starts, lambda i, *x: part(i, i + length, inner, x), length)
    rest = -(-(upper - whole) // stride)
    return part(whole, upper, rest, found) if rest else found


def loops_in_blocks(
    extents: Extents,
    starts: Sequence[Scalar],
    step: Callable[[tuple[Scalar | int, ...], Sequence[Scalar]], Sequence[Scalar]],
    combine: Combine,
) -> Numbers:
    """Runs `step(position, numbers) -> numbers` over nested ranges, in blocks.

    Args:
        extents: For each range its start, its end, and its stride.
        starts: Neutral numbers of `combine`; any numbers if `is_short(extents)`.
        step: Combines the numbers with the data of the position.
        combine: Combines the numbers of two blocks; takes the first block's numbers first.
    """
    starts = tuple(starts)

    def level(rest: Extents, place: tuple[Scalar | int, ...], numbers: Numbers) -> Numbers:
        if not rest:
            return tuple(step(place, numbers))
        lower, upper, stride = rest[0]
        if lower < upper <= lower + stride:
            return level(rest[1:], (*place, lower), numbers)

        def deeper(i: Scalar, *numbers: Scalar) -> Numbers:
            if is_short(rest[1:]):
                return level(rest[1:], (*place, i), numbers)
            return tuple(combine(numbers, level(rest[1:], (*place, i), starts)))

        if is_short(rest):
            found: Numbers = loop(lower, upper, numbers, deeper, stride)
            return found
        weight = _steps(rest[1:]) if is_short(rest[1:]) else 1
        blocks = loop_in_blocks(lower, upper, starts, deeper, combine, stride=stride, weight=weight)
        return blocks if numbers is starts else tuple(combine(numbers, blocks))

    return level(extents, (), starts)


def is_short(extents: Extents) -> bool:
    """Tells whether loops over these ranges run without blocks."""
    return _steps(extents) <= LONGEST


def _steps(extents: Extents) -> int:
    return math.prod(-(-(upper - lower) // stride) for lower, upper, stride in extents)


def scan_in_blocks(
    count: int,
    starts: Sequence[Scalar],
    step: Callable[[Scalar, Numbers], Sequence[Scalar]],
    write: Callable[[Scalar, Sequence[Scalar]], None],
    combine: Combine,
) -> None:
    """Combines the numbers of each index with the numbers of all earlier indices, in blocks.

    Args:
        count: Number of indices.
        starts: Neutral numbers of `combine`.
        step: Combines numbers with the data of the index.
        write: Takes an index and the combined numbers up to it, including its own.
        combine: Combines the numbers of two blocks; takes the first block's numbers first.
    """
    starts = tuple(starts)

    def run(lower: Scalar | int, upper: Scalar | int, most: int, before: Numbers | None) -> Numbers:
        def known(numbers: Numbers) -> Numbers:
            return numbers if before is None else tuple(combine(before, numbers))

        def single(i: Scalar, *numbers: Scalar) -> Numbers:
            following = tuple(step(i, numbers))
            write(i, known(following))
            return following

        if most <= LONGEST:
            found: Numbers = loop(lower, upper, starts, single)
            return found
        inner = _block_steps(most, 1)

        def block(first: Scalar, *numbers: Scalar) -> Numbers:
            part = run(first, minimum(first + inner, upper), inner, known(numbers))
            return tuple(combine(numbers, part))

        whole: Numbers = loop(lower, upper, starts, block, inner)
        return whole

    run(0, count, count, None)


def _block_steps(most: int, weight: int) -> int:
    """Returns the number of steps of a block, given the steps of a loop."""
    inner = max(1, _BLOCK // weight)
    while inner * _BLOCK < most:
        inner *= _BLOCK
    return inner
