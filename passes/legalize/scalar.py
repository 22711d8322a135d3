"""The notation for formulas on scalars: arithmetic in Python that builds `arith` and `math`.

`elementwise.py` puts such formulas into loops. What does not live here: the formulas, which stand
in the passes that use them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Union

from iree.compiler import ir

Operand = Union["Scalar", int, float]

_PREDICATES_FLOAT = {"EQ": 1, "GT": 2, "GE": 3, "LT": 4, "LE": 5, "NE": 13}  # NE holds for nan
_PREDICATES_INTEGER = {"EQ": 0, "NE": 1, "LT": 2, "LE": 3, "GT": 4, "GE": 5}  # signed


class Scalar:
    """A number (float, integer or truth value) in the body of an elementwise loop.

    Operators build `arith` operations. Python numbers become constants of the other operand's type.
    Integers are signed, except that `>>` shifts in zeros.
    """

    __slots__ = ("value",)

    def __init__(self, value: ir.Value):
        self.value = value

    @property
    def type(self) -> ir.Type:
        """The MLIR type."""
        return self.value.type

    @property
    def is_float(self) -> bool:
        """True for floating point, False for integers and truth values."""
        return isinstance(self.value.type, ir.FloatType)

    @property
    def width(self) -> int:
        """The number of bits."""
        return self.value.type.width

    def constant(self, number: float) -> Scalar:
        """A constant of this scalar's type."""
        return constant(number, self.type)

    def _binary(self, name: str, other: Operand, *, is_swapped: bool = False) -> Scalar:
        rhs = other if isinstance(other, Scalar) else self.constant(other)
        operands = (rhs, self) if is_swapped else (self, rhs)
        return operation(f"arith.{name}{'f' if self.is_float else 'i'}", operands)

    def __add__(self, other: Operand) -> Scalar:
        return self._binary("add", other)

    __radd__ = __add__

    def __sub__(self, other: Operand) -> Scalar:
        return self._binary("sub", other)

    def __rsub__(self, other: Operand) -> Scalar:
        return self._binary("sub", other, is_swapped=True)

    def __mul__(self, other: Operand) -> Scalar:
        return self._binary("mul", other)

    __rmul__ = __mul__

    def __truediv__(self, other: Operand) -> Scalar:
        return self._binary("div", other)

    def __rtruediv__(self, other: Operand) -> Scalar:
        return self._binary("div", other, is_swapped=True)

    def __neg__(self) -> Scalar:
        return operation("arith.negf", (self,)) if self.is_float else 0 - self

    def __and__(self, other: Operand) -> Scalar:
        return self._binary("and", other)

    def __or__(self, other: Operand) -> Scalar:
        return self._binary("or", other)

    def __xor__(self, other: Operand) -> Scalar:
        return self._binary("xor", other)

    def __invert__(self) -> Scalar:
        return self ^ (1 if self.width == 1 else -1)

    def __lshift__(self, other: Operand) -> Scalar:
        return self._binary("shl", other)

    def __rshift__(self, other: Operand) -> Scalar:
        return self._binary("shru", other)

    def shift_right_signed(self, other: Operand) -> Scalar:
        """An integer shifted right, with copies of its sign shifted in."""
        rhs = other if isinstance(other, Scalar) else self.constant(other)
        return operation("arith.shrsi", (self, rhs))

    def _compare(self, direction: str, other: Operand) -> Scalar:
        rhs = other if isinstance(other, Scalar) else self.constant(other)
        table = _PREDICATES_FLOAT if self.is_float else _PREDICATES_INTEGER
        predicate = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), table[direction])
        name = "arith.cmpf" if self.is_float else "arith.cmpi"
        return operation(name, (self, rhs), boolean(), {"predicate": predicate})

    def __lt__(self, other: Operand) -> Scalar:
        return self._compare("LT", other)

    def __le__(self, other: Operand) -> Scalar:
        return self._compare("LE", other)

    def __gt__(self, other: Operand) -> Scalar:
        return self._compare("GT", other)

    def __ge__(self, other: Operand) -> Scalar:
        return self._compare("GE", other)

    def equals(self, other: Operand) -> Scalar:
        """Truth of equality; nan equals nothing."""
        return self._compare("EQ", other)

    def differs(self, other: Operand) -> Scalar:
        """Truth of inequality; nan differs from everything."""
        return self._compare("NE", other)

    def is_nan(self) -> Scalar:
        """True for nan."""
        return self.differs(self)

    def is_negative(self) -> Scalar:
        """The sign bit, also of -0.0 and nan."""
        return self.bits() < 0

    def bits(self) -> Scalar:
        """The bits of a float as an integer of the same width."""
        return bitcast(self, integer(self.width))


