"""`ModelBuilder`: exported functions as the methods of a C++ model.

Elsewhere: the text of C++ (`axir.runtime.cpp`).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from axir._bundles.exported import Exported
from axir._bundles.manifest import Batch, Sizes
from axir._bundles.open_sizes import name_of_sizes
from axir.dialect.core.annotations import HostArray, UserObject
from axir.dialect.core.context import describe_location
from axir.dialect.core.errors import ParameterError
from axir.dialect.core.extended_dtypes import words_of
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.calls.callbacks import Callback as UserCallback
from axir.dialect.program.equation import Var
from axir.dialect.program.function import Function
from axir.dialect.program.function_rules import HostCall
from axir.dialect.text.signature import Argument
from axir.passes.fuse.fuse_programs import LARGE_BYTES
from axir.runtime.cpp.emitting.names import argument_name, identifier, unique_names
from axir.runtime.cpp.program.interface import (
    Callback,
    Compiled,
    Given,
    Interface,
    Kept,
    Method,
    Parameter,
)

# Operations that change some elements of their first operand, and keep the others.
_PARTIAL = frozenset(
    (
        *("dynamic_update_slice", "scatter", "scatter_add", "scatter_mul"),
        *("scatter_min", "scatter_max", "scatter_apply"),
    )
)
_CONTROL_FLOW = frozenset(("cond", "scan", "while"))


def updates_in_place(function: Function, result: int, argument: Var) -> bool:
    """Tells whether a result is a large argument with some elements changed.

    This is done only for functions that cannot fail half way, because a failed call must leave the
    state as it was. A function that calls users' functions, or allocates memory as it runs, writes
    to fresh memory.
    """
    if _may_fail(function):
        return False
    made_by = {y: equation for equation in function.equations for y in equation.results}
    value = function.outputs[result]
    if value.type.size * value.type.dtype.itemsize < LARGE_BYTES:
        return False
    is_changed = False
    while value is not argument:
        equation = made_by.get(value)
        if equation is None or equation.primitive.name not in _PARTIAL:
            return False
        value = equation.operands[0]
        is_changed = True
    return is_changed


def _may_fail(function: Function) -> bool:
    """Tells whether a function has control flow, or calls users' functions."""
    return any(
        equation.primitive.name in _CONTROL_FLOW
        or any(isinstance(value, UserCallback) for value in equation.params.values())
        for equation in function.equations
    ) or any(map(_may_fail, function.callees()))


# Models -------------------------------------------------------------------------------------------


# One step of a path into a tree: `['w']`, `[0]`, `.mean`.
_STEP = re.compile(r"\[[^\]]*\]|\.\w+")


