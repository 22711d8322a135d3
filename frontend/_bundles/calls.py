"""Calls of exported functions: for a number of rows, or for sizes of open dimensions.

Elsewhere: exported functions (`exported.py`), the sizes in a call (`open_sizes.py`), padding rows
(`batching.py`).
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