def boolean() -> ir.Type:
    """The type of truth values."""
    return ir.IntegerType.get_signless(1)


def integer(width: int) -> ir.Type:
    """The type of integers of so many bits."""
    return ir.IntegerType.get_signless(width)


def float32() -> ir.Type:
    """The type of single precision numbers."""
    return ir.F32Type.get()


def float64() -> ir.Type:
    """The type of double precision numbers."""
    return ir.F64Type.get()


def constant(number: float, kind: ir.Type) -> Scalar:
    """A constant; integers are taken modulo their width."""
    if isinstance(kind, ir.FloatType):
        attribute: ir.Attribute = ir.FloatAttr.get(kind, float(number))
    else:
        half = 1 << (kind.width - 1)
        wrapped = (int(number) + half) % (2 * half) - half if kind.width > 1 else int(number)
        attribute = ir.IntegerAttr.get(kind, wrapped)
    return Scalar(
        ir.Operation.create(
            "arith.constant", results=[kind], attributes={"value": attribute}
        ).result
    )


def operation(
    name: str,
    operands: Sequence[Scalar],
    kind: ir.Type | None = None,
    attributes: dict[str, ir.Attribute] | None = None,
) -> Scalar:
    """The result of one MLIR operation, of the first operand's type unless `kind` is given."""
    created = ir.Operation.create(
        name,
        results=[operands[0].type if kind is None else kind],
        operands=[operand.value for operand in operands],
        attributes=attributes,
    )
    return Scalar(created.result)


def select(condition: Scalar, on_true: Operand, on_false: Operand) -> Scalar:
    """`on_true` where the condition holds, else `on_false`; at most one may be a Python number."""
    if not isinstance(on_true, Scalar):
        assert isinstance(on_false, Scalar)
        on_true = on_false.constant(on_true)
    if not isinstance(on_false, Scalar):
        on_false = on_true.constant(on_false)
    return operation("arith.select", (condition, on_true, on_false), on_true.type)


def bitcast(x: Scalar, kind: ir.Type) -> Scalar:
    """The same bits as another type of the same width."""
    return operation("arith.bitcast", (x,), kind)


def convert_float(x: Scalar, kind: ir.Type) -> Scalar:
    """A float rounded or widened to another float type."""
    if x.type == kind:
        return x
    if x.width == kind.width or (x.width == 64 and kind.width == 16):
        # Between f16 and bf16; and from f64, of which IREE flushes what is denormal as f16.
        return convert_float(convert_float(x, float32()), kind)
    return operation("arith.extf" if kind.width > x.width else "arith.truncf", (x,), kind)


def truncate(x: Scalar, width: int) -> Scalar:
    """The low bits of an integer."""
    return operation("arith.trunci", (x,), integer(width)) if x.width > width else x


def extend_unsigned(x: Scalar, width: int) -> Scalar:
    """An integer with zeros in front."""
    return operation("arith.extui", (x,), integer(width)) if x.width < width else x


def to_float(x: Scalar, kind: ir.Type) -> Scalar:
    """A signed integer as a float."""
    return operation("arith.sitofp", (x,), kind)


def _function(name: str) -> Callable[[Scalar], Scalar]:
    def apply(x: Scalar) -> Scalar:
        return operation(f"math.{name}", (x,))

    apply.__name__ = apply.__qualname__ = name
    apply.__doc__ = f"`math.{name}`."
    return apply


absolute = _function("absf")
floor = _function("floor")
round_even = _function("roundeven")
truncated = _function("trunc")
square_root = _function("sqrt")
exponential = _function("exp")
exponential_minus_one = _function("expm1")
logarithm = _function("log")
logarithm_plus_one = _function("log1p")
sine = _function("sin")
cosine = _function("cos")


def copy_sign(magnitude: Scalar, sign: Scalar) -> Scalar:
    """`magnitude` (of either sign) with the sign bit of `sign`."""
    return operation("math.copysign", (magnitude, sign))


def maximum(x: Scalar, y: Operand) -> Scalar:
    """The larger of two numbers; neither may be nan."""
    return operation("arith.maxnumf", (x, y if isinstance(y, Scalar) else x.constant(y)))


def minimum(x: Scalar, y: Operand) -> Scalar:
    """The smaller of two numbers; neither may be nan."""
    return operation("arith.minnumf", (x, y if isinstance(y, Scalar) else x.constant(y)))


def fused_multiply_add(x: Scalar, y: Scalar, z: Scalar) -> Scalar:
    """`x * y + z` with one rounding."""
    return operation("math.fma", (x, y, z))


def polynomial(x: Scalar, coefficients: Sequence[float]) -> Scalar:
    """Horner's rule; coefficients from the constant term up."""
    result = x.constant(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        result = result * x + coefficient
    return result
