"""Scalars: single numbers in kernels and in loops over arrays, built of `arith` and `math`.

A vector of numbers is written like a single number: operations act lane by lane, and a single
number beside a vector stands in each lane.

Elsewhere: the common part of scalars and arrays (`expressions.py`), loops over them
(`kernels/control_flow.py`, `passes/legalize/elementwise_loops.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

from iree.compiler import ir

from .errors import KernelTypeError
from .expressions import Expression

_FUNCTIONS = {
    "round_to_even": "math.roundeven",
    "power": "math.powf",
    **{name: f"math.{name}" for name in "exp expm1 log log1p sqrt sin cos tanh floor".split()},
}
# The predicates of arith.cmpf and arith.cmpi.
_PREDICATES_FLOAT = {"EQ": 1, "GT": 2, "GE": 3, "LT": 4, "LE": 5, "NE": 13}
_PREDICATES_INTEGER = {"EQ": 0, "NE": 1, "LT": 2, "LE": 3, "GT": 4, "GE": 5}  # signed


class Scalar(Expression):
    """A real number, integer, truth value or index; or a vector of such.

    Integers are signed, but `>>` shifts in zeros, and `//` and `%` take no negative numbers.
    """

    __slots__ = ()

    @property
    def type(self) -> ir.Type:
        """The MLIR type."""
        return self.value.type

    @property
    def element(self) -> ir.Type:
        """The MLIR type of a single number."""
        return element_of(self.value.type)

    @property
    def lanes(self) -> int | None:
        """How many numbers a vector has; None for a single number."""
        kind = self.value.type
        return kind.shape[0] if isinstance(kind, ir.VectorType) else None

    @property
    def is_float(self) -> bool:
        """True for floating point, False for integers, truth values and indices."""
        return isinstance(self.element, ir.FloatType)

    @property
    def width(self) -> int:
        """The number of bits."""
        return self.element.width

    def like(self, element: ir.Type) -> ir.Type:
        """Returns the type of as many numbers of another type."""
        kind = self.value.type
        return (
            ir.VectorType.get(kind.shape, element) if isinstance(kind, ir.VectorType) else element
        )

    def constant(self, number: complex) -> Scalar:
        """Returns a constant of this scalar's type."""
        return constant(number, self.type)

    def apply(self, name: str, *others: Scalar) -> Scalar:
        """Returns an operation of `math`, or of `arith` with a variant per kind of number."""
        operands = _of_one_type(self, *others) if others else (self,)
        if name in _FUNCTIONS:
            return operation(_FUNCTIONS[name], operands)
        dialect, kind = "math" if name == "abs" else "arith", "f" if self.is_float else "i"
        return operation(f"{dialect}.{name}{kind}", operands)

    def times_plus(self, factor: Scalar, other: Scalar) -> Scalar:
        """Returns `multiply_add(self, factor, other)`."""
        return multiply_add(self, factor, other)

    def compare(self, direction: str, other: Scalar) -> Scalar:
        """Returns a boolean."""
        table = _PREDICATES_FLOAT if self.is_float else _PREDICATES_INTEGER
        predicate = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), table[direction])
        name = "arith.cmpf" if self.is_float else "arith.cmpi"
        first, second = _of_one_type(self, other)
        return operation(name, (first, second), first.like(boolean()), {"predicate": predicate})

    def choose(self, on_true: Scalar, on_false: Scalar) -> Scalar:
        """Returns one of two by this truth value."""
        first, second = _of_one_type(on_true, on_false)
        if self.lanes is not None:
            first, second = broadcast(first, self.lanes), broadcast(second, self.lanes)
        return operation("arith.select", (self, first, second), first.type)

    def __neg__(self) -> Scalar:
        return self.apply("neg") if self.is_float else 0 - self

    def __invert__(self) -> Scalar:
        return self ^ (1 if self.width == 1 else -1)

    def __xor__(self, other: Scalar | int) -> Scalar:
        return self.apply("xor", self.operand(other))

    def __lshift__(self, other: Scalar | int) -> Scalar:
        return self.apply("shl", self.operand(other))

    def __rshift__(self, other: Scalar | int) -> Scalar:
        return self.apply("shru", self.operand(other))

    def shift_right_signed(self, other: Scalar | int) -> Scalar:
        """Returns an integer shifted right, with copies of its sign shifted in."""
        return self.apply("shrs", self.operand(other))

    def __floordiv__(self, other: Scalar | int) -> Scalar:
        return self.apply("divu", self.operand(other))

    def __mod__(self, other: Scalar | int) -> Scalar:
        return self.apply("remu", self.operand(other))

    def bits(self) -> Scalar:
        """Returns the bits of a float as an integer of the same width."""
        return bitcast(self, self.like(integer(self.width)))

    def is_negative(self) -> Scalar:
        """Returns the sign bit, also of -0.0 and nan."""
        return self.bits() < 0


def _of_one_type(first: Scalar, *others: Scalar) -> tuple[Scalar, ...]:
    """Returns operands of an operation, single numbers beside a vector as vectors.

    Raises:
        KernelTypeError: if they are of different types.
    """
    kind = first.value.type
    if all(x.value.type == kind for x in others):
        return (first, *others)
    operands = (first, *others)
    width = next((x.lanes for x in operands if x.lanes is not None), None)
    alike = tuple(broadcast(x, width) for x in operands)
    if any(x.type != alike[0].type for x in alike):
        raise KernelTypeError(
            f"Numbers of different types meet: {' and '.join(str(x.type) for x in operands)}.",
            "Convert them (`convert_float`, `to_float`, `to_index`, `to_integer`, `truncate`).",
        )
    return alike


