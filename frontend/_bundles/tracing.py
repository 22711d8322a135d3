"""Traces functions for export: names arguments, takes parameters out, and treats rows one by one.

Elsewhere: the public functions (`axir.export`), tracing in general (`axir.jit`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple

from axir._arguments.arguments import to_value
from axir._arguments.symbolic_shapes import constraints_of, rows_in
from axir._devices.shape_dtype_struct import ShapeDtypeStruct
from axir._transforms.jit import jit
from axir._transforms.jit_function import JitFunction
from axir._transforms.stages import Lowered
from axir._trees import tree
from axir.dialect.core.annotations import Options, UserObject
from axir.dialect.core.array import ConcreteArray
from axir.dialect.core.errors import AxirError, ParameterError, UnexpectedTracerError
from axir.dialect.core.state import keeping_origins
from axir.dialect.core.symbolic.terms import SymbolicDimError
from axir.dialect.core.symbolic_dims import is_open as has_open
from axir.dialect.ops.shape.broadcasting import expand_dims
from axir.dialect.ops.shape.rearranging import squeeze
from axir.dialect.program.tracer import Tracer
from axir.dialect.text.signature import Signature
from axir.passes.transforms.instantiate import computes_with_sizes

from .batching import COUNTS, DependentRowsError, dependent, open_results
from .bound_arguments import Bound, parameter_names, signature_of, unbound
from .captures import Parametrized, names_in, parametrized
from .exported import Exported
from .manifest import Batch, FunctionEntry
from .open_sizes import open_of, under
from .row_proof import check_rows, explained
from .saving import is_function_name


class Traced(NamedTuple):
    """A traced function: its entry in the manifest, the function, and its structures.

    It also holds the reason that its leading dimension is not one of rows, if that was tried.
    """

    entry: FunctionEntry
    found: Parametrized
    in_tree: tree.TreeDef
    out_tree: tree.TreeDef
    refused: DependentRowsError | None = None

    def exported(self, found: Parametrized) -> Exported:
        """Returns the function, its parameters named as `found` names them."""
        # The functions of a bundle may together have renamed parameters.
        names = dict(zip(self.entry.parameters, found.parameters, strict=True))
        updates = tuple(name and names[name] for name in self.entry.updates)
        entry = replace(self.entry, parameters=tuple(found.parameters), updates=updates)
        made = Exported(entry, found.function, found.parameters, self.in_tree, self.out_tree)
        made.dependent_rows = self.refused
        return made


def trace(
    fun: Callable[..., object],
    args: tuple[object, ...],
    kwargs: dict[str, Options],
    name: str | None = None,
    checks_rows: bool = True,
    updates: Mapping[str, str] = MappingProxyType({}),
) -> Traced:
    """Traces a function for given arguments.

    Args:
        fun: The function, jitted or not.
        args: Arrays, or objects with a shape and a dtype, and the values of static arguments.
        kwargs: Those by keyword.
        name: Its name; by default the function's name.
        updates: Names of parameters, or a common prefix of several, and names of the results that
            are their new values.
        checks_rows: Whether to prove, with an open leading dimension, that rows are independent.

    Raises:
        UnexpectedTracerError: if it uses values of a trace that is going on.
        SymbolicDimError: if it uses an open dimension where a size must be known.
        ShapeError: if a dimension does not follow from the shapes of arguments.
    """
    called = _Called(fun, args, kwargs)
    leaves, in_tree = tree.flatten((called.args, called.kwargs))
    lowered, batch, refused = _lowered(called, leaves, in_tree, checks_rows)
    found = parametrized(lowered.function, names_in(called.function), called.parameters())
    signature = signature_of(found.function, in_tree, lowered.out_tree, list(called.names()))
    entry = FunctionEntry(
        name or _symbol(lowered.function.name),
        signature,
        tuple(found.parameters),
        called.donated(),
        batch,
        updates_of(signature, found.parameters, updates),
        open_of(found.function, signature),
    )
    return Traced(entry, found, in_tree, lowered.out_tree, refused)


class _Lowered(NamedTuple):
    """A traced function, and its rows if these are open and independent.

    It also holds the reason that its leading dimension is not one of rows, if that was tried.
    """

    lowered: Lowered
    batch: Batch | None = None
    refused: DependentRowsError | None = None


def _lowered(
    called: _Called, leaves: Sequence[object], in_tree: tree.TreeDef, checks_rows: bool
) -> _Lowered:
    """Returns the traced function.

    A single open leading dimension is one of rows if the function treats rows one by one; all
    others are symbolic dimensions of the program.
    """
    shapes = [x.shape for x in leaves if isinstance(x, ShapeDtypeStruct)]
    if not any(map(has_open, shapes)):
        return _Lowered(called.lower(called, leaves, in_tree))
    dimension, refused = rows_in(shapes), None
    if dimension is not None:
        is_open = [isinstance(x, ShapeDtypeStruct) and has_open(x.shape) for x in leaves]
        try:
            lowered, batch = _rows(called, leaves, in_tree, is_open, dimension.name, checks_rows)
        except DependentRowsError as error:
            refused = error
        except AxirError as error:  # a dimension of several rows may still work, see below
            refused = dependent(_name(called), f"one row is refused: {error.message}")
        else:
            if not (checks_rows and _number_matters(called, leaves, in_tree)):
                return _Lowered(lowered, batch)
            refused = dependent(
                lowered.function.name, "what it does depends on how many rows there are"
            )
    constraints = tuple([each.text for each in constraints_of(shapes)])
    try:
        lowered = called.lower(called, under(leaves, constraints), in_tree)
    except AxirError as error:
        raise error from refused
    return _Lowered(lowered, None, refused)


def _name(called: _Called) -> str:
    return getattr(called.function, "__name__", "the function")


def _number_matters(called: _Called, leaves: Sequence[object], in_tree: tree.TreeDef) -> bool:
    """Tells whether the program of any number of rows is not the same for each row.

    The proof about rows covers the programs traced for a few numbers of rows.

    Raises:
        SymbolicDimError: if the number of rows decides something in the user's Python.
    """
    try:
        lowered = called.lower(called, leaves, in_tree)
    except SymbolicDimError as error:
        if error.is_choice_of_user:
            raise
    except AxirError:
        pass  # the traces for fixed numbers serve
    else:
        return computes_with_sizes(lowered.function)
    return False


def updates_of(
    signature: Signature, parameters: Mapping[str, ConcreteArray], updates: Mapping[str, str]
) -> tuple[str | None, ...]:
    """Returns for each result the parameter that it is the new value of, or None.

    Args:
        signature: The function's arguments and results.
        parameters: Its parameters, by name.
        updates: As for `trace`.

    Raises:
        ParameterError: if the parameter, or a result of its type, is absent.
    """
    kinds = {value.name: value.type for value in signature.results}
    found: dict[str, str] = {}
    for prefix, result in updates.items():
        named = [n for n in parameters if n == prefix or n.startswith((f"{prefix}[", f"{prefix}."))]
        if not named:
            raise ParameterError(
                f"export: updates names a parameter {prefix!r}, which there is not.",
                f"The parameters are {', '.join(parameters) or 'none'}: bind arguments with "
                "functools.partial to make them parameters.",
            )
        for name in named:
            target = result + name[len(prefix) :]
            kind, wanted = kinds.get(target), parameters[name].type
            if kind is None or (kind.shape, kind.dtype) != (wanted.shape, wanted.dtype):
                raise ParameterError(
                    f"export: there is no result {target!r} of type {wanted} for the parameter "
                    f"{name!r}.",
                    f"The results are {', '.join(f'{n}: {t}' for n, t in kinds.items())}.",
                )
            found[target] = name
    return tuple(found.get(name) for name in kinds) if found else ()


def _symbol(name: str) -> str:
    """Returns the symbol of a single function: its name, or `main` if it is a lambda."""
    return name if is_function_name(name) else "main"


class _Called:
    """A function with the arguments that it is exported for: static and bound ones taken out.

    Attributes:
        function: The user's function.
        args: The positional arguments that are neither static nor bound.
        kwargs: The same for arguments by keyword.
    """

    def __init__(
        self, fun: Callable[..., object], args: tuple[object, ...], kwargs: dict[str, object]
    ):
        fun, self.bound = unbound(fun)
        jitted = fun if isinstance(fun, JitFunction) else jit(fun)
        self.function = jitted._function
        self._jitted = jitted
        first = len(self.bound.args)
        static = {n if n >= 0 else n + first + len(args) for n in jitted._static.numbers}
        self._numbers = [n for n in range(len(args)) if n + first not in static]
        self._count = len(args)
        self._fixed = {n: args[n] for n in range(len(args)) if n + first in static}
        self._named = {k: v for k, v in kwargs.items() if k in jitted._static.names}
        self.args = tuple(args[n] for n in self._numbers)
        self.kwargs = {k: v for k, v in kwargs.items() if k not in self._named}
        # Without the function's attributes: a function that was loaded has `parameters`.
        functools.update_wrapper(self, self.function, updated=())

    def __call__(
        self,
        args: tuple[object, ...],
        kwargs: dict[str, object],
        bound: Bound,
    ) -> UserObject:
        """Calls the function with values of the arguments and of the bound ones."""
        values = {**self._fixed, **dict(zip(self._numbers, args, strict=True))}
        given = [values[n] for n in range(self._count)]
        return self.function(*bound.args, *given, **bound.kwargs, **self._named, **kwargs)

    def lower(
        self, function: Callable[..., object], leaves: Sequence[object], in_tree: tree.TreeDef
    ) -> Lowered:
        """Traces a function of arguments and bound arguments for the types of leaves.

        Raises:
            UnexpectedTracerError: if it uses values of a trace that is going on.
        """
        args, kwargs = in_tree.unflatten(leaves)
        lowered = jit(function).lower(args, kwargs, self.bound)
        if any(type(x) is Tracer for x in lowered.function.captured):
            raise UnexpectedTracerError(
                f"export: {lowered.function.name!r} uses values of a function that is being "
                "traced.",
                "Export outside of jit, grad and vmap, or pass these values as arguments.",
            )
        return lowered

    def parameters(self) -> dict[str, UserObject]:
        """Returns the arrays that are bound, by name."""
        return self.bound.by_name(self.function)

    def names(self) -> Iterator[str]:
        """Yields the name of each leaf: the parameter's name, and the path below it."""
        positional, rest = parameter_names(self.function)
        first = len(self.bound.args)
        for number, value in zip(self._numbers, self.args, strict=True):
            beyond = number + first - len(positional)
            name = positional[number + first] if beyond < 0 else f"{rest}[{beyond}]"
            yield from (name + path for path in tree.paths(value))
        for name in sorted(self.kwargs):
            yield from (name + path for path in tree.paths(self.kwargs[name]))

    def donated(self) -> tuple[int, ...]:
        """Returns the numbers of the leaves that results may overwrite."""
        counted = tree.structure((self.args, self.kwargs))
        numbers: UserObject = counted.unflatten(range(counted.num_leaves))
        args, kwargs = numbers
        found: list[int] = []
        for number, value in zip(self._numbers, args, strict=True):
            if number + len(self.bound.args) in self._jitted._donate_argnums:
                found += tree.leaves(value)
        for name in self._jitted._donate_argnames:
            found += tree.leaves(kwargs.get(name, ()))
        return tuple(found)


