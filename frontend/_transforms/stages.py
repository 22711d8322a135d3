"""The stages of a jitted function: traced, lowered, compiled.

>>> import axir, axir.numpy as jnp
>>> traced = axir.jit(lambda x: jnp.sin(x) * 2).trace(axir.ShapeDtypeStruct((2,), "float32"))
>>> traced.jaxpr
{ lambda ; a:f32[2]. let b:f32[2] = sin a; c:f32[2] = mul b 2.0:f32[] in (c,) }
>>> "stablehlo.sine" in traced.lower().as_text()
True
>>> traced.lower().compile()(jnp.zeros(2))
Array([0., 0.], dtype=float32)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from axir._arguments.arguments import to_values
from axir._arguments.wrapping import boundary
from axir._devices.partitions import place_of, sharding_of
from axir._devices.shape_dtype_struct import ShapeDtypeStruct
from axir._devices.sharding import Sharding, SingleDeviceSharding
from axir._later import later
from axir._trees import tree
from axir.dialect.core.annotations import UserObject
from axir.dialect.core.array import ConcreteArray
from axir.dialect.core.config import config
from axir.dialect.core.errors import (
    DTypeError,
    HostCallNeededError,
    NonArrayArgumentError,
    ParameterError,
    ShapeError,
    execution_forbidden,
)
from axir.dialect.core.types import ShapedArray
from axir.dialect.program.costs import (
    arithmetic_operations,
    temporary_bytes,
    transcendental_operations,
)
from axir.dialect.program.function import Function
from axir.dialect.program.jaxpr import ClosedJaxpr
from axir.dialect.program.module_writer import write_module
from axir.dialect.program.tracer import Tracer
from axir.passes.partition.layout_text import communications
from axir.passes.transforms.lower_to_stablehlo import lower_functions
from axir.runtime import Device, default_device, local_devices
from axir.runtime.spmd.partitioned import Place, device_for
from axir.runtime.spmd.placed_calls import committed, placed
from axir.runtime.spmd.placement import Placement
from axir.runtime.spmd.program import MeshProgram

CompilerOptions = Mapping[str, UserObject]


@dataclass(frozen=True)
class ArgInfo:
    """The description of an argument.

    Attributes:
        aval: Its type.
        donated: Whether results may take its memory.
    """

    aval: ShapedArray
    donated: bool

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape."""
        return self.aval.shape

    @property
    def dtype(self) -> np.dtype:
        """Its dtype."""
        return self.aval.dtype


@dataclass(frozen=True)
class CompiledMemoryStats:
    """How much memory a call of a compiled program needs, in bytes.

    Attributes:
        generated_code_size_in_bytes: Size of the program; 0 for one over a mesh of devices.
        argument_size_in_bytes: Of the arguments.
        output_size_in_bytes: Of the results.
        alias_size_in_bytes: The results that may reuse memory of donated arguments.
        temp_size_in_bytes: Upper bound for all other memory: the need of a program in which each
            operation writes its result. Most values stay in registers.
    """

    generated_code_size_in_bytes: int
    argument_size_in_bytes: int
    output_size_in_bytes: int
    alias_size_in_bytes: int
    temp_size_in_bytes: int

    @property
    def peak_memory_in_bytes(self) -> int:
        """All that lies in memory during a call, at most."""
        return (
            self.argument_size_in_bytes
            + self.output_size_in_bytes
            - self.alias_size_in_bytes
            + self.temp_size_in_bytes
        )


@runtime_checkable
class Wrapped(Protocol):
    """A function that `jit` has wrapped."""

    @boundary
    def __call__(self, *args: object, **kwargs: object) -> UserObject:
        """Runs the function, compiled."""
        ...

    def trace(self, *args: object, **kwargs: object) -> Traced:
        """Traces for the types of given arguments."""
        ...

    def lower(self, *args: object, **kwargs: object) -> Lowered:
        """Traces and lowers for the types of given arguments, without compiling."""
        ...


