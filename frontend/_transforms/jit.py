"""`jit`: its options, and forgetting what it compiled.

Elsewhere: the jitted function and its calls (`jit_function.py`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import overload

from axir._arguments.arguments import check_callable
from axir._later import later
from axir.dialect.core.annotations import P, R, UserObject
from axir.dialect.core.errors import DonationError, ParameterError
from axir.runtime import local_devices
from axir.runtime.calls.eager_ops import forget_ops

from .jit_function import JitFunction, forget_programs
from .static_arguments import Inline, chosen


@overload
def jit(
    fun: Callable[P, R],
    /,
    static_argnums: int | Sequence[int] | None = ...,
    *,
    in_shardings: object = ...,
    out_shardings: object = ...,
    static_argnames: str | Sequence[str] | None = ...,
    donate_argnums: int | Sequence[int] | None = ...,
    donate_argnames: str | Sequence[str] | None = ...,
    device: object = ...,
    backend: str | None = ...,
    inline: bool | Inline = ...,
    keep_unused: bool = ...,
    compiler_options: dict[str, UserObject] | None = ...,
    wait: bool | None = ...,
) -> JitFunction[P, R]: ...


@overload
def jit(
    fun: None = ...,
    /,
    static_argnums: int | Sequence[int] | None = ...,
    *,
    in_shardings: object = ...,
    out_shardings: object = ...,
    static_argnames: str | Sequence[str] | None = ...,
    donate_argnums: int | Sequence[int] | None = ...,
    donate_argnames: str | Sequence[str] | None = ...,
    device: object = ...,
    backend: str | None = ...,
    inline: bool | Inline = ...,
    keep_unused: bool = ...,
    compiler_options: dict[str, UserObject] | None = ...,
    wait: bool | None = ...,
) -> Callable[[Callable[P, R]], JitFunction[P, R]]: ...


def jit(
    fun: Callable[..., object] | None = None,
    /,
    static_argnums: int | Sequence[int] | None = None,
    *,
    in_shardings: object = None,
    out_shardings: object = None,
    static_argnames: str | Sequence[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Sequence[str] | None = None,
    device: object = None,
    backend: str | None = None,
    inline: bool | Inline = False,
    keep_unused: bool = False,
    compiler_options: dict[str, UserObject] | None = None,
    wait: bool | None = None,
) -> UserObject:
    """Returns `fun` compiled for each combination of argument types it is called with.

    Args:
        fun: Function of arrays or trees of arrays; without it, `jit` is a decorator with options.
        static_argnums: Positional arguments that are Python values fixed at compile time. They
            must be hashable; each new value compiles again. Older programs pass it by position.
        static_argnames: The same, by name.
        in_shardings: Where arguments are: a sharding, a `PartitionSpec` for the mesh in use, or a
            tree of them that is a prefix of the tuple of arguments. None leaves them where they
            are.
        out_shardings: The same for results.
        donate_argnums: Positional arguments with memory that results may reuse; they are deleted.
        donate_argnames: The same, by name.
        device: Where to run; by default where committed arguments are, else the default device.
        backend: Platform; the function runs on its first device.
        inline: Whether a nested call is replaced by its ops: True, or `Inline.JAX_EARLY`.
        keep_unused: Accepted for compatibility; unused arguments cost nothing.
        compiler_options: Only None, or empty: use the options of `axir.config`.
        wait: Whether the first call waits for the compiler, or is evaluated op by op in NumPy, as
            are the next ones until the compiled program is there. Their results may differ in the
            last digits. By default the option `axir_wait_for_compiler` decides, as it does for
            derivatives and vectorized forms of the function.

    Raises:
        ParameterError: for compiler options.
        StaticArgumentError: by the call, if a static argument is not hashable.
        NonArrayArgumentError: by the call, if another argument is no array.

    >>> import axir, axir.numpy as jnp
    >>> axir.jit(lambda x: 2 * jnp.sin(x))(0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    if fun is None:
        options = dict(locals())
        del options["fun"]
        return functools.partial(jit, **options)
    check_callable(fun, "jit")
    if compiler_options:
        raise ParameterError(
            f"jit: there are no compiler options {', '.join(compiler_options)}.",
            "Set axir_opt_level with axir.config.update.",
        )
    argnums, argnames = chosen(fun, static_argnums, static_argnames, "static")
    donated, donated_names = chosen(fun, donate_argnums, donate_argnames, "donate")
    if set(argnums) & set(donated):
        raise DonationError(
            f"jit: arguments {sorted(set(argnums) & set(donated))} are both static and donated.",
            "Static arguments have no memory to donate.",
        )
    if backend is not None and device is None:
        device = local_devices(backend=backend)[0]
    is_inline = inline is Inline.JAX_EARLY if isinstance(inline, Inline) else bool(inline)
    settings = (argnums, argnames, donated, donated_names, device, is_inline, wait)
    if in_shardings is None and out_shardings is None:
        return JitFunction(fun, *settings)
    return later.sharded_jit(fun, settings, in_shardings, out_shardings)


def clear_caches() -> None:
    """Drops all traced and compiled programs; functions are traced and compiled anew when called.

    >>> import axir
    >>> axir.clear_caches()
    """
    forget_programs()
    forget_ops()
