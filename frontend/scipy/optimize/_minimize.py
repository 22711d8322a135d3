"""`minimize` (found in `axir.scipy.optimize`): the choice of a method, and its arguments."""

from __future__ import annotations

import inspect
from collections.abc import Mapping

import axir.numpy as jnp
from axir import lax
from axir._arguments.arguments import check_callable
from axir._transforms.autodiff import value_and_grad
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import Options, UserFunction
from axir.dialect.core.array import ArrayLike
from axir.dialect.core.errors import DTypeError, ParameterError, ShapeError, TreeError
from axir.dialect.program.rules import Value
from axir.numpy._arguments.promotion import promote_inexact

from ._bfgs import minimize_bfgs
from ._lbfgs import minimize_lbfgs
from ._line_search import Objective, OptimizeResults

_METHODS: dict[str, UserFunction] = {
    "bfgs": minimize_bfgs,
    "l-bfgs": minimize_lbfgs,
    "l-bfgs-experimental-do-not-rely-on-this": minimize_lbfgs,
}
_TOLERANCES = {minimize_bfgs: ("gtol",), minimize_lbfgs: ("ftol", "gtol")}


def minimize(
    fun: UserFunction,
    x0: ArrayLike,
    args: tuple[Options, ...] = (),
    *,
    method: str,
    tol: ArrayLike | None = None,
    options: Mapping[str, Options] | None = None,
) -> OptimizeResults:
    """Looks for a local minimum of a function, by its gradient.

    Args:
        fun: From an array of shape (n,), and `args`, to a real scalar. Its operations must have
            derivatives in reverse mode.
        x0: The starting point, of shape (n,); integers become floats. Complex numbers are for
            L-BFGS, which takes their real and imaginary parts as variables.
        args: Further arguments of `fun`.
        method: 'BFGS', or 'L-BFGS', which remembers the last moves instead of a matrix, and is
            also called 'l-bfgs-experimental-do-not-rely-on-this'.
        tol: The tolerance: `gtol`, and of L-BFGS also `ftol`.
        options: Of BFGS `maxiter` (200 n), `norm` (inf), `gtol` (1e-5) and `line_search_maxiter`
            (10); of L-BFGS `maxiter`, `norm` (inf), `maxcor` (10), `ftol` (2.2e-9), `gtol` (1e-5),
            `maxfun`, `maxgrad` and `maxls` (20). A minimum is where the norm of the gradient is
            below `gtol`, or where L-BFGS decreases the value by less than `ftol`, relatively.

    Returns:
        An `OptimizeResults`. Its status is 0 for a small gradient, 1 after `maxiter` passes. Of
        BFGS it is 2 if a line search found nothing lower, mostly for want of precision, and 3 for
        a value that is not finite. Of L-BFGS it is 2 and 3 after `maxfun` and `maxgrad`
        evaluations, 4 for a small decrease, which is a success too, 5 if a line search found
        nothing lower, and 6 for a value that is not finite.

    Raises:
        ParameterError: for another method, or an option that it does not have.
        ShapeError: if `x0` is not of rank 1.
        DTypeError: if `x0` is complex and the method is BFGS.
        TreeError: if `args` is no tuple.

    The result has derivatives in forward mode only, through the iterations that were run.

    >>> import axir, axir.numpy as jnp
    >>> def rosenbrock(x, a):
    ...     return (a - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2
    >>> find = axir.jit(lambda a: minimize(rosenbrock, jnp.zeros(2), (a,), method="BFGS").x)
    >>> find(1.0).round(2)
    Array([1., 1.], dtype=float32)
    """
    check_callable(fun, "minimize")
    minimizer = _METHODS.get(str(method).lower())
    if minimizer is None:
        raise ParameterError(
            f"minimize: method {method!r} is not one that axir has.", "Pass 'BFGS' or 'L-BFGS'."
        )
    if not isinstance(args, tuple):
        raise TreeError(
            f"minimize: args is of type {type(args).__name__!r}, and must be a tuple.",
            "A single argument is written args=(a,).",
        )
    chosen = dict(options or {})
    known = [name for name in inspect.signature(minimizer).parameters][2:]
    unknown = sorted(set(chosen) - set(known))
    if unknown:
        raise ParameterError(
            f"minimize: method {method!r} has no option {unknown[0]!r}.",
            f"Its options are {', '.join(known)}.",
        )
    if tol is not None:
        chosen = {**dict.fromkeys(_TOLERANCES[minimizer], tol), **chosen}
    (x,) = promote_inexact("minimize", x0)
    if x.ndim != 1:
        raise ShapeError(
            f"minimize: x0 must be of shape (n,), but is of shape {x.shape}.",
            "Flatten it with axir.flatten_util.ravel_pytree.",
        )
    x = lax.convert_element_type(x, x.dtype)  # without a weak type

    def objective(x: Value) -> tuple[Value, Value]:
        value, gradient = value_and_grad(fun)(x, *args)
        return value.astype(dtypes.real_dtype(x.dtype)), gradient

    if not dtypes.is_complex(x.dtype):
        return minimizer(objective, x, **chosen)
    if minimizer is minimize_bfgs:
        raise DTypeError(
            f"minimize: BFGS minimizes over real numbers, but x0 is of dtype {x.dtype}.",
            "Use method='L-BFGS', or take real and imaginary parts as variables.",
        )
    return _over_parts(objective, x, chosen)


def _over_parts(objective: Objective, x: Value, options: dict[str, Options]) -> OptimizeResults:
    """Minimizes over real and imaginary parts, which follow each other in one vector."""

    def joined(parts: Value) -> Value:
        return lax.complex(parts[: x.size], parts[x.size :])

    def by_parts(parts: Value) -> tuple[Value, Value]:
        value, gradient = objective(joined(parts))
        return value, jnp.concatenate([gradient.real, -gradient.imag])

    result = minimize_lbfgs(by_parts, jnp.concatenate([x.real, x.imag]), **options)
    return result._replace(x=joined(result.x), jac=jnp.conj(joined(result.jac)))
