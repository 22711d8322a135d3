"""Functions from outside, called by name, under the names of `jax.ffi`.

A Python function of NumPy arrays that is registered is called when the program runs, as
`axir.pure_callback` does. XLA's handlers, which get their arrays by the binary interface of XLA's
runtime, can be registered, so that libraries import; a call of one raises `XlaHandlerError`.

>>> import numpy as np, axir, axir.numpy as jnp
>>> register_ffi_target("scaled", lambda x, *, factor: x * np.float32(factor))
>>> call = ffi_call("scaled", axir.ShapeDtypeStruct((2,), jnp.float32))
>>> axir.jit(lambda x: call(x, factor=3.0))(jnp.ones(2))
Array([3., 3.], dtype=float32)
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence

from axir._transforms.callbacks import io_callback, pure_callback
from axir.dialect.core.annotations import PyTree, Tree, UserFunction, UserObject
from axir.dialect.core.errors import AxirError, ParameterError

__all__ = [
    "build_ffi_lowering_function", "ffi_call", "ffi_lowering", "include_dir", "pycapsule",
    "register_ffi_target", "register_ffi_target_as_batch_partitionable", "register_ffi_type",
    "register_ffi_type_id",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


_targets: dict[str, dict[str, UserObject]] = {}  # by name, then by platform
_WAY_OUT = (
    "Register a Python function of NumPy arrays in its place, which may call the library by ctypes."
)


class XlaHandlerError(AxirError, NotImplementedError):
    """A call of an XLA handler was requested, which only XLA's runtime can do."""


def register_ffi_target(
    name: str, fn: object, platform: str = "cpu", api_version: int = 1, **kwargs: object
) -> None:
    """Gives a function a name, by which `ffi_call` calls it.

    Args:
        name: The name.
        fn: A function of NumPy arrays and attributes that returns arrays. A capsule, or a
            dictionary of them, of XLA's handlers is kept, and cannot be called.
        platform: The platform of the target. Each platform may have a separate target under the
            name. The host calls the function in any case, and prefers the target for `cpu` if it
            exists.
        api_version, **kwargs: Ignored.
    """
    _targets.setdefault(name, {})[platform.lower()] = fn


def register_ffi_target_as_batch_partitionable(name: str) -> None:
    """Declares that a target works on parts of its arrays; axir detects this without it."""


def register_ffi_type(
    name: str, type_registration: Mapping[str, object], platform: str = "cpu"
) -> None:
    """Names a type that XLA's handlers keep; nothing here makes any."""


def register_ffi_type_id(name: str, obj: object, platform: str = "cpu") -> None:
    """Names a type that XLA's handlers keep; nothing here makes any."""


def pycapsule(funcptr: UserObject) -> UserObject:
    """Returns a capsule of the address of a function that ctypes has loaded.

    Args:
        funcptr: The function.

    >>> import ctypes
    >>> type(pycapsule(ctypes.CDLL(None).abs)).__name__
    'PyCapsule'
    """
    make = ctypes.pythonapi.PyCapsule_New
    make.restype = ctypes.py_object
    make.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    return make(ctypes.cast(funcptr, ctypes.c_void_p), None, None)


def include_dir() -> str:
    """Raises `XlaHandlerError`: there are no headers of XLA's to write handlers with."""
    raise XlaHandlerError("ffi.include_dir: axir has no headers of XLA's runtime.", _WAY_OUT)


def ffi_lowering(call_target_name: str, **options: object) -> UserFunction:
    """Returns a lowering rule that calls a target, which raises `XlaHandlerError` when it is used.

    Args:
        call_target_name: The target's name.
        **options: How it is called.
    """

    def rule(*_: object, **__: object) -> UserObject:
        raise XlaHandlerError(
            f"ffi_lowering: {call_target_name!r} cannot be written into a program of axir's.",
            "Call it by axir.pure_callback, in a rule that mlir.lower_fun makes.",
        )

    return rule


def build_ffi_lowering_function(call_target_name: str, **options: object) -> UserFunction:
    """Returns the same rule as `ffi_lowering`: it raises `XlaHandlerError` when it is used."""
    return ffi_lowering(call_target_name, **options)


def ffi_call(
    target_name: str,
    result_shape_dtypes: Tree,
    *,
    has_side_effect: bool = False,
    vmap_method: str | None = None,
    input_layouts: Sequence[object] | None = None,
    output_layouts: object = None,
    input_output_aliases: dict[int, int] | None = None,
    custom_call_api_version: int = 4,
    legacy_backend_config: str | None = None,
) -> Callable[..., PyTree]:
    """Returns a function of arrays that calls a registered one when the program runs.

    Args:
        target_name: Its name.
        result_shape_dtypes: Types of the results: an `axir.ShapeDtypeStruct`, or a sequence of
            them.
        has_side_effect: Whether it is called even if its results are unused.
        vmap_method: How `vmap` calls it; see `axir.pure_callback`. One that has side effects is
            called for each element in turn, whatever this says: so often it acts.
        input_layouts, output_layouts, input_output_aliases, custom_call_api_version,
        legacy_backend_config: Accepted for compatibility: arrays lie row by row.

    Returns:
        A function of arrays, and of attributes by keyword, which the target gets so, too.

    Raises:
        ParameterError: by a call, if nothing is registered under the name.
        XlaHandlerError: by a call, if the registered target is an XLA handler.
    """

    def call(*args: object, **attributes: object) -> PyTree:
        target = _python_target(target_name)

        def by_host(*arrays: object) -> Tree:
            return target(*arrays, **attributes)

        if has_side_effect:
            return io_callback(by_host, result_shape_dtypes, *args)
        return pure_callback(by_host, result_shape_dtypes, *args, vmap_method=vmap_method)

    return call


def _python_target(name: str) -> Callable[..., object]:
    if name not in _targets:
        raise ParameterError(
            f"ffi_call: no target is registered under the name {name!r}.",
            "Register a function of NumPy arrays: register_ffi_target(name, function).",
        )
    by_platform = _targets[name]
    for platform in sorted(by_platform, key=lambda platform: platform != "cpu"):
        target: UserObject = by_platform[platform]
        if callable(target):
            return target
    raise XlaHandlerError(
        f"ffi_call: {name!r} is a handler of XLA's runtime, which axir has not.", _WAY_OUT
    )
