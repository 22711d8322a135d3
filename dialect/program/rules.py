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

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

from iree.compiler import ir

from axir.dialect.core.annotations import ArrayLike, HostArray, Param, Returning
from axir.dialect.core.array import Array
from axir.dialect.core.symbolic_zeros import UndefinedPrimal, Zero
from axir.dialect.core.types import ShapedArray

if TYPE_CHECKING:
    from .dimensions import Dimensions
    from .function import Equation, Function
    from .meshes.layouts import OpenLayout
    from .meshes.partitioning import Partitioner, Placed
    from .named_axes import BatchFrame
    from .primitive import Primitive, Sample

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

# Lowering ----------------------------------------------------------------------------------------

HOST = "host"
"""The module from which compiled code imports host functions."""

HostFunction: TypeAlias = Returning[Sequence[HostArray]]
"""What compiled code calls in its process: from NumPy arrays to a sequence of NumPy arrays."""


class HostCall(NamedTuple):
    """A host function and the types of its arguments and results.

    `keeps_results` promises that no code writes to the results. They are read-only arrays; the
    program reads them in place if they are aligned.
    """

    function: HostFunction
    operand_types: tuple[ShapedArray, ...]
    result_types: tuple[ShapedArray, ...]
    name: str = "callback"
    keeps_results: bool = False


class LoweringContext(Protocol):
    """The information that a `lower` rule may use in addition to its operands.

    Attributes:
        types_in: Types of the operands; random keys appear as words.
        types_out: Types of the results; random keys appear as words.
        platform: The platform of the code: `cpu`, `vulkan` or `cuda`.
        primitive: The primitive that is lowered.
    """

    types_in: list[ShapedArray]
    types_out: list[ShapedArray]
    platform: str
    primitive: Primitive

    @property
    def avals_in(self) -> list[ShapedArray]:
        """Types of the operands, under JAX's name."""
        ...

    @property
    def avals_out(self) -> list[ShapedArray]:
        """Types of the results, under JAX's name."""
        ...

    @property
    def module_context(self) -> LoweringContext:
        """This context: rules written for JAX pass it to code that keeps objects."""
        ...

    def add_keepalive(self, kept: object) -> None:
        """Takes the result of `mlir.emit_python_callback`: a program holds its callbacks."""
        ...

    @property
    def allows_host_calls(self) -> bool:
        """Whether the code will run in this process only, and may call back into it."""
        ...

    @property
    def allows_callbacks(self) -> bool:
        """Whether the code may call functions of the user's; in C++ these are C++ functions."""
        ...

    @property
    def mesh_axes(self) -> Sequence[tuple[Hashable, int]] | None:
        """Names and extents of the axes of the mesh that runs the code; None without a mesh."""
        ...

    def host_call(
        self,
        function: HostFunction,
        values: Sequence[ir.Value],
        result_types: Sequence[ShapedArray],
        name: str = "callback",
        keeps_results: bool = False,
    ) -> list[ir.Value]:
        """Calls a Python function when the compiled code runs; see `allows_host_calls`."""
        ...

    def call(self, function: Function, *values: ir.Value) -> list[ir.Value]:
        """Calls a function; it is lowered only once for all its calls."""
        ...

    def inline(self, function: Function, *values: ir.Value) -> list[ir.Value]:
        """Writes the ops of a function in place, as the body of a region needs it."""
        ...


# The seven rules ---------------------------------------------------------------------------------

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


class LowerRule(Protocol):
    """`lower(context, *values, **params)`: the results in StableHLO."""

    def __call__(self, context: LoweringContext, /, *values: Param, **params: Param) -> MlirValues:
        """Takes an `ir.Value` for each operand, and writes ops where MLIR inserts them now."""
        ...


class SamplesRule(Protocol):
    """`samples()`: inputs that exercise the op, with the edge values."""

    def __call__(self) -> list[Sample]:
        """Makes them anew."""
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


class BodyRule(Protocol):
    """`body(**params)`: an equivalent function, once differentiation is over."""

    def __call__(self, **params: Param) -> Function:
        """Returns the function of the operands."""
        ...


class ChosenBodyRule(Protocol):
    """`chosen_body(*operands, **params)`: an equivalent call, if operand values determine it."""

    def __call__(
        self, *operands: Param, **params: Param
    ) -> tuple[Function, Sequence[Value]] | None:
        """Returns the function and its operands, or None."""
        ...


class ReducedRule(Protocol):
    """`reduced(equation, used, simplify)`: a smaller op, as `simplify` needs it.

    The bodies are simplified, and unused operands and results are removed.
    """

    def __call__(
        self,
        equation: Equation,
        used: Sequence[bool],
        simplify: Callable[[Function], Function],
        /,
    ) -> Equation:
        """Takes a mark for each result."""
        ...


class SimplifyRule(Protocol):
    """`simplify(*operands, **params)`: an equal value by an identity, or None."""

    def __call__(self, *operands: Param, **params: Param) -> Value | None:
        """Takes a `Value` for each operand."""
        ...


class DimensionsRule(Protocol):
    """`dimensions(operands, results, **params)`: the dimensions along which the op works on parts.

    Most ops need only this rule to cut a program into the parts of several devices.
    """

    def __call__(
        self,
        operands: Sequence[ShapedArray],
        results: Sequence[ShapedArray],
        /,
        *_: Param,
        **params: Param,
    ) -> Dimensions | Function | None:
        """Takes the types of whole operands and results.

        Returns an equivalent function of the operands in place of dimensions, if there is one, and
        None if all is needed whole.
        """
        ...


class PartitionRule(Protocol):
    """`partition(partitioner, equation, operands)`: the op on the parts that one device holds."""

    def __call__(
        self, partitioner: Partitioner, equation: Equation, operands: Sequence[Placed], /
    ) -> list[Placed]:
        """Takes the parts of the operands, and returns the parts of the results."""
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
