"""The `lower-to-stablehlo` pass: from the jaxpr dialect to portable StableHLO.

Each op's `lower` rule writes its StableHLO; functions that calls name become private functions,
once each. Random keys become their words, uint32 along one more axis at the end. Elsewhere:
rewrites of operations that IREE does not support or compiles wrongly (`legalize/`).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.builders.stablehlo.extents import EXTENT
from axir.dialect.core.annotations import Returning
from axir.dialect.core.context import context
from axir.dialect.core.errors import MissingRuleError
from axir.dialect.core.extended_dtypes import words_of
from axir.dialect.core.symbolic.terms import SymbolicDimError
from axir.dialect.core.symbolic_dims import names_of
from axir.dialect.core.types import ShapedArray, type_of_mlir
from axir.dialect.program.equation import Equation, Var
from axir.dialect.program.function import Function
from axir.dialect.program.function_rules import HOST, HostCall, HostFunction
from axir.dialect.program.primitive import primitive_of
from axir.dialect.program.walk import Environment
from axir.passes.framework.base import Pass
from axir.passes.framework.module_functions import replace_with_module

from . import open_modules
from .instantiate import symbols_of
from .lowered_elements import computes_wide, moves_keys, on_wide_elements, on_words

# Mark of an argument with memory that the program may overwrite.
DONATED = "axir.donated"


class _EquationLowering:
    """The `LoweringContext` of an op (`axir.dialect.program.rules`)."""

    __slots__ = ("_module", "platform", "primitive", "types_in", "types_out")

    def __init__(self, module: _ModuleLowering, equation: Equation):
        self._module = module
        self.platform = module.platform
        self.primitive = equation.primitive
        self.types_in = [v.type for v in equation.operands]
        self.types_out = [v.type for v in equation.results]

    @property
    def avals_in(self) -> list[ShapedArray]:
        """Types of the operands, under JAX's name."""
        return self.types_in

    @property
    def avals_out(self) -> list[ShapedArray]:
        """Types of the results, under JAX's name."""
        return self.types_out

    @property
    def module_context(self) -> _EquationLowering:
        """This context, under the name by which rules written for JAX access it."""
        return self

    def add_keepalive(self, kept: object) -> None:
        """Accepts a keepalive of `mlir.emit_python_callback`; programs hold callbacks anyway."""

    @property
    def allows_host_calls(self) -> bool:
        """Whether the code will run only in this process, and may call back into it."""
        return self._module.host_functions is not None and not self._module.is_portable

    @property
    def mesh_axes(self) -> Sequence[tuple[Hashable, int]] | None:
        """Names and extents of the axes of the mesh that runs the code; None without a mesh."""
        return self._module.mesh_axes

    @property
    def allows_callbacks(self) -> bool:
        """Whether the code may call functions of the user; a C++ host provides its own ones."""
        return self._module.host_functions is not None

    def host_call(
        self,
        function: HostFunction,
        values: Sequence[ir.Value],
        result_types: Sequence[ShapedArray],
        name: str = "callback",
        keeps_results: bool = False,
    ) -> list[ir.Value]:
        """Calls a Python function when the compiled code runs; see `allows_host_calls`."""
        operand_types = tuple(type_of_mlir(v.type) for v in values)
        symbol = self._module.import_host_function(
            HostCall(function, operand_types, tuple(result_types), name, keeps_results)
        )
        return hlo.call(symbol, list(values), [t.mlir for t in result_types])

    def call(self, function: Function, *values: ir.Value) -> list[ir.Value]:
        """Calls a function, which is lowered only once."""
        symbol = self._module.symbol_of(function)
        known = hlo.current_names()
        sizes = [known[name] for name in self._module.names_of(function)]
        return hlo.call(symbol, [*sizes, *values], [v.type.words.mlir for v in function.outputs])

    def inline(self, function: Function, *values: ir.Value) -> list[ir.Value]:
        """Inlines the ops of a function as the body of a region."""
        return self._module.lower_body(function, values)


class _Lowered(Environment):
    """MLIR values of a function's variables; constants are written where they are first used."""

    __slots__ = ()

    def __missing__(self, variable: Var) -> ir.Value:
        constant = super().__missing__(variable)
        value = self[variable] = hlo.constant(words_of(constant.host()))
        return value


