"""Vectors of neighbours in a row, and how several are combined.

Elsewhere: arithmetic (`dialect/builders/scalars.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from iree.compiler import ir

from axir.dialect.builders.kernels import Memory, lane, lanes
from axir.dialect.builders.scalars import (
    Scalar,
    broadcast,
    index,
    operation,
    to_integer,
    truncate,
)

LANES = 16
Numbers: TypeAlias = tuple[Scalar, ...]  # one for each of the arrays that are reduced together


def tree(combine: Callable[[Numbers, Numbers], Numbers], terms: Sequence[Numbers]) -> Numbers:
    """Combines tuples of numbers, neighbours first."""
    terms = list(terms)
    while len(terms) > 1:
        pairs = [combine(*terms[n : n + 2]) for n in range(0, len(terms) - 1, 2)]
        terms = [*pairs, *terms[len(pairs) * 2 :]]
    return terms[0]


def folded(vectors: Numbers, combine: Callable[[Numbers, Numbers], Numbers]) -> Numbers:
    """Combines the numbers of vectors."""
    width = vectors[0].lanes
    if width is None:
        return vectors
    while width > 1:
        width //= 2
        halves = [tuple(part_of(x, start, width) for x in vectors) for start in (0, width)]
        vectors = combine(*halves)
    return tuple(lane(x, 0) for x in vectors)


def part_of(vector: Scalar, offset: int, size: int) -> Scalar:
    """Returns some neighbours of a vector."""
    entries = {"offsets": offset, "sizes": size, "strides": 1}
    attributes = {
        name: ir.ArrayAttr.get([ir.IntegerAttr.get(ir.IntegerType.get_signless(64), number)])
        for name, number in entries.items()
    }
    kind = ir.VectorType.get([size], vector.element)
    return operation("vector.extract_strided_slice", (vector,), kind, attributes)


def quotient(x: Scalar, divisor: int) -> Scalar:
    """Returns the quotient of an index and a number."""
    return operation("arith.divui", (x, index(divisor)))


def vector_type(element: ir.Type, width: int) -> ir.Type:
    """Returns the type of so many numbers."""
    return element if width == 1 else ir.VectorType.get([width], element)


def wide(x: Scalar, width: int) -> Scalar:
    """Returns a vector of equal numbers."""
    return x if width == 1 else broadcast(x, width)


def load(memory: Memory, i: Scalar, width: int) -> Scalar:
    """Returns neighbours from memory."""
    return memory[i] if width == 1 else memory.read(i, width)


def store(memory: Memory, i: Scalar, width: int, x: Scalar) -> None:
    """Writes neighbours, or equal numbers, to memory."""
    if width == 1:
        memory[i] = x
    else:
        memory.write(i, wide(x, width))


def counted(i: Scalar, width: int, element: ir.Type) -> Scalar:
    """Returns consecutive integers."""
    first = truncate(to_integer(i, 64), element.width)
    if width == 1:
        return first
    steps = truncate(to_integer(lanes(width), 64), element.width)
    return broadcast(first, width) + steps
