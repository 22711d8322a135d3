"""instantiate: programs with symbolic dimensions, for given sizes of these dimensions.

The resulting program has only numbers in its types and parameters, so that no other pass, and not
the compiler, needs to handle symbols. The Python source is not needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from iree.compiler import ir

from axir.dialect.core.annotations import Extent, Param
from axir.dialect.core.errors import ParameterError
from axir.dialect.core.symbolic_dims import SymbolicDim, value_of
from axir.dialect.core.types import ShapedArray
from axir.dialect.program.derived_functions import transformation
from axir.dialect.program.equation import Equation
from axir.dialect.program.function import DeferredFunction, Function
from axir.dialect.program.function_tracing import Copy
from axir.dialect.program.rules import Results, Value
from axir.dialect.program.tracer import Trace
from axir.passes.framework.base import Pass
from axir.passes.framework.module_functions import replace_functions

Sizes = tuple[tuple[str, Extent], ...]


@dataclass(frozen=True)
class Instantiate(Pass):
    """Replaces symbolic dimensions in types and parameters by their sizes.

    Before::

        func.func @main(%x: tensor<?x3xf32, {dims = ["b"]}>) -> tensor<?x3xf32, {dims = ["2*b"]}> {
          %0 = "jaxpr.concatenate"(%x, %x) {dimension = 0 : i64} : ...

    After `instantiate{sizes={b=4}}`::

        func.func @main(%x: tensor<4x3xf32>) -> tensor<8x3xf32> {
          %0 = "jaxpr.concatenate"(%x, %x) {dimension = 0 : i64} : ...

    1. Inputs take the types that they have with these sizes.
    2. Ops are applied again, to values of such types, with parameters in which expressions are
       replaced by their values. So the rules of the ops compute the types of all other values.
    3. Functions that ops name are instantiated in the same way, each once.

    The extents of all names must be given, and be at least 1.
    """

    name: ClassVar[str] = "instantiate"
    sizes: Mapping[str, int] = field(default_factory=dict)

    def run(self, module: ir.Module) -> None:
        """Replaces all functions of the module."""
        sizes: Sizes = tuple(sorted(self.sizes.items()))
        for name, size in self.sizes.items():
            if type(size) is not int or size < 1:
                raise ParameterError(f"{name}={size!r} is no size.", "Sizes are at least 1.")

        def transform(functions: dict[str, Function]) -> dict[str, Function]:
            for function in functions.values():
                missing = sorted(symbols_of(function) - set(self.sizes))
                if missing:
                    raise ParameterError(
                        f"instantiate: the size of the dimension {missing[0]} is missing.",
                        "Write instantiate{sizes={b=8,t=128}}.",
                    )
            return {n: instantiate_function(f, sizes) for n, f in functions.items()}

        replace_functions(module, transform)


def symbols_of(function: Function) -> set[str]:
    """Returns the names of the symbolic dimensions of a function and of its callees."""
    return {name for extent in _open_extents(function) for name in extent.names()}


def computes_with_sizes(function: Function) -> bool:
    """Tells whether extents are anything but numbers and multiples of symbolic dimensions.

    With other extents, such as the minimum of a dimension and a number, a program may behave
    differently from some number of rows on.
    """
    return not all(map(_is_multiple, _open_extents(function)))


def _open_extents(function: Function) -> Iterator[SymbolicDim]:
    """Yields the symbolic extents in a function and in its callees, perhaps repeatedly."""
    pending, seen = [function], {function}
    while pending:
        current = pending.pop()
        for variable in (*current.inputs, *current.captures):
            yield from _extents_in(variable.type)
        for equation in current.equations:
            for result in equation.results:
                yield from _extents_in(result.type)
            for value in equation.params.values():
                yield from _extents_in(value)
        new = set(current.callees()) - seen
        seen |= new
        pending += new


def _extents_in(value: object) -> Iterator[SymbolicDim]:
    if isinstance(value, ShapedArray):
        value = value.shape
    if isinstance(value, tuple):
        for item in value:
            yield from _extents_in(item)
    elif type(value) is SymbolicDim:
        yield value


def _is_multiple(extent: SymbolicDim) -> bool:
    [*products] = extent.terms
    return len(products) == 1 and len(products[0]) == 1 and isinstance(products[0][0], str)


@transformation("instantiate")
def instantiate_function(function: Function, sizes: Sizes) -> Function:
    """Returns a function with symbolic dimensions replaced by sizes.

    Args:
        function: The function.
        sizes: Sizes by name: numbers, or extents of other symbolic dimensions.
    """
    with Trace(function.name, "Instantiate") as trace:
        copy = _Sized(trace, function, sizes)
        copy.add(function.equations)
        return trace.finish(copy.values_of(function.outputs))


class _Sized(Copy):
    """The values of a function's variables in a trace where extents are sizes."""

    __slots__ = ("_by_name", "_sizes")

    def __init__(self, trace: Trace, function: Function, sizes: Sizes):
        super().__init__(trace, function, ())
        self._sizes, self._by_name = sizes, dict(sizes)
        inputs = [
            (v, trace.add_input(type_of_sizes(v.type, self._by_name))) for v in function.inputs
        ]
        self.update(inputs)

    def _record(self, equation: Equation, operands: list[Value]) -> Results:
        params = {
            name: _of_sizes(x, self._by_name, self._sizes) for name, x in equation.params.items()
        }
        return self._trace.record(equation.primitive, operands, params)


def type_of_sizes(kind: ShapedArray, sizes: Mapping[str, Extent]) -> ShapedArray:
    """Returns a type with symbolic dimensions replaced by sizes."""
    if not kind.is_open:
        return kind
    return kind.update(shape=tuple([value_of(extent, sizes) for extent in kind.shape]))


def _of_sizes(value: object, by_name: Mapping[str, Extent], sizes: Sizes) -> Param:
    """Returns a parameter with symbolic dimensions replaced by sizes."""
    if type(value) is Function:
        return instantiate_function(value, sizes)
    if isinstance(value, DeferredFunction):
        deferred = value
        return DeferredFunction(value.name, lambda: instantiate_function(deferred.function, sizes))
    if type(value) is SymbolicDim:
        return value.value(by_name)
    if type(value) is ShapedArray:
        return type_of_sizes(value, by_name)
    if isinstance(value, tuple):
        items = [_of_sizes(item, by_name, sizes) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    return value
