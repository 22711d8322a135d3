"""The walk over a module of StableHLO that applies the rules: functions, regions, constants.

Values become known arrays or tracers. Scalar constants are known, and operations on only known
values are computed here. Other constants are ops of the trace, and so are the operations that
depend on them. Small functions, such as the helpers of JAX's lowering, are inlined, because
patterns may extend beyond them; others stay functions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

import numpy as np
from iree.compiler import ir

from axir.dialect.core.annotations import Dtype, Extent, HostArray, Param, Returning
from axir.dialect.core.array import Array, ConcreteArray
from axir.dialect.core.config import config
from axir.dialect.core.context import context, describe_location
from axir.dialect.core.errors import AxirError, ShapeError, WeightsError
from axir.dialect.core.quantized_types import is_quantized
from axir.dialect.core.state import attributed, outside_traces
from axir.dialect.core.symbolic_dims import SymbolicDim, are_same, is_extent, is_same, names_of
from axir.dialect.core.types import ShapedArray, numpy_dtype
from axir.dialect.ops.calls.jit_call import call
from axir.dialect.program.function import Function
from axir.dialect.program.meshes.layouts import MeshAxes
from axir.dialect.program.rules import Value
from axir.dialect.program.tracer import Trace, Tracer, state
from axir.dialect.text.foreign_signatures import argument_names
from axir.dialect.text.summary import OF_DEVICES, summarize
from axir.dialect.text.text_positions import place_in_text
from axir.passes.framework.errors import QuantizationError, RaisingError
from axir.passes.transforms.simplify import prune_function

from . import (
    arith,
    chlo,
    contractions,
    control_flow,
    custom_calls,
    devices,
    dynamic_shapes,
    elementwise,
    indexing,
    linear_algebra,
    normalization,
    parts,
    quantized_products,
    random_bits,
    reductions,
    shape_arithmetic,
    shapes,
    sorting,
    windows,
)
from .extents import Comparison, as_value, computes_extents, extents_array, followed
from .grid import (
    ALONE,
    Grid,
    computed_together,
    grid_of,
    is_of_one_device,
    mesh_of,
    programs_of,
)
from .open_dimensions import (
    DimensionArgument,
    Discovery,
    Learned,
    check_name,
    filled,
    given_constraints,
    global_names,
    open_shape,
    plain_name,
    written_shape,
)
from .quantized_operations import rule_of, touches_quantized
from .shapes import elements
from .table import Raised, Region, raised_type, refusal, result_dtype, result_type
from .wanted_dimensions import check_dimensions, wanted_bounds

__all__ = ["RaisedModule", "raise_module"]

_FAMILIES = (
    arith,
    chlo,
    contractions,
    control_flow,
    custom_calls,
    devices,
    dynamic_shapes,
    elementwise,
    indexing,
    linear_algebra,
    normalization,
    parts,
    quantized_products,
    random_bits,
    reductions,
    shape_arithmetic,
    shapes,
    sorting,
    windows,
)
"""Importing these fills the table."""

Shapes: TypeAlias = Mapping[str, Sequence[Extent]]
"""Shapes of arguments by name: of numbers, and of names of dimensions that stay open."""

_RETURNS = ("func.return", "sdy.return", "shape.assuming_yield", "stablehlo.return")
_DIALECTS = ("stablehlo", "chlo", "arith", "shape", "tensor")
# Functions of up to so many operations are inlined.
_SMALL = 8
# How often raising may begin again because it learned about open dimensions.
_MOST_ATTEMPTS = 32
# Operations that combine known extents with others.
_PUT_TOGETHER = ("stablehlo.clamp", "stablehlo.concatenate")
# How many bytes of arrays are compared before all bytes are.
_COMPARED_FIRST = 64


class RaisedModule(NamedTuple):
    """A raised module of StableHLO.

    Attributes:
        functions: Its public functions, which capture its weights.
        weights: Names of weights, by the identities of the arrays.
    """

    functions: dict[str, Function]
    weights: dict[int, str]


def raise_module(module: ir.Module, shapes: Shapes = MappingProxyType({})) -> RaisedModule:
    """Returns the public functions of a module of StableHLO as functions of the jaxpr dialect.

    Args:
        module: The module, which does not change.
        shapes: Shapes of arguments with open extents, by the arguments' names.

    Raises:
        RaisingError: if an operation has no counterpart, or types are not static.
        ShapeError: if a shape or its constraints do not fit, or the argument does not exist.
        WeightsError: if weights are missing or damaged.
    """
    learned = Learned({}, given_constraints(shapes.values()))
    for _ in range(_MOST_ATTEMPTS):
        raising = _Raising(module, shapes, learned)
        raising.check_shapes()
        # The types of the module are kept: nothing is narrowed.
        with context(), ir.Location.unknown(), config(jax_enable_x64=True), outside_traces():
            try:
                functions = {symbol: raising.function(symbol) for symbol in raising.public}
            except Discovery as found:
                learned = found.added_to(learned)
                continue
            except RaisingError:
                if raising.assumed <= set(learned.constraints):
                    raise
                learned = learned.with_constraints(raising.assumed)
                continue
        if raising.assumed <= set(learned.constraints):
            raising.check_dimension_arguments()
            return RaisedModule(functions, raising.weight_names)
        learned = learned.with_constraints(raising.assumed)
    raise RaisingError(
        "What the open dimensions of the module are does not come to an end.",
        "Say which they are: --shape x=8x64, load(path, shapes={...}).",
        where="",
    )


class _Raising:
    """Raises the functions of a module, each once; a `RaisingContext` of the operations in it."""

    def __init__(self, module: ir.Module, shapes: Shapes, learned: Learned):
        self._learned = learned
        self.assumed: set[str] = set()
        # The results of `constant` for results of operations.
        self._constants: dict[ir.Value, HostArray | None] = {}
        # The extents that values of the trace hold.
        self._extents: dict[Value, HostArray] = {}
        # The names of integer arguments, by their raised values.
        self._numbers: dict[Value, str] = {}
        self.module = module
        self._shapes = shapes
        self._ops: dict[str, ir.Operation] = {}
        self._meshes: dict[str, MeshAxes] = {}
        self.public: list[str] = []
        for view in module.body.operations:
            self._add(view.operation)
        self._leave_out_parts()
        self._functions: dict[tuple[str, Grid], Function] = {}
        self.grid = ALONE
        self._in_progress: set[tuple[str, Grid]] = set()
        self._values: dict[ir.Value, Value] = {}
        self._replaced: dict[ir.Operation, Sequence[Value]] = {}
        self.weight_names: dict[int, str] = {}
        self._weights: list[ConcreteArray] = []

    def _add(self, op: ir.Operation) -> None:
        if op.name == "sdy.mesh":
            self._meshes.update(mesh_of(op))
            return
        if op.name != "func.func":
            raise self._refusal(
                op,
                f"{op.name} stands beside the functions of the module.",
                _way_out(op.name, self.module),
            )
        symbol = ir.StringAttr(op.attributes["sym_name"]).value
        self._ops[symbol] = op
        visibility = op.attributes["sym_visibility"] if "sym_visibility" in op.attributes else None
        if visibility is None or ir.StringAttr(visibility).value == "public":
            self.public.append(symbol)

    def _leave_out_parts(self) -> None:
        """Makes functions private that another one runs on devices."""
        blocks = [block for op in self._ops.values() for block in op.regions[0].blocks]
        found = [programs_of(view.operation) for block in blocks for view in block.operations]
        parts = {name for rows in found for row in rows for name in row}
        self.public = [symbol for symbol in self.public if symbol not in parts]

    # Functions ----------------------------------------------------------------------------------

    def function(self, symbol: str) -> Function:
        """Returns a function of the module, raised."""
        key = symbol, self.grid
        if key not in self._functions:
            if key in self._in_progress:
                raise self._refusal(
                    self._ops[symbol],
                    f"Function @{symbol} calls itself.",
                    "Programs of axir loop with while and scan.",
                )
            self._in_progress.add(key)
            self._functions[key] = self._raise_function(symbol)
        return self._functions[key]

    def _raise_function(self, symbol: str) -> Function:
        op = self._ops[symbol]
        block = self._block_of(op, 0)
        names = argument_names(op)
        types = [
            self._argument_type(op, argument, name)
            for argument, name in zip(block.arguments, names, strict=True)
        ]
        grid = self._grid_of(symbol)
        if grid.size > 1:
            types = [t.update(shape=(grid.size, *t.shape)) for t in types]
        for _ in attributed([op]):
            with Trace(symbol, writes_descriptions=True) as trace:
                inputs = [trace.add_input(t) for t in types]
                if symbol in self.public:
                    self._note_numbers(inputs, names)
                alone = grid.size == 1
                raised = trace.finish(
                    self._run(block, inputs)
                    if alone
                    else self._together(symbol, grid, block, inputs)
                )
                is_open = any(v.type.is_open for v in raised.inputs)
                # Operations that compute extents have become expressions, and have no users.
                return prune_function(raised) if is_open else raised
        raise AssertionError("a function has been raised")

    def _grid_of(self, symbol: str) -> Grid:
        """Returns the devices of a public function that distinguishes them."""
        if symbol not in self.public or self.grid.size > 1:
            return ALONE
        grid = grid_of(self.module)
        return grid if grid.size > 1 and is_of_one_device(self._ops.values()) else ALONE

    def on_grid(self, grid: Grid, function: Returning[list[Value]]) -> list[Value]:
        """Calls a function without arguments that raises a program of these devices."""
        outer, self.grid = self.grid, grid
        try:
            found: list[Value] = function()
            return found
        finally:
            self.grid = outer

    def mesh(self, name: str) -> MeshAxes:
        """Returns the axes of a mesh of the module."""
        if name not in self._meshes:
            raise refusal(f"The module has no mesh @{name}.", "Export it again, as text.")
        return self._meshes[name]

    def _together(
        self, symbol: str, grid: Grid, block: ir.Block, inputs: Sequence[Value]
    ) -> list[Value]:
        """Runs a block on each device; the first axis of the inputs numbers the devices."""

        def run(*values: Value) -> list[Value]:
            return self._run(block, values)

        return self.on_grid(grid, lambda: computed_together(run, symbol, grid, inputs))

    def _note_numbers(self, inputs: Sequence[Tracer], names: Sequence[str]) -> None:
        """Records which arguments are integers, and which are known to be dimensions."""
        for x, name in zip(inputs, names, strict=True):
            if x.ndim or x.dtype.kind != "i":
                continue
            self._numbers[x] = name
            if name in self._learned.arguments:
                extent = self._learned.extent(SymbolicDim(plain_name(name)))
                self._extents[x] = extents_array([extent], ())

    def _argument_type(self, op: ir.Operation, argument: ir.Value, name: str) -> ShapedArray:
        kind = argument.type
        if isinstance(kind, ir.RankedTensorType) and not kind.has_static_shape:
            given = self._shapes.get(name)
            if given is not None:
                wanted = filled(kind, given, name)
            else:
                wanted = written_shape(op, argument) or open_shape(kind, name)
            extents = [self._learned.extent(extent) for extent in wanted]
            return ShapedArray(extents, numpy_dtype(kind.element_type))
        if str(kind) == "!stablehlo.token":
            raise self._refusal(
                op,
                f"The argument {name!r} is a token, which orders infeeds, outfeeds, sends and "
                "receives of several programs.",
                "Functions of axir take arrays: export the program without these.",
            )
        try:
            return raised_type(kind)
        except AxirError as error:
            number = argument.arg_number
            message = f"Argument {number}: {error.message}"
            raise self._refusal(op, message, error.way_out, is_quantized(kind)) from None

    def check_shapes(self) -> None:
        """Raises if a shape was given for a name that is no argument."""
        names = [
            name
            for symbol in self.public
            if self._ops[symbol].regions[0].blocks
            for name in argument_names(self._ops[symbol])
        ]
        unknown = [name for name in self._shapes if name not in names]
        if unknown:
            raise ShapeError(
                f"There is no argument {unknown[0]!r}, whose shape is given.",
                f"The arguments are {', '.join(names)}.",
            )

    def check_dimension_arguments(self) -> None:
        """Raises if no array of a function has a dimension that it takes as an argument."""
        for symbol in self.public:
            op = self._ops[symbol]
            names = argument_names(op)
            types = [
                self._argument_type(op, argument, name)
                for argument, name in zip(self._block_of(op, 0).arguments, names, strict=True)
            ]
            known = {name for kind in types for extent in kind.shape for name in names_of(extent)}
            for name in self._learned.arguments.intersection(names):
                extent = self._learned.extent(SymbolicDim(plain_name(name)))
                if not known.issuperset(names_of(extent)):
                    raise self._refusal(
                        op,
                        f"The argument {name!r} is a dimension, and nothing says which one of the "
                        "arrays has it.",
                        f"Say so: --shape x={name}x3, load(path, shapes={{'x': ({name!r}, 3)}}).",
                    )

    def call(self, symbol: str, values: Sequence[Value]) -> list[Value]:
        """Calls a function of the module; a small one is inlined."""
        if symbol not in self._ops:
            raise refusal(f"The module has no function @{symbol}.", "It is not complete.")
        op = self._ops[symbol]
        for name, value in zip(global_names(op), values, strict=True):
            if name is not None and type(value) is Tracer and value in self._extents:
                check_name(name, self._extents[value])
        block = self._block_of(op, 0)
        is_open = not all(map(_is_static, block.arguments))
        is_open = is_open or any(type(x) is Tracer and x in self._extents for x in values)
        is_small = len(block.operations) <= _SMALL
        key = symbol, self.grid
        if (is_small or is_open) and key not in self._in_progress:
            self._in_progress.add(key)
            try:
                return self._run(block, values)
            finally:
                self._in_progress.discard(key)
        return call(self.function(symbol), *values)

    # Blocks -------------------------------------------------------------------------------------

    def _block_of(self, op: ir.Operation, number: int) -> ir.Block:
        blocks = list(op.regions[number].blocks) if len(op.regions) > number else []
        if len(blocks) != 1:
            raise self._refusal(
                op,
                f"{op.name} has {len(blocks)} blocks, not one.",
                "A declaration cannot be raised." if not blocks else "Write it with stablehlo.if.",
            )
        return blocks[0]

    def body(self, operation: ir.Operation, number: int = 0) -> Region:
        """Returns a region of an operation as a function of its arguments."""
        block = self._block_of(operation, number)

        def region(*values: Value) -> list[Value]:
            return self._run(block, values)

        region.__name__ = operation.name.partition(".")[2]
        return region

    def _run(self, block: ir.Block, arguments: Sequence[Value]) -> list[Value]:
        self._values.update(zip(block.arguments, arguments, strict=True))
        for op in attributed([view.operation for view in block.operations]):
            if op.name in _RETURNS:
                return [self._values[v] for v in op.operands]
            results = self._raise_operation(op)
            self._values.update(zip(op.results, results, strict=True))
        return []

    def _raise_operation(self, op: ir.Operation) -> Sequence[Value]:
        replacement = self._replaced.pop(op, None)
        if replacement is not None:
            return replacement
        rule = rule_of(op)
        if rule is None and op.results and not any(len(list(x.uses)) for x in op.results):
            unused: Param = [None] * len(op.results)  # they are never read
            return unused
        if rule is None:
            raise self._refusal(
                op, f"{op.name} has no counterpart.", _way_out(op.name, self.module)
            )
        try:
            operands = [self._values[v] for v in op.operands]
            check_dimensions(op, operands, self.extents)
            self.assumed.update(wanted_bounds(op, operands, self.extents))
            raised = rule(self, op, *operands)
            results = list(raised) if isinstance(raised, (list, tuple)) else [raised]
            _check(op, results)
            results = self._follow(op, results)
        except (Discovery, WeightsError):
            raise
        except RaisingError as error:
            if error.where:
                raise
            raise self._refusal(op, error.message, error.way_out) from None
        except AxirError as error:
            raise self._refusal(
                op, f"{op.name} cannot be raised: {error.message}", error.way_out
            ) from error
        except Exception as error:  # malformed operands may make a rule raise anything
            raise self._refusal(
                op,
                f"{op.name} cannot be raised: {type(error).__name__}: {error}.",
                "Compare its operands and attributes with those that JAX writes.",
            ) from error
        return results

    def _refusal(
        self, op: ir.Operation, message: str, way_out: str | None, of_quantized: bool = False
    ) -> RaisingError:
        place = describe_location(op.location)
        in_text = place_in_text(self.module, op)
        if in_text is not None:
            place = f"{in_text}, which comes from {place}" if place else in_text
        of_quantized = of_quantized or touches_quantized(op)
        kind = QuantizationError if of_quantized else RaisingError
        return kind(message, way_out, place or f"op {op.name!r}")

    # Extents ------------------------------------------------------------------------------------

    def _follow(self, op: ir.Operation, results: list[Raised]) -> list[Raised]:
        """Records the extents that an operation's result holds, if an operand holds extents.

        Returns:
            The results; extents that are computed from others become expressions.
        """
        if len(results) != 1 or type(results[0]) is not Tracer or results[0] in self._extents:
            return results
        held = [self._values.get(v) for v in op.operands]
        if not any(type(x) is Tracer and x in self._extents for x in held):
            return results
        found = followed(op, self._whole_extents)
        if found is None:
            return results
        [result] = results
        if all(map(is_extent, found.reshape(-1).tolist())):
            result = as_value(found, result_dtype(op, 0))
        if type(result) is Tracer:
            self._extents[result] = found
        return [result]

    def extents(self, value: ir.Value) -> HostArray | None:
        """Returns the extents that a value holds, of known and open dimensions; else None.

        In a concatenation of known and unknown extents, the unknown ones are None.
        """
        found = self._whole_extents(value)
        op = _owner(value)
        if found is not None or op is None or op.name not in _PUT_TOGETHER:
            return found
        return followed(op, self.extents)

    def _whole_extents(self, value: ir.Value) -> HostArray | None:
        held = self._values.get(value)
        if type(held) is Tracer and held in self._extents:
            return self._extents[held]
        known = self.constant(value)
        return None if known is None else known.astype(object)

    def want_extents(self, value: ir.Value) -> None:
        """Raises `DimensionArgument` if a shape is computed from an integer argument."""
        pending, seen = [value], set()
        while pending:
            current = pending.pop()
            held = self._values.get(current)
            if type(held) is Tracer and held in self._numbers and held not in self._extents:
                raise DimensionArgument(self._numbers[held])
            op = _owner(current)
            if op is not None and op not in seen and computes_extents(op):
                seen.add(op)
                pending += op.operands

    def extents_value(self, extents: Sequence[Extent], shape: Sequence[int], dtype: Dtype) -> Value:
        """Returns extents as a value, from which `extents` returns them later."""
        array = extents_array(extents, shape)
        made = as_value(array, dtype)
        if type(made) is Tracer:
            self._extents[made] = array
        return made

    def assume(self, condition: ir.Value) -> None:
        """Records that a comparison of extents holds in all calls."""
        found = self.extents(condition)
        if found is not None and isinstance(found.item(), Comparison) and found.item().text:
            self.assumed.add(found.item().text)

    # Values -------------------------------------------------------------------------------------

    def weights(self, array: HostArray, name: str | None) -> Value:
        """Returns weights as a value; shares weights of one name, and equal ones without a name.

        Equal weights with different names stay separate, because they may differ after training.
        """
        for known in self._weights:
            host = known.host()
            is_alike = (host.shape, host.dtype) == (array.shape, array.dtype)
            if not is_alike or self.weight_names.get(id(known)) != name:
                continue
            if name is not None or _are_equal(host, array):
                break
        else:
            known = ConcreteArray(ShapedArray(array.shape, array.dtype), array)
            self._weights.append(known)
            if name is not None:
                self.weight_names[id(known)] = name
        if state.ambient is None:
            return known
        captured: Param = state.ambient.capture(known)
        return captured

    def value(self, value: ir.Value) -> Value:
        """Returns the raised value."""
        return self._values[value]

    def replace(self, operation: ir.Operation, values: Sequence[Value]) -> None:
        """Sets the raised results of a later operation."""
        self._replaced[operation] = values

    def constant(self, value: ir.Value) -> HostArray | None:
        """Returns the elements of a value that depends only on constants; None for others."""
        known = self._values.get(value)
        if type(known) is ConcreteArray:
            return known.host()
        op = _owner(value)
        if op is None:
            return None
        if value not in self._constants:
            self._constants[value] = self._computed(op, value)
        return self._constants[value]

    def _computed(self, op: ir.Operation, value: ir.OpResult) -> HostArray | None:
        if op.name in ("stablehlo.constant", "arith.constant"):
            return elements(op)
        rule = rule_of(op)
        if rule is None or len(op.regions) or not op.name.startswith(_DIALECTS):
            return None
        if op.name in OF_DEVICES and self.grid.size > 1:
            return None  # each device has another value
        operands = [self.constant(v) for v in op.operands]
        if any(x is None for x in operands) or op.name.startswith("stablehlo.custom"):
            return None
        arrays = [
            ConcreteArray(raised_type(v.type), x)
            for v, x in zip(op.operands, operands, strict=True)
        ]
        with outside_traces():
            raised: Param = rule(self, op, *arrays)
        results = raised if isinstance(raised, (list, tuple)) else [raised]
        return results[value.result_number].host()


def _owner(value: ir.Value) -> ir.Operation | None:
    """Returns the operation that a value is a result of; None for arguments."""
    if not isinstance(value, ir.OpResult):
        return None
    return value.owner.operation if isinstance(value.owner, ir.OpView) else value.owner


def _is_static(value: ir.Value) -> bool:
    return not isinstance(value.type, ir.RankedTensorType) or value.type.has_static_shape


def _are_equal(a: HostArray, b: HostArray) -> bool:
    """Tells whether arrays of one type hold the same bytes; compares a few of them first."""
    left, right = a.reshape(-1).view(np.uint8), b.reshape(-1).view(np.uint8)
    step = max(1, len(left) // _COMPARED_FIRST)
    return np.array_equal(left[::step], right[::step]) and np.array_equal(left, right)


def _check(op: ir.Operation, results: Sequence[Raised]) -> None:
    """Raises if a rule returned other types than the operation has."""
    for number, value in enumerate(results):
        if not isinstance(value, Array):
            continue
        kind = op.results[number].type
        if isinstance(kind, ir.RankedTensorType) and not kind.has_static_shape:
            extents = zip(value.aval.shape, kind.shape, strict=False)
            is_right = value.aval.dtype == result_dtype(op, number)
            is_right = is_right and value.aval.ndim == kind.rank
            is_right = is_right and all(b < 0 or is_same(a, b) for a, b in extents)
        elif isinstance(kind, ir.ShapedType) or type(value) is not ConcreteArray:
            wanted = result_type(op, number)
            is_right = value.aval.dtype == wanted.dtype
            is_right = is_right and are_same(value.aval.shape, wanted.shape)
        else:  # the known elements of a shape
            continue
        if not is_right:
            found = value.aval.strip_weak_type()
            raise refusal(
                f"{op.name} gives {kind}, but its operands make it {found}.",
                "Correct its type, or its operands.",
            )


def _way_out(name: str, module: ir.Module) -> str:
    dialect = name.partition(".")[0]
    if dialect == "jaxpr":
        return "The module is of the jaxpr dialect already, at least in part."
    if dialect not in ("stablehlo", "chlo"):
        return "Lower it to StableHLO with the program that wrote it."
    if summarize(module).needs_raising:
        return "Export the program without it."
    return "It can still be compiled: axir compile, axir.export.load(path, compiled=True)."
