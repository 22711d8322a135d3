"""Python functions that a program calls while it runs: `pure_callback`, `io_callback`.

Elsewhere: the ops and their rules (`axir.dialect.ops.calls.callbacks`), callbacks without results
(`frontend/debug.py`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from axir._arguments.arguments import to_values
from axir._trees import tree
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import Options, UserFunction, UserObject
from axir.dialect.core.array import Array
from axir.dialect.core.errors import (
    CallbackError,
    DTypeError,
    NonArrayArgumentError,
    ParameterError,
)
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.calls.callbacks import (
    VMAP_METHODS,
    Callback,
    io_callback_primitive,
    pure_callback_primitive,
)
from axir.dialect.ops.random.random_keys import random_unwrap


def pure_callback(
    callback: Callable[..., object],
    result_shape_dtypes: object,
    *args: object,
    sharding: object = None,
    vmap_method: str | None = None,
    vectorized: bool | None = None,
    **kwargs: object,
) -> UserObject:
    """Calls a Python function without side effects, also from compiled code.

    A compiled program calls it whenever it needs the results: perhaps more often than the source
    does, or never if they are unused.

    Args:
        callback: Takes arrays in the trees of `args` and `kwargs`, and returns a tree of arrays,
            NumPy arrays or scalars.
        result_shape_dtypes: Tree of objects with `shape` and `dtype` (`ShapeDtypeStruct`, arrays):
            the results' structure, shapes and dtypes.
        *args: Trees of arrays.
        sharding: Accepted for compatibility: a callback runs on the one host there is.
        vmap_method: What `vmap` does. `"sequential"` and `"sequential_unrolled"` call once for
            each place of the batch; `"expand_dims"` and `"broadcast_all"` call once with a leading
            axis on all arrays, of extent 1 or repeated on those without a batch;
            `"legacy_vectorized"` leaves the latter as they are. None forbids `vmap`.
        vectorized: The old name of `vmap_method="legacy_vectorized"`; False is
            `"sequential"`.
        **kwargs: Trees of arrays.

    Returns:
        A tree of arrays as `result_shape_dtypes` says.

    Raises:
        CallbackError: by the program, if the callback returns something else.
        ParameterError: if `vmap_method` is another value.

    Exceptions of the callback surface from the call of the program.

    >>> import numpy as np, axir, axir.numpy as jnp
    >>> def sinc(x):
    ...     like = axir.ShapeDtypeStruct(x.shape, x.dtype)
    ...     return axir.pure_callback(np.sinc, like, x, vmap_method="expand_dims")
    >>> axir.jit(sinc)(jnp.array([0.0, 0.5])).round(2)
    Array([1.  , 0.64], dtype=float32)
    """
    _check_callable(callback, "pure_callback")
    if vectorized is not None:
        if vmap_method is not None:
            raise ParameterError(
                "pure_callback: vmap_method and vectorized are both given.",
                "Drop vectorized, which is the old form of vmap_method.",
            )
        vmap_method = "legacy_vectorized" if vectorized else "sequential"
    if vmap_method is not None and vmap_method not in VMAP_METHODS:
        raise ParameterError(
            f"pure_callback: vmap_method must be one of {', '.join(map(repr, VMAP_METHODS))} or "
            f"None, not {vmap_method!r}."
        )
    flat = FlatCallback(callback, result_shape_dtypes, args, kwargs, "pure_callback")
    results = pure_callback_primitive.bind(
        *flat.operands, callback=flat.param, result_avals=flat.types, vmap_method=vmap_method
    )
    return flat.out_tree.unflatten(results)


def io_callback(
    callback: Callable[..., object],
    result_shape_dtypes: object,
    *args: object,
    sharding: object = None,
    ordered: bool = False,
    **kwargs: object,
) -> UserObject:
    """Calls a Python function with side effects, also from compiled code: once each time.

    Args:
        callback: As for `pure_callback`; it may have side effects.
        result_shape_dtypes: As for `pure_callback`; None for a callback without results.
        *args: Trees of arrays.
        sharding: Accepted for compatibility: a callback runs on the one host there is.
        ordered: Whether the order of the calls matters. Calls are always in the order of the
            program; `vmap`, which multiplies the calls, refuses ordered ones.
        **kwargs: Trees of arrays.

    Returns:
        A tree of arrays as `result_shape_dtypes` says.

    Raises:
        CallbackError: by the program, if the callback returns something else.

    >>> import axir, axir.numpy as jnp
    >>> from axir.experimental import io_callback
    >>> log = []
    >>> f = axir.jit(lambda x: io_callback(lambda v: log.append(float(v)), None, x + 1))
    >>> f(1.0), f(2.0), log
    (None, None, [2.0, 3.0])
    """
    _check_callable(callback, "io_callback")
    flat = FlatCallback(callback, result_shape_dtypes, args, kwargs, "io_callback")
    results = io_callback_primitive.bind(
        *flat.operands, callback=flat.param, result_avals=flat.types, ordered=bool(ordered)
    )
    return flat.out_tree.unflatten(results)


def effects_barrier() -> None:
    """Returns when all callbacks of programs that were called have run.

    It returns at once, because a call returns only when its program, with its callbacks, has ended.

    >>> import axir
    >>> axir.effects_barrier()
    """


class FlatCallback:
    """A user's callback with its arguments, flattened.

    Attributes:
        operands: The leaves of the arguments.
        types: Types of the results.
        out_tree: Structure of the results.
        param: The callback as a parameter of an op.
    """

    def __init__(
        self,
        callback: UserFunction,
        result_shape_dtypes: UserObject,
        args: tuple[UserObject, ...],
        kwargs: dict[str, Options],
        operation: str,
    ):
        leaves, in_tree = tree.flatten((args, kwargs))
        name = callback_name(callback)
        trees = (args, kwargs) if kwargs else args
        self.operands = words_of_keys(to_values(leaves, trees, f"{operation} of {name}"))
        wanted, self.out_tree = tree.flatten(result_shape_dtypes)
        self.types = tuple(_result_type(x, operation) for x in wanted)
        self.param = Callback(
            functools.partial(_call_flat, callback, in_tree, self.out_tree, name), name
        )


def _call_flat(
    callback: Callable[..., object],
    in_tree: tree.TreeDef,
    out_tree: tree.TreeDef,
    name: str,
    *arrays: Array,
) -> Sequence[UserObject]:
    arguments: UserObject = in_tree.unflatten(arrays)
    args, kwargs = arguments
    result = callback(*args, **kwargs)
    leaves, structure = tree.flatten(result)
    # Lists may replace tuples, because only the leaves are returned.
    if len(leaves) != out_tree.num_leaves:
        raise CallbackError(
            f"The callback {name!r} returned a tree {structure}, but result_shape_dtypes is "
            f"{out_tree}.",
            "Return the structure that result_shape_dtypes has; for None, nothing.",
        )
    return leaves


def callback_name(callback: Callable[..., object]) -> str:
    """Returns the name of a callback in messages and jaxprs."""
    while isinstance(callback, functools.partial):
        callback = callback.func
    name = getattr(callback, "__name__", None) or type(callback).__name__
    return str(name)


def words_of_keys(values: Sequence[UserObject]) -> list[UserObject]:
    """Returns values as callbacks get them: random keys as words, others unchanged."""
    return [random_unwrap.bind(x) if dtypes.is_key(x.dtype) else x for x in values]


def _check_callable(callback: object, operation: str) -> None:
    if not callable(callback):
        raise NonArrayArgumentError(
            f"{operation} takes a function first, not {callback!r} of type "
            f"{type(callback).__name__!r}.",
            f"Write {operation}(callback, result_shape_dtypes, *args).",
        )


def _result_type(x: UserObject, operation: str) -> ShapedArray:
    if not (hasattr(x, "shape") and hasattr(x, "dtype")):
        if type(x) not in (bool, int, float, complex):
            raise ParameterError(
                f"{operation}: result_shape_dtypes holds {x!r} of type {type(x).__name__!r}, which "
                "has no shape and dtype.",
                "Use axir.ShapeDtypeStruct(shape, dtype).",
            )
        return ShapedArray((), dtypes.scalar_dtype(x))
    dtype = dtypes.as_dtype(x.dtype)
    if dtypes.is_key(dtype):
        raise DTypeError(
            f"{operation}: result_shape_dtypes asks for {dtype}, but callbacks return numbers.",
            "Return the words of a key, and wrap them with random.wrap_key_data.",
        )
    if dtype != dtypes.canonicalize_dtype(dtype):
        raise ParameterError(
            f"{operation}: result_shape_dtypes asks for {dtype}, but 64-bit dtypes are disabled.",
            f"Ask for {dtypes.canonicalize_dtype(dtype)}, or set jax_enable_x64.",
        )
    return ShapedArray(tuple(x.shape), dtype, bool(getattr(x, "weak_type", False)))
