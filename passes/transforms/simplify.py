"""The `simplify` pass: inlining, dead code, common subexpressions, constants, identities.

One walk does all of this, because the function is traced again: an op on constants is evaluated
when it is bound, and a primitive's `simplify` rule may return one of its operands.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

from iree.compiler import ir

from axir.dialect.core.array import ConcreteArray
from axir.dialect.core.state import attributed
from axir.dialect.program.derived_functions import derive, transformation
from axir.dialect.program.effects import is_effectful
from axir.dialect.program.equation import Equation, Var
from axir.dialect.program.function import Function
from axir.dialect.program.function_tracing import restricted
from axir.dialect.program.primitive import primitive_of
from axir.dialect.program.rules import Value
from axir.dialect.program.tracer import Trace, Tracer
from axir.dialect.program.walk import Environment, backward_slice
from axir.passes.framework.base import Pass
from axir.passes.framework.errors import OptionValueError
from axir.passes.framework.module_functions import replace_functions

from .diagonals import shorten_diagonals

# A callee of at most this many ops is copied to each of its callers.
_SMALL = 64
# Folding must not turn a few bytes of text into a large constant.
_LARGEST_FOLDED = 64


def live_equations(
    function: Function, simplify: Callable[[Function], Function] = lambda body: body
) -> list[Equation]:
    """Returns the equations on which the outputs depend, in order.

    Args:
        function: The function with the equations.
        simplify: Simplifies the bodies of control flow.
    """

    def reduced(equation: Equation, needed: set[Var]) -> Equation:
        reduce = primitive_of(equation).reduced
        if reduce is None:
            return equation
        return reduce(equation, [v in needed for v in equation.results], simplify)

    return backward_slice(
        function.equations, function.outputs, is_kept=is_effectful, enter=reduced
    ).equations


class _Simplifier:
    """Writes a function's simplified ops into a trace."""

    def __init__(
        self, call_counts: dict[str, int], inline: str, is_final: bool, folds: bool = True
    ):
        self.call_counts = call_counts
        self.inline = inline
        self.folds = folds
        self.is_final = is_final
        self.available: dict[Hashable, list[Value]] = {}

    def run(self, function: Function, arguments: Sequence[Value]) -> list[Value]:
        environment = Environment.of(function, arguments)
        for equation in attributed(live_equations(function, self.simplified)):
            results = self.apply(equation, environment.values_of(equation.operands))
            environment.update(zip(equation.results, results, strict=True))
        return environment.values_of(function.outputs)

    def simplified(self, body: Function) -> Function:
        """Returns a body of control flow with fewer ops."""
        return derive(body, "simplify", self.inline, self.is_final)

    def apply(self, equation: Equation, operands: list[Value]) -> list[Value]:
        primitive = primitive_of(equation)
        callee = equation.params.get("jaxpr") if primitive.is_call else None
        if callee is not None and self.should_inline(callee):
            return self.run(callee, operands)
        if self.is_final and primitive.body is not None:
            body = primitive.body(**equation.params)
            if body is not None:
                return self.run(body, operands)
        if primitive.chosen_body is not None:
            chosen = primitive.chosen_body(*operands, **equation.params)
            if chosen is not None:
                return self.run(*chosen)
        if primitive.simplify is not None:
            simpler = primitive.simplify(*operands, **equation.params)
            if simpler is not None and simpler.type == equation.results[0].type:
                return [simpler]
        key = _key(equation, operands)
        known = self.available.get(key) if key is not None else None
        if known is not None:
            return known
        results = self.bind(equation, operands)
        if key is not None:
            self.available[key] = results
        return results

    def bind(self, equation: Equation, operands: list[Value]) -> list[Value]:
        primitive = equation.primitive
        tracers = [x for x in operands if type(x) is Tracer]
        if tracers or self.is_foldable(equation):
            results = primitive.bind(*operands, **equation.params)
        else:
            results = self.trace.record(primitive, operands, equation.params)
        return list(results) if primitive.multiple_results else [results]

    def is_foldable(self, equation: Equation) -> bool:
        primitive = equation.primitive
        if not self.folds:
            return False
        if primitive.evaluate is None or primitive.is_staged or is_effectful(equation):
            return False
        types = [v.type for v in equation.results]
        return all(not t.is_open and t.size <= _LARGEST_FOLDED for t in types)

    def should_inline(self, callee: Function) -> bool:
        if self.inline == "auto":
            is_single = self.call_counts.get(callee.symbol_name, 0) <= 1
            return is_single or len(callee.equations) <= _SMALL
        return self.inline == "all"

    trace: Trace


