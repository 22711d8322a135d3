"""XLA's operations under the names of 2020, which write StableHLO.

Translation rules of that time are functions of values of a program, `ops.Add(ops.Mul(x, y), z)`,
or call methods of the builder that is their first argument, `c.Add(c.Mul(x, y), z)`. Both come
here: `XlaBuilder` has the operations as methods.

Absent: XLA's programs, shapes and buffers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.core.annotations import Foreign, NestedNumbers, UserFunction
from axir.dialect.core.errors import AxirError

# A value of the program that is written.
XlaOp = Foreign

_UNARY = {
    "Abs": hlo.abs, "Acos": hlo.acos, "Acosh": hlo.acosh, "Asin": hlo.asin, "Asinh": hlo.asinh,
    "Atan": hlo.atan, "Atanh": hlo.atanh, "BesselI1e": hlo.bessel_i1e, "Cbrt": hlo.cbrt,
    "Ceil": hlo.ceil, "Clz": hlo.count_leading_zeros, "Conj": hlo.conj, "Cos": hlo.cosine,
    "Cosh": hlo.cosh, "Digamma": hlo.digamma, "Erf": hlo.erf, "ErfInv": hlo.erf_inv,
    "Erfc": hlo.erfc, "Exp": hlo.exponential, "Expm1": hlo.exponential_minus_one,
    "Floor": hlo.floor, "Imag": hlo.imag, "IsFinite": hlo.is_finite, "Lgamma": hlo.lgamma,
    "Log": hlo.log, "Log1p": hlo.log_plus_one, "Logistic": hlo.logistic, "Neg": hlo.negate,
    "Not": hlo.not_, "PopulationCount": hlo.popcnt, "Real": hlo.real, "Rsqrt": hlo.rsqrt,
    "Sign": hlo.sign, "Sin": hlo.sine, "Sinh": hlo.sinh, "Sqrt": hlo.sqrt, "Square": hlo.square,
    "Tan": hlo.tan, "Tanh": hlo.tanh,
}  # fmt: skip
_BINARY = {
    "Add": hlo.add, "And": hlo.and_, "Atan2": hlo.atan2, "Complex": hlo.complex, "Div": hlo.divide,
    "Max": hlo.maximum, "Min": hlo.minimum, "Mul": hlo.multiply, "NextAfter": hlo.next_after,
    "Or": hlo.or_, "Pow": hlo.power, "Rem": hlo.remainder, "ShiftLeft": hlo.shift_left,
    "ShiftRightArithmetic": hlo.shift_right_arithmetic,
    "ShiftRightLogical": hlo.shift_right_logical, "Sub": hlo.subtract, "Xor": hlo.xor,
}  # fmt: skip
_COMPARISONS = ("Eq", "Ge", "Gt", "Le", "Lt", "Ne")


def _stretching(function: Callable[..., object]) -> Callable[..., object]:
    """Returns a function of two values; one may be a scalar, as in XLA."""

    def operation(lhs: XlaOp, rhs: XlaOp) -> XlaOp:
        shape = max(hlo.shape_of(lhs), hlo.shape_of(rhs), key=len)
        values = [x if hlo.shape_of(x) else hlo.broadcast_scalar(x, shape) for x in (lhs, rhs)]
        return function(*values)

    operation.__doc__ = f"{function.__doc__} A scalar stands beside every element."
    return operation


def _comparison(name: str) -> Callable[..., object]:
    def compare(lhs: XlaOp, rhs: XlaOp) -> XlaOp:
        return hlo.compare(lhs, rhs, name.upper())

    compare.__doc__ = f"`stablehlo.compare` {name.upper()}, elementwise."
    return compare


def select(condition: XlaOp, on_true: XlaOp, on_false: XlaOp) -> XlaOp:
    """Chooses elements by a condition."""
    return hlo.select(condition, on_true, on_false)


def convert_element_type(operand: XlaOp, new_element_type: XlaOp) -> XlaOp:
    """Converts to a NumPy dtype."""
    return hlo.convert(operand, new_element_type)


def broadcast(operand: XlaOp, sizes: Sequence[int]) -> XlaOp:
    """Adds leading dimensions."""
    own = hlo.shape_of(operand)
    places = range(len(sizes), len(sizes) + len(own))
    return hlo.broadcast_in_dim(operand, (*sizes, *own), tuple(places))


def broadcast_in_dim(operand: XlaOp, shape: Sequence[int], dimensions: Sequence[int]) -> XlaOp:
    """Stretches an array to a shape; dimension i becomes `dimensions[i]`."""
    return hlo.broadcast_in_dim(operand, shape, dimensions)


def reshape(operand: XlaOp, new_sizes: Sequence[int]) -> XlaOp:
    """Returns the elements in another shape."""
    return hlo.reshape(operand, new_sizes)


def transpose(operand: XlaOp, permutation: Sequence[int]) -> XlaOp:
    """Permutes dimensions."""
    return hlo.transpose(operand, permutation)


def constant(builder: XlaBuilder, value: NestedNumbers) -> XlaOp:
    """Returns an array of known numbers."""
    return hlo.constant(value)


_OTHERS: dict[str, UserFunction] = {
    "Broadcast": broadcast,
    "BroadcastInDim": broadcast_in_dim,
    "ConstantLiteral": constant,
    "ConvertElementType": convert_element_type,
    "Reshape": reshape,
    "Select": select,
    "Transpose": transpose,
}
OPERATIONS: dict[str, Callable[..., XlaOp]] = {
    **_UNARY,
    **{name: _stretching(function) for name, function in _BINARY.items()},
    **{name: _stretching(_comparison(name)) for name in _COMPARISONS},
    **_OTHERS,
}


class UnknownXlaOperationError(AxirError, AttributeError):
    """A translation rule names an operation that `xla_client.ops` does not have."""

    def __init__(self, name: str):
        super().__init__(
            f"xla_client.ops has no operation {name!r} here.",
            "Write the rule with axir.interpreters.mlir: register_lowering(primitive, rule) takes "
            "rules that write any operation of StableHLO.",
        )
        self.name = name


class XlaBuilder:
    """The first argument of the rules of 2020: the operations as methods.

    Raises:
        UnknownXlaOperationError: for an operation that is not among them.
    """

    def __getattr__(self, name: str) -> UserFunction:
        if name not in OPERATIONS:
            raise UnknownXlaOperationError(name)
        return OPERATIONS[name]

    def Constant(self, value: NestedNumbers) -> XlaOp:
        """Returns an array of known numbers."""
        return hlo.constant(value)


def __getattr__(name: str) -> UserFunction:
    return getattr(XlaBuilder(), name)


def __dir__() -> list[str]:
    return sorted([*OPERATIONS, "XlaBuilder"])
