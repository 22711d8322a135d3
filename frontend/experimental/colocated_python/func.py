"""Names of `jax.experimental.colocated_python.func`: functions that run beside devices, so here."""

from __future__ import annotations

from axir.experimental.colocated_python import colocated_python

__all__ = ["make_callable"]


def __dir__() -> list[str]:
    return __all__


make_callable = colocated_python
