"""Rules of primitives that take, call or return functions, and the drivers' interfaces for them.

Elsewhere: all other rules (`rules.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple, Protocol

from iree.compiler import ir

from axir.dialect.core.annotations import HostArray, Param, Returning
from axir.dialect.core.types import ShapedArray

from .dimensions import Dimensions
from .equation import Equation
from .function import Function
from .meshes.partitioning import Partitioner, Placed
from .operation import Operation
from .rules import MlirValues, Value

# Lowering ----------------------------------------------------------------------------------------

HOST = "host"
"""The module from which compiled code imports host functions."""

HostFunction = Returning[Sequence[HostArray]]
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
    primitive: Operation

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
        """This context, under the name by which rules written for JAX access it."""
        ...

    def add_keepalive(self, kept: object) -> None:
        """Accepts a keepalive of `mlir.emit_python_callback`; programs hold callbacks anyway."""
        ...

    @property
    def allows_host_calls(self) -> bool:
        """Whether the code will run only in this process, and may call back into it."""
        ...

    @property
    def allows_callbacks(self) -> bool:
        """Whether the code may call functions of the user; a C++ host provides its own ones."""
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
        """Calls a function, which is lowered only once."""
        ...

    def inline(self, function: Function, *values: ir.Value) -> list[ir.Value]:
        """Inlines the ops of a function as the body of a region."""
        ...


class LowerRule(Protocol):
    """`lower(context, *values, **params)`: the results in StableHLO."""

    def __call__(self, context: LoweringContext, /, *values: Param, **params: Param) -> MlirValues:
        """Takes an `ir.Value` for each operand, and writes ops where MLIR inserts them now."""
        ...


# Bodies and parts --------------------------------------------------------------------------------


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
