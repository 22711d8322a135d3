"""`Memory`: an array while a kernel runs, read and written in elements and vectors.

Elsewhere: numbers (`dialect/builders/scalars.py`), lanes of vectors (`lanes.py`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

from iree.compiler import ir

from axir.dialect.builders.errors import (
    KernelPositionError,
    KernelStackError,
    KernelTypeError,
    KernelVectorError,
)
from axir.dialect.builders.kernels.building import state
from axir.dialect.builders.scalars import Scalar, boolean, constant, integer, operation

from .building import effect, index_value

Number: TypeAlias = Scalar | bool | int | float  # a number of the same kind
Position: TypeAlias = Scalar | int | tuple[Scalar | int, ...]  # or several

STACK_BYTES = 1 << 15
"""How much memory of its own (`scratch`) all of a kernel may have on the stack."""

_ALIGNMENT = 64


class Memory:
    """An array while a kernel runs: `t[i, j]` reads an element, `t[i, j] = x` writes one.

    Args:
        value: The whole array, a memref.
        element: The type of the elements; truth values lie in memory as bytes.
        place: The leading indices of this part.
        shape: The extents of the part, if they differ from the extents behind the leading indices.
        first: An offset that is added to the first index of a position.
    """

    __slots__ = ("_stored", "element", "first", "place", "shape", "value")

    def __init__(
        self,
        value: ir.Value,
        element: ir.Type,
        place: tuple[Scalar, ...] = (),
        shape: tuple[int, ...] | None = None,
        first: Scalar | None = None,
    ):
        self.value = value
        self.element = element
        self.place = place
        self.first = first
        self._stored = element if element != boolean() else integer(8)
        self.shape = tuple(value.type.shape[len(place) :]) if shape is None else shape

    def constant(self, number: complex) -> Scalar:
        """Returns a number of the type of the elements."""
        return constant(number, self.element)

    # Parts -------------------------------------------------------------------------------------

    def at(self, *place: Scalar | int) -> Memory:
        """Returns the part of the array at leading indices."""
        shape = self.shape
        if len(place) > len(shape):
            raise _rank_error(place, shape)
        numbers = [Scalar(value) for value in self._indices(place)]
        rest = self.shape[len(place) :]
        return Memory(self.value, self.element, (*self.place, *numbers), rest)

    def rows(self, first: Scalar | int, count: int) -> Memory:
        """Returns a number of rows (entries of the first axis), from one on."""
        if not self.shape:
            raise _rank_error((first,), ())
        (start,) = self._indices((first,))
        shape = (count, *self.shape[1:])
        return Memory(self.value, self.element, self.place, shape, Scalar(start))

    def reshaped(self, shape: Sequence[int]) -> Memory:
        """Returns the same elements, in their order, as an array of another shape.

        Raises:
            KernelPositionError: for a part of an array, or another number of elements.
        """
        extents = list(shape)
        if self.place or self.first is not None or math.prod(extents) != math.prod(self.shape):
            raise KernelPositionError(
                f"Memory of {self.shape} cannot be an array of {tuple(extents)}.",
                "Whole arrays can, of as many elements.",
            )
        if tuple(extents) == self.shape:
            return self
        strides = [math.prod(extents[axis + 1 :]) for axis in range(len(extents))]
        numbers = ir.DenseI64ArrayAttr.get
        created = ir.Operation.create(
            "memref.reinterpret_cast",
            results=[memref_type(extents, self.element)],
            operands=[self.value],
            attributes={
                "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 0, 0, 0]),
                "static_offsets": numbers([0]),
                "static_sizes": numbers(extents),
                "static_strides": numbers(strides),
            },
        )
        return Memory(created.result, self.element)

    # Elements ----------------------------------------------------------------------------------

    def __getitem__(self, position: Position) -> Scalar:
        created = ir.Operation.create(
            "memref.load",
            results=[self._stored],
            operands=[self.value, *self._at(position)],
        )
        return self._loaded(Scalar(created.result))

    def __setitem__(self, position: Position, number: Number) -> None:
        if not isinstance(number, Scalar):
            number = self.constant(number)
        elif number.value.type != self.element:
            raise self._type_error(number)
        effect("memref.store", self._to_store(number), self.value, *self._at(position))

    # Vectors -----------------------------------------------------------------------------------

    def read(self, position: Position, width: int, mask: Scalar | None = None) -> Scalar:
        """Returns a vector of neighbours along the last axis.

        Args:
            position: Position of the first element.
            width: Number of elements, a power of two.
            mask: Truth values for the lanes that are read; others become zeros, and may be out of
                bounds.
        """
        place = self._at(position)
        self._check_width(width, position, is_masked=mask is not None)
        kind = ir.VectorType.get([width], self._stored)
        if mask is None:
            made = ir.Operation.create("vector.load", results=[kind], operands=[self.value, *place])
        else:
            self._check_lanes(mask, width, boolean())
            made = ir.Operation.create(
                "vector.maskedload",
                results=[kind],
                operands=[self.value, *place, mask.value, constant(0, kind).value],
            )
        return self._loaded(Scalar(made.result))

    def write(self, position: Position, vector: Scalar, mask: Scalar | None = None) -> None:
        """Puts a vector into memory, along the last axis.

        Args:
            position: Position of the first lane.
            vector: A power of two of numbers.
            mask: Truth values for the lanes that are written; others may be out of bounds.
        """
        place = self._at(position)
        width = self._width_of(vector)
        self._check_width(width, position, is_masked=mask is not None)
        stored = self._to_store(vector)
        if mask is None:
            effect("vector.store", stored, self.value, *place)
        else:
            self._check_lanes(mask, width, boolean())
            effect("vector.maskedstore", self.value, *place, mask.value, stored)

    def address(self) -> Scalar:
        """Returns the address of the whole array, as an index."""
        return operation(
            "memref.extract_aligned_pointer_as_index", (Scalar(self.value),), ir.IndexType.get()
        )

    def prefetch(self, position: Position) -> None:
        """Prefetches the cache line of an element that is needed soon; it may be out of bounds."""
        ir.Operation.create(
            "memref.prefetch",
            operands=[self.value, *self._at(position)],
            attributes={
                "isWrite": ir.BoolAttr.get(False),
                "localityHint": ir.IntegerAttr.get(integer(32), 3),
                "isDataCache": ir.BoolAttr.get(True),
            },
        )

    def gather(self, position: Position, offsets: Scalar, mask: Scalar | None = None) -> Scalar:
        """Returns a vector of the elements at offsets along the last axis.

        Args:
            position: Where the offset is zero.
            offsets: A vector of indices or integers.
            mask: Truth values for the lanes that are read; others become zeros.
        """
        width = self._width_of(offsets, offsets.element)
        self._check_width(width, position, is_masked=True)
        place = self._flat_place(position)
        kind = ir.VectorType.get([width], self._stored)
        read = _all_lanes(width) if mask is None else mask
        self._check_lanes(read, width, boolean())
        made = ir.Operation.create(
            "vector.gather",
            results=[kind],
            operands=[
                *place, offsets.value, read.value, constant(0, kind).value,
            ],
        )  # fmt: skip
        return self._loaded(Scalar(made.result))

    def scatter(
        self, position: Position, offsets: Scalar, vector: Scalar, mask: Scalar | None = None
    ) -> None:
        """Puts the lanes of a vector at offsets along the last axis, the last of equal ones last.

        Args:
            position: Where the offset is zero.
            offsets: A vector of indices or integers.
            vector: As many numbers.
            mask: Truth values for the lanes that are written.
        """
        width = self._width_of(vector)
        self._check_width(width, position, is_masked=True)
        place = self._flat_place(position)
        self._check_lanes(offsets, width, offsets.element)
        written = _all_lanes(width) if mask is None else mask
        self._check_lanes(written, width, boolean())
        stored = self._to_store(vector)
        effect("vector.scatter", *place, offsets.value, written.value, stored)

    def _flat_place(self, position: Position) -> tuple[ir.Value, ir.Value]:
        """Returns the array as one row, and a position in it: IREE gathers from rows only."""
        *leading, last = map(Scalar, self._at(position))
        shape = self.value.type.shape
        if not leading:
            return self.value, last.value
        for axis, number in enumerate(leading):
            last = last + number * math.prod(shape[axis + 1 :])
        all_axes = ir.ArrayAttr.get(
            [ir.ArrayAttr.get([_number(axis) for axis in range(len(shape))])]
        )
        flat = ir.Operation.create(
            "memref.collapse_shape",
            results=[ir.MemRefType.get([math.prod(shape)], self._stored)],
            operands=[self.value],
            attributes={"reassociation": all_axes},
        )
        return flat.result, last.value

    # Stored elements ----------------------------------------------------------------------------

    def _loaded(self, stored: Scalar) -> Scalar:
        return stored if self._stored is self.element else stored != 0

    def _to_store(self, x: Scalar) -> ir.Value:
        if self._stored is self.element:
            return x.value
        return operation("arith.extui", (x,), x.like(self._stored)).value

    # Checks ------------------------------------------------------------------------------------

    def _at(self, position: Position) -> list[ir.Value]:
        given = position if isinstance(position, tuple) else (position,)
        if len(given) != len(self.shape):
            raise _rank_error(given, self.shape)
        if not self.place:
            return self._indices(given)
        return [*(x.value for x in self.place), *self._indices(given)]

    def _indices(self, given: Sequence[Scalar | int]) -> list[ir.Value]:
        """Returns indices into the array, given indices into the first axes of this part."""
        for number, extent in zip(given, self.shape, strict=False):
            if not isinstance(number, Scalar) and not 0 <= number < extent:
                raise KernelPositionError(
                    f"Index {number} lies outside of an axis of {extent}; the memory is "
                    f"{self.shape}.",
                    f"Indices that are known run from 0 to {extent - 1}.",
                )
        indices = [index_value(number) for number in given]
        if self.first is not None and indices:
            indices[0] = (self.first + Scalar(indices[0])).value
        return indices

    def _check_width(self, width: int, position: Position, *, is_masked: bool) -> None:
        if width < 1 or width & (width - 1):
            raise KernelVectorError(
                f"A vector of {width} is no register: {width} is not a power of two.",
                "Read a power of two, and the rest element by element or with a mask.",
            )
        if not self.shape:
            raise KernelVectorError(
                "A vector where memory has no axes.", "Read the element with `t[()]`."
            )
        last = position[-1] if isinstance(position, tuple) and position else position
        start = last if isinstance(last, int) else 0
        if not is_masked and start + width > self.shape[-1]:
            raise KernelVectorError(
                f"A vector of {width} from {start} on reaches over the end of a row of "
                f"{self.shape[-1]}.",
                "Read a narrower one, or give a mask of the lanes that exist (`first_lanes`).",
            )

    def _width_of(self, vector: Scalar, element: ir.Type | None = None) -> int:
        width = vector.lanes
        if width is None:
            raise KernelTypeError(
                f"{vector.type} is a single number where a vector is needed.",
                "Assign to an element (`t[i] = x`), or make a vector with `broadcast`.",
            )
        if vector.element != (element or self.element):
            raise self._type_error(vector)
        return width

    def _check_lanes(self, x: Scalar, width: int, element: ir.Type) -> None:
        if x.lanes != width or x.element != element:
            raise KernelTypeError(
                f"{x.type} goes with a vector of {width}: it must be a vector of {width} "
                f"{element}.",
                "Make masks by comparisons of vectors, or with `first_lanes`.",
            )

    def _type_error(self, number: Scalar) -> KernelTypeError:
        return KernelTypeError(
            f"{number.type} does not fit into memory of {self.element}.",
            "Convert it (`convert_float`, `to_float`, `to_integer`, `truncate`); vectors are put "
            "there by `write`.",
        )


def _rank_error(position: Sequence[Scalar | int], shape: tuple[int, ...]) -> KernelPositionError:
    return KernelPositionError(
        f"A position of {len(position)} indices in memory of rank {len(shape)}, {shape}.",
        "Give an index for each axis; `at` and `rows` return parts.",
    )


def _all_lanes(width: int) -> Scalar:
    return constant(1, ir.VectorType.get([width], boolean()))


# Memory of a kernel's own ----------------------------------------------------------------------


def scratch(shape: Sequence[int], like: Memory | ir.Type) -> Memory:
    """Returns private memory of a kernel, on the stack, with elements of a type.

    It exists as long as the kernel runs, also if it is requested in a loop; it is uninitialized.

    Raises:
        KernelStackError: if the kernel's stack memory exceeds `STACK_BYTES`.
    """
    element = like.element if isinstance(like, Memory) else like
    kernel = state.kernel
    if kernel is None:
        return Memory(_allocated(shape, element), element)
    size = bytes_of(shape, element)
    kernel.stack_bytes += aligned(size)
    if kernel.stack_bytes > STACK_BYTES:
        raise KernelStackError(
            f"A kernel wants {kernel.stack_bytes} bytes on the stack, where {STACK_BYTES} are; "
            f"{size} of them for {tuple(shape)} of {element}.",
            "Take large memory from a `workspace`.",
        )
    with ir.InsertionPoint.at_block_begin(kernel.entry):
        return Memory(_allocated(shape, element), element)


def _allocated(shape: Sequence[int], element: ir.Type) -> ir.Value:
    return ir.Operation.create(
        "memref.alloca",
        results=[memref_type(shape, element)],
        attributes={
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 0]),
            "alignment": _number(_ALIGNMENT),
        },
    ).result


def bytes_of(shape: Sequence[int], element: ir.Type) -> int:
    """Returns the bytes of elements of a type."""
    bits = 8 if element == boolean() else element.width
    return math.prod(shape) * -(-bits // 8)


def aligned(size: int) -> int:
    """Returns the next aligned offset behind a number of bytes."""
    return -(-size // _ALIGNMENT) * _ALIGNMENT


def _number(number: int) -> ir.Attribute:
    return ir.IntegerAttr.get(integer(64), number)


def memref_type(shape: Sequence[int], element: ir.Type) -> ir.Type:
    """Returns the memref type of memory."""
    return ir.MemRefType.get(shape, integer(8) if element == boolean() else element)