def _rows(
    called: _Called,
    leaves: Sequence[UserObject],
    in_tree: tree.TreeDef,
    is_open: Sequence[bool],
    symbol: str,
    checks_rows: bool,
) -> tuple[Lowered, Batch]:
    """Traces a function for one row of the leaves that have rows."""

    def sized(count: int) -> list[object]:
        return [_sized(x, count) if rows else x for x, rows in zip(leaves, is_open, strict=True)]

    with keeping_origins():
        one, few, many = (
            called.lower(called, sized(count), in_tree).function for count in (1, *COUNTS)
        )
    bound = (False,) * (len(one.inputs) - len(is_open))
    try:
        results = open_results(few.name, *(f.output_types for f in (one, few, many)))
    except DependentRowsError as error:
        raise explained(error, (few, many), one, (*is_open, *bound)) from None

    @functools.wraps(called.function)
    def row(args: tuple[object, ...], kwargs: dict[str, object], bound: Bound) -> UserObject:
        flat = tree.leaves((args, kwargs))
        rows = [expand_dims(x, (0,)) if r else x for x, r in zip(flat, is_open, strict=True)]
        given: UserObject = in_tree.unflatten(rows)
        args, kwargs = given
        outputs, out_tree = tree.flatten(called(args, kwargs, bound))
        values = [to_value(x, lambda: "A result") for x in outputs]
        return out_tree.unflatten(
            [squeeze(x, (0,)) if r else x for x, r in zip(values, results, strict=True)]
        )

    single = [_sized(x) if rows else x for x, rows in zip(leaves, is_open, strict=True)]
    lowered = called.lower(row, single, in_tree)
    batch = Batch(symbol, tuple(is_open), tuple(results))
    if checks_rows:
        check_rows((few, many), one, replace(batch, arguments=(*batch.arguments, *bound)))
    return lowered, batch


def _sized(x: ShapeDtypeStruct, count: int | None = None) -> ShapeDtypeStruct:
    """Returns a type with so many rows, or without the dimension."""
    shape = x.shape[1:] if count is None else (count, *x.shape[1:])
    return ShapeDtypeStruct(shape, x.dtype, weak_type=x.weak_type)
