"""Dtypes beyond NumPy's: the dtypes of typed random keys.

A key is one opaque element: for shapes and indices an array of keys is like any other. On the host
it is a NumPy array of a structured dtype. Its only field holds the key's words, so NumPy moves keys
as whole elements. In MLIR the element type is `!jaxpr.key<"tag">`. Compiled code sees the words,
uint32 along one more axis at the end (`passes/transforms/lowered_elements.py`).
Elsewhere: the ops that make and use keys (`dialect/ops/random/random_keys.py`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .annotations import AnyDtype, Dtype, HostArray, Returning
from .errors import ParameterError


class extended(np.generic):  # type: ignore[explicit-any]
    """The category of dtypes beyond NumPy's.

    >>> import axir
    >>> axir.numpy.issubdtype(axir.random.key(0).dtype, extended)
    True
    """


class prng_key(extended):
    """The category of typed random keys.

    >>> import axir
    >>> axir.numpy.issubdtype(axir.random.key(0).dtype, prng_key)
    True
    """


class PRNGImpl(NamedTuple):
    """A generator of random bits: traceable functions of the words of one key.

    Attributes:
        key_shape: Shape of a key's uint32 words, of rank 1.
        seed: From an integer scalar to words.
        split: `(words, shape) -> words of new keys`, of shape `(*shape, *key_shape)`.
        random_bits: `(words, bit_width, shape) -> unsigned integers` of 8, 16, 32 or 64 bits.
        fold_in: `(words, uint32 scalar) -> words` of another key.
        name: Its name for users.
        tag: The tag in the dtype of its keys: `key<tag>`.
    """

    key_shape: tuple[int, ...]
    seed: Returning[object]
    split: Returning[object]
    random_bits: Returning[object]
    fold_in: Returning[object]
    name: str
    tag: str


class KeyDtype:
    """The dtype of random keys of one generator; equal to the dtype that NumPy stores them in.

    Attributes:
        impl: The generator.
        name: `key<tag>`.
        words: How many uint32 words a key has.
        storage: NumPy's dtype for arrays of keys.

    >>> from axir import random
    >>> random.key(0).dtype, random.key(0).dtype.itemsize
    (key<fry>, 8)
    """

    __slots__ = ("impl", "name", "storage", "words")
    type = prng_key

    def __init__(self, impl: PRNGImpl):
        (self.words,) = impl.key_shape
        self.impl = impl
        self.name = f"key<{impl.tag}>"
        self.storage = np.dtype([(impl.tag, np.uint32, impl.key_shape)])

    @property
    def itemsize(self) -> int:
        """Size of a key in bytes."""
        return self.storage.itemsize

    @property
    def _impl(self) -> PRNGImpl:
        """The generator, under JAX's name."""
        return self.impl

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, np.dtype) and other == self.storage)

    def __hash__(self) -> int:
        return hash(self.storage)

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[object, ...]:
        return key_dtype, (self.impl.tag,)


_by_name: dict[str, KeyDtype] = {}
_by_tag: dict[str, KeyDtype] = {}
_by_storage: dict[Dtype, KeyDtype] = {}


def register(impl: PRNGImpl) -> KeyDtype:
    """Makes the dtype of a generator's keys.

    Raises:
        ParameterError: if there is a generator of that name or tag, or its keys are not of rank 1.
    """
    if impl.name in _by_name or impl.tag in _by_tag or not impl.tag.isidentifier():
        raise ParameterError(
            f"A random generator {impl.name!r} with tag {impl.tag!r} cannot be registered.",
            "Name and tag must be new, and the tag made of letters and digits.",
        )
    if len(impl.key_shape) != 1:
        raise ParameterError(
            f"Keys of the random generator {impl.name!r} have shape {impl.key_shape}.",
            "The words of a key form an array of rank 1.",
        )
    dtype = KeyDtype(impl)
    _by_name[impl.name] = _by_tag[impl.tag] = _by_storage[dtype.storage] = dtype
    return dtype


def generator_names() -> list[str]:
    """Returns the names of all generators."""
    return list(_by_name)


def dtype_of_generator(name: str) -> KeyDtype | None:
    """Returns the dtype of the keys of a generator by its name; None for unknown names."""
    return _by_name.get(name)


def key_dtype(tag: str) -> KeyDtype:
    """Returns the dtype `key<tag>`.

    Raises:
        ParameterError: if no generator has that tag.
    """
    try:
        return _by_tag[tag]
    except KeyError:
        raise ParameterError(
            f"There is no random generator with tag {tag!r}.",
            f"There are {', '.join(map(repr, _by_tag))}; register others before they are read.",
        ) from None


def of_storage(dtype: Dtype) -> KeyDtype | None:
    """Returns the dtype of the keys that NumPy stores in a dtype, None for other dtypes."""
    return _by_storage.get(dtype)


def words_of(keys: HostArray) -> HostArray:
    """Returns the words of keys as a view of shape `(..., words)`; other arrays as they are."""
    names = keys.dtype.names
    return keys if names is None else keys[names[0]]


def keys_of(words: HostArray, dtype: AnyDtype) -> HostArray:
    """Returns keys of a `KeyDtype`, given words of shape `(..., words)`, if need be by a copy."""
    return np.ascontiguousarray(words).view(dtype.storage)[..., 0]
