"""The `raise-stablehlo` pass: from StableHLO of any source to the jaxpr dialect."""

from __future__ import annotations

from types import MappingProxyType
from typing import ClassVar, NamedTuple

from iree.compiler import ir

from axir.dialect.program.function import Function
from axir.dialect.program.module_writer import embed_captures, write_into
from axir.dialect.text.foreign_signatures import names_of
from axir.dialect.text.signature import Argument, Signature, annotate, default_names
from axir.passes.framework.base import Pass

from .module import Shapes, raise_module


class RaiseStableHLO(Pass):
    """Raises StableHLO and CHLO to jaxpr ops, so that the module can be transformed.

    Algorithm:
        1. Raise each public function and its callees: one rule per operation, in order, with
           locations kept. Small functions are inlined, others become calls.
        2. Reductions, windows and scatters with one operation in their region become ops for this
           operation; others take their region as a function. Loops that count to a known number
           become scans.
        3. Give arguments and results the names that JAX writes, if all have a name.

    Before:
        ```mlir
        %0 = "stablehlo.sine"(%x) : (tensor<3xf32>) -> tensor<3xf32>
        ```
    After:
        ```mlir
        %0 = "jaxpr.sin"(%x) : (tensor<3xf32>) -> tensor<3xf32>
        ```

    Preconditions:
        Shapes are static, and the program is for one device.
    """

    name: ClassVar[str] = "raise-stablehlo"

    def run(self, module: ir.Module) -> None:
        """Replaces the functions of the module by functions of the jaxpr dialect."""
        functions = raise_functions(module)
        for view in list(module.body.operations):
            view.operation.erase()
        write_into(module, {s: embed_captures(f.function) for s, f in functions.items()})
        for symbol, raised in functions.items():
            if raised.signature.is_named:
                annotate(module, symbol, raised.signature)


class RaisedFunction(NamedTuple):
    """A function of StableHLO that was raised.

    Attributes:
        function: The raised function; weights are its captures.
        signature: Names and types of its arguments and results.
        weights: Names of weights, by the identities of the arrays.
    """

    function: Function
    signature: Signature
    weights: dict[int, str]


def raise_functions(
    module: ir.Module, shapes: Shapes = MappingProxyType({})
) -> dict[str, RaisedFunction]:
    """Returns the public functions of a module of StableHLO, with names; see `raise_module`."""
    raised = raise_module(module, shapes)
    found = {}
    for symbol, function in raised.functions.items():
        arguments, results = names_of(module, symbol)
        given = tuple(map(Argument, arguments, function.input_types))
        made = tuple(map(Argument, results, function.output_types))
        is_named = arguments != default_names("arg", len(given))
        signature = Signature(given, made, is_named=is_named)
        found[symbol] = RaisedFunction(function, signature, raised.weights)
    return found
