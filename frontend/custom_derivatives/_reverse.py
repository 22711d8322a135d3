"""`custom_vjp`: functions with a custom reverse-mode rule."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from axir._transforms.gradient_refs import is_ref
from axir._trees import tree
from axir.dialect.core.annotations import Tree, UserFunction, UserObject
from axir.dialect.core.errors import CustomRuleError, UndefinedRuleError, UnexpectedTracerError
from axir.dialect.core.symbolic_zeros import Marks, chosen, inexact, spread
from axir.dialect.ops.custom_rules.bodies import inexact_only
from axir.dialect.ops.custom_rules.custom_lin import Backward, apply_backward
from axir.dialect.ops.custom_rules.custom_vjp import Rules, call_with_vjp
from axir.dialect.ops.elementwise.family import instantiate
from axir.dialect.program.function import Function
from axir.dialect.program.function_tracing import function_name, trace_function
from axir.dialect.program.rules import Value

from ._calls import (
    Applying,
    Call,
    CustomFunction,
    Ran,
    Recorded,
    flatten_result,
    leaked_in_rule,
    recorded,
)
from ._cotangents import cotangents_of
from ._enclosed import enclosed_call, enclosed_pair
from ._zeros import CustomVJPPrimal, shown


class custom_vjp(CustomFunction):
    """A function with a reverse-mode derivative given by the user as a pair of rules.

    When the function is differentiated, the forward rule is called in its place; it returns what
    the function returns, and residuals. The backward rule maps residuals and a cotangent of the
    output to cotangents of the arguments. Forward mode does not know the function then.

    Args:
        fun: Function of arrays or trees of arrays. Keyword arguments are resolved to positions.
        nondiff_argnums: Positional arguments that are not differentiated in and hold no traced
            values, such as functions. The forward rule gets them where the function does, the
            backward rule before its other arguments.
        nondiff_argnames: The same, by name.

    Raises:
        UndefinedRuleError: by a call before the rules were defined.
        CustomRuleError: if a rule returns something else than it must.
        ForwardModeError: in forward mode.
        UnexpectedTracerError: if the function is differentiated in a value that it closes over,
            or a `nondiff_argnums` argument is traced.

    >>> import axir, axir.numpy as jnp
    >>> @axir.custom_vjp
    ... def clip_gradient(limit, x):
    ...     return x
    >>> def forward(limit, x):
    ...     return x, limit
    >>> def backward(limit, ct):
    ...     return None, jnp.clip(ct, -limit, limit)
    >>> clip_gradient.defvjp(forward, backward)
    >>> float(axir.grad(lambda x: 10 * clip_gradient(0.5, x))(1.0))
    0.5
    """

    kind, rules = "custom_vjp", ("fwd", "bwd")
    fwd: UserFunction | None
    bwd: UserFunction | None

    def defvjp(
        self,
        fwd: Callable[..., object],
        bwd: Callable[..., object],
        symbolic_zeros: bool = False,
        optimize_remat: bool = False,
    ) -> None:
        """Defines the rules.

        Args:
            fwd: Takes the arguments of the function; returns `(output, residuals)`.
            bwd: `(*nondiff arguments, residuals, cotangent) -> cotangents`, a tuple with an entry
                for each differentiable argument. None stands for zeros.
            symbolic_zeros: Whether `fwd` gets its arguments as `CustomVJPPrimal`, which marks
                differentiated arguments, and `bwd` known zeros as `SymbolicZero`.
            optimize_remat: Accepted for compatibility; results that are not needed are dropped
                anyhow.
        """
        self.fwd, self.bwd = fwd, bwd
        self.symbolic_zeros = symbolic_zeros
        self.recorded.clear()

    def _check_defined(self) -> None:
        if self.fwd is None or self.bwd is None:
            name = function_name(self.fun)
            raise UndefinedRuleError(
                f"No VJP defined for custom_vjp function {name} using defvjp.",
                f"Define it with {name}.defvjp(fwd, bwd).",
            )

    def _applying(self, call: Call) -> Applying:
        if call.has_fixed_tracers:
            raise UnexpectedTracerError(
                f"Found a traced value in an argument of the custom_vjp function {call.name!r} "
                f"that nondiff_argnums={call.fixed} declares as non-differentiable.",
                "nondiff_argnums is for arguments that hold no traced values, such as functions: "
                "pass arrays as ordinary arguments, and return None as their cotangents.",
            )
        return _Applying(self, call)


class _Applying(Applying):
    """A call of a `custom_vjp` function on its way into a trace."""

    def __init__(self, custom: custom_vjp, call: Call):
        assert custom.fwd is not None
        assert custom.bwd is not None
        super().__init__(custom, call)
        self.fwd, self.bwd = custom.fwd, custom.bwd
        self.fwd_name, self.bwd_name = function_name(custom.fwd), function_name(custom.bwd)
        self.argument_types = [x.type for x in call.operands]

    # Values known -------------------------------------------------------------------------------

    def _run_rule(self, values: Sequence[Value], operands: Sequence[Value], moving: Marks) -> Ran:
        outs, residuals, backward = self._forward(values, moving)
        marks = chosen(moving, inexact(self.argument_types))

        def push(residuals: list[Value], tangents: list[Value]) -> list[Value]:
            # Tangents only wait here for the transposition, which calls the backward rule.
            full = map(instantiate, spread(tangents, marks, backward.argument_types))
            return apply_backward(backward, residuals, list(full), self.call.name)

        return outs, residuals, push

    # Types known --------------------------------------------------------------------------------

    def record(self, operands: Sequence[Value]) -> list[Value]:
        """Records the call; its rules run when a transformation needs them."""
        found = recorded(self.custom.recorded, self.call, self._trace)
        self.out_tree = found.out_tree
        function, rules = found.function, found.rules
        known = enclosed_call(self, operands, found, self.fwd, enclosed_pair)
        if known is not None:
            function, rules, operands = known.function, known.rules, known.all_operands(operands)
        return call_with_vjp(function, rules, operands, self.symbolic_zeros, self.call.name)

    def _trace(self) -> Recorded:
        types, name = self.argument_types, self.call.name
        function = trace_function(self._run, types, name=name, kind="Vjp")
        expected, structure = function.output_types, self.out_tree
        what = f"{self._must_produce_a_pair()} (equal to the output of {name})"
        way_out = f"Return ({name}(...), residuals)."

        def trace(active: Marks) -> tuple[Function, Backward]:
            backward: list[Backward] = []

            def apply(*values: Value) -> list[Value]:
                try:
                    outs, residuals, found = self._forward(values, active)
                except UnexpectedTracerError as error:
                    raise leaked_in_rule("custom_vjp", self.fwd_name, error) from error
                self._check_primal_output(outs, expected, structure, what, way_out)
                backward.append(found)
                return [*outs, *residuals]

            return trace_function(apply, types, name=self.fwd_name, kind="Vjp"), backward[0]

        rules = Rules(self.fwd_name, self.bwd_name, trace, inexact(types), self.symbolic_zeros)
        return Recorded(self.call, function, rules, structure)

    # The user's rules ---------------------------------------------------------------------------

    def _must_produce_a_pair(self) -> str:
        return (
            f"Custom VJP fwd rule {self.fwd_name} for function {self.call.name} must produce a "
            "pair (list or tuple of length two) where the first element represents the primal "
            "output"
        )

    def _forward(
        self, values: Sequence[Value], active: Sequence[bool]
    ) -> tuple[list[Value], list[Value], Backward]:
        """Calls `fwd`; returns flat results and residuals, and the backward rule for these."""
        leaves: Sequence[UserObject] = values
        if self.symbolic_zeros:
            leaves = [CustomVJPPrimal(x, bool(a)) for x, a in zip(values, active, strict=True)]
        result = self.fwd(*self.call.arguments(values, leaves))
        if not isinstance(result, (tuple, list)) or len(result) != 2:
            raise CustomRuleError(
                f"{self._must_produce_a_pair()} (equal to the output of {self.call.name}) and the "
                "second element represents residuals, but instead of a pair the fwd rule produced "
                f"{result}.",
                "Return (output, residuals); residuals may be None.",
            )
        outs, self.out_tree = flatten_result(result[0], f"Primal output of {self.fwd_name!r} ")
        others = _no_values(result[1])
        kept, structure = tree.flatten(result[1])
        kept = [None if n in others else x for n, x in enumerate(kept)]
        residuals, _ = flatten_result(structure.unflatten(kept), f"Residual of {self.fwd_name!r} ")
        out_tree, out_types = self.out_tree, [x.type for x in outs]

        def backward(residuals: Sequence[Value], cotangents: Sequence[object]) -> list[UserObject]:
            full = spread(cotangents, inexact(out_types), out_types)
            given = out_tree.unflatten([shown(ct, self.symbolic_zeros) for ct in full])
            fixed = self.call.rule_arguments(self.call.operands)
            try:
                result = self.bwd(*fixed, _rebuilt(structure, residuals, others), given)
            except UnexpectedTracerError as error:
                raise leaked_in_rule("custom_vjp", self.bwd_name, error) from error
            return cotangents_of(result, self.call, self.argument_types, self.bwd_name)

        rule = Backward(
            self.bwd_name,
            backward,
            [x.type for x in residuals],
            inexact_only(out_types),
            inexact_only(self.argument_types),
            self.symbolic_zeros,
        )
        return outs, residuals, rule


def _no_values(residuals: Tree) -> dict[int, object]:
    """Returns Python's bools and refs among residuals by their numbers.

    They control the backward rule, and stay unchanged.
    """
    leaves = tree.leaves(residuals)
    return {n: x for n, x in enumerate(leaves) if type(x) is bool or is_ref(x)}


def _rebuilt(
    structure: tree.TreeDef, residuals: Sequence[Value], others: dict[int, object]
) -> Tree:
    """Rebuilds residuals from those that are values, and the others."""
    remaining = iter(residuals)
    return structure.unflatten(
        [others[n] if n in others else next(remaining) for n in range(structure.num_leaves)]
    )
