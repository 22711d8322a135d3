"""Arguments and results of primitives' rules: the interface between rules and drivers.

Read this module first. A primitive is an op with rules (`primitive.py`). A driver, such as
`passes/transforms/jvp.py`, walks over a function and asks the primitive of each op for the rule
that it needs; it knows no op by name. Here: the kinds of values that pass between the two, and the
signature of each rule.

A signature states the common part of the rules of all ops. The rule of an op has a fixed number of
operands, and parameters by keyword; it declares these itself, with their types. The rules of
primitives with multiple results return lists; the rules of other primitives return single values.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Protocol, TypeAlias

from axir.dialect.core.annotations import Param, Returning
from axir.dialect.core.array import Array, ArrayLike
from axir.dialect.core.state import BatchFrame
from axir.dialect.core.symbolic_zeros import UndefinedPrimal, Zero

from .meshes.layouts import OpenLayout

# Values ------------------------------------------------------------------------------------------

Value: TypeAlias = Array
"""An array of known elements or a tracer: what a variable of a function stands for."""

Operand: TypeAlias = ArrayLike
"""What a primitive can be applied to: values, and what becomes an array by itself."""

Tangent: TypeAlias = Array | Zero
"""The tangent of a value; `Zero` where it is known to be zero, so that nobody computes with it."""

Cotangent: TypeAlias = Array | Zero
"""The cotangent of a value, likewise."""

TransposeOperand: TypeAlias = Array | UndefinedPrimal
"""An operand of an op that is transposed: a linear one has no value."""

BatchAxis: TypeAlias = int | None
"""Where the axis of the batch stands in a value; None if the value is the same for all."""

BatchAxes: TypeAlias = Sequence[Any]
"""A `BatchAxis` for each operand. Not all are None, so a rule of one operand gets a position."""

OperandTangents: TypeAlias = Sequence[Any]
"""A `Tangent` for each operand. Not all are `Zero`, so a rule of one operand gets a value."""

Results: TypeAlias = Any
"""What applying a primitive gives: a `Value`, or a list of such where it has multiple results: no
type checker knows. Functions that apply one primitive tell."""

Tangents: TypeAlias = Any
"""Tangents of results: a `Tangent`, or a list of such, likewise."""

Cotangents: TypeAlias = Any
"""Cotangents of results: a `Value`, or a list of `Cotangent`, likewise."""

ResultAxes: TypeAlias = Any
"""Batch axes of results: a `BatchAxis`, or a list of such, likewise."""

ResultTypes: TypeAlias = Any
"""Types of results: a `ShapedArray`, or a list of such, likewise."""

HostArrays: TypeAlias = Any
"""Results on the host: a NumPy array, or a sequence of such, likewise."""

MlirValues: TypeAlias = Any
"""Results in MLIR: an `ir.Value`, or a sequence of such, likewise."""

FlatFunction: TypeAlias = Returning[Sequence[Operand]]
"""A function of flat values: what can be traced."""

# Rules of every op --------------------------------------------------------------------------------

# In a protocol, `*_: Param, **params: Param` lets a rule declare its operands and parameters.


class InferRule(Protocol):
    """`infer(*types, **params)`: the types of the results; raises the user's error."""

    def __call__(self, *types: Param, **params: Param) -> ResultTypes:
        """Takes a `ShapedArray` for each operand."""
        ...


class EvaluateRule(Protocol):
    """`evaluate(*arrays, **params)`: the reference in NumPy."""

    def __call__(self, *arrays: Param, **params: Param) -> HostArrays:
        """Takes a NumPy array for each operand."""
        ...


class JvpRule(Protocol):
    """`jvp(primals, tangents, outs, **params)`: tangents of the results, which are known."""

    def __call__(
        self,
        primals: Sequence[Value],
        tangents: OperandTangents,
        outs: Results,
        /,
        *_: Param,
        **params: Param,
    ) -> Tangents:
        """Is linear in the tangents; at least one of them is not `Zero`."""
        ...


class TransposeRule(Protocol):
    """`transpose(cotangents, *operands, **params)`: a cotangent or None per operand."""

    def __call__(
        self, cotangents: Cotangents, /, *operands: Param, **params: Param
    ) -> Sequence[Cotangent | None]:
        """Takes a `TransposeOperand` for each operand; only linear ones get a cotangent."""
        ...


class BatchRule(Protocol):
    """`batch(operands, axes, **params)`: results over one more axis, and its place in each."""

    def __call__(
        self,
        operands: Sequence[Value],
        axes: BatchAxes,
        /,
        *_: Param,
        **params: Param,
    ) -> tuple[Results, ResultAxes]:
        """Takes a `BatchAxis` for each operand; at least one is not None."""
        ...


# Further rules -----------------------------------------------------------------------------------


class ValueAndJvpRule(Protocol):
    """`value_and_jvp(primals, tangents, **params)`: results and tangents, computed together.

    Calls and users' primitives have it in place of `jvp`; as `linearize` it splits the known part
    from the linear one.
    """

    def __call__(
        self,
        primals: Sequence[Value],
        tangents: OperandTangents,
        /,
        *_: Param,
        **params: Param,
    ) -> tuple[Results, Tangents]:
        """Takes at least one tangent that is not `Zero`."""
        ...


class BatchNamedRule(Protocol):
    """`batch_named(operands, axes, frame, **params)`: `batch` along the axis that the op names."""

    def __call__(
        self,
        operands: Sequence[Value],
        axes: BatchAxes,
        frame: BatchFrame,
        /,
        *_: Param,
        **params: Param,
    ) -> tuple[Results, ResultAxes]:
        """Takes a `BatchAxis` for each operand; it may be None."""
        ...


class SimplifyRule(Protocol):
    """`simplify(*operands, **params)`: an equal value by an identity, or None."""

    def __call__(self, *operands: Param, **params: Param) -> Value | None:
        """Takes a `Value` for each operand."""
        ...


class FixedLayoutRule(Protocol):
    """`fixed_layout(**params)`: the layout that an op declares for its result."""

    def __call__(self, **params: Param) -> OpenLayout:
        """Reads it in the parameters."""
        ...


class VaryingRule(Protocol):
    """`varying(given, **params)`: the named axes along which the results of an op differ."""

    def __call__(
        self, given: Sequence[frozenset[Hashable]], **params: Param
    ) -> Sequence[frozenset[Hashable]]:
        """Takes the axes along which each operand differs, and returns the axes of each result."""
        ...


class AxisNamesRule(Protocol):
    """`axis_names(**params)`: names of the mapped axes over which the op communicates."""

    def __call__(self, **params: Param) -> tuple[Hashable, ...]:
        """Reads them in the parameters."""
        ...


Rule: TypeAlias = Any
"""What a declaration may say of a primitive by name: a rule, or a mark of `Primitive`."""
