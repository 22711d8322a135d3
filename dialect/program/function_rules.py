"""Rules of primitives that write, take or give functions, and what they may ask the drivers for.

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
    """A host function and the types of what it takes and gives.

    `keeps_results` tells that nobody will write to what it gives: read-only arrays, which the
    program reads where they lie, if they are aligned.
    """

    function: HostFunction
    operand_types: tuple[ShapedArray, ...]
    result_types: tuple[ShapedArray, ...]
    name: str = "callback"
    keeps_results: bool = False


class LoweringContext(Protocol):
    """What a `lower` rule may ask for besides its operands.

    Attributes:
        types_in: Types of the operands, of which random keys are there as words.
        types_out: Types of the results, likewise.
        platform: What the code will run on: `cpu`, `vulkan` or `cuda`.
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
        """What rules written for JAX hand objects to that code needs: this context."""
        ...

    def add_keepalive(self, kept: object) -> None:
        """Takes what `mlir.emit_python_callback` gives: a program holds what it calls."""
        ...

    @property
    def allows_host_calls(self) -> bool:
        """Whether the code will run in this process only, and may call back into it."""
        ...

    @property
    def allows_callbacks(self) -> bool:
        """Whether the code may call functions of the user's; in C++ these are other ones."""
        ...

    @property
    def mesh_axes(self) -> Sequence[tuple[Hashable, int]] | None:
        """Names and extents of the axes of the mesh whose devices run the code; None for none."""
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
        """Calls a function, which is lowered once however often it is called."""
        ...

    def inline(self, function: Function, *values: ir.Value) -> list[ir.Value]:
        """Writes the ops of a function in place, as the body of a region needs it."""
        ...


class LowerRule(Protocol):
    """`lower(context, *values, **params)`: the results in StableHLO."""

    def __call__(self, context: LoweringContext, /, *values: Param, **params: Param) -> MlirValues:
        """Takes an `ir.Value` for each operand, and writes ops where MLIR inserts them now."""
        ...


# Bodies and parts --------------------------------------------------------------------------------


class BodyRule(Protocol):
    """`body(**params)`: the function that the op comes down to once nothing differentiates it."""

    def __call__(self, **params: Param) -> Function:
        """Returns the function of the operands."""
        ...


class ChosenBodyRule(Protocol):
    """`chosen_body(*operands, **params)`: the call that the op comes down to, if values tell."""

    def __call__(
        self, *operands: Param, **params: Param
    ) -> tuple[Function, Sequence[Value]] | None:
        """Returns the function and its operands, or None."""
        ...


class ReducedRule(Protocol):
    """`reduced(equation, used, simplify)`: the op with less in it, for `simplify`.

    The bodies are simplified, and operands and results that nobody needs are gone.
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
    """`dimensions(operands, results, **params)`: along which dimensions the op works on parts.

    That is all that is needed to cut a program into the parts of several devices, for most ops.
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

        Returns a function of the operands in place of dimensions if the op comes down to that, and
        None if all is needed whole.
        """
        ...


class PartitionRule(Protocol):
    """`partition(partitioner, equation, operands)`: the op on the parts that one device holds."""

    def __call__(
        self, partitioner: Partitioner, equation: Equation, operands: Sequence[Placed], /
    ) -> list[Placed]:
        """Takes the parts of the operands, and returns those of the results."""
        ...