class _ModuleLowering:
    """Lowers functions into one module."""

    def __init__(
        self,
        module: ir.Module,
        platform: str,
        donated: Sequence[int] = (),
        host_functions: list[HostCall] | None = None,
        is_portable: bool = False,
        mesh_axes: Sequence[tuple[Hashable, int]] | None = None,
        allows_open: bool = False,
    ):
        self.module = module
        self._allows_open = allows_open
        self.mesh_axes = mesh_axes
        self.is_portable = is_portable
        self.donated = donated
        self.host_functions = host_functions
        self.platform = platform
        self.symbols: dict[str, str] = {}
        self.pending: list[tuple[Function, str, bool]] = []
        self.taken: set[str] = set()

    def add(self, function: Function, symbol: str, *, is_public: bool) -> None:
        self.taken.add(symbol)
        self.symbols[function.symbol_name] = symbol
        self.pending.append((function, symbol, is_public))

    def symbol_of(self, function: Function) -> str:
        known = self.symbols.get(function.symbol_name)
        if known is not None:
            return known
        symbol, number = function.name, 0
        while symbol in self.taken:
            number += 1
            symbol = f"{function.name}_{number}"
        self.add(function, symbol, is_public=False)
        return symbol

    def import_host_function(self, call: HostCall) -> str:
        """Declares one more host function, and returns its symbol."""
        assert self.host_functions is not None
        symbol = f"{HOST}.callback_{len(self.host_functions)}"
        self.host_functions.append(call)
        function_type = ir.FunctionType.get(
            [t.mlir for t in call.operand_types], [t.mlir for t in call.result_types]
        )
        ir.Operation.create(
            "func.func",
            attributes={
                "sym_name": ir.StringAttr.get(symbol),
                "function_type": ir.TypeAttr.get(function_type),
                "sym_visibility": ir.StringAttr.get("private"),
            },
            regions=1,
            ip=ir.InsertionPoint(self.module.body),
        )
        return symbol

    def run(self) -> None:
        while self.pending:
            self.lower_function(*self.pending.pop(0))

    def names_of(self, function: Function) -> list[str]:
        """Returns the names of open dimensions; their sizes are a function's first arguments."""
        return sorted(symbols_of(function)) if self._allows_open else []

    def lower_function(self, function: Function, symbol: str, is_public: bool) -> None:
        if not self._allows_open:
            variables = (*function.inputs, *function.captures)
            check_sizes_known(function.name, [v.type for v in variables])
        names = self.names_of(function)
        if names and is_public:
            self._lower_entry(function, symbol, names)
            return
        kinds = [ShapedArray((), EXTENT)] * len(names)
        kinds += [v.type.words for v in (*function.inputs, *function.captures)]
        given: list[ir.Attribute] = open_modules.size_attributes(names)
        given += [ir.DictAttr.get({})] * (len(kinds) - len(names))
        if is_public:
            mark = ir.DictAttr.get({DONATED: ir.UnitAttr.get()})
            given = [mark if i in self.donated else x for i, x in enumerate(given)]

        def write(*values: ir.Value) -> list[ir.Value]:
            sizes, rest = values[: len(names)], values[len(names) :]
            if not names:
                return self.lower_body(function, rest)
            with hlo.computing_extents(dict(zip(names, sizes, strict=True))):
                return self.lower_body(function, rest)

        self._write_function(function, symbol, is_public, kinds, given, write)

    def _lower_entry(self, function: Function, symbol: str, names: Sequence[str]) -> None:
        """Writes a public function of arrays that calls the function of sizes and arrays."""
        body = f"{symbol}_of_sizes"
        while body in self.taken:
            body += "_"
        self.add(function, body, is_public=False)
        kinds = [v.type.words for v in (*function.inputs, *function.captures)]
        given = [open_modules.open_attribute(kind) for kind in kinds]
        for number in self.donated:
            given[number][DONATED] = ir.UnitAttr.get()

        def write(*values: ir.Value) -> list[ir.Value]:
            sizes = open_modules.write_entry(names, kinds, values)
            results = [v.type.words.mlir for v in function.outputs]
            return hlo.call(body, [*sizes, *values], results)

        self._write_function(
            function, symbol, True, kinds, list(map(ir.DictAttr.get, given)), write
        )

    def _write_function(
        self,
        function: Function,
        symbol: str,
        is_public: bool,
        kinds: Sequence[ShapedArray],
        given: Sequence[ir.Attribute],
        write: Returning[list[ir.Value]],
    ) -> None:
        arguments = [kind.mlir for kind in kinds]
        results = [v.type.words.mlir for v in function.outputs]
        attributes: dict[str, ir.Attribute] = {
            "sym_name": ir.StringAttr.get(symbol),
            "function_type": ir.TypeAttr.get(ir.FunctionType.get(arguments, results)),
        }
        if not is_public:
            attributes["sym_visibility"] = ir.StringAttr.get("private")
        if any(map(len, map(ir.DictAttr, given))):
            attributes["arg_attrs"] = ir.ArrayAttr.get(list(given))
        op = ir.Operation.create(
            "func.func",
            attributes=attributes,
            regions=1,
            loc=function.location,
            ip=ir.InsertionPoint(self.module.body),
        )
        locations = [function.location] * len(arguments)
        block = ir.Block.create_at_start(op.regions[0], arguments, locations)
        with ir.InsertionPoint(block), function.location:
            ir.Operation.create("func.return", operands=write(*block.arguments))

    def lower_body(self, function: Function, values: Sequence[ir.Value]) -> list[ir.Value]:
        lowered = _Lowered.of(function, values)
        for equation in function.equations:
            with equation.location:
                results = self.lower_equation(equation, lowered.values_of(equation.operands))
            lowered.update(zip(equation.results, results, strict=True))
        return lowered.values_of(function.outputs)

    def lower_equation(self, equation: Equation, operands: list[ir.Value]) -> list[ir.Value]:
        primitive = primitive_of(equation)
        if moves_keys(equation):
            return self.lower_body(on_words(equation), operands)
        if computes_wide(equation):
            return self.lower_body(on_wide_elements(equation), operands)
        if primitive.lower is None:
            raise MissingRuleError(
                f"MLIR translation rule for primitive '{primitive.name}' not found for platform "
                f"{self.platform}",
                f"Define it with mlir.register_lowering({primitive.name}, rule).",
            )
        results = primitive.lower(_EquationLowering(self, equation), *operands, **equation.params)
        results = [results] if isinstance(results, ir.Value) else list(results)
        for value, variable in zip(results, equation.results, strict=True):
            if not isinstance(value, ir.Value):
                raise MissingRuleError(
                    f"The MLIR translation rule of '{primitive.name}' gave {value!r}, not a value.",
                    "Return operation.result, or operation.results.",
                )
            wanted = variable.type.words.mlir
            if value.type != wanted and _are_alike(value.type, wanted):
                value.set_type(wanted)  # with another encoding of the same open extents
            if value.type != wanted:
                raise MissingRuleError(
                    f"The MLIR translation rule of '{primitive.name}' gave {value.type}, but its "
                    f"abstract evaluation says {wanted}.",
                    "Make the two rules agree.",
                )
        return results


