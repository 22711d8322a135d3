"""Loops of StableHLO that count to a known number, as `scan`, which supports reverse mode.

A counter that starts, ends and advances by known integers is not carried. A value that no iteration
changes is a constant of the loop. If iteration `i` reads only slice `i` of an array, the scan
slices the array. If iteration `i` writes only slice `i`, the scan stacks it. This undoes the
lowering of `scan`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from iree.compiler import ir

from axir.dialect.core.array import from_numpy
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.control_flow.closed_bodies import Body, trace_body
from axir.dialect.ops.control_flow.scan import bind_scan
from axir.dialect.ops.elementwise.arithmetic import add, mul
from axir.dialect.ops.shape.rearranging import reshape, rev
from axir.dialect.program.equation import Equation, Literal, Var
from axir.dialect.program.op_table import OPS
from axir.dialect.program.rules import Results, Value
from axir.dialect.program.walk import Environment, apply_equations, backward_slice
from axir.passes.raising.dimensions.attributes import word

from .table import RaisingContext, Region, recorded

_TURNED = {"LT": "GT", "LE": "GE", "GT": "LT", "GE": "LE", "NE": "NE"}


def varying_places(operation: ir.Operation) -> list[int]:
    """Returns the carried values of a loop that an iteration may change."""
    block = operation.regions[1].blocks[0]
    results = list(block.operations)[-1].operands
    return [
        place
        for place, (argument, result) in enumerate(zip(block.arguments, results, strict=True))
        if argument != result
    ]


@dataclasses.dataclass(frozen=True)
class _Counter:
    """The counter of a loop: `length` iterations, from `start` by `step`, in a carried value."""

    place: int
    start: int
    step: int
    length: int


def counted_loop(
    context: RaisingContext, operation: ir.Operation, init: Sequence[Value]
) -> Sequence[Value] | None:
    """Returns the results of a loop that counts to a known number; None for others."""
    counter = _counter_of(context, operation)
    if counter is None:
        return None
    varying = [place for place in varying_places(operation) if place != counter.place]
    body = _body_of(context, operation, init, counter, varying)
    results = _Parts(body, counter, len(varying)).bind([init[place] for place in varying])
    whole = list(init)
    for place, value in zip(varying, results, strict=True):
        whole[place] = value
    dtype = np.dtype(init[counter.place].dtype)
    end = counter.start + counter.step * counter.length
    whole[counter.place] = from_numpy(np.array(end, dtype))
    return whole


# Counters ---------------------------------------------------------------------------------------


def _counter_of(context: RaisingContext, operation: ir.Operation) -> _Counter | None:
    condition, body = (region.blocks[0] for region in operation.regions)
    truth = list(condition.operations)[-1].operands[0]
    if isinstance(truth, ir.BlockArgument) or truth.owner.name != "stablehlo.compare":
        return None
    lhs, rhs = truth.owner.operands
    direction = word(truth.owner.attributes["comparison_direction"])
    arguments = list(condition.arguments)
    if rhs in arguments:
        lhs, rhs, direction = rhs, lhs, _TURNED.get(direction, direction)
    if lhs not in arguments:
        return None
    place = arguments.index(lhs)
    limit = _number(context, rhs, operation, condition)
    start = _number(context, operation.operands[place], operation)
    step = _step_of(context, operation, body, place)
    if limit is None or start is None or not step:
        return None
    length = _passes(direction, start, limit, step)
    return None if length is None else _Counter(place, start, step, length)


def _number(
    context: RaisingContext,
    value: ir.Value,
    operation: ir.Operation,
    block: ir.Block | None = None,
) -> int | None:
    """Returns a known integer; an unchanged carried value is known if its initial value is."""
    if block is not None and value in list(block.arguments):
        place = list(block.arguments).index(value)
        if place in varying_places(operation):
            return None
        value = operation.operands[place]
    found = context.constant(value)
    if found is None or found.shape or found.dtype.kind not in "iu":
        return None
    return int(found)


def _step_of(
    context: RaisingContext, operation: ir.Operation, body: ir.Block, place: int
) -> int | None:
    result, argument = list(body.operations)[-1].operands[place], body.arguments[place]
    if isinstance(result, ir.BlockArgument):
        return None
    owner = result.owner
    if owner.name not in ("stablehlo.add", "stablehlo.subtract"):
        return None
    lhs, rhs = owner.operands
    if owner.name == "stablehlo.add" and rhs == argument:
        lhs, rhs = rhs, lhs
    if lhs != argument:
        return None
    step = _number(context, rhs, operation, body)
    return -step if step is not None and owner.name == "stablehlo.subtract" else step


def _passes(direction: str, start: int, limit: int, step: int) -> int | None:
    """Returns the number of iterations; None if the counter would overflow first."""
    if direction == "NE":
        distance = limit - start
        return distance // step if distance % step == 0 and distance // step >= 0 else None
    if direction in ("LE", "GE"):
        limit += 1 if direction == "LE" else -1
    if direction in ("LT", "LE"):
        return None if step < 0 and start < limit else max(0, -((start - limit) // step))
    if direction in ("GT", "GE"):
        return None if step > 0 and start > limit else max(0, -((start - limit) // step))
    return None


# Bodies -----------------------------------------------------------------------------------------


def _body_of(
    context: RaisingContext,
    operation: ir.Operation,
    init: Sequence[Value],
    counter: _Counter,
    varying: Sequence[int],
) -> Body:
    """Traces an iteration as a function of the values that vary, then the counter."""
    body = context.body(operation, 1)

    def advance(*values: Value) -> list[Value]:
        carry = list(init)
        for place, value in zip(varying, values[:-1], strict=True):
            carry[place] = value
        carry[counter.place] = values[-1]
        results: list[Value] = body(*carry)
        return [results[place] for place in varying]

    types = [init[place].aval.strip_weak_type() for place in (*varying, counter.place)]
    return trace_body(advance, types, "body")


class _Parts:
    """The parts of a loop's body; its inputs are captures, carried values, and the counter.

    Attributes:
        sliced: The captures from which each iteration reads only its slice.
        stacked: The slices that iterations write to stacked carried values, by their place.
    """

    def __init__(self, body: Body, counter: _Counter, count: int):
        self.function, self.captured, self.counter = body.function, body.captured, counter
        split = len(body.captured)
        inputs = list(self.function.inputs)
        self.consts, self.carry, self.index = inputs[:split], inputs[split:-1], inputs[-1]
        self.makers = {v: e for e in self.function.equations for v in e.results}
        self.uses: dict[Var, list[Equation]] = {}
        for equation in self.function.equations:
            for variable in equation.operands:
                self.uses.setdefault(variable, []).append(equation)
        forward, backward = self._slices(False), self._slices(True)
        # A scan has one direction; arrays that are sliced in the other direction stay whole.
        self.is_reversed = len(backward[0]) + len(backward[1]) > len(forward[0]) + len(forward[1])
        self.sliced, self.stacked = backward if self.is_reversed else forward

        outputs = enumerate(self.function.outputs)
        kept = [v for place, v in outputs if place not in self.stacked]
        wanted = [*kept, *self.stacked.values()]
        self.needed = backward_slice(self.function.equations, wanted, enter=self._entered)
        self.is_counted = self.index in self.needed.variables

    def _entered(self, equation: Equation, _: set[Var]) -> Equation:
        """Returns an equation of the scan: a slice that the scan takes needs no position."""
        if equation.operands and equation.operands[0] in self.sliced:
            source, results = equation.operands[:1], equation.results
            return Equation(equation.primitive, source, results, equation.params, equation.op)
        return equation

    # Finding slices ------------------------------------------------------------------------------

    def _slices(self, is_reversed: bool) -> tuple[dict[Var, None], dict[int, Var]]:
        outputs = set(self.function.outputs)
        sliced = {
            variable: None
            for variable in self.consts
            if self.uses.get(variable)
            and variable not in outputs
            and all(self._reads_own(e, variable, is_reversed) for e in self.uses[variable])
        }
        stacked = {}
        for place, (variable, out) in enumerate(
            zip(self.carry, self.function.outputs, strict=True)
        ):
            written = self._written(variable, out, is_reversed)
            if written is not None:
                stacked[place] = written
        return sliced, stacked

    def _reads_own(self, equation: Equation, variable: Var, is_reversed: bool) -> bool:
        if equation.primitive.name != "dynamic_slice":
            return False
        source, *starts = equation.operands
        shape = variable.type.shape
        return (
            source is variable
            and not any(v is variable for v in starts)
            and equation.params["slice_sizes"] == (1, *shape[1:])
            and self._is_own_place(starts, shape[0], is_reversed)
        )

    def _written(self, variable: Var, out: Var, is_reversed: bool) -> Var | None:
        equation = self.makers.get(out)
        if equation is None or equation.primitive.name != "dynamic_update_slice":
            return None
        target, update, *starts = equation.operands
        shape = variable.type.shape
        if target is not variable or self.uses[variable] != [equation] or self.uses.get(out):
            return None
        if sum(v is out or v is variable for v in self.function.outputs) != 1:
            return None
        if update.type.shape != (1, *shape[1:]) or shape[0] != self.counter.length:
            return None
        if not self._is_own_place(starts, shape[0], is_reversed):
            return None
        maker = self.makers.get(update)
        behind = tuple(range(1, len(shape)))
        if maker is not None and maker.primitive.name in ("reshape", "broadcast_in_dim"):
            (source,) = maker.operands
            keeps_order = maker.params.get("broadcast_dimensions", behind) == behind
            return source if keeps_order and source.type.shape == shape[1:] else update
        return update

    def _is_own_place(self, starts: Sequence[Var], extent: int, is_reversed: bool) -> bool:
        """Tells whether a slice starts at the iteration's number, from the front or the end."""
        if extent != self.counter.length or any(_known(v) != 0 for v in starts[1:]):
            return False
        place = self._place_of(starts[0])
        wanted = (extent - 1, -1) if is_reversed else (0, 1)
        return place == wanted

    def _place_of(self, variable: Var) -> tuple[int, int] | None:
        """Returns (a, b) for an index that is a + b * number of the iteration."""
        if variable is self.index:
            return self.counter.start, self.counter.step
        number = _known(variable)
        if number is not None:
            return number, 0
        equation = self.makers.get(variable)
        if equation is None or variable.type.shape:
            return None
        name, operands = equation.primitive.name, equation.operands
        if name == "convert_element_type":
            return self._place_of(operands[0])
        if name == "select_n" and len(operands) == 3:
            return self._not_negative(*operands)
        if name in ("add", "sub"):
            sides = [self._place_of(v) for v in operands]
            if None in sides:
                return None
            (a, b), (c, d) = sides  # type: ignore[misc]
            return (a + c, b + d) if name == "add" else (a - c, b - d)
        return None

    def _not_negative(self, which: Var, chosen: Var, other: Var) -> tuple[int, int] | None:
        """Reads `i < 0 ? i + n : i` for an index that is never negative."""
        test = self.makers.get(which)
        place = self._place_of(chosen)
        if test is None or place is None or test.primitive.name != "lt":
            return None
        is_test = test.operands[0] is chosen and _known(test.operands[1]) == 0
        last = place[0] + place[1] * max(0, self.counter.length - 1)
        return place if is_test and min(place[0], last) >= 0 else None

    # The scan -----------------------------------------------------------------------------------

    def bind(self, init: Sequence[Value]) -> list[Value]:
        """Applies the scan; returns the final values that vary."""
        length = self.counter.length
        carried = [place for place in range(len(self.carry)) if place not in self.stacked]
        kept = [v for v in self.consts if v not in self.sliced]
        values = dict(zip(self.consts, self.captured, strict=True))
        xs = [values[v] for v in self.sliced]
        xs += [self._counted()] if self.is_counted else []
        types = [
            *(v.type for v in kept),
            *(self.carry[place].type for place in carried),
            *(ShapedArray(v.type.shape[1:], v.type.dtype) for v in self.sliced),
            *([self.index.type] if self.is_counted else []),
        ]
        body = trace_body(self._advance(kept, carried), types, "body")
        last, stacks = bind_scan(
            body,
            [values[v] for v in kept],
            [init[place] for place in carried],
            xs,
            length=length,
            reverse=self.is_reversed,
        )
        results = dict(zip(carried, last, strict=True))
        results |= dict(zip(self.stacked, stacks, strict=True))
        return [results[place] for place in range(len(self.carry))]

    def _counted(self) -> Value:
        """Returns the counter's values, in the order of the slices."""
        dtype, length = self.index.type.dtype, self.counter.length
        places = recorded("iota", (), dtype=dtype, shape=(length,), dimension=0)
        if places is None:
            places = from_numpy(np.arange(length, dtype=dtype))
        if self.counter.step != 1:
            places = mul(places, np.array(self.counter.step, dtype))
        if self.counter.start:
            places = add(places, np.array(self.counter.start, dtype))
        return rev(places, (0,)) if self.is_reversed else places

    def _advance(self, kept: Sequence[Var], carried: Sequence[int]) -> Region:
        function = self.function
        count = len(kept) + len(carried)

        needed = self.needed.equations

        def advance(*values: Value) -> list[Value]:
            environment = Environment(zip(kept, values[: len(kept)], strict=True))
            carry = (self.carry[place] for place in carried)
            environment.update(zip(carry, values[len(kept) : count], strict=True))
            slices = dict(zip(self.sliced, values[count:], strict=False))
            if self.is_counted:
                environment[self.index] = values[-1]

            for equation in needed:
                if equation.operands and equation.operands[0] in slices:
                    part = slices[equation.operands[0]]
                    self._store_slice(environment, equation.results[0], part)
                elif equation.results and equation.results[0] in environment:
                    continue  # a slice without its first axis
                elif all(type(v) is Literal for v in equation.operands):
                    environment.store(equation, _again(equation, environment))
                else:
                    apply_equations([equation], environment)
            stacked = [
                self._as_slice(environment[v], self.carry[place].type.shape[1:])
                for place, v in self.stacked.items()
            ]
            return [*(environment[function.outputs[place]] for place in carried), *stacked]

        return advance

    def _store_slice(self, environment: Environment, variable: Var, part: Value) -> None:
        """Stores the slice that an iteration reads, in the form that its users expect."""
        reshapes = [
            e
            for e in self.uses.get(variable, ())
            if e.primitive.name == "reshape" and e.results[0].type.shape == part.shape
        ]
        for equation in reshapes:
            environment[equation.results[0]] = part
        if len(reshapes) != len(self.uses.get(variable, ())) or variable in set(
            self.function.outputs
        ):
            environment[variable] = reshape(part, (1, *part.shape))

    def _as_slice(self, update: Value, shape: tuple[int, ...]) -> Value:
        return update if update.shape == shape else reshape(update, shape)


def _again(equation: Equation, environment: Environment) -> Results:
    """Applies an op; an op on known numbers stays an op if it makes an array."""
    operands = [environment[v] for v in equation.operands]
    name, params = equation.primitive.name, equation.params
    made = recorded(name, operands, **params) if OPS.get(name) is equation.primitive else None
    return equation.primitive.bind(*operands, **params) if made is None else made


def _known(variable: Var) -> int | None:
    """Returns the integer of a literal; None for other variables."""
    if type(variable) is not Literal or variable.type.shape:
        return None
    host = variable.array.host()
    return int(host) if host.dtype.kind in "iu" else None
