"""Loops of StableHLO that count to a known number or an extent, as `scan`.

`scan` supports reverse mode. A counter that starts and advances by known integers is not carried. A
value that no iteration changes is a constant of the loop. If iteration `i` reads only slice `i` of
an array, the scan slices the array. If iteration `i` writes only slice `i`, the scan stacks it.
This undoes the lowering of `scan`. Elsewhere: counters (`counters.py`), indices of slices
(`loop_places.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from iree.compiler import ir

from axir.dialect.core.annotations import Extent
from axir.dialect.core.array import from_numpy
from axir.dialect.core.symbolic_dims import are_same, is_same
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.control_flow.closed_bodies import Body, trace_body
from axir.dialect.ops.control_flow.scan import bind_scan
from axir.dialect.ops.elementwise.arithmetic import add, mul
from axir.dialect.ops.shape.rearranging import reshape, rev
from axir.dialect.program.equation import Equation, Literal, Var
from axir.dialect.program.op_table import OPS
from axir.dialect.program.rules import Results, Value
from axir.dialect.program.walk import Environment, apply_equations, backward_slice

from .counters import Counter, counter_of, varying_places
from .loop_places import Places
from .table import RaisingContext, Region, recorded


def counted_loop(
    context: RaisingContext, operation: ir.Operation, init: Sequence[Value]
) -> Sequence[Value] | None:
    """Returns the results of a loop that counts to a known number; None for others."""
    counter = counter_of(context, operation)
    if counter is None:
        return None
    varying = [place for place in varying_places(operation) if place != counter.place]
    with context.presuming(f"1 <= {counter.length}" if counter.may_not_run else None):
        body = _body_of(context, operation, init, counter, varying)
        parts = _Parts(context, body, counter)
    results = parts.bind([init[place] for place in varying])
    whole = list(init)
    for place, value in zip(varying, results, strict=True):
        whole[place] = value
    end = counter.start + counter.step * counter.length
    whole[counter.place] = context.extents_value([end], (), init[counter.place].dtype)
    return whole


# Bodies -----------------------------------------------------------------------------------------


def _body_of(
    context: RaisingContext,
    operation: ir.Operation,
    init: Sequence[Value],
    counter: Counter,
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

    def __init__(self, context: RaisingContext, body: Body, counter: Counter):
        self.function, self.captured, self.counter = body.function, body.captured, counter
        split = len(body.captured)
        inputs = list(self.function.inputs)
        self.consts, self.carry, self.index = inputs[:split], inputs[split:-1], inputs[-1]
        self.makers = {v: e for e in self.function.equations for v in e.results}
        held = zip(self.consts, map(context.held, self.captured), strict=True)
        known = {variable: extents for variable, extents in held if extents is not None}
        self.places = Places(self.function.equations, self.index, counter, known)
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
            and are_same(equation.params["slice_sizes"], (1, *shape[1:]))
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
        if not are_same(update.type.shape, (1, *shape[1:])):
            return None
        if not self._is_own_place(starts, shape[0], is_reversed):
            return None
        maker = self.makers.get(update)
        behind = tuple(range(1, len(shape)))
        if maker is not None and maker.primitive.name in ("reshape", "broadcast_in_dim"):
            (source,) = maker.operands
            keeps_order = maker.params.get("broadcast_dimensions", behind) == behind
            return source if keeps_order and are_same(source.type.shape, shape[1:]) else update
        return update

    def _is_own_place(self, starts: Sequence[Var], extent: Extent, is_reversed: bool) -> bool:
        """Tells whether a slice starts at the iteration's number, from the front or the end."""
        if not is_same(extent, self.counter.length):
            return False
        if any(self.places.of(v) != (0, 0) for v in starts[1:]):
            return False
        place = self.places.of(starts[0])
        first, step = (extent - 1, -1) if is_reversed else (0, 1)
        return place is not None and is_same(place[0], first) and place[1] == step

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