class Lying(NamedTuple):
    """The placement of a program's arrays.

    Attributes:
        places: Where each argument is committed to lie; empty if none is.
        results: The placement of each result; empty if unspecified.
    """

    places: tuple[Place, ...] = ()
    results: tuple[Placement | None, ...] = ()


def described_place(x: object) -> Place:
    """Returns where an array is committed to lie, or a `ShapeDtypeStruct` says it does."""
    if type(x) is ConcreteArray:
        place: Place = x._device
        return place
    return place_of(x.sharding) if isinstance(x, ShapeDtypeStruct) else None


class _Stage:
    """The data of all stages.

    Args:
        function: The jaxpr function.
        in_tree: Structure of the pair of arguments and keyword arguments that are not static.
        out_tree: Structure of the results.
        donated: Indices of the argument leaves with memory that results may reuse.
        device: Where to run; None for where the arguments are, or the default device.
        lying: Where the arguments and results are.
    """

    def __init__(
        self,
        function: Function,
        in_tree: tree.TreeDef,
        out_tree: tree.TreeDef,
        donated: tuple[int, ...] = (),
        device: UserObject = None,
        lying: Lying = Lying(),  # noqa: B008
    ):
        self.function = function
        self._lying = lying
        self.in_tree = in_tree
        self.out_tree = out_tree
        self.device = device
        self._donated = donated

    @property
    def in_avals(self) -> object:
        """Types of the arguments: the pair of arguments and keyword arguments."""
        return self.in_tree.unflatten(self.function.input_types)

    @property
    def args_info(self) -> object:
        """The descriptions of the arguments, as `ArgInfo`."""
        types = enumerate(self.function.input_types)
        return self.in_tree.unflatten([ArgInfo(t, n in self._donated) for n, t in types])

    @property
    def donate_argnums(self) -> tuple[int, ...]:
        """Numbers of the argument leaves with memory that results may reuse."""
        return self._donated

    @property
    def out_info(self) -> object:
        """Shapes and dtypes of the results."""
        types = self.function.output_types
        return self.out_tree.unflatten(
            [ShapeDtypeStruct(t.shape, t.dtype, weak_type=t.weak_type) for t in types]
        )


class Traced(_Stage):
    """A function traced for arguments of known types; made by `jit(f).trace(...)`."""

    @property
    def jaxpr(self) -> ClosedJaxpr:
        """The program."""
        return ClosedJaxpr.of(self.function)

    @property
    def fun_name(self) -> str:
        """Name of the function."""
        return self.function.name

    @property
    def out_avals(self) -> UserObject:
        """Types of the results."""
        return self.out_tree.unflatten(self.function.output_types)

    def lower(self, *, lowering_platforms: Sequence[str] | None = None) -> Lowered:
        """Lowers, without compiling.

        Args:
            lowering_platforms: The platform to lower for, by default the function's.

        Raises:
            ParameterError: for several platforms: a program is lowered for one.
        """
        device = self.device
        if lowering_platforms is not None:
            if len(lowering_platforms) != 1:
                raise ParameterError(
                    f"lower: one platform at a time, not {tuple(lowering_platforms)}.",
                    "Lower once for each.",
                )
            device = local_devices(backend=lowering_platforms[0])[0]
        return Lowered(
            self.function, self.in_tree, self.out_tree, self._donated, device, self._lying
        )