def _key(equation: Equation, operands: Sequence[Value]) -> Hashable:
    """Returns a key that equal ops share, or None if parameters cannot be compared."""
    sources = tuple(
        (x.host().tobytes(), x.type) if type(x) is ConcreteArray and not x.shape else id(x)
        for x in operands
    )
    if is_effectful(equation):
        return None
    if equation.primitive.is_commutative:
        sources = tuple(sorted(sources, key=repr))
    try:
        key = (equation.primitive.name, sources, tuple(equation.params.items()))
        hash(key)
    except TypeError:
        return None
    return key


def _count_calls(function: Function, counts: dict[str, int]) -> None:
    for callee in function.callees():
        is_new = callee.symbol_name not in counts
        counts[callee.symbol_name] = counts.get(callee.symbol_name, 0) + 1
        if is_new:
            _count_calls(callee, counts)


@transformation("prune")
def prune_function(function: Function) -> Function:
    """Returns a function without the ops on which its outputs do not depend."""
    equations = live_equations(function)
    return restricted(function, equations, function.inputs, function.outputs, "Simplify")


def simplify_function(function: Function, inline: str = "auto", is_final: bool = False) -> Function:
    """Returns a function that computes the same with fewer ops.

    Args:
        function: The function to simplify; its captures stay captures.
        inline: `auto` for calls of small functions and functions called once, `all` or `none`.
        is_final: Whether the result will not be differentiated, so that ops with derivative rules
            are replaced by their bodies.
    """
    return _simplify(function, inline, is_final, folds=True)


@transformation("simplify")
def simplify_body(function: Function, inline: str, is_final: bool) -> Function:
    """Returns a body of control flow, which has no captures, with fewer ops.

    Constants are not folded: their values would become captures.
    """
    simplified = _simplify(function, inline, is_final, folds=False)
    return function if simplified.captures else simplified


def _simplify(function: Function, inline: str, is_final: bool, folds: bool) -> Function:
    counts: dict[str, int] = {}
    _count_calls(function, counts)
    simplifier = _Simplifier(counts, inline, is_final, folds)
    with Trace(function.name, "Simplify") as trace:
        simplifier.trace = trace
        inputs = [trace.add_input(v.type) for v in function.inputs]
        # A captured value is captured again, and does not become a literal.
        captures = cast("list[Tracer]", [trace.lift(x) for x in function.captured])
        outputs = simplifier.run(function, [*inputs, *captures])
        simplified = trace.finish(outputs)
    shortened = shorten_diagonals(simplified) if is_final else simplified
    return simplified if shortened is simplified else prune_function(shortened)


@dataclass(frozen=True)
class Simplify(Pass):
    """Computes the same with fewer ops.

    Algorithm:
        1. Find the ops on which the results depend; the others are dropped.
        2. Walk those in order. Replace a call by the ops of its function (see `inline`).
        3. Evaluate an op on constants if its result is small.
        4. Where the primitive's `simplify` rule finds an identity (x * 1, a reshape to the same
           shape ...), use the operand it returns.
        5. Use the earlier results of an equal op, else copy the op.

    Before:
        ```mlir
        func.func @main(%x: tensor<f32>) -> tensor<f32> {
          %one = "jaxpr.constant"() {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
          %0 = "jaxpr.sin"(%x) : (tensor<f32>) -> tensor<f32>
          %1 = "jaxpr.sin"(%x) : (tensor<f32>) -> tensor<f32>
          %2 = "jaxpr.mul"(%1, %one) : (tensor<f32>, tensor<f32>) -> tensor<f32>
          %3 = "jaxpr.add"(%0, %2) : (tensor<f32>, tensor<f32>) -> tensor<f32>
          return %3 : tensor<f32>
        }
        ```
    After:
        ```mlir
        func.func @main(%x: tensor<f32>) -> tensor<f32> {
          %0 = "jaxpr.sin"(%x) : (tensor<f32>) -> tensor<f32>
          %1 = "jaxpr.add"(%0, %0) : (tensor<f32>, tensor<f32>) -> tensor<f32>
          return %1 : tensor<f32>
        }
        ```

    Preconditions:
        All ops are of the jaxpr dialect.

    Attributes:
        inline: `auto` for calls of small functions and functions called once, `all` or `none`.
    """

    name: ClassVar[str] = "simplify"
    inline: str | None = "auto"

    def run(self, module: ir.Module) -> None:
        """Simplifies each public function."""
        inline = "none" if self.inline is None else self.inline
        if inline not in ("auto", "all", "none"):
            raise OptionValueError(f"simplify: inline={inline!r} is none of auto, all, none.")
        replace_functions(
            module,
            lambda functions: {n: simplify_function(f, inline) for n, f in functions.items()},
        )
