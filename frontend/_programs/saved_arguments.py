"""Arguments of saved functions: of the shapes and dtypes that these were saved for."""

from __future__ import annotations

import numpy as np

from axir._arguments.arguments import to_value
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import UserObject
from axir.dialect.core.array import ConcreteArray
from axir.dialect.core.errors import DTypeError, ShapeError
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.elementwise.conversion import convert_element_type
from axir.dialect.text.signature import Argument


def conform(value: object, argument: Argument) -> UserObject:
    """Returns a value as an array or tracer of the type that a saved function takes.

    Python scalars take the required dtype; other values must have it.

    Raises:
        ShapeError, DTypeError: if the value has another shape or dtype.
    """
    wanted = argument.type
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype == wanted.dtype:
        value = ConcreteArray(ShapedArray(value.shape, value.dtype), np.asarray(value))
    else:
        value = to_value(value, lambda: f"Argument {argument.name!r}")
    if value.type.shape != wanted.shape:
        raise ShapeError(
            f"Argument {argument.name!r} must have shape {wanted.shape}, not {value.type.shape}.",
            "A saved function takes the shapes it was exported for: export it again for others, "
            "or vectorize it with vmap.",
        )
    if value.type.dtype == wanted.dtype:
        return value
    if (
        value.type.weak_type
        and dtypes.promote([(value.type.dtype, True), (wanted.dtype, False)])[0] == wanted.dtype
    ):
        return convert_element_type(value, wanted.dtype)
    is_narrowed = dtypes.canonicalize_dtype(wanted.dtype) != wanted.dtype
    raise DTypeError(
        f"Argument {argument.name!r} must have dtype {wanted.dtype}, not {value.type.dtype}.",
        "Arrays of 64 bits need the option jax_enable_x64: JAX_ENABLE_X64=1, or "
        "axir.config.update('jax_enable_x64', True) at the beginning."
        if is_narrowed
        else f"Convert it: {argument.name}.astype({str(wanted.dtype)!r}).",
    )
