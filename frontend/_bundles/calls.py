"""Calls of exported functions: for so many rows, or for sizes of open dimensions.

Elsewhere: what an exported function is (`exported.py`), what sizes a call has (`open_sizes.py`),
how rows are filled up (`batching.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from axir._trees import tree
from axir.dialect.core.annotations import UserObject
from axir.dialect.core.array import ConcreteArray
from axir.dialect.ops.calls.jit_call import call
from axir.dialect.program.function import Function
from axir.dialect.program.tracer import Tracer
from axir.dialect.text.signature import Argument
from axir.passes.transforms.instantiate import instantiate_function
from axir.runtime.calls.compiled_function import compiled
from axir.runtime.spmd.placed_calls import device_of

from .batching import of_rows, row_count, run_rows, type_of_rows
from .captures import with_captures, without_parameters
from .facts import Facts
from .manifest import FunctionEntry, Key
from .open_sizes import in_sizes, sizes_of_call
from .programs import Programs

# Numbers of rows, or sizes, of which functions are remembered.
_MOST_KEYS = 64


class Calls(Facts):
    """The part of an exported function that runs it.

    Args:
        entry: Its name, arguments, results and parameters.
        function: The traced function, or what reads it when it is first asked for.
        parameters: The values of `entry.parameters`, by name.
        in_tree: Structure of `(args, kwargs)`.
        out_tree: Structure of the result.
        programs: What is compiled of it.

    Attributes:
        entry: What a bundle's manifest says of it.
        parameters: The arrays that it captured, by name; what is small is part of the program.
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
        self.in_tree = in_tree
        self.out_tree = out_tree
        self._function = function
        self._programs = programs
        # By number of rows or sizes, the function that takes the parameters after its arguments:
        # one for all values of the parameters.
        self._whole: dict[Key, Function] = {}
        # The arguments with so many rows, or of these sizes.
        self._arguments_of: dict[Key, tuple[Argument, ...]] = {}

    @property
    def function(self) -> Function:
        """The traced function; its captures are the parameters."""
        if not isinstance(self._function, Function):
            self._function = self._function()
        return self._function

    def key_of(self, values: Sequence[object]) -> Key:
        """Returns how many rows, or which sizes, the arguments of a call have.

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
        """Returns the arguments with so many rows, or of these sizes."""
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
        """Calls the function with so many rows, or for sizes."""
        batch = self.entry.batch
        if batch is None or any(type(x) is Tracer for x in values):
            return self._run(key, values)
        assert isinstance(key, int)
        return list(run_rows(batch, key, values, self._run))

    def _run(self, key: Key, values: list[UserObject]) -> list[UserObject]:
        """Calls the function, or that of so many rows or sizes if these are open."""
        is_traced = any(type(x) is Tracer for x in values)
        given = [*values, *self.parameters.values()]
        if self._programs is not None and not is_traced:
            results = self._programs.run(self.entry.name, key, device_of(values), given)
            if results is not None:
                return results
        if is_traced:
            return list(call(self.function_of(key), *values))
        return compiled(self._taking_parameters(key), device_of(values)).run(given)

    def function_of(self, key: Key) -> Function:
        """Returns the function of so many rows, or for sizes."""
        if isinstance(key, tuple):
            made = instantiate_function(self.function, key)
            return with_captures(made, len(self.function.inputs), self.function.captured)
        batch = self.entry.batch
        return self.function if batch is None else of_rows(self.function, batch, key)

    def _taking_parameters(self, key: Key) -> Function:
        """Returns the function whose parameters are arguments after the others."""
        if key not in self._whole:
            if len(self._whole) >= _MOST_KEYS:
                self._whole.clear()
            self._whole[key] = without_parameters(self.function_of(key), len(self.parameters))
        return self._whole[key]


def in_rows(
    values: Sequence[Argument], is_open: Sequence[bool], count: int
) -> tuple[Argument, ...]:
    """Returns arguments or results with so many rows where they have any."""
    return tuple(
        Argument(v.name, type_of_rows(v.type, count)) if rows else v
        for v, rows in zip(values, is_open, strict=True)
    )
