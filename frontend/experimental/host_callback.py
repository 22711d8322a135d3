"""Values seen while programs run, by the names of 2020.

Today's functions are `axir.debug.callback` and `axir.debug.print`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

import numpy as np

from axir import debug, effects_barrier, tree
from axir._transforms.callbacks import io_callback
from axir.dialect.core.annotations import Options, PyTree, Tree, UserFunction

__all__ = ["barrier_wait", "call", "id_print", "id_tap", "outfeed_receiver"]


def __dir__() -> list[str]:
    return __all__


def id_tap(tap_func: UserFunction, arg: Tree, *, result: Tree = None, **kwargs: Options) -> PyTree:
    """Returns its argument, and calls a function with the value whenever the program runs.

    Args:
        tap_func: Called as `tap_func(arg, **kwargs)`; its result is ignored.
        arg: Tree of arrays.
        result: Returned in place of `arg`, if given.
        **kwargs: Passed on as they are.

    >>> import axir
    >>> seen = []
    >>> float(axir.jit(lambda x: id_tap(lambda v: seen.append(float(v)), x) ** 2)(3.0)), seen
    (9.0, [3.0])
    """
    debug.callback(lambda value: tap_func(value, **kwargs), arg, ordered=True)
    return arg if result is None else result


def id_print(
    arg: Tree,
    *,
    result: Tree = None,
    output_stream: TextIO | None = None,
    threshold: int | None = None,
    **kwargs: object,
) -> PyTree:
    """Returns its argument, and prints the value whenever the program runs.

    Args:
        arg: Tree of arrays.
        result: Returned in place of `arg`, if given.
        output_stream: Where to; None is standard output.
        threshold: Number of elements above which arrays are abbreviated; None is NumPy's.
        **kwargs: Printed before the value.

    >>> float(id_print(2.0, what="x"))
    what: x
    2.
    2.0
    """
    named = [f"{name}: {value}" for name, value in kwargs.items()]

    def show(value: Tree) -> None:
        leaves = tree.map(lambda x: np.array2string(np.asarray(x), threshold=threshold), value)
        shown = leaves if isinstance(leaves, str) else str(leaves)
        print("\n".join([*named, shown]), file=output_stream or sys.stdout)

    return id_tap(show, arg, result=result)


@contextmanager
def outfeed_receiver(**_: object) -> Iterator[None]:
    """Waits at its end for all functions that programs within it call."""
    try:
        yield
    finally:
        effects_barrier()


def barrier_wait(logging_name: str | None = None) -> None:
    """Waits for all functions that programs have called so far.

    Args:
        logging_name: Accepted for compatibility.
    """
    effects_barrier()


def call(callback_func: Callable[..., object], arg: Tree, *, result_shape: Tree = None) -> PyTree:
    """Returns the result of a Python function, called with the value in each run of the program.

    Args:
        callback_func: Function of a tree of arrays, which may have side effects.
        arg: The tree.
        result_shape: Tree of objects with `shape` and `dtype`, like the results of the function;
            None for a function without results.

    Raises:
        CallbackError: by the program, if the function returns something else.

    >>> import axir, numpy as np
    >>> float(axir.jit(lambda x: call(lambda v: np.float32(v + 1), x, result_shape=x))(2.0))
    3.0
    """
    return io_callback(callback_func, result_shape, arg)
