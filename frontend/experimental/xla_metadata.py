"""Notes on operations, under the name of `jax.experimental.xla_metadata`.

They are for XLA's passes and profiles. No pass of axir reads any, so they are taken and dropped.
"""

from __future__ import annotations

from contextlib import ContextDecorator
from types import TracebackType

from axir.dialect.core.annotations import Options, PyTree, UserObject

__all__ = ["set_xla_metadata"]


class _Notes(ContextDecorator):
    """Notes for what a `with` block, or a function, computes."""

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        return None


def set_xla_metadata(x: PyTree = None, **kwargs: Options) -> UserObject:
    """Returns arrays as they are; without arrays, a `with` block and decorator without effect.

    Args:
        x: A tree of arrays whose operations the notes are about.
        **kwargs: The notes.

    >>> import axir.numpy as jnp
    >>> float(set_xla_metadata(jnp.sin(0.0), purpose="offset"))
    0.0
    >>> with set_xla_metadata(purpose="cosine"):
    ...     float(jnp.cos(0.0))
    1.0
    """
    return _Notes() if x is None else x
