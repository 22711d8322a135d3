"""Detection of random keys that are used twice, under the names of `jax.experimental.key_reuse`.

With the option `jax_debug_key_reuse` an operation that uses a key raises `KeyReuseError` if the key
has been used before, and a compiled function is looked through when it is traced.

>>> import axir
>>> key = axir.random.key(0)
>>> with axir.debug_key_reuse(True):
...     _ = axir.random.normal(key)
...     try:
...         axir.random.normal(key)
...     except KeyReuseError as error:
...         print(type(error).__name__)
KeyReuseError
"""

from __future__ import annotations

from collections.abc import Callable

from axir._arguments.arguments import FlatFunction, trace_abstract, type_of
from axir._trees import tree
from axir.dialect.core.errors import KeyReuseError
from axir.dialect.program.key_reuse import used_inputs
from axir.random import clone as reuse_key

__all__ = ["KeyReuseError", "check_key_reuse", "reuse_key"]


def __dir__() -> list[str]:
    return __all__


def check_key_reuse(fun: Callable[..., object], /, *args: object) -> None:
    """Checks whether a function uses a key twice, without running it.

    Args:
        fun: The function.
        *args: Its arguments: trees of arrays, or of their types.

    Raises:
        KeyReuseError: it does, or uses the same key in each pass of a loop.

    >>> import axir
    >>> check_key_reuse(lambda key: axir.random.uniform(key), axir.random.key(0))
    """
    leaves, in_tree = tree.flatten((args, {}))
    types = tuple(type_of(x) for x in leaves)
    used_inputs(trace_abstract(FlatFunction(fun, in_tree), types, "Jit"))
