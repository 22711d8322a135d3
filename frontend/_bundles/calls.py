"""Calls of exported functions with any number of rows, or with sizes of open dimensions; pullbacks.

Elsewhere: exported functions (`exported.py`), the sizes in a call (`open_sizes.py`), padding rows
(`batching.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from axir._trees import tree
from axir.dialect.core.annotations import UserObject
from axir.dialect.core.array import ConcreteArray
from axir.dialect.ops.calls.jit_call import call
from axir.dialect.program.function import Function
from axir.dialect.program.tracer import Tracer
from axir.dialect.text.signature import Argument
from axir.passes.transforms.instantiate import instantiate_function
from axir.runtime.calls.compiled_function import compiled
from axir.runtime.compiler.target import BACKENDS
from axir.runtime.spmd.placed_calls import device_of

from .batching import of_rows, row_count, run_rows, type_of_rows
from .captures import with_captures, without_parameters
from .manifest import VERSION, FunctionEntry, Key
from .open_sizes import in_sizes, sizes_of_call
from .programs import Programs

if TYPE_CHECKING:
    from .saving import DisabledSafetyCheck
from axir.dialect.core import dtypes
from axir.dialect.core.symbolic_zeros import UndefinedPrimal, Zero
from axir.dialect.ops.elementwise.family import instantiate
from axir.dialect.program.module_writer import embed_captures
from axir.dialect.program.rules import Cotangent, Value
from axir.dialect.program.tracer import Trace
from axir.dialect.text.signature import Signature
from axir.passes.transforms.linearize import linearize
from axir.passes.transforms.transpose import transpose


class Facts:
    """The attributes of `jax.export.Exported` that do not differ between functions.

    Attributes:
        platforms: The platforms that the function runs on.
        nr_devices: The number of devices it uses.
        ordered_effects: Effects of a call; saved functions have no effects.
        unordered_effects: The same for unordered effects.
        uses_global_constants: Whether its module refers to anything outside.
        calling_convention_version: Version of the format in which it is saved.
    """

    platforms: tuple[str, ...] = BACKENDS
    nr_devices: int = 1
    ordered_effects: tuple[UserObject, ...] = ()
    unordered_effects: tuple[UserObject, ...] = ()
    disabled_safety_checks: Sequence[DisabledSafetyCheck] = ()
    uses_global_constants: bool = False
    calling_convention_version: int = VERSION
    entry: FunctionEntry

    @property
    def module_kept_var_idx(self) -> tuple[int, ...]:
        """Numbers of the arguments that the module takes: all."""
        return tuple(range(len(self.entry.signature.arguments)))

    @property
    def in_shardings_hlo(self) -> tuple[None, ...]:
        """Shardings of arguments: none."""
        return (None,) * len(self.entry.signature.arguments)

    @property
    def out_shardings_hlo(self) -> tuple[None, ...]:
        """Shardings of results: none."""
        return (None,) * len(self.entry.signature.results)

    def has_vjp(self) -> bool:
        """Tells whether the function can be differentiated, which all can."""
        return True


# Calls --------------------------------------------------------------------------------------------


# The most numbers of rows, or sizes, that functions are cached for.
_MOST_KEYS = 64


class Calls(Facts):
    """The part of an exported function that runs it.

    Args:
        entry: Its name, arguments, results and parameters.
        function: The traced function, or a function that reads it when it is first asked for.
        parameters: The values of `entry.parameters`, by name.
        in_tree: Structure of `(args, kwargs)`.
        out_tree: Structure of the result.
        programs: Its compiled programs.

    Attributes:
        entry: Its entry in a bundle's manifest.
        parameters: The arrays that it captured, by name; small arrays are part of the program
            instead.
        in_tree: Structure of `(args, kwargs)`.
        out_tree: Structure of the result.
    """

    def __init__(
        self,
        entry: FunctionEntry,
        function: Function | Callable[[], Function],
        parameters: Mapping[str, ConcreteArray],
        in_tree: tree.TreeDef,
        out_tree: tree.TreeDef,
        programs: Programs | None = None,
    ):
        self.entry = entry
        self.parameters = {name: parameters[name] for name in entry.parameters}
        self._has_traced = any(type(x) is Tracer for x in self.parameters.values())
        self.in_tree = in_tree
        self.out_tree = out_tree
        self._function = function
        self._programs = programs
        # By number of rows or sizes, the function that takes the parameters after its arguments:
        # one for all values of the parameters.
        self._whole: dict[Key, Function] = {}
        # The arguments for a number of rows, or for sizes.
        self._arguments_of: dict[Key, tuple[Argument, ...]] = {}

    @property
    def function(self) -> Function:
        """The traced function; its captures are the parameters."""
        if not isinstance(self._function, Function):
            self._function = self._function()
        return self._function

    def key_of(self, values: Sequence[object]) -> Key:
        """Returns the number of rows, or the sizes, of a call's arguments.

        Raises:
            ShapeError: if their shapes do not fit each other, or a constraint does not hold.
        """
        entry = self.entry
        arguments = entry.signature.arguments
        if entry.batch is not None:
            return row_count(entry.name, values, entry.batch, [value.name for value in arguments])
        if entry.open is not None:
            return sizes_of_call(entry.name, arguments, values, entry.open)
        return 0

    def _arguments(self, key: Key) -> Sequence[Argument]:
        """Returns the arguments for a number of rows, or for sizes."""
        own, batch = self.entry.signature.arguments, self.entry.batch
        if batch is None and self.entry.open is None:
            return own
        if key not in self._arguments_of:
            if len(self._arguments_of) >= _MOST_KEYS:
                self._arguments_of.clear()
            if isinstance(key, tuple):
                self._arguments_of[key] = in_sizes(own, key)
            else:
                assert batch is not None
                self._arguments_of[key] = in_rows(own, batch.arguments, key)
        return self._arguments_of[key]

    def run_flat(self, values: list[UserObject]) -> list[UserObject]:
        """Calls the function with its arguments, flat, of the types that it takes."""
        return self._run_key(self.key_of(values), values)

    def _run_key(self, key: Key, values: list[UserObject]) -> list[object]:
        """Calls the function for a number of rows, or for sizes."""
        batch = self.entry.batch
        if batch is None or self._is_traced(values):
            return self._run(key, values)
        assert isinstance(key, int)
        return list(run_rows(batch, key, values, self._run))

    def _run(self, key: Key, values: list[UserObject]) -> list[UserObject]:
        """Calls the function, or its instance for the number of rows or the sizes."""
        is_traced = self._is_traced(values)
        given = [*values, *self.parameters.values()]
        if self._programs is not None and not is_traced:
            results = self._programs.run(self.entry.name, key, device_of(values), given)
            if results is not None:
                return results
        if is_traced:
            return list(call(self.function_of(key), *values))
        return compiled(self._taking_parameters(key), device_of(values)).run(given)

    def _is_traced(self, values: Sequence[UserObject]) -> bool:
        """Tells whether a call is part of a trace: by its arguments, or by its parameters."""
        return self._has_traced or any(type(x) is Tracer for x in values)

    def function_of(self, key: Key) -> Function:
        """Returns the function for a number of rows, or for sizes."""
        if isinstance(key, tuple):
            # The copy has captures in the order of their use, if it has any: here they are inputs.
            own = self.function
            taken = with_captures(own, len(own.inputs) + len(own.captures), ())
            return with_captures(instantiate_function(taken, key), len(own.inputs), own.captured)
        batch = self.entry.batch
        return self.function if batch is None else of_rows(self.function, batch, key)

    def _taking_parameters(self, key: Key) -> Function:
        """Returns the function with its parameters as arguments after the others."""
        if key not in self._whole:
            if len(self._whole) >= _MOST_KEYS:
                self._whole.clear()
            self._whole[key] = without_parameters(self.function_of(key), len(self.parameters))
        return self._whole[key]


def in_rows(
    values: Sequence[Argument], is_open: Sequence[bool], count: int
) -> tuple[Argument, ...]:
    """Returns arguments or results; those with rows get so many."""
    return tuple(
        Argument(v.name, type_of_rows(v.type, count)) if rows else v
        for v, rows in zip(values, is_open, strict=True)
    )


# Pullbacks ----------------------------------------------------------------------------------------


def pullback(function: Function, count: int) -> Function:
    """Returns the function of the arguments, followed by cotangents of the inexact results.

    Args:
        function: Its first captures are so many parameters, which the new function captures as
            well.
        count: Their number.
    """
    whole = embed_captures(without_parameters(function, count))
    split = len(whole.inputs) - count
    with Trace(f"{function.name}_vjp", "Vjp") as trace:
        arguments: list[Value] = [trace.add_input(v.type) for v in whole.inputs[:split]]
        given = {
            number: trace.add_input(v.type)
            for number, v in enumerate(whole.outputs)
            if dtypes.is_inexact(v.type.dtype)
        }
        parameters: list[Value] = [trace.add_input(v.type) for v in whole.inputs[split:]]
        active = [dtypes.is_inexact(x.type.dtype) for x in arguments] + [False] * count
        made = linearize(whole, [*arguments, *parameters], active)
        cotangents: list[Cotangent] = [
            given.get(number, Zero(whole.outputs[number].type))
            for number, is_active in enumerate(made.active_outputs)
            if is_active
        ]
        linear = [UndefinedPrimal(v.type) for v in made.linear.inputs]
        pulled = transpose(made.linear, [*linear, *made.linear.captured], cotangents)
        found = [instantiate(x) for x in pulled[: len(linear)] if x is not None]
        traced = embed_captures(trace.finish(found))
    return with_captures(traced, split + len(given), function.captured[:count])


def pullback_signature(signature: Signature) -> Signature:
    """Returns the signature of a function's pullback."""
    inexact = [a for a in signature.results if dtypes.is_inexact(a.type.dtype)]
    cotangents = tuple(Argument(f"ct_{a.name}", a.type) for a in inexact)
    results = tuple(
        Argument(f"ct_{a.name}", a.type)
        for a in signature.arguments
        if dtypes.is_inexact(a.type.dtype)
    )
    return Signature((*signature.arguments, *cotangents), results, is_named=True)