class Lowered(_Stage):
    """A function before compiling; made by `jit(f).lower(...)`."""

    def as_text(self, dialect: str | None = None, *, debug_info: bool = False) -> str:
        """Returns the program as text.

        Args:
            dialect: `stablehlo`, which None stands for, or `jaxpr`.
            debug_info: Whether to write the user's lines.

        Raises:
            ParameterError: for another dialect.
        """
        module = self.compiler_ir(dialect)
        return str(module.operation.get_asm(enable_debug_info=True)) if debug_info else str(module)

    def compiler_ir(self, dialect: str | None = None) -> UserObject:
        """Returns the program as an MLIR module; see `as_text`."""
        if dialect == "jaxpr":
            return write_module({"main": self.function})
        if dialect not in (None, "stablehlo"):
            raise ParameterError(
                f"as_text: dialect {dialect!r} is neither 'stablehlo' nor 'jaxpr'."
            )
        platform = (self.device or default_device()).platform
        try:
            return lower_functions({"main": self.function}, platform)
        except HostCallNeededError:
            return lower_functions({"main": self.function}, platform, host_functions=[])

    def cost_analysis(self) -> dict[str, float]:
        """Returns a lower bound of the cost of a call; see `Compiled.cost_analysis`."""
        return _costs(self.function)

    def compile(
        self,
        compiler_options: CompilerOptions | None = None,
        *,
        device_assignment: Sequence[Device] | None = None,
    ) -> Compiled:
        """Compiles.

        Args:
            compiler_options: Only None, or empty: use the options of `axir.config`.
            device_assignment: Only None, or the device that the function was lowered for.

        Raises:
            ParameterError: for options, or other devices.
        """
        own = self.device or default_device()
        if device_assignment is not None and tuple(device_assignment) != (own,):
            raise ParameterError(
                f"compile: the function was lowered for {own}, not {tuple(device_assignment)}.",
                "Lower it with arguments that lie there, or with jit(..., device=...).",
            )
        if compiler_options:
            raise ParameterError(
                f"compile: there are no compiler options {', '.join(compiler_options)}.",
                "Set axir_opt_level with axir.config.update.",
            )
        return Compiled(
            self.function, self.in_tree, self.out_tree, self._donated, self.device, self._lying
        )


