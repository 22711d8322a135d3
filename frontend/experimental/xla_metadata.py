"""Notes on operations, under the name of `jax.experimental.xla_metadata`.

They are for XLA's passes and profiles. No pass of axir reads any, so they are taken and dropped.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import ContextDecorator
from types import TracebackType

from axir.dialect.core.annotations import Tree, UserFunction, UserObject

__all__ = [
    "fuse_limit", "must_fuse_call", "set_xla_metadata", "xla_metadata_call", "xla_metadata_call2",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


class _Notes(ContextDecorator):
    """Notes for the operations of a `with` block or a function."""

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        return None


def set_xla_metadata(x: Tree = None, **kwargs: object) -> UserObject:
    """Returns arrays as they are; without arrays, a `with` block and decorator without effect.

    Args:
        x: A tree of arrays; the notes are about their operations.
        **kwargs: The notes.

    >>> import axir.numpy as jnp
    >>> float(set_xla_metadata(jnp.sin(0.0), purpose="offset"))
    0.0
    >>> with set_xla_metadata(purpose="cosine"):
    ...     float(jnp.cos(0.0))
    1.0
    """
    return _Notes() if x is None else x


def xla_metadata_call(f: Callable[..., object] | None = None, /, **meta: object) -> UserFunction:
    """Returns a function as it is, or without one a decorator that does.

    Args:
        f: The function.
        **meta: Notes on its operations.

    >>> xla_metadata_call(purpose="sign")(abs)(-1)
    1
    """
    return functools.partial(xla_metadata_call, **meta) if f is None else f


def xla_metadata_call2(
    f: Callable[..., object] | None = None,
    /,
    metadata: object = None,
    *,
    ad_metadata: object = None,
) -> UserFunction:
    """Returns a function as it is, or without one a decorator that does.

    Args:
        f: The function.
        metadata: Notes on its operations.
        ad_metadata: Notes on the operations of its derivatives.
    """
    return xla_metadata_call2 if f is None else f


def must_fuse_call(identifier: str) -> UserFunction:
    """Returns a decorator that asks for one kernel, which the compiler makes anyway if it can.

    Args:
        identifier: The name of the kernel.

    >>> must_fuse_call("1")(abs)(-1)
    1
    """
    return xla_metadata_call(MUST_FUSE=identifier)


def fuse_limit() -> UserFunction:
    """Returns a decorator that lets no operation fuse with a function; it stays as it is."""
    return xla_metadata_call()
