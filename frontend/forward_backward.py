"""`fwd_and_bwd`: the forward and the backward pass as two functions that compile once each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from axir.argnums import normalize_argnums, select_arguments
from axir.arguments import check_callable
from axir.autodiff import Derivative, checked_cotangents, pull_through
from axir.custom_derivatives.zeros import materialized
from axir.dialect.function import Function
from axir.dialect.symbolic import Zero
from axir.jit import jit
from axir.tree_registration import register_pytree_node


class _Pullback:
    """What is known of a backward pass once the forward pass is traced: all but the residuals."""

    def __init__(self, derivative: Derivative):
        linear = derivative.result.linear
        self.linear = Function(
            linear.name, linear.op, linear.inputs, linear.captures, (), linear.outputs,
            linear.equations,
        )  # fmt: skip
        self.name = derivative.flat.name
        self.in_tree, self.out_tree = derivative.in_tree, derivative.flat.out_tree
        self.argument_types = [x.type for x in derivative.values]
        self.result_types = [x.type for x in derivative.outs]
        self.active, self.active_outputs = derivative.active, derivative.active_outputs

    def pull(self, residuals: Sequence[Any], cotangent: Any) -> tuple[Any, ...]:
        """Returns the cotangents of the arguments."""
        cotangents = checked_cotangents(cotangent, self.out_tree, self.result_types, self.name)
        results = pull_through(
            self.linear, residuals, cotangents, self.active_outputs, self.active,
            self.argument_types,
        )  # fmt: skip
        leaves = [materialized(ct) if type(ct) is Zero else ct for ct in results]
        arguments: Any = self.in_tree.unflatten(leaves)
        return tuple(arguments[0])


class _Residuals:
    """The residuals of a forward pass: a tree of arrays."""

    def __init__(self, pullback: _Pullback, values: Sequence[Any]):
        self.pullback = pullback
        self.values = tuple(values)


register_pytree_node(_Residuals, lambda r: (r.values, r.pullback), _Residuals)


def fwd_and_bwd(
    fun: Callable[..., Any],
    argnums: int | Sequence[int],
    has_aux: bool = False,
    jitted: bool = True,
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Returns the forward and the backward pass of a function.

    What `vjp` returns is another function for each call; these two compile once, and what the
    forward pass keeps for the backward pass travels between them as a tree of arrays.

    Args:
        fun: Function of arrays or trees of arrays.
        argnums: Which positional arguments to differentiate in.
        has_aux: Whether `fun` returns a pair of which only the first is differentiated.
        jitted: Whether to compile both. A backward pass that is compiled apart from its forward
            pass compiles anew for each call of that.

    Returns:
        `forward(*args)`, which returns `(outputs, residuals)`, and with `has_aux` the auxiliary
        result third; and `backward(residuals, cotangent)`, which returns the cotangent of the
        argument `argnums`, or a tuple of them if that is a sequence.

    Raises:
        GradientError: by `backward`, if a cotangent has another shape or dtype than its output.
        TreeError: by `backward`, if the cotangent has another structure than the outputs.

    >>> import axir
    >>> forward, backward = axir.fwd_and_bwd(lambda x, y: x * y, argnums=(0, 1))
    >>> out, residuals = forward(2.0, 3.0)
    >>> float(out), [float(ct) for ct in backward(residuals, 1.0)]
    (6.0, [3.0, 2.0])
    """
    check_callable(fun, "fwd_and_bwd")

    def forward(*args: Any, **kwargs: Any) -> Any:
        chosen, _ = normalize_argnums(argnums, len(args), "fwd_and_bwd")
        partial = select_arguments(fun, args, kwargs, chosen)
        selected = tuple(args[number] for number in chosen)
        derivative = Derivative(partial, selected, has_aux, "Vjp")
        residuals = _Residuals(_Pullback(derivative), derivative.result.linear.captured)
        outputs = derivative.flat.out_tree.unflatten(derivative.outs)
        if has_aux:
            return outputs, residuals, derivative.auxiliary_result()
        return outputs, residuals

    def backward(residuals: _Residuals, cotangent: Any) -> Any:
        results = residuals.pullback.pull(residuals.values, cotangent)
        return results[0] if isinstance(argnums, int) else results

    return (jit(forward), jit(backward)) if jitted else (forward, backward)
