"""Formulas on scalars: one elementwise loop, written as arithmetic in Python.

`elementwise` makes one `linalg.generic` whose body a Python function writes on `Scalar`s::

    def body(x: Scalar) -> Scalar:
        return select(x < 0, -x, x)

    elementwise("absolute", [operand], body, [element_type])

Written as StableHLO, a formula of forty operations may fall apart into several loops with their
intermediate results in memory, because IREE does not fuse a producer that several operations use or
that widens its operand. As one operation it stays one vectorized loop, which IREE still fuses with
what comes before and after. (A sine of 1e6 numbers: 2,480 us as StableHLO, 740 us like this.)

What lives here: the notation. The formulas stand in the passes that use them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Union

from iree.compiler import ir

from axir.dialect import stablehlo as hlo

Operand = Union["Scalar", int, float]
Body = Callable[..., Union["Scalar", Sequence["Scalar"]]]

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


def extend_signed(x: Scalar, width: int) -> Scalar:
    """An integer with copies of its sign in front."""
    return operation("arith.extsi", (x,), integer(width)) if x.width < width else x


def to_integer(x: Scalar, width: int) -> Scalar:
    """A float, which must be in range, rounded toward zero."""
    return operation("arith.fptosi", (x,), integer(width))


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


def elementwise(
    name: str,
    operands: Sequence[ir.Value],
    body: Body,
    result_elements: Sequence[ir.Type],
) -> list[ir.Value]:
    """One loop over tensors of equal shape; `body` maps their scalars to those of the results.

    `name` stands for the formula: of one name and the same element types, `body` runs only once in
    the life of the process, and its text is parsed from then on. Building a formula of a hundred
    operations takes a millisecond, parsing a fifth of that.
    """
    elements = [hlo.element_type_of(operand) for operand in operands]
    text = _loop_text(hlo.shape_of(operands[0]), elements, result_elements).replace(
        "BODY", _body_text(name, elements, body, result_elements)
    )
    return _insert_loop(text, operands)


def _loop_text(
    shape: Sequence[int], elements: Sequence[ir.Type], result_elements: Sequence[ir.Type]
) -> str:
    """A function with one loop over its arguments, in which `BODY` stands for the loop's body."""
    extents = "".join(f"{extent}x" for extent in shape)
    inputs = [f"tensor<{extents}{element}>" for element in elements]
    outputs = [f"tensor<{extents}{element}>" for element in result_elements]
    arguments = ", ".join(f"%in{i}: {kind}" for i, kind in enumerate(inputs))
    empties = "\n".join(f"%out{i} = tensor.empty() : {kind}" for i, kind in enumerate(outputs))
    ins = ", ".join(f"%in{i}" for i in range(len(inputs)))
    outs = ", ".join(f"%out{i}" for i in range(len(outputs)))
    results = ", ".join(outputs)
    axes = ", ".join(f"d{axis}" for axis in range(len(shape)))
    maps = ", ".join([f"affine_map<({axes}) -> ({axes})>"] * (len(inputs) + len(outputs)))
    iterators = ", ".join(['"parallel"'] * len(shape))
    return (
        f"func.func @f({arguments}) {{\n{empties}\n"
        f"%made:{len(outputs)} = linalg.generic "
        f"{{indexing_maps = [{maps}], iterator_types = [{iterators}]}}\n"
        f"ins({ins} : {', '.join(inputs)}) outs({outs} : {results}) {{\nBODY}} -> ({results})\n"
        "return }"
    )


_bodies: dict[tuple[str, ...], str] = {}


def _body_text(
    name: str, elements: Sequence[ir.Type], body: Body, result_elements: Sequence[ir.Type]
) -> str:
    """The block of a loop: its arguments are those of the operands, then those of the results."""
    key = (name, *map(str, elements), "to", *map(str, result_elements))
    if key not in _bodies:
        # The lines of the program that happens to come first are not those of the formula.
        with ir.Location.unknown():
            module = _build_function(elements, body, result_elements)
        _, _, *lines, result, _, _ = str(module).splitlines()
        arguments = [f"%arg{i}: {element}" for i, element in enumerate(elements)]
        arguments += [f"%unused{i}: {element}" for i, element in enumerate(result_elements)]
        header = f"^bb0({', '.join(arguments)}):"
        end = result.strip().replace("return", "linalg.yield", 1)
        _bodies[key] = "\n".join([header, *lines, end, ""])
    return _bodies[key]


def _build_function(
    elements: Sequence[ir.Type], body: Body, result_elements: Sequence[ir.Type]
) -> ir.Module:
    """A function of scalars, alone in its module."""
    kind = ir.TypeAttr.get(ir.FunctionType.get(list(elements), list(result_elements)))
    module = ir.Module.create()
    attributes = {"sym_name": ir.StringAttr.get("f"), "function_type": kind}
    with ir.InsertionPoint(module.body):
        function = ir.Operation.create("func.func", attributes=attributes, regions=1)
    block = function.regions[0].blocks.append(*elements)
    with ir.InsertionPoint(block):
        made = body(*map(Scalar, block.arguments))
        results = [made] if isinstance(made, Scalar) else made
        ir.Operation.create("func.return", operands=[result.value for result in results])
    return module


def _insert_loop(text: str, operands: Sequence[ir.Value]) -> list[ir.Value]:
    """Parses a loop and moves it to the insertion point.

    Not through `ir.Operation.create`: the first operation of the linalg dialect that is made so
    imports the dialect's Python package, which takes 0.15 s.
    """
    place, location = ir.InsertionPoint.current, ir.Location.current
    module = ir.Module.parse(text, location.context)
    parts: list[ir.Operation] = []

    def collect(operation: ir.Operation) -> ir.WalkResult:
        if operation.name in ("tensor.empty", "linalg.generic"):
            parts.append(operation)
        return ir.WalkResult.ADVANCE

    module.operation.walk(collect)
    for part in parts:
        part.detach_from_parent()
        part.location = location
        place.insert(part)
    loop = parts[-1]
    for index, operand in enumerate(operands):
        loop.operands[index] = operand
    return list(loop.results)
