"""`fwd_and_bwd`: the forward and the backward pass as two functions that compile once each."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from axir._arguments.argnums import normalize_argnums, select_arguments
from axir._arguments.arguments import check_callable, flat_arguments
from axir.dialect.core.annotations import Tree, UserFunction, UserObject
from axir.dialect.program.function_tracing import function_name

from .autodiff import Derivative
from .jit import jit
from .linearization import Pullback


def fwd_and_bwd(
    fun: Callable[..., object],
    argnums: int | Sequence[int],
    has_aux: bool = False,
    jitted: bool = True,
) -> tuple[UserFunction, UserFunction]:
    """Returns the forward and the backward pass of a function.

    `vjp` returns a new function for each call; these two functions compile once. The forward pass
    returns its residuals as a tree of arrays: a pullback of `vjp`. The backward pass takes this
    tree.

    Args:
        fun: Function of arrays or trees of arrays.
        argnums: Which positional arguments to differentiate in.
        has_aux: Whether `fun` returns a pair; only its first element is differentiated.
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

    def forward(*args: object, **kwargs: object) -> UserObject:
        chosen, _ = normalize_argnums(argnums, len(args), "fwd_and_bwd")
        partial = select_arguments(fun, args, kwargs, chosen)
        selected = tuple(args[number] for number in chosen)
        point = flat_arguments(selected, function_name(partial))
        derivative = Derivative(partial, point, has_aux, "Vjp")
        residuals = Pullback(derivative.linearization(), derivative.residuals)
        outputs = derivative.flat.out_tree.unflatten(derivative.outs)
        if has_aux:
            return outputs, residuals, derivative.auxiliary_result()
        return outputs, residuals

    def backward(residuals: Pullback, cotangent: Tree) -> UserObject:
        results = residuals(cotangent)
        return results[0] if isinstance(argnums, int) else results

    return (jit(forward), jit(backward)) if jitted else (forward, backward)