class Compiled(_Stage):
    """A function compiled for arguments of known types; made by `jit(f).lower(...).compile()`.

    It takes the arguments that are not static, and no tracers.

    Raises:
        TreeError: by a call with arguments of another structure.
        ShapeError, DTypeError: by a call with arguments of another shape or dtype.
        NonArrayArgumentError: by a call with tracers.
    """

    def __init__(
        self,
        function: Function,
        in_tree: tree.TreeDef,
        out_tree: tree.TreeDef,
        donated: tuple[int, ...],
        device: UserObject,
        lying: Lying,
    ):
        super().__init__(function, in_tree, out_tree, donated, device, lying)
        places = lying.places or (None,) * len(function.inputs)
        common = device or next((x for x in places if x is not None), None)
        self._place = device_for(function, common)
        self._unit = placed(function, places, common, donated, True, lying.results)

    def __call__(self, *args: object, **kwargs: object) -> UserObject:
        """Runs the compiled program."""
        name = self.function.name
        leaves = tree.flatten_like(self.in_tree, (args, kwargs), f"Call of the compiled {name!r}")
        values = to_values(leaves, (args, kwargs), name)
        for index, (value, expected) in enumerate(
            zip(values, self.function.input_types, strict=True)
        ):
            if type(value) is Tracer:
                raise NonArrayArgumentError(
                    "Cannot apply transformations to a function lowered and compiled for a "
                    f"particular signature: {name!r} was called with {value.type}, a tracer.",
                    "Transform or call the function that jit returned.",
                )
            if (value.shape, value.dtype) != (expected.shape, expected.dtype):
                path = tree.paths((args, kwargs))[index]
                error = ShapeError if value.shape != expected.shape else DTypeError
                raise error(
                    "Argument types differ from the types for which this computation was compiled: "
                    f"argument {path} of {name!r} is of type {value.type}, and was {expected}.",
                    "Convert the argument, or call the function that jit returned.",
                )
        if config.jax_no_execution:
            raise execution_forbidden(name)
        return self.out_tree.unflatten(committed(self._unit.run(values), self._place))  # type: ignore[arg-type]

    @property
    def input_shardings(self) -> UserObject:
        """Where the arguments are to lie: the pair of arguments and keyword arguments."""
        return self.in_tree.unflatten(self._shardings(len(self.function.inputs), "places"))

    @property
    def output_shardings(self) -> UserObject:
        """Where the results lie."""
        return self.out_tree.unflatten(self._shardings(len(self.function.outputs), "result_places"))

    def _shardings(self, count: int, which: str) -> list[Sharding]:
        if isinstance(self._unit, MeshProgram):
            return [sharding_of(place) for place in getattr(self._unit, which)]
        return [SingleDeviceSharding(self._unit.device)] * count

    call = __call__

    def as_text(self) -> str:
        """Returns the StableHLO text of the compiled program."""
        lowered = Lowered(self.function, self.in_tree, self.out_tree, self._donated, self.device)
        return lowered.as_text()

    def cost_analysis(self) -> dict[str, float]:
        """Returns the least operations, reads and writes of a call, counted in the jaxpr.

        Returns:
            `flops`, additions, multiplications and the like; `transcendentals`, elements of `exp`
            and its like, which are no flops; `bytes accessed`, the bytes of arguments and results.
            Each pass of a loop counts if their number is known, else one. Of a program over several
            devices it counts the work of one device, and `bytes received` is the data it gets of
            the others.

        >>> import axir, axir.numpy as jnp
        >>> square = axir.jit(lambda x: jnp.exp(x @ x)).lower(jnp.ones((8, 8))).compile()
        >>> square.cost_analysis()
        {'flops': 1024.0, 'transcendentals': 64.0, 'bytes accessed': 512.0}
        """
        if not isinstance(self._unit, MeshProgram):
            return _costs(self.function)
        part = self._unit.function
        received = (c.received * c.times for c in communications(part, self._unit.axes))
        return {**_costs(part), "bytes received": float(sum(received))}

    def memory_analysis(self) -> CompiledMemoryStats:
        """Returns how much memory a call needs, in bytes; if on several devices, on each of them.

        >>> import axir, axir.numpy as jnp
        >>> square = axir.jit(lambda x: jnp.exp(x @ x)).lower(jnp.ones((8, 8))).compile()
        >>> stats = square.memory_analysis()
        >>> stats.argument_size_in_bytes, stats.output_size_in_bytes
        (256, 256)
        """
        unit = self._unit
        function = unit.function if isinstance(unit, MeshProgram) else self.function
        inputs = function.input_types[: len(self.function.inputs)]
        outputs = _bytes(function.output_types)
        aliased = sum(_bytes([inputs[n]]) for n in self._donated)
        return CompiledMemoryStats(
            generated_code_size_in_bytes=getattr(unit, "code_size", 0),
            argument_size_in_bytes=_bytes(inputs),
            output_size_in_bytes=outputs,
            alias_size_in_bytes=min(aliased, outputs),
            temp_size_in_bytes=max(0, temporary_bytes(unit.function) - outputs),
        )

    @property
    def input_formats(self) -> UserObject:
        """Where arguments are to be, and how their elements follow each other: row by row."""
        return self.in_tree.unflatten(self._formats(self.function.input_types, "places"))

    @property
    def output_formats(self) -> UserObject:
        """Where the results are, and how their elements follow each other: row by row."""
        return self.out_tree.unflatten(self._formats(self.function.output_types, "result_places"))

    def _formats(self, types: Sequence[ShapedArray], which: str) -> list[object]:
        return [
            later.Format(later.Layout(tuple(range(t.ndim))), sharding)
            for t, sharding in zip(types, self._shardings(len(types), which), strict=True)
        ]

    def runtime_executable(self) -> UserObject:
        """Returns the program that IREE runs."""
        return self._unit


def _costs(function: Function) -> dict[str, float]:
    transcendentals = transcendental_operations(function)
    return {
        "flops": float(arithmetic_operations(function) - transcendentals),
        "transcendentals": float(transcendentals),
        "bytes accessed": float(_bytes(function.input_types) + _bytes(function.output_types)),
    }


def _bytes(types: Sequence[ShapedArray]) -> int:
    return sum(t.size * t.dtype.itemsize for t in types)
