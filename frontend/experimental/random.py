"""Random numbers from generators with a state, under the names of `jax.experimental.random`.

A generator is a key and a counter in a ref: each draw folds the counter in, and adds one to it. So
it goes where refs go (`axir.ref`), also into functions that are traced.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from axir import numpy as jnp
from axir import random
from axir._trees.registration import register_dataclass
from axir.dialect.core.annotations import DTypeLike
from axir.dialect.core.array import Array, ArrayLike
from axir.dialect.core.config import config
from axir.dialect.core.errors import AxirError, ParameterError
from axir.dialect.core.state import state
from axir.ref import Ref, addupdate, get, new_ref

__all__ = ["StatefulPRNG", "stateful_rng"]


def __dir__() -> list[str]:
    return __all__


class SplitGeneratorError(AxirError, ValueError):
    """Many generators in one were asked for a number."""


Size = int | Sequence[int] | None


def _shape_of(size: Size, *arguments: ArrayLike) -> tuple[int, ...]:
    """Returns the shape of a draw: the arguments' shape unless a size is given."""
    if size is None:
        return np.broadcast_shapes(*map(jnp.shape, arguments))
    return (size,) if isinstance(size, int) else tuple(size)


@register_dataclass
@dataclass(frozen=True)
class StatefulPRNG:
    """A generator of random numbers, made by `stateful_rng`; a tree of a key and a ref."""

    _base_key: Array
    _counter: Ref

    def key(self, shape: int | Sequence[int] = ()) -> Array:
        """Returns a new key, or an array of independent ones.

        Raises:
            SplitGeneratorError: if the generator was split.

        >>> rng = stateful_rng(0)
        >>> bool(rng.key() == rng.key())
        False
        """
        if self._base_key.shape:
            raise SplitGeneratorError(
                f"A generator that was split into {self._base_key.shape} cannot draw.",
                "Map over it: axir.vmap(lambda rng: rng.uniform())(generators).",
            )
        key = random.fold_in(self._base_key, get(self._counter))
        addupdate(self._counter, ..., 1)
        wanted = _shape_of(shape)
        return random.split(key, wanted) if wanted else key

    def random(self, size: Size = None, dtype: DTypeLike = float) -> Array:
        """Draws floats that are uniform in [0, 1)."""
        return random.uniform(self.key(), _shape_of(size), dtype)

    def uniform(
        self,
        low: ArrayLike = 0,
        high: ArrayLike = 1,
        size: Size = None,
        *,
        dtype: DTypeLike = float,
    ) -> Array:
        """Draws floats that are uniform in [low, high)."""
        return random.uniform(self.key(), _shape_of(size, low, high), dtype, low, high)

    def normal(
        self,
        loc: ArrayLike = 0,
        scale: ArrayLike = 1,
        size: Size = None,
        *,
        dtype: DTypeLike = float,
    ) -> Array:
        """Draws from normal distributions of given means and standard deviations."""
        drawn = random.normal(self.key(), _shape_of(size, loc, scale), dtype)
        return (jnp.asarray(loc) + jnp.asarray(scale) * drawn).astype(dtype)

    def integers(
        self,
        low: ArrayLike,
        high: ArrayLike | None = None,
        size: Size = None,
        *,
        dtype: DTypeLike = int,
    ) -> Array:
        """Draws integers from [low, high), or from [0, low)."""
        first, end = (0, low) if high is None else (low, high)
        return random.randint(self.key(), _shape_of(size, first, end), first, end, dtype)

    def split(self, num: int | Sequence[int]) -> StatefulPRNG:
        """Returns independent generators as one generator; its leaves have `num` as leading axes.

        >>> import axir
        >>> drawn = axir.vmap(lambda rng: rng.integers(100))(stateful_rng(123).split(3))
        >>> drawn.shape
        (3,)
        """
        return StatefulPRNG(self.key(num), new_ref(jnp.zeros(num, int)))

    def spawn(self, n_children: int) -> list[StatefulPRNG]:
        """Returns independent generators in a list."""
        return [StatefulPRNG(key, new_ref(0)) for key in self.key(n_children)]


def stateful_rng(seed: ArrayLike | None = None, *, impl: object = None) -> StatefulPRNG:
    """Returns a generator.

    Args:
        seed: An integer. Without one, and outside of functions that are traced, it is drawn from
            the system.
        impl: The kind of its keys, as `axir.random.key` takes it.

    Raises:
        ParameterError: without a seed in a function that is traced.

    >>> rng = stateful_rng(42)
    >>> bool(rng.uniform() == rng.uniform())
    False
    """
    if seed is None:
        if state.ambient is not None:
            raise ParameterError(
                "stateful_rng: a function that is being traced draws no seed: each call of it "
                "would use the same.",
                "Pass a seed.",
            )
        entropy = np.random.SeedSequence().entropy
        assert isinstance(entropy, int)
        seed = entropy & int(np.iinfo(np.int64 if config.jax_enable_x64 else np.uint32).max)
    return StatefulPRNG(random.key(seed, impl=impl), new_ref(0))