class ModelBuilder:
    """Makes the interface of a model.

    Args:
        name: The model's name.
        exported: Functions by the names of methods. Parameters that one of them replaces are the
            model's state.
        throws: As for `Interface`.
        sizes: By the names of methods, the values of dimensions that were open.

    Attributes:
        functions: The functions to compile, by symbol: each function, or one for each number of
            rows.
        donated: By symbol, the arguments that are donated, with the results that take their memory.

    Raises:
        ParameterError: if a function takes any number of rows, and names no number to compile it
            for.
    """

    def __init__(
        self,
        name: str,
        exported: Mapping[str, Exported],
        throws: bool,
        sizes: Mapping[str, Sizes] | None = None,
    ):
        self.name = name
        self._sizes = sizes or {}
        self.throws = throws
        replaced = {label for each in exported.values() for label in each.entry.updates if label}
        self.states: list[Parameter] = []
        self.parameters: list[Parameter] = []
        self._places: dict[str, Kept] = {}
        found = {label: x for each in exported.values() for label, x in each.parameters.items()}
        # Names of members in the models' own code.
        taken = ["callbacks", "kernels", "options", "parameters", "workspace"]
        names = unique_names((identifier(label, "parameter") for label in found), taken)
        for own, (label, value) in zip(names, found.items(), strict=True):
            kept = self.states if label in replaced else self.parameters
            self._places[label] = Kept(len(kept), label in replaced)
            host = words_of(value.host())
            kept.append(Parameter(own, label, value.type.words, host))
        self._taken = taken + names
        self._anonymous: dict[tuple[str, tuple[int, ...], bytes], Kept] = {}
        self.functions: dict[str, Function] = {}
        self.donated: dict[str, dict[int, int]] = {}
        self._symbols = list(exported)
        self._methods = [self._method(key, value) for key, value in exported.items()]

    def interface(self, calls: Sequence[HostCall]) -> Interface:
        """Returns the interface, given the callbacks that the functions call."""
        return Interface(
            self.name,
            tuple(self._methods),
            tuple(self.parameters),
            tuple(self.states),
            _callbacks(calls),
            self.throws,
        )

    def _method(self, name: str, exported: Exported) -> Method:
        batch, signature = exported.batch, exported.signature
        labels = exported.argument_names
        names = unique_names(map(argument_name, labels))
        is_open = batch.arguments if batch else ()
        arguments = list(map(self._given, names, signature.arguments, self._rows(batch, is_open)))
        updates = exported.entry.updates or (None,) * len(signature.results)
        paths = _short_paths(exported.result_names, [x is not None for x in updates])
        is_open = batch.results if batch else ()
        given = [path for path, x in zip(paths, updates, strict=True) if x is None]
        result_names = iter(unique_names(map(identifier, given), names))
        outputs: list[Given | Kept] = [
            self._given(next(result_names), value, rows) if update is None else self._places[update]
            for value, update, rows in zip(
                signature.results, updates, self._rows(batch, is_open), strict=False
            )
        ]
        programs = tuple(self._programs(name, exported))
        if batch is None:  # padding or splitting rows writes elsewhere
            arguments = self._donate(name, exported, arguments, outputs)
            outputs = self._replace_in_place(name, programs[0], len(arguments), outputs)
        where = describe_location(exported.function.location)
        sizes = self._sizes.get(name, ())
        label = exported.fun_name.removesuffix(name_of_sizes("", sizes))
        return Method(name, label, tuple(arguments), tuple(outputs), programs, where, sizes)

    def _given(self, name: str, value: Argument, rows: str | None) -> Given:
        return Given(name, value.name, value.type.words, rows=rows)

    def _rows(self, batch: Batch | None, is_open: Sequence[bool]) -> Iterator[str | None]:
        """Yields for each array the name of its number of rows, None if that is not open."""
        if batch is None:
            return itertools.repeat(None)
        return (batch.symbol if rows else None for rows in is_open)

    def _programs(self, name: str, exported: Exported) -> Iterator[Compiled]:
        """Records the functions to be compiled, and yields them."""
        batch = exported.batch
        if batch is None:
            yield self._program(name, exported)
            return
        if not batch.sizes:
            raise ParameterError(
                f"to_cpp: {name!r} takes any number of rows, but kernels are for fixed numbers.",
                f"Name some, of which calls take the next larger: {name}.with_rows(1, 8, 64), "
                "or --batch 1,8,64.",
            )
        symbols = unique_names([f"{name}_of_{count}" for count in batch.sizes], self._symbols)
        self._symbols += symbols
        for symbol, count in zip(symbols, batch.sizes, strict=True):
            yield self._program(symbol, exported.of_rows(count), count)

    def _program(self, symbol: str, exported: Exported, rows: int = 0) -> Compiled:
        function = exported.function
        self.functions[symbol] = function
        self.donated[symbol] = {}
        kept = [self._places[label] for label in exported.parameters]
        kept += map(self._constant, function.captured[len(kept) :])
        return Compiled(symbol, tuple(kept), rows)

    def _donate(
        self,
        name: str,
        exported: Exported,
        arguments: list[Given],
        outputs: Sequence[Given | Kept],
    ) -> list[Given]:
        """Pairs each donated argument with the first result of its type that has no pair yet."""
        pairs = self.donated[name]
        for number in exported.entry.donated:
            x = arguments[number]
            for index, y in enumerate(outputs):
                is_free = isinstance(y, Given) and index not in pairs.values()
                if is_free and _is_same(y.type, x.type):  # type: ignore[union-attr]
                    pairs[number] = index
                    arguments[number] = replace(x, donated_to=index)
                    break
        return arguments

    def _replace_in_place(
        self, name: str, program: Compiled, first: int, outputs: Sequence[Given | Kept]
    ) -> list[Given | Kept]:
        """Pairs parts of the state with new values that may be written over them.

        Args:
            name: The symbol of the function.
            program: Its compiled form.
            first: The number of its first argument that the model keeps.
            outputs: Its results.
        """
        function, pairs = self.functions[name], self.donated[name]
        found = list(outputs)
        for index, x in enumerate(outputs):
            if isinstance(x, Kept) and x in program.kept:
                number = program.kept.index(x)
                if updates_in_place(function, index, function.captures[number]):
                    pairs[first + number] = index
                    found[index] = replace(x, is_in_place=True)
        return found

    def _constant(self, value: UserObject) -> Kept:
        """Returns the place of an array without a name; equal arrays share one."""
        host: HostArray = words_of(value.host())
        key = (str(host.dtype), host.shape, np.ascontiguousarray(host).tobytes())
        place = self._anonymous.get(key)
        if place is None:
            name = unique_names([f"constant_{len(self._anonymous)}"], self._taken)[0]
            self._taken.append(name)
            place = self._anonymous[key] = Kept(len(self.parameters), False)
            self.parameters.append(Parameter(name, name, value.type.words, host))
        return place


def _short_paths(labels: Sequence[str], replaced: Sequence[bool]) -> list[str]:
    """Returns the paths of results, without the common prefix of those that replace no state.

    In `(params, {"loss": loss})` the loss is called `loss` if the parameters are state.
    """
    steps = [_STEP.findall(label.removeprefix("result")) for label in labels]
    given = [path for path, is_state in zip(steps, replaced, strict=True) if not is_state]
    first = given[0][:1] if given and any(replaced) else []
    if first and first[0][1:-1].isdigit() and all(path[:1] == first for path in given):
        steps = [path[1:] for path in steps]
    return ["".join(path) for path in steps]


def _is_same(a: ShapedArray, b: ShapedArray) -> bool:
    return a.shape == b.shape and a.dtype == b.dtype


def _callbacks(calls: Sequence[HostCall]) -> tuple[Callback, ...]:
    """Returns the callbacks under the names of their functions, numbered where these repeat."""
    names: dict[tuple[str, tuple[ShapedArray, ...], tuple[ShapedArray, ...]], str] = {}
    taken: list[str] = []
    found = []
    for call in calls:
        operands = tuple(t.words for t in call.operand_types)
        results = tuple(t.words for t in call.result_types)
        key = (call.name, operands, results)
        if key not in names:
            name = identifier(call.name, "callback")
            names[key] = unique_names([name], taken)[0]
            taken.append(names[key])
        found.append(Callback(names[key], operands, results))
    return tuple(found)
