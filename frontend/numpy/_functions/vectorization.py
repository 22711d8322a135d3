"""`vectorize`: functions of small arrays mapped over broadcast leading axes."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from functools import wraps

from axir._transforms.vectorize import vmap
from axir._trees.tree import map as tree_map
from axir.dialect.core.annotations import (
    Options,
    UserFunction,
    UserObject,
)
from axir.dialect.core.array import ArrayLike
from axir.dialect.core.errors import ParameterError, ShapeError
from axir.dialect.ops.shape.broadcasting import expand_dims
from axir.dialect.ops.shape.rearranging import squeeze
from axir.dialect.program.rules import Value
from axir.numpy._arguments.promotion import broadcast_shape
from axir.numpy._arrays.creation import asarray

__all__ = ["vectorize"]

Dimensions = tuple[str, ...]

_NAME = r"[A-Za-z_]\w*|\d+"
_ARGUMENT = rf"\(\s*(?:(?:{_NAME})\s*(?:,\s*(?:{_NAME})\s*)*)?\)"
_ARGUMENTS = rf"\s*{_ARGUMENT}\s*(?:,\s*{_ARGUMENT}\s*)*"
_SIGNATURE = re.compile(rf"{_ARGUMENTS}->{_ARGUMENTS}")


class SignatureError(ShapeError, ValueError):
    """Arguments or results of a vectorized function do not fit its signature."""


def vectorize(
    pyfunc: Callable[..., object],
    *,
    excluded: Collection[int | str] = frozenset(),
    signature: str | None = None,
) -> UserFunction:
    """Returns a function that maps `pyfunc` over the leading axes of its arguments, broadcast.

    Args:
        pyfunc: Function of arrays.
        excluded: Positions and names of arguments that are passed on as they are.
        signature: Core dimensions of arguments and results, such as `(n,m),(m)->(n)`: what `pyfunc`
            sees. By default it takes and returns scalars.

    Returns:
        The function. Keyword arguments must be excluded; `None` counts as excluded.

    Raises:
        ParameterError: for an invalid signature, or negative positions.
        TypeError: for entries of `excluded` of another type, or another number of arguments.
        SignatureError: if shapes do not fit the signature.

    >>> import axir.numpy as jnp
    >>> jnp.vectorize(jnp.dot, signature="(n),(n)->()")(jnp.ones((2, 3)), jnp.arange(3.0))
    Array([3., 3.], dtype=float32)
    """
    _check_excluded(excluded)
    dimensions = None if signature is None else _parse(signature)

    @wraps(pyfunc)
    def vectorized(*args: Options, **kwargs: object) -> UserObject:
        unknown = sorted(kwargs.keys() - set(excluded))
        if unknown:
            raise TypeError(
                f"jnp.vectorize maps positional arguments only, but got {', '.join(unknown)} by "
                "name: pass it by position, or name it in excluded."
            )
        mapped = [i for i, x in enumerate(args) if i not in excluded and x is not None]

        def core(*values: ArrayLike) -> object:
            every = list(args)
            for position, value in zip(mapped, values, strict=True):
                every[position] = value
            return pyfunc(*every, **kwargs)

        return _map(core, [asarray(args[i]) for i in mapped], dimensions)

    return vectorized


def _check_excluded(excluded: Collection[int | str]) -> None:
    for entry in excluded:
        if not isinstance(entry, (int, str)):
            raise TypeError(
                f"jnp.vectorize: excluded takes positions and names, but has {entry!r}."
            )
        if isinstance(entry, int) and entry < 0:
            raise ParameterError(f"jnp.vectorize: excluded has the negative position {entry}.")


def _parse(signature: str) -> tuple[list[Dimensions], list[Dimensions]]:
    """Returns the core dimensions of the arguments and of the results."""
    if not _SIGNATURE.fullmatch(signature):
        raise ParameterError(
            f"jnp.vectorize: {signature!r} is not a signature.",
            "Write the core dimensions of each argument and result, as in '(n,m),(m)->(n)'.",
        )
    inputs, outputs = (
        [tuple(re.findall(_NAME, argument)) for argument in re.findall(_ARGUMENT, side)]
        for side in signature.split("->")
    )
    return inputs, outputs


def _map(
    core: Callable[..., object],
    values: Sequence[Value],
    dimensions: tuple[list[Dimensions], list[Dimensions]] | None,
) -> object:
    """Maps a function over all axes in front of the core dimensions."""
    inputs = [()] * len(values) if dimensions is None else dimensions[0]
    if len(inputs) != len(values):
        raise TypeError(
            f"jnp.vectorize: the signature has {len(inputs)} arguments, but got {len(values)}."
        )
    sizes: dict[str, int] = {}
    for value, names in zip(values, inputs, strict=True):
        _check_core(value.shape, names, sizes)
    loops = [
        value.shape[: value.ndim - len(names)] for value, names in zip(values, inputs, strict=True)
    ]
    shape = broadcast_shape("vectorize", loops)
    if dimensions is not None:
        core = _checked(core, dimensions[1], sizes)
    squeezed = [_squeezed(value, len(loop)) for value, loop in zip(values, loops, strict=True)]
    for axis in range(-1, -len(shape) - 1, -1):
        in_axes = [None if len(loop) < -axis or loop[axis] == 1 else 0 for loop in loops]
        if any(entry == 0 for entry in in_axes):
            core = vmap(core, tuple(in_axes))
    result = core(*squeezed)
    missing = tuple(i for i, size in enumerate(shape) if size == 1)
    return tree_map(lambda x: expand_dims(x, missing), result) if missing else result


def _squeezed(value: Value, count: int) -> Value:
    """Drops leading axes of extent 1."""
    return squeeze(value, [axis for axis in range(count) if value.shape[axis] == 1])


def _check_core(shape: tuple[int, ...], names: Dimensions, sizes: dict[str, int]) -> None:
    """Checks the last extents of a shape against the sizes of dimensions, and adds new ones."""
    if len(shape) < len(names):
        raise SignatureError(
            f"jnp.vectorize: an argument of shape {shape} does not have all core dimensions "
            f"({', '.join(names)})."
        )
    for name, size in zip(names, shape[len(shape) - len(names) :], strict=True):
        expected = sizes.setdefault(name, int(name) if name.isdigit() else size)
        if size != expected:
            raise SignatureError(
                f"jnp.vectorize: inconsistent size for core dimension {name!r}: {size}, not "
                f"{expected}."
            )


def _checked(
    core: Callable[..., object], outputs: Sequence[Dimensions], sizes: dict[str, int]
) -> Callable[..., object]:
    """Checks the results of a function against their core dimensions."""

    def checked(*values: ArrayLike) -> UserObject:
        result = core(*values)
        if len(outputs) > 1 and not isinstance(result, tuple):
            raise TypeError(
                f"jnp.vectorize: the signature has {len(outputs)} results, so the function must "
                f"return a tuple, not {result!r}."
            )
        results = result if isinstance(result, tuple) else (result,)
        if len(results) != len(outputs):
            raise TypeError(
                f"jnp.vectorize: the signature has {len(outputs)} results, but the function "
                f"returned {len(results)}."
            )
        for value, names in zip(results, outputs, strict=True):
            # Also of an object with a shape that is no array, such as a node of a tree.
            shape = tuple(value.shape) if hasattr(value, "shape") else asarray(value).shape
            if len(shape) != len(names):
                raise SignatureError(
                    f"jnp.vectorize: a result of shape {shape} does not match its core dimensions "
                    f"({', '.join(names)})."
                )
            _check_core(shape, names, sizes)
        return result

    return checked
