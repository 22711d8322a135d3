"""Names of `jax._src.api_util`: `axir.api_util`, and static arguments by name and number."""

from __future__ import annotations

import inspect
from collections.abc import Sequence

from axir._transforms.static_arguments import chosen
from axir.api_util import *  # noqa: F403
from axir.dialect.core.annotations import UserObject


def infer_argnums_and_argnames(
    sig: inspect.Signature,
    argnums: int | Sequence[int] | None,
    argnames: str | Sequence[str] | None,
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Returns numbers and names of arguments, and infers the missing ones from the others."""

    def function(*args: UserObject) -> None:
        raise AssertionError("it only has the signature")

    vars(function)["__signature__"] = sig
    return chosen(function, argnums, argnames, "static")
