"""The argument `out_sharding` of functions that make arrays: the sharding of the result."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, cast

from axir.dialect.core.annotations import Options
from axir.dialect.program.rules import Value

from .placement import laid_out

P = ParamSpec("P")


def lies_where_told(function: Callable[P, Value]) -> Callable[P, Value]:
    """Adds the argument `out_sharding` to a function: the sharding of its result.

    The function has the argument only in its signature, and is called without it. The argument is a
    sharding, or a `PartitionSpec` for the mesh in use.

    Raises:
        MissingMeshError: by a call with a specification if no mesh is in use.
        AxisTypeError: by a call with axes that are not of type `Explicit`.
        ParameterError: by a call with another kind of value.
        ShapeError: by a call if the result cannot be cut so.
    """

    @wraps(function)
    def placed(*args: Options, out_sharding: object = None, **options: Options) -> Value:
        result = function(*args, **options)
        return result if out_sharding is None else laid_out(result, placed.__name__, out_sharding)

    return cast(Callable[P, Value], placed)
