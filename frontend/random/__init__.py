"""`axir.random`: random numbers from explicit keys, in JAX's streams.

A key is one element of an array of dtype `key<...>`; `key` makes one. The same key gives the same
numbers always and everywhere: eagerly, compiled, batched. So a program splits a key for each use:

>>> from axir import random
>>> key, subkey = random.split(random.key(0))
>>> random.normal(subkey, (2,)).shape
(2,)

`PRNGKey` makes the words of a key as an array of integers, which all functions take as well.

The generator is threefry2x32, unless a key is made with another one. By default its counters are
laid out as in JAX's original stream; the option `jax_threefry_partitionable` selects the one that
JAX draws by default today.
"""

from __future__ import annotations

from typing import NewType

from axir._primitive_names import primitive_named
from axir.dialect.core.annotations import UserObject
from axir.dialect.core.array import Array

from ._binomial import binomial, multinomial
from ._discrete import bernoulli, categorical, geometric, rademacher
from ._gamma import ball, beta, chisquare, dirichlet, f, gamma, generalized_normal, loggamma, t
from ._gaussian import double_sided_maxwell, lognormal, maxwell, normal, truncated_normal, wald
from ._gumbel import gumbel
from ._inversion import (
    cauchy,
    exponential,
    laplace,
    logistic,
    pareto,
    rayleigh,
    triangular,
    weibull_min,
)
from ._keys import PRNGKey, clone, fold_in, key, key_data, key_dtype, key_impl, split, wrap_key_data
from ._matrices import multivariate_normal, orthogonal
from ._poisson import poisson
from ._ranges import bits, randint, uniform
from ._shuffling import choice, permutation, shuffle

Key = NewType("Key", Array)  # for annotations: an array that is one key

__all__ = [
    "Key", "PRNGKey", "ball", "bernoulli", "beta", "binomial", "bits", "categorical", "cauchy",
    "chisquare", "choice", "clone", "dirichlet", "double_sided_maxwell", "exponential", "f",
    "fold_in", "gamma", "generalized_normal", "geometric", "gumbel", "key", "key_data", "key_dtype",
    "key_impl", "laplace", "loggamma", "logistic", "lognormal", "maxwell", "multinomial",
    "multivariate_normal", "normal", "orthogonal", "pareto", "permutation", "poisson", "rademacher",
    "randint", "rayleigh", "shuffle", "split", "t", "triangular", "truncated_normal", "uniform",
    "wald", "weibull_min", "wrap_key_data",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> UserObject:
    """Returns the primitive `random_gamma_p`, loaded on first access."""
    if name == "random_gamma_p":
        return primitive_named(name)
    raise AttributeError(f"module 'axir.random' has no attribute {name!r}")