def boolean() -> ir.Type:
    """Returns the type of truth values."""
    return ir.IntegerType.get_signless(1)


def integer(width: int) -> ir.Type:
    """Returns the type of integers of so many bits."""
    return ir.IntegerType.get_signless(width)


def signless(element: ir.Type) -> ir.Type:
    """Returns the type of an array's elements as numbers: integers lose their sign."""
    return integer(element.width) if isinstance(element, ir.IntegerType) else element


def float32() -> ir.Type:
    """Returns the type of single precision numbers."""
    return ir.F32Type.get()


def float64() -> ir.Type:
    """Returns the type of double precision numbers."""
    return ir.F64Type.get()


def constant(number: complex, kind: ir.Type) -> Scalar:
    """Returns a constant; integers are taken modulo their width. Vectors have it in each lane."""
    element = element_of(kind)
    if isinstance(element, ir.FloatType):
        attribute: ir.Attribute = ir.FloatAttr.get(element, float(number.real))
    else:
        attribute = ir.IntegerAttr.get(element, _wrapped(int(number.real), element))
    if isinstance(kind, ir.VectorType):
        attribute = ir.DenseElementsAttr.get_splat(kind, attribute)
    return operation("arith.constant", (), kind, {"value": attribute})


def _wrapped(number: int, kind: ir.Type) -> int:
    if isinstance(kind, ir.IndexType) or kind.width == 1:
        return number
    half = 1 << (kind.width - 1)
    return (number + half) % (2 * half) - half


def element_of(kind: ir.Type) -> ir.Type:
    """Returns the type of the numbers of a vector, or of a single number."""
    return kind.element_type if isinstance(kind, ir.VectorType) else kind


def broadcast(x: Scalar, lanes: int | None) -> Scalar:
    """Returns a vector that repeats a number; a vector `x`, or `lanes` of None, returns `x`."""
    if lanes is None or x.lanes is not None:
        return x
    return operation("vector.broadcast", (x,), ir.VectorType.get([lanes], x.type))


def index(number: Scalar | int) -> Scalar:
    """Returns an index as a scalar, also a Python integer."""
    return number if isinstance(number, Scalar) else constant(number, ir.IndexType.get())


def operation(
    name: str,
    operands: Sequence[Scalar],
    kind: ir.Type | None = None,
    attributes: dict[str, ir.Attribute] | None = None,
) -> Scalar:
    """Returns the result of an MLIR operation, of the first operand's type or of `kind`."""
    created = ir.Operation.create(
        name,
        results=[operands[0].type if kind is None else kind],
        operands=[operand.value for operand in operands],
        attributes=attributes,
    )
    return Scalar(created.result)


def bitcast(x: Scalar, kind: ir.Type) -> Scalar:
    """Returns the same bits as another type of the same width."""
    return operation("arith.bitcast", (x,), kind)


def convert_float(x: Scalar, kind: ir.Type) -> Scalar:
    """Returns a float rounded or widened to another float type."""
    if x.element == kind:
        return x
    if x.width == kind.width or (x.width == 64 and kind.width == 16):
        # Between f16 and bf16; and from f64, because IREE flushes values that are denormal in f16.
        return convert_float(convert_float(x, float32()), kind)
    name = "arith.extf" if kind.width > x.width else "arith.truncf"
    return operation(name, (x,), x.like(kind))


def truncate(x: Scalar, width: int) -> Scalar:
    """Returns the low bits of an integer."""
    return operation("arith.trunci", (x,), x.like(integer(width))) if x.width > width else x


def extend_unsigned(x: Scalar, width: int) -> Scalar:
    """Returns an integer with zeros in front."""
    return operation("arith.extui", (x,), x.like(integer(width))) if x.width < width else x


def to_float(x: Scalar, kind: ir.Type) -> Scalar:
    """Returns a signed integer or an index as a float."""
    number = to_integer(x, 64) if isinstance(x.element, ir.IndexType) else x
    return operation("arith.sitofp", (number,), x.like(kind))


def to_index(x: Scalar) -> Scalar:
    """Returns an integer as an index."""
    return operation("arith.index_cast", (x,), x.like(ir.IndexType.get()))


def to_integer(x: Scalar, width: int) -> Scalar:
    """Returns an index as an integer."""
    return operation("arith.index_cast", (x,), x.like(integer(width)))


def copy_sign(magnitude: Scalar, sign: Scalar) -> Scalar:
    """`magnitude` (of either sign) with the sign bit of `sign`."""
    return operation("math.copysign", _of_one_type(magnitude, sign))


def fused_multiply_add(x: Scalar, y: Scalar, z: Scalar) -> Scalar:
    """`x * y + z` with one rounding."""
    return operation("math.fma", _of_one_type(x, y, z))


def multiply_add(x: Scalar, y: Scalar, z: Scalar) -> Scalar:
    """`x * y + z`, with one rounding on CPUs that have an instruction for it, else with two.

    On others `fused_multiply_add` calls the C library.
    """
    if not x.is_float:
        return x * y + z
    may_fuse = {"fastmath": ir.Attribute.parse("#arith.fastmath<contract>")}
    product = operation("arith.mulf", (x, y), None, may_fuse)
    return operation("arith.addf", (product, z), None, may_fuse)
