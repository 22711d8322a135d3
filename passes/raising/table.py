"""The interface of raising rules, their context, and the table of rules by operation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol, TypeAlias

from iree.compiler import ir

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import Decorated, Dtype, Extent, HostArray, Param, Returning
from axir.dialect.core.array import Array, ConcreteArray
from axir.dialect.core.symbolic_dims import are_same, is_same
from axir.dialect.core.types import ShapedArray, numpy_dtype, type_of_mlir
from axir.dialect.program.meshes.layouts import MeshAxes
from axir.dialect.program.op_table import OPS
from axir.dialect.program.rules import Value
from axir.dialect.program.tracer import state
from axir.passes.framework.errors import RaisingError

from .grid import Grid

Raised: TypeAlias = Param
"""What an operation becomes: a `Value`, or a sequence of such, one for each result. A token becomes
None, a tuple of StableHLO a Python one."""


Region: TypeAlias = Returning[list[Value]]
"""A region of an operation, as a function of its arguments."""


class RaisingContext(Protocol):
    """The context of a rule, in addition to its operation and the values of the operands."""

    @property
    def module(self) -> ir.Module:
        """The module that is raised."""
        ...

    @property
    def grid(self) -> Grid:
        """The devices that run the raised program."""
        ...

    def on_grid(self, grid: Grid, function: Returning[list[Value]]) -> list[Value]:
        """Calls a function without arguments that raises a program of these devices."""
        ...

    def mesh(self, name: str) -> MeshAxes:
        """Returns the axes of a mesh of the module."""
        ...

    def body(self, operation: ir.Operation, number: int = 0) -> Region:
        """Returns a region of an operation as a function of its arguments."""
        ...

    def call(self, symbol: str, values: Sequence[Value]) -> list[Value]:
        """Calls a function of the module."""
        ...

    def constant(self, value: ir.Value) -> HostArray | None:
        """Returns the elements of a value that depends only on constants; None for others."""
        ...

    def extents(self, value: ir.Value) -> HostArray | None:
        """Returns the extents that a value holds, of known and open dimensions; else None."""
        ...

    def want_extents(self, value: ir.Value) -> None:
        """Reports that a value determines a shape, but is not known to hold extents."""
        ...

    def extents_value(self, extents: Sequence[Extent], shape: Sequence[int], dtype: Dtype) -> Value:
        """Returns extents as a value, from which `extents` returns them later."""
        ...

    def assume(self, condition: ir.Value) -> None:
        """Records that a comparison of extents holds in all calls."""
        ...

    def presuming(self, condition: str | None) -> AbstractContextManager[None]:
        """Lets a condition on extents hold while a body is traced that would not run otherwise."""
        ...

    def held(self, value: Value) -> HostArray | None:
        """Returns the few integers or extents that a raised value holds; None if unknown."""
        ...

    def weights(self, array: HostArray, name: str | None) -> Value:
        """Returns weights, perhaps with a name, as a value; the function captures them."""
        ...

    def value(self, value: ir.Value) -> Value:
        """Returns the raised value."""
        ...

    def replace(self, operation: ir.Operation, values: Sequence[Value]) -> None:
        """Sets the raised results of a later operation."""
        ...


class RaiseRule(Protocol):
    """`rule(context, operation, *values)` returns the raised results of the operation."""

    def __call__(
        self, context: RaisingContext, operation: ir.Operation, /, *values: Param
    ) -> Raised:
        """Takes a `Value` for each operand."""
        ...


RULES: dict[str, RaiseRule] = {}
"""The rules by the names of operations."""

CUSTOM_CALLS: dict[str, RaiseRule] = {}
"""The rules of `stablehlo.custom_call` by the names of what is called."""


def raises(*names: str, table: dict[str, RaiseRule] = RULES) -> Returning[Decorated]:
    """Puts a rule into the table, for one operation or for several."""

    def register(rule: Decorated) -> Decorated:
        for name in names:
            if name in table:
                raise ValueError(f"{name} has two raising rules.")
            table[name] = rule
        return rule

    return register


def raises_calls_of(*targets: str) -> Returning[Decorated]:
    """Puts a rule for custom calls into the table."""
    return raises(*targets, table=CUSTOM_CALLS)


def raises_elementwise(functions: Mapping[str, Returning[Value]]) -> None:
    """Puts operations into the table that are plain functions of their operands."""

    def rule_of(function: Returning[Value]) -> RaiseRule:
        return lambda context, operation, *values: function(*values)

    for name, function in functions.items():
        raises(name)(rule_of(function))


def result_type(operation: ir.Operation, number: int = 0) -> ShapedArray:
    """Returns the type of a result."""
    return raised_type(operation.results[number].type)


def result_dtype(operation: ir.Operation, number: int = 0) -> Dtype:
    """Returns the dtype of a result; its shape may be open."""
    kind = operation.results[number].type
    return _dtype(kind.element_type if isinstance(kind, ir.ShapedType) else kind)


def raised_type(value_type: ir.Type) -> ShapedArray:
    """Returns the raised type of a StableHLO type; a number is an array of rank 0.

    Raises:
        ShapeError, DTypeError: if no such type exists.
    """
    if isinstance(value_type, (ir.IndexType, ir.IntegerType, ir.FloatType)):
        return ShapedArray((), _dtype(value_type))
    is_of_indices = isinstance(value_type, ir.RankedTensorType) and isinstance(
        value_type.element_type, ir.IndexType
    )
    if is_of_indices and value_type.has_static_shape:
        return ShapedArray(tuple(value_type.shape), dtypes.int64)
    return type_of_mlir(value_type)


def _dtype(element: ir.Type) -> Dtype:
    return dtypes.int64 if isinstance(element, ir.IndexType) else numpy_dtype(element)


def recorded(name: str, operands: Sequence[Value], **params: Param) -> Value | None:
    """Records an op even if all its operands are known; returns None outside traces.

    So large arrays that follow from few numbers stay ops.
    """
    return None if state.ambient is None else state.ambient.record(OPS[name], operands, params)


def refusal(message: str, way_out: str) -> RaisingError:
    """Returns the error of a rule that cannot raise its operation; its place is added later."""
    return RaisingError(message, way_out, where="")


def check_results(op: ir.Operation, results: Sequence[Raised]) -> None:
    """Raises if a rule returned other types than the operation has."""
    for number, value in enumerate(results):
        if not isinstance(value, Array):
            continue
        kind = op.results[number].type
        if isinstance(kind, ir.RankedTensorType) and not kind.has_static_shape:
            extents = zip(value.aval.shape, kind.shape, strict=False)
            is_right = value.aval.dtype == result_dtype(op, number)
            is_right = is_right and value.aval.ndim == kind.rank
            is_right = is_right and all(b < 0 or is_same(a, b) for a, b in extents)
        elif isinstance(kind, ir.ShapedType) or type(value) is not ConcreteArray:
            wanted = result_type(op, number)
            is_right = value.aval.dtype == wanted.dtype
            is_right = is_right and are_same(value.aval.shape, wanted.shape)
        else:  # the known elements of a shape
            continue
        if not is_right:
            found = value.aval.strip_weak_type()
            raise refusal(
                f"{op.name} gives {kind}, but its operands make it {found}.",
                "Correct its type, or its operands.",
            )