def _are_alike(kind: ir.Type, other: ir.Type) -> bool:
    """Tells whether types are equal except for the encoding of their open extents."""
    both = (kind, other)
    if not all(isinstance(x, ir.RankedTensorType) and not x.has_static_shape for x in both):
        return False
    return [*kind.shape] == [*other.shape] and kind.element_type == other.element_type


def check_sizes_known(name: str, kinds: Sequence[ShapedArray]) -> None:
    """Raises a `SymbolicDimError` if a function has arguments with symbolic dimensions."""
    for kind in kinds:
        if kind.is_open:
            names = sorted({n for extent in kind.shape for n in names_of(extent)})
            sizes = ",".join(f"{name}=8" for name in names)
            raise SymbolicDimError(
                f"{name}: what is compiled has sizes, and {kind} has dimensions that are open.",
                f"Give them: exported.of_sizes({sizes.replace(',', ', ')}), "
                f"`axir compile --size {sizes}`, or the pass instantiate{{sizes={{{sizes}}}}}.",
            )


def lower_functions(
    functions: Mapping[str, Function],
    platform: str = "cpu",
    donated: Sequence[int] = (),
    host_functions: list[HostCall] | None = None,
    is_portable: bool = False,
    mesh_axes: Sequence[tuple[Hashable, int]] | None = None,
    allows_open: bool = False,
) -> ir.Module:
    """Lowers functions to a StableHLO module in which they are public under given symbols.

    Args:
        functions: The functions by symbol. Captures become arguments after the inputs.
        platform: The platform that the code will run on.
        donated: Arguments with memory that the code may overwrite.
        host_functions: Collects the Python functions that the code calls, in the order of their
            numbers; None if the code must run without this process.
        is_portable: Whether only callbacks are host functions. The code then runs in another
            process, which provides callbacks, but neither LAPACK nor the evaluator.
        mesh_axes: Names and extents of the axes of a mesh. Each device of the mesh runs the code on
            its parts, and collectives over these axes become host functions that communicate.
        allows_open: Whether functions with open dimensions become StableHLO functions with open
            dimensions.
    """
    with context(), ir.Location.unknown():
        module = ir.Module.create()
        lowering = _ModuleLowering(
            module, platform, donated, host_functions, is_portable, mesh_axes, allows_open
        )
        for symbol, function in functions.items():
            lowering.add(function, symbol, is_public=True)
        lowering.run()
        if any(map(lowering.names_of, functions.values())):
            open_modules.finish(module)
        return module


@dataclass(frozen=True)
class LowerToStableHLO(Pass):
    """Lowers jaxpr ops to StableHLO, accepted by any StableHLO consumer.

    Algorithm:
        1. Lower each public function: one `lower` rule per op, in order, locations kept.
        2. Lower each function that a call names, once, as a private function.
        3. Where dimensions are open, types become `tensor<?xf32>`, operations become the ones that
           take extents as operands, and the public function computes the sizes from its arguments,
           as `jax.export` writes it (`open_modules.py`).

    Before:
        ```mlir
        %0 = "jaxpr.sin"(%x) : (tensor<3xf32>) -> tensor<3xf32>
        ```
    After:
        ```mlir
        %0 = stablehlo.sine %x : tensor<3xf32>
        ```

    Preconditions:
        All ops are of the jaxpr dialect.

    Attributes:
        platform: The platform that the code will run on: `cpu`, `vulkan` or `cuda`.
    """

    name: ClassVar[str] = "lower-to-stablehlo"
    platform: str = "cpu"

    def run(self, module: ir.Module) -> None:
        """Replaces the functions of the module by their StableHLO."""
        replace_with_module(module, self._lowered)

    def _lowered(self, functions: Mapping[str, Function]) -> ir.Module:
        return lower_functions(functions, self.platform, allows_open=True)
