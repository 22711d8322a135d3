"""Programs with checks as programs that carry an error: an interpreter of traced functions.

Each function with checks becomes one that takes an error state in front of its arguments and
returns it in front of its results. Calls, loops and branches call such functions. Elsewhere: the
state (`_state.py`), and the checks of ops (`_automatic.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from axir import lax
from axir.dialect.core.memo import derived, quickly_derived
from axir.dialect.core.state import attributed
from axir.dialect.ops.calls.checks import Check, Signature, check_primitive
from axir.dialect.ops.calls.jit_call import call
from axir.dialect.ops.control_flow.closed_bodies import Body, split, trace_body
from axir.dialect.ops.control_flow.conditional import bind_cond
from axir.dialect.ops.control_flow.scan import Scan, bind_scan
from axir.dialect.ops.control_flow.while_loop import bind_while
from axir.dialect.ops.custom_rules.checkpoint import call_checkpointed
from axir.dialect.ops.sharding.shard_map import whole_function
from axir.dialect.program.equation import Equation
from axir.dialect.program.function import Function, functions_of
from axir.dialect.program.primitive import primitive_of
from axir.dialect.program.rules import Results, Value
from axir.dialect.program.walk import Environment

from ._automatic import Kinds, automatic_checks_of, signatures_of
from ._state import ErrorState, after, state_of, types_of

Signatures: TypeAlias = tuple[Signature, ...]

# Functions of these combine elements of a reduction, in an unspecified order.
_OPAQUE = ("reduce", "reduce_window", "select_and_scatter", "scatter_apply")


def all_signatures(function: Function, kinds: Kinds) -> Signatures:
    """Returns the signatures of the checks in a function and those that it calls."""
    return tuple(dict.fromkeys(_signatures(function, kinds)))


@quickly_derived
def _signatures(function: Function, kinds: Kinds) -> tuple[Signature, ...]:
    return tuple(s for e in function.equations for s in _equation_signatures(e, kinds))


@quickly_derived
def _has_checks(function: Function, kinds: Kinds) -> bool:
    """Tells whether a function has checks, or such of its user as are to be dropped."""
    return bool(_signatures(function, kinds)) or any(
        e.primitive is check_primitive or any(_has_checks(f, kinds) for f in _called(e))
        for e in function.equations
    )


def _equation_signatures(equation: Equation, kinds: Kinds) -> Iterator[Signature]:
    if equation.primitive is check_primitive and equation.params["check"].category in kinds:
        yield equation.params["check"].signature
    functions = list(_called(equation))
    if not functions:
        yield from signatures_of(equation, kinds)
    for function in functions:
        yield from _signatures(function, kinds)


def _called(equation: Equation) -> Iterator[Function]:
    """Yields the functions that an op calls; derivative rules are not among them."""
    primitive = primitive_of(equation)
    if primitive.name in _OPAQUE:
        return
    if primitive.body is not None:
        yield primitive.body(**equation.params)
    else:
        yield from functions_of(equation.params)


class Checked(NamedTuple):
    """A function that carries an error state.

    Attributes:
        body: Takes the state and the arguments; returns the state and the results.
        checks: The checks that may fail in it.
    """

    body: Body
    checks: tuple[Check, ...]


@derived
def _checked(function: Function, kinds: Kinds, signatures: Signatures) -> Checked:
    state_types = types_of(signatures)
    run = Run(kinds, signatures)

    def flat(*arguments: Value) -> list[Value]:
        state, rest = run.split(arguments)
        state, results = run.function(function, state, rest)
        return [*state.flat(), *results]

    body = trace_body(flat, [*state_types, *function.in_avals], function.name, "Checkify")
    return Checked(body, tuple(run.checks))


@dataclass
class Run:
    """A walk over functions that carries an error state.

    Attributes:
        kinds: The kinds of checks.
        signatures: Of the payload of the state.
        checks: The checks that may have failed so far, without duplicates.
    """

    kinds: Kinds
    signatures: Signatures
    checks: dict[Check, None] = field(default_factory=dict)

    def split(self, values: Sequence[Value]) -> tuple[ErrorState, list[Value]]:
        """Splits values into a state and the other values."""
        state, rest = split(values, len(types_of(self.signatures)))
        return state_of(state, self.signatures), rest

    def function(
        self, function: Function, state: ErrorState, arguments: Sequence[Value]
    ) -> tuple[ErrorState, list[Value]]:
        """Applies a function op by op to values of its inputs and captures."""
        environment = Environment.of(function, arguments)
        for equation in attributed(function.equations):
            operands = environment.values_of(equation.operands)
            state, results = self.equation(function, equation, state, operands)
            environment.store(equation, results)
        return state, environment.values_of(function.outputs)

    def equation(
        self, function: Function, equation: Equation, state: ErrorState, operands: list[Value]
    ) -> tuple[ErrorState, Results]:
        """Applies an op, with its checks."""
        primitive, params = equation.primitive, equation.params
        if primitive is check_primitive:
            if params["check"].category not in self.kinds:
                return state, []  # checks that were not requested are left out
            holds, *payload = operands
            return self._after(state, holds, params["check"], payload), []
        if any(True for f in _called(equation) if _has_checks(f, self.kinds)):
            return _RULES.get(primitive.name, Run._apart)(self, equation, state, operands)
        results = primitive.bind(*operands, **params)
        listed = results if primitive.multiple_results else [results]
        if any(_called(equation)):
            return state, results
        for found in automatic_checks_of(function, equation, operands, listed, self.kinds):
            state = self._after(state, found.holds, found.check, found.payload)
        return state, results

    def _after(
        self, state: ErrorState, holds: Value, check: Check, payload: Sequence[Value]
    ) -> ErrorState:
        self.checks[check] = None
        return after(state, self.signatures, holds, check, payload)

    def of(self, function: Function) -> Body:
        """Returns a function with the state in front of its arguments and results."""
        made = _checked(function, self.kinds, self.signatures)
        self.checks.update(dict.fromkeys(made.checks))
        return made.body

    # Ops that call functions -----------------------------------------------------------------

    def _jit(
        self, equation: Equation, state: ErrorState, operands: list[Value]
    ) -> tuple[ErrorState, Results]:
        body = self.of(equation.params["jaxpr"])
        return self.split(call(body.function, *body.captured, *state.flat(), *operands))

    def _checkpoint(
        self, equation: Equation, state: ErrorState, operands: list[Value]
    ) -> tuple[ErrorState, Results]:
        body, params = self.of(equation.params["jaxpr"]), equation.params
        arguments = [*body.captured, *state.flat(), *operands]
        results = call_checkpointed(
            body.function, arguments, params["policy"], params["prevent_cse"]
        )
        return self.split(results)

    def _cond(
        self, equation: Equation, state: ErrorState, operands: list[Value]
    ) -> tuple[ErrorState, Results]:
        index, *rest = operands
        branches = [self.of(branch) for branch in equation.params["branches"]]
        return self.split(bind_cond(index, branches, [*state.flat(), *rest]))

    def _scan(
        self, equation: Equation, state: ErrorState, operands: list[Value]
    ) -> tuple[ErrorState, Results]:
        loop = Scan(operands, **equation.params)
        body, count = self.of(loop.body), len(loop.consts)

        # Constants stand in front of the carry, and the state becomes a part of that.
        def reordered(*arguments: Value) -> list[Value]:
            consts, carried, rest = split(arguments, count, len(state.flat()))
            return body.function.interpret([*body.captured, *carried, *consts, *rest])

        types = [x.type for x in (*loop.consts, *state.flat(), *loop.carry)]
        slices = body.function.input_types[-len(loop.xs) :] if loop.xs else []
        carry, ys = bind_scan(
            trace_body(reordered, [*types, *slices], loop.body.name, "Checkify"),
            loop.consts,
            [*state.flat(), *loop.carry],
            loop.xs,
            **loop.options,
        )
        state, carry = self.split(carry)
        return state, [*carry, *ys]

    def _while(
        self, equation: Equation, state: ErrorState, operands: list[Value]
    ) -> tuple[ErrorState, Results]:
        params = equation.params
        first, second, carry = split(operands, params["cond_nconsts"], params["body_nconsts"])
        condition, body = self.of(params["cond_jaxpr"]), self.of(params["body_jaxpr"])

        def ask(state: ErrorState, carry: Sequence[Value]) -> tuple[ErrorState, Value]:
            arguments = [*condition.captured, *state.flat(), *first, *carry]
            state, (holds,) = self.split(condition.function.interpret(arguments))
            return state, holds

        # The condition may fail, too: it is asked in front of the loop and at the end of each pass.
        def advance(holds: Value, *values: Value) -> list[Value]:
            state, carry = self.split(values)
            arguments = [*body.captured, *state.flat(), *second, *carry]
            state, carry = self.split(body.function.interpret(arguments))
            state, holds = ask(state, carry)
            return [holds, *state.flat(), *carry]

        state, holds = ask(state, carry)
        init = [holds, *state.flat(), *carry]
        types = [x.type for x in init]
        results = bind_while(
            trace_body(lambda holds, *values: [holds], types, "condition", "Checkify"),
            trace_body(advance, types, params["body_jaxpr"].name, "Checkify"),
            init,
        )
        return self.split(results[1:])

    def _shard_map(
        self, equation: Equation, state: ErrorState, operands: list[Value]
    ) -> tuple[ErrorState, Results]:
        """Checks the function of whole arrays that a map over a mesh is."""
        body = self.of(whole_function(**equation.params))
        return self.split(call(body.function, *body.captured, *state.flat(), *operands))

    def _apart(
        self, equation: Equation, state: ErrorState, operands: list[Value]
    ) -> tuple[ErrorState, Results]:
        """Applies an op with custom derivatives; computes the state from the called function."""
        results = equation.primitive.bind(*operands, **equation.params)
        body_rule = primitive_of(equation).body
        if body_rule is not None:
            seen = [lax.stop_gradient(x) for x in operands]
            body = body_rule(**equation.params)
            state, _ = self.function(body, state, seen)
        return state, results


_Rule: TypeAlias = Callable[[Run, Equation, ErrorState, list[Value]], tuple[ErrorState, Results]]
_RULES: dict[str, _Rule] = {
    "jit": Run._jit,
    "checkpoint": Run._checkpoint,
    "cond": Run._cond,
    "scan": Run._scan,
    "while": Run._while,
    "shard_map": Run._shard_map,
}
