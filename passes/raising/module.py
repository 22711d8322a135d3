"""The walk over a module of StableHLO that applies the rules: functions, regions, constants.

Values become known arrays or tracers. Scalar constants are known, and operations on only known
values are computed here. Other constants are ops of the trace, and so are the operations that
depend on them. Small functions, such as the helpers of JAX's lowering, are inlined, because
patterns may extend beyond them; others stay functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import NamedTuple

from iree.compiler import ir

from axir.dialect.core.annotations import Param, Returning
from axir.dialect.core.config import config
from axir.dialect.core.context import context
from axir.dialect.core.errors import AxirError, WeightsError
from axir.dialect.core.state import attributed, outside_traces
from axir.dialect.ops.calls.jit_call import call
from axir.dialect.program.function import Function
from axir.dialect.program.meshes.layouts import MeshAxes
from axir.dialect.program.rules import Value
from axir.dialect.program.tracer import Trace, Tracer
from axir.dialect.text.foreign_signatures import argument_names
from axir.passes.framework.errors import RaisingError
from axir.passes.raising.dimensions.extents import extents_array
from axir.passes.raising.dimensions.open_dimensions import (
    Discovery,
    Learned,
    check_name,
    given_constraints,
    global_names,
)
from axir.passes.raising.dimensions.wanted_dimensions import check_dimensions, wanted_bounds
from axir.passes.transforms.simplify import prune_function

from . import families as _families  # noqa: F401, fills the table
from .arguments import Arguments, Shapes
from .grid import ALONE, Grid, computed_together, grid_of, is_of_one_device, mesh_of, programs_of
from .known_extents import KnownExtents
from .quantized_operations import rule_of
from .refusals import refusal_at, way_out_of
from .table import Region, check_results, refusal

__all__ = ["RaisedModule", "raise_module"]

_RETURNS = ("func.return", "sdy.return", "shape.assuming_yield", "stablehlo.return")
# Functions of up to so many operations are inlined.
_SMALL = 8
# The first region of an operation that may not run.
_CONDITIONAL = {"stablehlo.case": 0, "stablehlo.if": 0, "stablehlo.while": 1, "chlo.scan": 0}
# How often raising may begin again because it learned about open dimensions.
_MOST_ATTEMPTS = 32


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
        raising = _Raising(module, Arguments(module, shapes, learned))
        # The types of the module are kept: nothing is narrowed.
        with context(), ir.Location.unknown(), config(jax_enable_x64=True), outside_traces():
            try:
                functions = raising.public_functions()
            except Discovery as found:
                learned = found.added_to(learned)
                continue
            except RaisingError:
                # Constraints may help, also in parts that may not run.
                wanted = raising.assumed | raising.presumed
                if wanted <= set(learned.constraints):
                    raise
                learned = learned.with_constraints(wanted)
                continue
        if raising.assumed <= set(learned.constraints):
            raising.check_dimensions()
            return RaisedModule(functions, raising.weight_names)
        learned = learned.with_constraints(raising.assumed)
    raise RaisingError(
        "What the open dimensions of the module are does not come to an end.",
        "Say which they are: --shape x=8x64, load(path, shapes={...}).",
        where="",
    )


class _Raising(KnownExtents):
    """Raises the functions of a module, each once; a `RaisingContext` of the operations in it."""

    def __init__(self, module: ir.Module, arguments: Arguments):
        super().__init__(module)
        self._arguments = arguments
        self._ops: dict[str, ir.Operation] = {}
        self._meshes: dict[str, MeshAxes] = {}
        self._public: list[str] = []
        for view in module.body.operations:
            self._add(view.operation)
        self._leave_out_parts()
        self._functions: dict[tuple[str, Grid], Function] = {}
        self._in_progress: set[tuple[str, Grid]] = set()
        # How many bodies around the operation may not run.
        self._conditions = 0
        arguments.check_shapes(self._ops[symbol] for symbol in self._public)

    def _add(self, op: ir.Operation) -> None:
        if op.name == "sdy.mesh":
            self._meshes.update(mesh_of(op))
            return
        if op.name != "func.func":
            raise self._refusal(
                op,
                f"{op.name} stands beside the functions of the module.",
                way_out_of(op.name, self.module),
            )
        symbol = ir.StringAttr(op.attributes["sym_name"]).value
        self._ops[symbol] = op
        visibility = op.attributes["sym_visibility"] if "sym_visibility" in op.attributes else None
        if visibility is None or ir.StringAttr(visibility).value == "public":
            self._public.append(symbol)

    def _leave_out_parts(self) -> None:
        """Makes functions private that another one runs on devices."""
        blocks = [block for op in self._ops.values() for block in op.regions[0].blocks]
        found = [programs_of(view.operation) for block in blocks for view in block.operations]
        parts = {name for rows in found for row in rows for name in row}
        self._public = [symbol for symbol in self._public if symbol not in parts]

    # Functions ----------------------------------------------------------------------------------

    def public_functions(self) -> dict[str, Function]:
        """Returns the public functions of the module, raised."""
        return {symbol: self.function(symbol) for symbol in self._public}

    def check_dimensions(self) -> None:
        """Raises if no array of a public function has a dimension that it takes as an argument."""
        for symbol in self._public:
            self._arguments.check_dimensions(self._ops[symbol])

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
        types = self._arguments.types(op)
        grid = self._grid_of(symbol)
        if grid.size > 1:
            types = [t.update(shape=(grid.size, *t.shape)) for t in types]
        for _ in attributed([op]):
            with Trace(symbol, writes_descriptions=True) as trace:
                inputs = [trace.add_input(t) for t in types]
                if symbol in self._public:
                    self._note_numbers(inputs, argument_names(op))
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
        if symbol not in self._public or self.grid.size > 1:
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
            extent = self._arguments.dimension(name)
            if extent is not None:
                self._extents[x] = extents_array([extent], ())

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
        may_not_run = number >= _CONDITIONAL.get(operation.name, number + 1)

        def region(*values: Value) -> list[Value]:
            self._conditions += may_not_run
            try:
                return self._run(block, values)
            finally:
                self._conditions -= may_not_run

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
                op, f"{op.name} has no counterpart.", way_out_of(op.name, self.module)
            )
        try:
            operands = [self._values[v] for v in op.operands]
            check_dimensions(op, operands, self.extents)
            wanted = self.presumed if self._conditions else self.assumed
            wanted.update(wanted_bounds(op, operands, self.extents))
            raised = rule(self, op, *operands)
            results = list(raised) if isinstance(raised, (list, tuple)) else [raised]
            check_results(op, results)
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

    def _refusal(self, op: ir.Operation, message: str, way_out: str | None) -> RaisingError:
        return refusal_at(self.module, op, message, way_out)


def _is_static(value: ir.Value) -> bool:
    return not isinstance(value.type, ir.RankedTensorType) or value.type.has_static_shape
