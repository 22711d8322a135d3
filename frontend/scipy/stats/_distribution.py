"""Distributions as declarations: formulas of a standardized variable become a module of functions.

A distribution gives formulas of y = (x - loc) / scale. Here they become functions of x: outside the
support a formula sees a number inside it, so that no derivative of it is nan, and its value is
replaced; parameters outside their range give nan.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, NamedTuple, TypeAlias

import axir.numpy as jnp
from axir._made_modules import MadeModule
from axir.dialect.core.annotations import P, Returning
from axir.dialect.core.array import ArrayLike
from axir.dialect.program.rules import Value
from axir.numpy._arguments.promotion import promote_inexact, require_real

Formula: TypeAlias = Callable[..., Value]

# Values at and below the lower end of the support, and at and above the upper one.
_ENDS = {"cdf": (0, 1), "logcdf": (-math.inf, 0), "sf": (1, 0), "logsf": (0, -math.inf)}
_RESULTS = {
    "logpdf": "the logarithm of the density",
    "pdf": "the density",
    "cdf": "the probability of numbers up to x",
    "logcdf": "the logarithm of the probability of numbers up to x",
    "sf": "the probability of numbers above x",
    "logsf": "the logarithm of the probability of numbers above x",
    "ppf": "the quantiles, the inverse of `cdf`; nan outside [0, 1]",
    "isf": "the inverse of `sf`; nan outside [0, 1]",
    "logpmf": "the logarithm of the probability of k",
    "pmf": "the probability of k",
}


class Arguments(NamedTuple):
    """The arguments of a function of a distribution.

    Attributes:
        x: Numbers or probabilities.
        parameters: The parameters of the distribution.
        loc: Subtracted from x.
        scale: The difference is divided by it.
    """

    x: ArrayLike
    parameters: tuple[ArrayLike, ...] = ()
    loc: ArrayLike = 0
    scale: ArrayLike = 1


class Distribution(MadeModule, Generic[P]):
    """The module of a distribution. A distribution has some of these functions."""

    logpdf: Callable[P, Value]
    pdf: Callable[P, Value]
    cdf: Callable[P, Value]
    logcdf: Callable[P, Value]
    sf: Callable[P, Value]
    logsf: Callable[P, Value]
    ppf: Returning[Value]
    isf: Returning[Value]
    logpmf: Callable[P, Value]
    pmf: Callable[P, Value]
    entropy: Returning[Value]


def distribution(
    signature: Callable[P, object],
    functions: Mapping[str, Formula],
    first: Mapping[str, str] | None = None,
    without: Mapping[str, str] | None = None,
    others: Mapping[str, Formula] | None = None,
) -> Distribution[P]:
    """Returns the module of a distribution.

    Args:
        signature: Function with the name, the docstring and the parameters of the distribution.
        functions: The functions of the module; each takes the result of `signature`.
        first: Names of first parameters that differ from `signature`.
        without: A parameter of `signature` that a function lacks.
        others: Functions with separate signatures.
    """
    name = f"{__package__}.{signature.__name__}"
    made = {method: _named(function, method, name) for method, function in (others or {}).items()}
    for method, formula in functions.items():
        parameters = dict(inspect.signature(signature).parameters)
        parameters.pop((without or {}).get(method, ""), None)
        given = list(parameters.values())
        given[0] = given[0].replace(name=(first or {}).get(method, given[0].name))
        shown = inspect.Signature(given, return_annotation="Value")
        made[method] = _named(_calling(signature, formula, shown), method, name)
        made[method].__doc__ = _documentation(method, signature.__doc__ or "", shown)
        vars(made[method])["__signature__"] = shown
    return Distribution(name, inspect.getdoc(signature), made)


def _calling(
    signature: Callable[..., object], formula: Formula, shown: inspect.Signature
) -> Formula:
    def function(*args: ArrayLike, **kwargs: ArrayLike) -> Value:
        bound = shown.bind(*args, **kwargs)
        return formula(signature(*bound.args, **bound.kwargs))

    return function


def _named(function: Formula, name: str, module: str) -> Formula:
    function.__name__ = function.__qualname__ = name
    function.__module__ = module
    return function


def _documentation(method: str, doc: str, shown: inspect.Signature) -> str:
    """Returns a docstring: the result, the distribution, and the arguments."""
    about = inspect.cleandoc(doc).partition("\n\n>>>")[0]
    text = f"Returns {_RESULTS[method]}.\n\n{about}"
    if "Args:" not in about:
        roles = {"loc": "Subtracted from x.", "scale": "The difference is divided by it."}
        first, *others = shown.parameters
        lines = [f"    {first}: Numbers; probabilities for `ppf` and `isf`."]
        lines += [f"    {each}: {roles.get(each, 'Parameter.')}" for each in others]
        text += "\n\nArgs:\n" + "\n".join(lines)
    return text


# Continuous distributions ------------------------------------------------------------------------


class Support(NamedTuple):
    """Where a continuous distribution has numbers, and for which parameters.

    Attributes:
        low, high: Ends of the support of y. None where the formulas hold up to infinity.
        inner: A number inside the support.
        is_valid: Tells for which parameters there is a distribution; by default for all.
    """

    low: float | None = None
    high: float | None = None
    inner: float = 0.5
    is_valid: Returning[Value] | None = None


EVERYWHERE = Support()


def continuous(
    support: Support = EVERYWHERE, /, **formulas: Formula
) -> Callable[[Callable[P, Arguments]], Distribution[P]]:
    """Makes the module of a continuous distribution from a function that arranges arguments.

    Args:
        support: Its support.
        **formulas: By function, the formula of y and the parameters. `ppf` and `isf` take
            probabilities, under the name of their formula's first parameter, and return y. `pdf` is
            made of `logpdf`, and `cdf` and `sf` of their logarithms if only these are given.
    """

    def declared(signature: Callable[P, Arguments]) -> Distribution[P]:
        name = signature.__name__
        functions = {
            method: _of_x(f"{name}.{method}", method, formula, support)
            for method, formula in formulas.items()
        }
        for method in ("pdf", "cdf", "sf"):
            if method not in functions and f"log{method}" in functions:
                functions[method] = _exponential(functions[f"log{method}"])
        inverses = {m: formulas[m] for m in ("ppf", "isf") if m in formulas}
        return distribution(signature, functions, first={m: _first(f) for m, f in inverses.items()})

    return declared


def of_vectors(
    kind: str, without: Mapping[str, str] | None = None
) -> Callable[[Callable[P, Value]], Distribution[P]]:
    """Makes the module of a distribution of vectors from the logarithm of its density.

    Args:
        kind: 'pdf' for a density, 'pmf' for probabilities.
        without: A parameter that a function lacks.
    """

    def declared(log_density: Callable[P, Value]) -> Distribution[P]:
        functions = {f"log{kind}": lambda value: value, kind: jnp.exp}
        return distribution(log_density, functions, without=without)

    return declared


def _first(formula: Formula) -> str:
    return next(iter(inspect.signature(formula).parameters))


def _exponential(function: Formula) -> Formula:
    return lambda *args: jnp.exp(function(*args))


def _of_x(name: str, method: str, formula: Formula, support: Support) -> Formula:
    """Returns a function of `Arguments`."""
    if method in ("ppf", "isf"):
        return lambda args: _quantile(name, formula, support, args)
    if method == "logpdf":
        return lambda args: _log_density(name, formula, support, args)
    return lambda args: _share(name, method, formula, support, args)


def _log_density(name: str, formula: Formula, support: Support, args: Arguments) -> Value:
    """Returns the logarithm of the density at x; -inf outside the (closed) support."""
    y, values, width = _standardized(name, args)
    low, high = support.low, support.high
    outside = []
    if low is not None:
        outside.append(y < low if low > -math.inf else y == -math.inf)
    if high is not None:
        outside.append(y > high if high < math.inf else y == math.inf)
    result = _replaced(formula, y, values, support.inner, [(t, -math.inf) for t in outside])
    # The logarithm of an invalid scale makes the result nan.
    result = result if width is None else result - jnp.log(width)
    return _checked(support, result, values)


def _share(name: str, method: str, formula: Formula, support: Support, args: Arguments) -> Value:
    """Returns the probability below or above x, or its logarithm."""
    at_low, at_high = _ENDS[method]
    y, values, width = _standardized(name, args)
    outside = []
    if support.low is not None:
        outside.append((y <= support.low, at_low))
    if support.high is not None:
        outside.append((y >= support.high, at_high))
    result = _replaced(formula, y, values, support.inner, outside)
    return _checked(support, result, values, width)


def _quantile(name: str, formula: Formula, support: Support, args: Arguments) -> Value:
    """Returns the quantile of a probability; nan outside [0, 1]."""
    q, *values, shift, width = real_arguments(name, args.x, *args.parameters, args.loc, args.scale)
    is_outside = (q < 0) | (q > 1)
    result = _replaced(formula, q, values, 0.5, [(is_outside, math.nan)])
    has_scale = not _is_number(args.scale, 1)
    result = result * width if has_scale else result
    result = result if _is_number(args.loc, 0) else result + shift
    return _checked(support, result, values, width if has_scale else None)


def _standardized(name: str, args: Arguments) -> tuple[Value, list[Value], Value | None]:
    """Returns y, the parameters, and the scale unless that is the number 1."""
    y, *values, shift, width = real_arguments(name, args.x, *args.parameters, args.loc, args.scale)
    y = y if _is_number(args.loc, 0) else y - shift
    return (y, values, None) if _is_number(args.scale, 1) else (y / width, values, width)


def _checked(
    support: Support, result: Value, parameters: Sequence[Value], scale: Value | None = None
) -> Value:
    conditions = [] if support.is_valid is None else [support.is_valid(*parameters)]
    if scale is not None:
        conditions.append(scale > 0)
    for condition in conditions:
        result = jnp.where(condition, result, math.nan)
    return result


# Distributions of integers -----------------------------------------------------------------------


def discrete(
    is_inside: Formula,
    is_valid: Formula,
    log_mass: Formula,
    inner: int = 0,
    without: Mapping[str, str] | None = None,
    others: Mapping[str, Formula] | None = None,
    **formulas: Formula,
) -> Callable[[Callable[P, Arguments]], Distribution[P]]:
    """Makes the module of a distribution of integers from a function that arranges arguments.

    Args:
        is_inside: Takes y = k - loc, an integer, and the parameters, and tells whether y is in the
            support.
        is_valid: Tells for which parameters there is a distribution.
        log_mass: The logarithm of the probability of y.
        inner: An integer inside the support whatever the parameters are.
        without: A parameter that a function lacks.
        others: Functions with separate signatures.
        **formulas: Other functions of y and the parameters, for example `cdf`; they take their
            first argument under the name of the formula's first parameter.
    """

    def log_probability(name: str, args: Arguments) -> Value:
        y, *values = _shifted(name, args)
        is_outside = (jnp.floor(y) != y) & (y == y) | ~is_inside(y, *values) & (y == y)
        result = _replaced(log_mass, y, values, inner, [(is_outside, -math.inf)])
        return jnp.where(is_valid(*values), result, math.nan)

    def other(name: str, formula: Formula) -> Formula:
        def function(args: Arguments) -> Value:
            y, *values = _shifted(name, args)
            result = jnp.where(y == y, formula(y, *values), math.nan)
            return jnp.where(is_valid(*values), result, math.nan)

        return function

    def declared(signature: Callable[P, Arguments]) -> Distribution[P]:
        name = signature.__name__
        functions: dict[str, Formula] = {
            "logpmf": lambda args: log_probability(f"{name}.logpmf", args),
            "pmf": lambda args: jnp.exp(log_probability(f"{name}.logpmf", args)),
        }
        for method, formula in formulas.items():
            functions[method] = other(f"{name}.{method}", formula)
        first = {method: _first(formula) for method, formula in formulas.items()}
        return distribution(signature, functions, first, without, others)

    return declared


def _shifted(name: str, args: Arguments) -> list[Value]:
    y, *values, shift = real_arguments(name, args.x, *args.parameters, args.loc)
    return [y if _is_number(args.loc, 0) else y - shift, *values]


# Arguments and logarithms ------------------------------------------------------------------------


def real_arguments(name: str, *args: ArrayLike) -> list[Value]:
    """Returns arguments as arrays of one dtype of floats, and refuses complex numbers."""
    values = promote_inexact(name, *args)
    require_real(name, *values)
    return values


def _is_number(x: ArrayLike, value: int) -> bool:
    """Tells whether an argument is a Python number, with which nothing need be computed."""
    return type(x) in (int, float) and bool(x == value)


def _replaced(
    formula: Formula,
    y: Value,
    parameters: Sequence[Value],
    inner: float,
    outside: Sequence[tuple[Value, float]],
) -> Value:
    """Applies a formula to a number inside where y is outside, and puts other values there."""
    for condition, _ in outside:
        y = jnp.where(condition, inner, y)
    result = formula(y, *parameters)
    for condition, value in outside:
        result = jnp.where(condition, value, result)
    return result


def shares(below: Formula, above: Formula) -> dict[str, Formula]:
    """Returns the formulas of probabilities below and above y, and of their logarithms."""
    return {
        "cdf": below,
        "sf": above,
        "logcdf": lambda *args: _log_of_share(below(*args), above(*args)),
        "logsf": lambda *args: _log_of_share(above(*args), below(*args)),
    }


def log_of_rest(y: Value) -> Value:
    """Returns log(1 - exp(-y)) for y >= 0, without cancellation."""
    is_near = y < math.log(2)
    near = jnp.log(-jnp.expm1(-jnp.where(is_near, y, 0.5)))
    return jnp.where(is_near, near, jnp.log1p(-jnp.exp(-jnp.where(is_near, 1.0, y))))


def _log_of_share(share: Value, rest: Value) -> Value:
    """Returns the logarithm of a share of 1, computed from the rest if the rest is smaller."""
    is_low = share < 0.5
    low = jnp.log(jnp.where(is_low, share, 0.5))
    return jnp.where(is_low, low, jnp.log1p(-jnp.where(is_low, 0.5, rest)))


def log_one_plus_square(y: Value) -> Value:
    """Returns log(1 + y**2), also where the square overflows."""
    is_far = abs(y) > 1
    far = jnp.where(is_far, y, 1.0)
    near = jnp.log1p(jnp.square(jnp.where(is_far, 0.0, y)))
    return jnp.where(is_far, 2 * jnp.log(abs(far)) + jnp.log1p(jnp.square(1 / far)), near)
