"""`jax._src.api_util`: the names of `axir.api_util`, and the inference of static arguments."""

from __future__ import annotations

import inspect
from collections.abc import Sequence

from axir._transforms.static_arguments import chosen
from axir.api_util import *  # noqa: F403


def infer_argnums_and_argnames(
    sig: inspect.Signature,
    argnums: int | Sequence[int] | None,
    argnames: str | Sequence[str] | None,
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Returns numbers and names of arguments, each inferred from the other if only one is given."""

    def function(*args: object) -> None:
        raise AssertionError("it only has the signature")

    vars(function)["__signature__"] = sig
    return chosen(function, argnums, argnames, "static")
