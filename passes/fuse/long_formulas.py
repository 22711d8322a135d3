"""Long elementwise programs of large arrays as one kernel.

The fact: the time in which IREE forms a dispatch grows with the square of the number of its
operations, and IREE writes out each formula in full at each use. A kernel computes all operations
for one part of the arrays, then for the next. A part has so few elements that all intermediate
results of a part fit on the stack. If the last part would be shorter, it begins earlier; elements
that are then computed twice have equal values. The parts are divided among workgroups. Elsewhere:
when this kernel is used (`fuse_programs.py`).
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.builders.kernels import Memory, dispatch, loop, rows_of
from axir.dialect.builders.kernels.packing import MOST_BINDINGS
from axir.dialect.builders.scalars import Scalar, constant, signless

from .elementwise import Code, can_compute, is_uniform
from .emitter import Emitter, read_by
from .region_kernel import RULES
from .straight import FEWEST, Joined, Straight, operands_of, straight_parts
from .values import Computed, Indices, Number, Value, plus

# The sizes of parts of arrays, in elements: the results of a part stay in the nearest cache.
_LARGEST_PART, _SMALLEST_PART = 512, 64
# Arrays are large enough for the fastest loops, which are longer code.
_LOOPS = Joined(most=32, vectors=4)
# The size of all parts that are needed at a time, out of the 16 KB that a kernel has.
_BYTES = 12_000
_MOST_WORKGROUPS = 32
_FILLED = ("stablehlo.constant", "stablehlo.broadcast_in_dim", "tensor.empty")


def fuse_long(operations: list[ir.Operation], code: Code) -> bool:
    """Makes one kernel of a function that computes many arrays element by element.

    Args:
        operations: All operations of the function, on arrays of one shape or on numbers.
        code: The symbols of the module.

    Returns:
        Whether the function became a kernel.
    """
    if len(_computing(operations)) <= FEWEST:
        return False  # IREE fuses few itself, in about the time that a kernel takes
    program = _Program(operations)
    if program.part:
        program.fuse(code)
    return bool(program.part)


def _computing(operations: list[ir.Operation]) -> list[ir.Operation]:
    return [x for x in operations if x.name not in _FILLED]


class _Program:
    """The operations of a function.

    Attributes:
        part: How many elements are computed at a time; 0 if the program becomes no such kernel.
    """

    def __init__(self, operations: list[ir.Operation]):
        *self.operations, self.last = operations
        arguments = list(self.last.block.arguments)
        self.operands = [x for x in arguments if any(True for _ in x.uses)]
        made = {result for x in self.operations for result in x.results}
        self.results = [x for x in dict.fromkeys(self.last.operands) if x in made]
        self.size = max(map(hlo.size_of, made), default=0)
        self.part = 0
        if self._is_elementwise() and len(self.operands) + len(self.results) <= MOST_BINDINGS:
            self.part = self._largest_part()

    def _is_elementwise(self) -> bool:
        values = [*self.operands, *(x for operation in self.operations for x in operation.results)]
        shapes = {tuple(x.type.shape) for x in values if hlo.size_of(x) != 1}
        if len(shapes) != 1 or not all(map(_is_real, values)) or self.size < _SMALLEST_PART:
            return False
        return (
            sum(hlo.size_of(x.results[0]) > 1 for x in _computing(self.operations)) >= FEWEST
            and all(hlo.size_of(x) == self.size for x in self.results)
            and all(map(self._has_rule, self.operations))
        )

    def _has_rule(self, created: ir.Operation) -> bool:
        if created.name == "stablehlo.constant":
            return is_uniform(created.results[0])
        if created.name == "stablehlo.broadcast_in_dim":
            return hlo.size_of(created.operands[0]) == 1
        return created.name == "tensor.empty" or can_compute(created)

    def _largest_part(self) -> int:
        """Returns how many elements may be computed at a time so that all fits on the stack."""
        needed = self._bytes_of_stored()
        part = _LARGEST_PART
        while part >= _SMALLEST_PART and part * needed > _BYTES:
            part //= 2
        return min(part, self.size) if part >= _SMALLEST_PART else 0

    def _bytes_of_stored(self) -> int:
        """Returns the bytes for each element that loops store at a time for later loops."""
        loops = list(self._loops())
        last = {x: place for place, loop in enumerate(loops) for x in operands_of(loop)}
        last.update(dict.fromkeys(self.last.operands, len(loops)))
        freed: dict[int, list[ir.Value]] = defaultdict(list)
        now, most = Counter[int](), Counter[int]()
        for place, made in enumerate(loops):
            for x in made.kept:
                size = hlo.element_bytes(x.type.element_type)
                now[size] += 1
                most[size] = max(most[size], now[size])
                freed[last[x]].append(x)
            now.subtract(hlo.element_bytes(x.type.element_type) for x in freed[place])
        return sum(size * count for size, count in most.items())

    def _loops(self) -> Iterator[Straight]:
        """Yields the loops that the emitter makes of operations on arrays."""
        uses = Counter(x for made in (*self.operations, self.last) for x in read_by(made))
        for part in straight_parts(self.operations, uses, _LOOPS.most):
            if isinstance(part, Straight):
                yield part

    def fuse(self, code: Code) -> None:
        """Puts the kernel in the place of the operations."""
        kinds = [x.type for x in self.results]
        parts = -(-self.size // self.part)
        workgroups = min(parts, _MOST_WORKGROUPS)
        self._shorten()

        def kernel(workgroup: Scalar, *memories: Memory) -> None:
            flat = [x.reshaped((math.prod(x.shape),)) for x in memories]
            first, end = rows_of(workgroup, parts, workgroups)
            loop(first, end, (), lambda number: self._compute(code, number, flat))

        with ir.InsertionPoint(self.last), self.last.location:
            made = dispatch(kernel, self.operands, kinds, workgroups=workgroups, name="program")
        replaced = dict(zip(self.results, made, strict=True))
        for number, x in enumerate(self.last.operands):
            self.last.operands[number] = replaced.get(x, x)
        for operation in reversed(self.operations):
            if not any(True for result in operation.results for _ in result.uses):
                operation.erase()

    def _shorten(self) -> None:
        """Gives the results of the operations the shape of a part; they will be erased."""
        for operation in self.operations:
            for x in operation.results:
                if hlo.size_of(x) == self.size:
                    x.set_type(ir.RankedTensorType.get([self.part], x.type.element_type))

    def _compute(self, code: Code, number: Scalar, memories: Sequence[Memory]) -> None:
        last = self.size - self.part
        start = number * self.part
        if self.size % self.part:
            start = (start > last).choose(constant(last, start.type), start)
        emitter = Emitter(RULES, code, _LOOPS)
        for x, memory in zip(self.operands, memories, strict=False):
            emitter.values[x] = self._read(x, memory, start)
        ends = emitter.block([*self.operations, self.last], ())
        found = dict(zip(self.last.operands, ends, strict=True))
        for x, memory in zip(self.results, memories[len(self.operands) :], strict=True):
            emitter.fill(memory, found[x], offset=(start,))

    def _read(self, x: ir.Value, memory: Memory, start: Scalar) -> Value:
        element = signless(x.type.element_type)

        def read(position: Indices, lanes: int | None) -> Scalar:
            place = (plus(position[0], start),)
            return memory[place] if lanes is None else memory.read(place, lanes)

        if hlo.size_of(x) == 1:
            value: Value = Number(x.type.shape, memory[(0,)])
        else:
            value = Computed([self.part], element, read)
        value.holders = len(self.operations) + 2
        return value


def _is_real(x: ir.Value) -> bool:
    element = x.type.element_type
    is_number = isinstance(
        element, (ir.IntegerType, ir.F16Type, ir.BF16Type, ir.F32Type, ir.F64Type)
    )
    return is_number and element.width in (1, 8, 16, 32, 64)
