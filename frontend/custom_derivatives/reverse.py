"""`custom_vjp`: functions with a reverse-mode rule of their own."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from axir import tree
from axir.arguments import Value
from axir.custom_derivatives.calls import (
    Applying,
    Call,
    Recorded,
    closes_over_abstract,
    flatten_result,
    forwarded,
    leaked_in_rule,
    numbers_of,
    positional,
    recorded,
)
from axir.custom_derivatives.cotangents import cotangents_of
from axir.custom_derivatives.zeros import CustomVJPPrimal, shown
from axir.dialect.errors import CustomRuleError, UndefinedRuleError, UnexpectedTracerError
from axir.dialect.ops.custom_rules.applied import (
    Applied,
    moving_operands,
    outside_values,
    push_backward,
    record_applied,
    values_of,
)
from axir.dialect.ops.custom_rules.bodies import inexact
from axir.dialect.ops.custom_rules.custom_lin import Backward
from axir.dialect.ops.custom_rules.custom_vjp import Rules, call_with_vjp
from axir.dialect.ops.custom_rules.perturbed import reached
from axir.dialect.symbolic import Zero
from axir.dialect.trace import function_name, trace_function
from axir.dialect.tracer import Trace


class custom_vjp:
    """A function whose reverse-mode derivative is a pair of rules that you give.

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

    def __init__(
        self,
        fun: Callable[..., Any],
        nondiff_argnums: int | Sequence[int] = (),
        nondiff_argnames: str | Sequence[str] = (),
    ):
        functools.update_wrapper(self, fun)
        self.fun = fun
        self.nondiff_argnums = numbers_of(fun, nondiff_argnums, nondiff_argnames)
        self.fwd: Callable[..., Any] | None = None
        self.bwd: Callable[..., Any] | None = None
        self.symbolic_zeros = False
        self.recorded: dict[Any, Recorded] = {}

    def __repr__(self) -> str:
        return f"<axir.custom_vjp of {self.fun!r}>"

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __getattr__(self, name: str) -> Any:
        return forwarded(self, name)

    def defvjp(
        self,
        fwd: Callable[..., Any],
        bwd: Callable[..., Any],
        symbolic_zeros: bool = False,
        optimize_remat: bool = False,
    ) -> None:
        """Defines the rules.

        Args:
            fwd: Takes what the function takes; returns `(output, residuals)`.
            bwd: `(*nondiff arguments, residuals, cotangent) -> cotangents`, a tuple with an entry
                for each differentiable argument. None stands for zeros.
            symbolic_zeros: Whether `fwd` gets its arguments as `CustomVJPPrimal`, which tell what
                is differentiated, and `bwd` known zeros as `SymbolicZero`.
            optimize_remat: Accepted for compatibility; results that are not needed are dropped
                anyhow.
        """
        self.fwd, self.bwd = fwd, bwd
        self.symbolic_zeros = symbolic_zeros
        self.recorded.clear()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function; its rules wait for differentiation."""
        if self.fwd is None or self.bwd is None:
            name = function_name(self.fun)
            raise UndefinedRuleError(
                f"No VJP defined for custom_vjp function {name} using defvjp.",
                f"Define it with {name}.defvjp(fwd, bwd).",
            )
        call = Call(self.fun, positional(self.fun, args, kwargs), self.nondiff_argnums)
        if call.has_fixed_tracers:
            raise UnexpectedTracerError(
                f"Found a traced value in an argument of the custom_vjp function {call.name!r} "
                f"that nondiff_argnums={call.fixed} declares as non-differentiable.",
                "nondiff_argnums is for arguments that hold no traced values, such as functions: "
                "pass arrays as ordinary arguments, and return None as their cotangents.",
            )
        applying = _Applying(self, call)
        if call.trace() is not None:
            outs = applying.apply(call.operands)
        else:
            result = self.fun(*call.args)
            if not closes_over_abstract(result, "custom_vjp", call.name):
                return result
            outs = applying.record(call.operands)
        return applying.out_tree.unflatten(outs)


class _Applying(Applying):
    """A call of a `custom_vjp` function on its way into a trace."""

    def __init__(self, custom: custom_vjp, call: Call):
        assert custom.fwd is not None
        assert custom.bwd is not None
        super().__init__(call)
        self.fwd, self.bwd = custom.fwd, custom.bwd
        self.fwd_name, self.bwd_name = function_name(custom.fwd), function_name(custom.bwd)
        self.symbolic_zeros = custom.symbolic_zeros
        self.table = custom.recorded
        self.argument_types = [x.type for x in call.operands]

    # Values known -------------------------------------------------------------------------------

    def _apply_known(self, trace: Trace, operands: Sequence[Value]) -> list[Value]:
        moving = moving_operands(trace, operands)
        values = values_of(trace, operands)
        name = self.call.name
        with trace.outside():
            if not any(moving):
                outs = self.apply(values)
                applied = Applied(name, outs, lambda tangents: [])
                return record_applied(trace, operands, applied, moving)
            if self.symbolic_zeros:
                moving = reached(trace, operands, moving)
            outs, residuals, context = self._forward(values, moving)
        outs = outside_values(trace, outs, "custom_vjp", name)
        residuals = outside_values(trace, residuals, "custom_vjp", name)
        has_tangent = inexact(self.argument_types)
        bwd = Backward(
            self.bwd_name,
            lambda values, cotangents: self._backward(context, values, cotangents),
            [x.type for x in residuals],
            [x.type for x in outs if inexact([x.type])[0]],
            [t for t, has in zip(self.argument_types, has_tangent, strict=True) if has],
            self.symbolic_zeros,
        )
        chosen = [m for m, has in zip(moving, has_tangent, strict=True) if has]
        indices = [index for index, is_moving in enumerate(chosen) if is_moving]
        applied = Applied(name, outs, push_backward(bwd, residuals, indices, name))
        return record_applied(trace, operands, applied, moving)

    # Types known --------------------------------------------------------------------------------

    def record(self, operands: Sequence[Value]) -> list[Value]:
        """Records a call whose rules wait until a transformation asks for them."""
        found = recorded(self.table, self.call, self._trace)
        self.out_tree = found.out_tree
        return call_with_vjp(
            found.function, found.rules, operands, self.symbolic_zeros, self.call.name
        )

    def _trace(self) -> Recorded:
        types = self.argument_types
        function = trace_function(self._run, types, name=self.call.name, kind="Vjp")
        expected, structure = function.output_types, self.out_tree

        def forward(values: Sequence[Value], active: Sequence[bool]) -> tuple[Any, Any, Any]:
            try:
                outs, residuals, context = self._forward(values, active)
            except UnexpectedTracerError as error:
                raise leaked_in_rule("custom_vjp", self.fwd_name, error) from error
            self._check_primal_output(outs, expected, structure)
            return outs, residuals, context

        rules = Rules(
            self.fwd_name,
            self.bwd_name,
            forward,
            self._backward,
            types,
            expected,
            self.symbolic_zeros,
        )
        return Recorded(self.call, function, rules, structure)

    # The user's rules ---------------------------------------------------------------------------

    def _forward(
        self, values: Sequence[Value], active: Sequence[bool]
    ) -> tuple[list[Value], list[Value], Any]:
        """Calls `fwd`; returns flat results and residuals, and the structures of both."""
        leaves: Sequence[Any] = values
        if self.symbolic_zeros:
            leaves = [CustomVJPPrimal(x, bool(a)) for x, a in zip(values, active, strict=True)]
        result = self.fwd(*self.call.arguments(values, leaves))
        if not isinstance(result, (tuple, list)) or len(result) != 2:
            raise CustomRuleError(
                f"Custom VJP fwd rule {self.fwd_name} for function {self.call.name} must produce a "
                "pair (list or tuple of length two) where the first element represents the primal "
                f"output (equal to the output of {self.call.name}) and the second element "
                f"represents residuals, but instead of a pair the fwd rule produced {result}.",
                "Return (output, residuals); residuals may be None.",
            )
        outs, self.out_tree = flatten_result(result[0], f"Primal output of {self.fwd_name!r} ")
        residuals, structure = flatten_result(result[1], f"Residual of {self.fwd_name!r} ")
        return outs, residuals, (self.out_tree, [x.type for x in outs], structure)

    def _backward(
        self, context: Any, residuals: Sequence[Value], cotangents: Sequence[Any]
    ) -> list[Any]:
        """Calls `bwd`; returns cotangents of the float and complex arguments."""
        out_tree, out_types, structure = context
        moving = iter(cotangents)
        full = [
            next(moving) if has else Zero(t.to_tangent_aval())
            for t, has in zip(out_types, inexact(out_types), strict=True)
        ]
        result = self.bwd(
            *self.call.fixed_arguments(self.call.operands),
            structure.unflatten(residuals),
            out_tree.unflatten([shown(ct, self.symbolic_zeros) for ct in full]),
        )
        return cotangents_of(result, self.call, self.argument_types, self.bwd_name)

    def _check_primal_output(
        self, outs: Sequence[Value], expected: Sequence[Any], structure: tree.TreeDef
    ) -> None:
        what = (
            f"Custom VJP fwd rule {self.fwd_name} for function {self.call.name} must produce a "
            "pair (list or tuple of length two) where the first element represents the primal "
            f"output (equal to the output of {self.call.name})"
        )
        way_out = f"Return ({self.call.name}(...), residuals)."
        if self.out_tree != structure:
            raise CustomRuleError(
                f"{what}, but its structure is {self.out_tree}, and that of the function's output "
                f"is {structure}.",
                way_out,
            )
        for out, theirs in zip(outs, expected, strict=True):
            if (out.type.shape, out.type.dtype) != (theirs.shape, theirs.dtype):
                raise CustomRuleError(
                    f"{what}, but it is of type {out.type}, and the function's output of {theirs}.",
                    way_out,
                )
