"""Kernels on whole arrays: loops over elements in memory, in Python, compiled for the CPU.

`kernel_call` makes a function of arrays of a function of refs. It is `pallas.pallas_call` without
blocks, with results that begin as zeros; in the kernel all of `axir.numpy`, `axir.lax` and
`axir.experimental.pallas` works. `docs/kernels.md` is a course.

>>> import axir, axir.numpy as jnp
>>> from axir.experimental import kernels
>>> def running_maximum(x_ref, o_ref):
...     def step(i, most):
...         most = kernels.maximum(most, x_ref[i])
...         o_ref[i] = most
...         return most
...     kernels.fori_loop(0, x_ref.shape[0], step, x_ref[0])
>>> x = jnp.array([1.0, 3.0, 2.0, 5.0])
>>> f = kernels.kernel_call(running_maximum, axir.ShapeDtypeStruct(x.shape, x.dtype))
>>> axir.jit(f)(x)
Array([1., 3., 3., 5.], dtype=float32)
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from axir import lax
from axir._transforms.refs import Ref, new_ref
from axir._trees import tree
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import (
    DTypeLike,
    PyTree,
    ShapeLike,
    Tree,
    UserFunction,
)
from axir.dialect.core.errors import KernelScopeError, ParameterError
from axir.dialect.core.state import state
from axir.dialect.program.rules import Value
from axir.numpy import (
    asarray,
    cos,
    exp,
    expm1,
    floor,
    isnan,
    log,
    log1p,
    max,
    maximum,
    min,
    minimum,
    power,
    sin,
    sqrt,
    sum,
    tanh,
    where,
    zeros,
)
from axir.numpy._indexing.dynamic_slices import dslice

from .pallas import GridSpec, program_id, when
from .pallas._call import call_of

__all__ = [
    "Ref", "cos", "ds", "exp", "expm1", "floor", "fori_loop", "is_nan", "kernel_call", "log",
    "log1p", "max", "maximum", "min", "minimum", "power", "program_id", "scratch", "select", "sin",
    "sqrt", "sum", "tanh", "when", "while_loop",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


ds = dslice
is_nan = isnan
select = where


def kernel_call(
    kernel: Callable[..., object],
    out_shape: Tree,
    *,
    grid: ShapeLike = (),
    parallel: bool = False,
) -> UserFunction:
    """Returns a function of arrays that runs a kernel on the whole of them.

    Args:
        kernel: Takes a ref for each operand, then one for each result. It runs once for each place
            of the grid, in order; when it is compiled it runs as Python only once, so that
            conditions on values are `when`, `select` and `while_loop`.
        out_shape: Tree of objects with `shape` and `dtype` (`ShapeDtypeStruct`, arrays): the
            results. They are zeros before the kernel runs.
        grid: How often the kernel runs, along each axis; the last axis runs fastest.
        parallel: Whether instances that differ along the first axis of the grid may run in any
            order. They must not write what another one reads or writes.

    Returns:
        A function of arrays that returns the tree of results.

    Raises:
        ParameterError: for an invalid grid, and for results without shape and dtype.

    >>> import axir, axir.numpy as jnp
    >>> from axir.experimental import kernels
    >>> def scale_rows(x_ref, factor_ref, o_ref):
    ...     i = kernels.program_id(0)
    ...     o_ref[i, :] = x_ref[i, :] * factor_ref[i]
    >>> x = jnp.ones((2, 3))
    >>> f = kernels.kernel_call(scale_rows, x, grid=2, parallel=True)
    >>> f(x, jnp.array([1.0, 2.0]))
    Array([[1., 1., 1.],
           [2., 2., 2.]], dtype=float32)
    """
    spec = GridSpec(grid)
    if any(isinstance(n, int) and n < 0 for n in spec.grid):
        raise ParameterError(f"kernel_call: grid is {grid!r}.", "Pass counts, none below 0.")
    if parallel and not spec.grid:
        raise ParameterError("kernel_call: parallel=True without a grid.", "Pass grid=(n, ...).")
    return call_of("kernel_call", kernel, out_shape, spec, begin=zeros)


def _in_kernel(what: str) -> None:
    if state.grid is None:
        raise KernelScopeError(
            f"{what} is called outside of a kernel.",
            "Call it in the function that is passed to kernel_call.",
        )


def fori_loop(
    lower: object, upper: object, body: Callable[..., object], init: Tree = None
) -> PyTree:
    """Runs `body(i, carried) -> carried` for each index from `lower` to below `upper`.

    Args:
        lower: Where the index, an int32, begins.
        upper: Where it ends.
        body: Returns the carry of the next iteration.
        init: A tree of numbers and arrays, or None, with which `body` writes into refs only.

    Returns:
        The result of the last iteration.
    """
    _in_kernel("fori_loop")

    def step(i: Value, carried: Tree) -> PyTree:
        result = body(asarray(i, np.int32), carried)
        return None if init is None else result

    return lax.fori_loop(lower, upper, step, tree.map(asarray, init))


def while_loop(condition: Callable[..., object], body: Callable[..., object], init: Tree) -> PyTree:
    """Runs `body(carried) -> carried` as long as `condition(carried)` holds."""
    _in_kernel("while_loop")
    return lax.while_loop(condition, body, tree.map(asarray, init))


def scratch(shape: ShapeLike, dtype: DTypeLike = "float32") -> Ref:
    """Returns memory of the instance's own, with zeros in it."""
    _in_kernel("scratch")
    return new_ref(zeros(shape, dtypes.as_dtype(dtype)))
