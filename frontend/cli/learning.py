"""Losses of saved functions, and gradient steps, for `axir grad`.

Elsewhere: gradients themselves, which are a pass (`transforms.py`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence

import axir
import axir.numpy as jnp
from axir import tree
from axir._bundles.exported import Exported
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import Extent, Options, UserFunction, UserObject
from axir.dialect.core.errors import ParameterError
from axir.export import export


def _squared_error(value: UserObject, target: UserObject) -> UserObject:
    return jnp.mean((value - target) ** 2)


def _cross_entropy(value: UserObject, target: UserObject) -> UserObject:
    return -jnp.mean(jnp.sum(target * axir.nn.log_softmax(value), axis=-1))


LOSSES: dict[str, Callable[[UserObject, UserObject], UserObject]] = {
    "squared-error": _squared_error,
    "cross-entropy": _cross_entropy,
}


def loss_of(exported: Exported, kind: str, number: int) -> Exported:
    """Returns a loss: a function of the same arguments and a target.

    Args:
        exported: The function.
        kind: One of `LOSSES`.
        number: The result that the target is compared with; both are of one type.
    """

    def loss(*args: UserObject, **kwargs: Options) -> dict[str, UserObject]:
        *own, target = args
        return {"loss": LOSSES[kind](tree.leaves(exported(*own, **kwargs))[number], target)}

    target = exported.out_avals[number]
    return _exported(loss, exported, ("target", target.shape, target.dtype))


def step_of(exported: Exported, number: int, names: Sequence[str]) -> Exported:
    """Returns a function that updates parameters by a gradient step.

    It takes the arguments and a rate, and returns the function's results.

    Args:
        exported: The function.
        number: The result that is made smaller, a real scalar.
        names: The parameters.

    Raises:
        ParameterError: if the function has no parameters.
    """
    if not names:
        raise ParameterError(
            f"{exported.fun_name!r} has no parameters that a step could replace.",
            "Weights of modules become parameters where a bundle is written: -o model.axir.",
            where="",
        )

    def step(*args: UserObject, **kwargs: Options) -> tuple[dict[str, UserObject], UserObject]:
        *own, rate = args

        def value(changed: dict[str, UserObject]) -> tuple[UserObject, UserObject]:
            found = exported.with_parameters(changed)(*own, **kwargs)
            return tree.leaves(found)[number], found

        before = {name: exported.parameters[name] for name in names}
        gradient, found = axir.grad(value, has_aux=True)(before)
        after = {name: x - (rate * gradient[name]).astype(x.dtype) for name, x in before.items()}
        return after, found

    kind = exported.out_avals[number]
    if kind.shape or not dtypes.is_float(kind.dtype):
        raise ParameterError(
            f"A step makes a real scalar smaller; result {number} is {kind}.",
            "Name a loss of it: --loss squared-error, --loss cross-entropy.",
            where="",
        )
    updates = {name: f"result[0][{name!r}]" for name in names}
    rate = ("rate", (), exported.out_avals[number].dtype)
    return _exported(step, exported, rate, updates)


def _exported(
    function: UserFunction,
    exported: Exported,
    addition: tuple[str, tuple[Extent, ...], UserObject],
    updates: dict[str, str] | None = None,
) -> Exported:
    """Exports a function of the arguments of another one, and of one more array behind them.

    Args:
        function: What to export.
        exported: The function that has the arguments.
        addition: Name, shape and dtype of the array.
        updates: As for `export`.
    """
    name, shape, dtype = addition
    kinds = inspect.Parameter
    named = list(exported.__signature__.parameters.values())
    place = next((n for n, x in enumerate(named) if x.kind == kinds.KEYWORD_ONLY), len(named))
    if any(x.name == name for x in named):
        raise ParameterError(
            f"{exported.fun_name!r} has an argument {name!r} already.",
            "Export the function with another name for it.",
            where="",
        )
    named.insert(place, kinds(name, kinds.POSITIONAL_OR_KEYWORD))
    function.__signature__ = inspect.Signature(named)  # type: ignore[attr-defined]
    flat = [axir.ShapeDtypeStruct(x.shape, x.dtype) for x in exported.in_avals]
    given: UserObject = exported.in_tree.unflatten(flat)
    args, kwargs = given
    function.__name__ = exported.fun_name
    exporter: UserObject = export(function, updates=updates or {})
    found: Exported = exporter(*args, axir.ShapeDtypeStruct(shape, dtype), **kwargs)
    return found
