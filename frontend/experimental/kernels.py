"""Kernels of your own: loops over elements in memory, in Python, compiled for the CPU.

`kernel_call` makes a function of arrays of a function of refs. `docs/kernels.md` is a course.

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

from collections.abc import Callable, Sequence

from axir._arguments.arguments import to_values
from axir._transforms.callbacks import callback_name
from axir._trees import tree
from axir.dialect.builders.expressions import (
    cos,
    exp,
    expm1,
    floor,
    is_nan,
    log,
    log1p,
    maximum,
    minimum,
    power,
    select,
    sin,
    sqrt,
    tanh,
)
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import DTypeLike, Options, ShapeLike, UserFunction, UserObject
from axir.dialect.core.errors import NonArrayArgumentError, OutOfBoundsError, ParameterError
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.calls.kernels.kernel_call import KernelFunction, kernel_call_primitive
from axir.dialect.ops.calls.kernels.machine import Ref, as_value, running
from axir.dialect.ops.calls.kernels.positions import ds
from axir.dialect.ops.calls.kernels.values import KernelValue

__all__ = [
    "Ref",
    "cos",
    "ds",
    "exp",
    "expm1",
    "floor",
    "fori_loop",
    "is_nan",
    "kernel_call",
    "log",
    "log1p",
    "max",
    "maximum",
    "min",
    "minimum",
    "power",
    "program_id",
    "scratch",
    "select",
    "sin",
    "sqrt",
    "sum",
    "tanh",
    "when",
    "while_loop",
]


def kernel_call(
    kernel: UserFunction,
    out_shape: UserObject,
    *,
    grid: ShapeLike = (),
    parallel: bool = False,
) -> UserFunction:
    """Returns a function of arrays that runs a kernel.

    Eagerly the kernel runs on NumPy arrays, op by op. In compiled code for the CPU it is a kernel
    of its own, in exported programs, too. `vmap` runs it once for each place of the batch, in
    parallel. There are no derivatives: wrap the function in `custom_jvp` or `custom_vjp`.

    Args:
        kernel: Takes a ref for each operand, which it may read, then one for each result, which it
            may read and write. It runs once for each place of the grid; when it is compiled it runs
            as Python only once, so that conditions on values are `when`, `select` and `while_loop`.
        out_shape: Tree of what has `shape` and `dtype` (`ShapeDtypeStruct`, arrays): the results,
            which are zeros before the kernel runs.
        grid: How often the kernel runs, along each axis; the last axis runs fastest.
        parallel: Whether instances that differ along the first axis of the grid may run at the same
            time. They must not write what another one reads or writes.

    Returns:
        A function of arrays that returns the tree of results.

    Raises:
        DTypeError: by the function, for other dtypes than booleans, signed integers and floats.
        ShapeError: by the function, for empty arrays, and blocks of shapes that do not fit.

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
    if not callable(kernel):
        raise NonArrayArgumentError(
            f"kernel_call takes a function first, not {kernel!r}.",
            "Write kernel_call(kernel, out_shape).",
        )
    name = callback_name(kernel)
    function = KernelFunction(kernel, name)
    wanted, out_tree = tree.flatten(out_shape)
    types = tuple(_result_type(x) for x in wanted)
    extents = _grid(grid)
    if parallel and not extents:
        raise ParameterError("kernel_call: parallel=True without a grid.", "Pass grid=(n, ...).")

    def call(*operands: Options) -> UserObject:
        values = to_values(operands, operands, name)
        results = kernel_call_primitive.bind(
            *values, kernel=function, result_avals=types, grid=extents, batch=(),
            batched=((),) * len(values), parallel=parallel,
        )  # fmt: skip
        return out_tree.unflatten(results)

    call.__name__ = call.__qualname__ = name
    return call


def _result_type(x: UserObject) -> ShapedArray:
    if not (hasattr(x, "shape") and hasattr(x, "dtype")):
        raise ParameterError(
            f"kernel_call: out_shape holds {x!r} of type {type(x).__name__!r}, which has no shape "
            "and dtype.",
            "Use axir.ShapeDtypeStruct(shape, dtype).",
        )
    return ShapedArray(tuple(x.shape), dtypes.as_dtype(x.dtype))


def _grid(grid: ShapeLike) -> tuple[int, ...]:
    extents = (grid,) if isinstance(grid, int) else tuple(grid)
    if any(not isinstance(n, int) or isinstance(n, bool) or n < 0 for n in extents):
        raise ParameterError(
            f"kernel_call: grid is {grid!r}.", "Pass an integer, or a tuple of such."
        )
    return extents


# In a kernel -----------------------------------------------------------------------------------


def program_id(axis: int) -> KernelValue[UserObject]:
    """Returns the place of the running instance along an axis of the grid, an int32."""
    machine = running("program_id")
    place: Sequence[UserObject] = machine.place
    if not 0 <= axis < len(place):
        raise OutOfBoundsError(
            f"program_id({axis}) in a grid of {len(place)} axes.", "Pass grid to kernel_call."
        )
    return machine.program_id(axis)


def fori_loop(
    lower: UserObject, upper: UserObject, body: UserFunction, init: UserObject = None
) -> UserObject:
    """Runs `body(i, carried) -> carried` for each index from `lower` to below `upper`.

    Args:
        lower: Where the index, an int32, begins.
        upper: Where it ends.
        body: Returns what is carried to the next pass.
        init: A number, a tuple of numbers, or None, with which `body` writes into refs only.

    Returns:
        What the last pass returns.
    """
    machine = running("fori_loop")
    start = _carried(init)

    def step(i: UserObject, *state: UserObject) -> tuple[UserObject, ...]:
        return _next(body(i, _packed(init, state)), init, start)

    ends = [x if isinstance(x, int) else as_value(x) for x in (lower, upper)]
    return _packed(init, machine.fori_loop(ends[0], ends[1], step, start))


def while_loop(condition: UserFunction, body: UserFunction, init: UserObject) -> UserObject:
    """Runs `body(carried) -> carried` as long as `condition(carried)` holds."""
    machine = running("while_loop")
    start = _carried(init)

    def step(*state: UserObject) -> tuple[UserObject, ...]:
        return _next(body(_packed(init, state)), init, start)

    return _packed(
        init,
        machine.while_loop(lambda *state: _truth(condition(_packed(init, state))), step, start),
    )


def when(condition: UserObject) -> Callable[[UserFunction], None]:
    """Runs the function that it decorates if a condition holds."""
    truth = _truth(condition)
    return lambda body: running("when").when(truth, body)


def scratch(shape: ShapeLike, dtype: DTypeLike = "float32") -> Ref[UserObject]:
    """Returns memory of the kernel's own, with zeros in it: when compiled 32 KB in all."""
    extents = (shape,) if isinstance(shape, int) else tuple(shape)
    return running("scratch").scratch(extents, dtypes.as_dtype(dtype))


def sum(x: KernelValue[UserObject]) -> KernelValue[UserObject]:
    """Returns the sum of all numbers of a block."""
    return x.reduced("sum")


def max(x: KernelValue[UserObject]) -> KernelValue[UserObject]:
    """Returns the largest number of a block."""
    return x.reduced("max")


def min(x: KernelValue[UserObject]) -> KernelValue[UserObject]:
    """Returns the smallest number of a block."""
    return x.reduced("min")


def _truth(condition: UserObject) -> KernelValue[UserObject]:
    return as_value(condition, dtypes.as_dtype(bool))


def _carried(init: UserObject) -> tuple[KernelValue[UserObject], ...]:
    many = () if init is None else init if isinstance(init, tuple) else (init,)
    return tuple(as_value(x) for x in many)


def _packed(init: UserObject, state: Sequence[UserObject]) -> UserObject:
    if init is None:
        return None
    return tuple(state) if isinstance(init, tuple) else state[0]


def _next(
    result: UserObject, init: UserObject, start: Sequence[KernelValue[UserObject]]
) -> tuple[KernelValue[UserObject], ...]:
    many = () if init is None else result if isinstance(init, tuple) else (result,)
    if not isinstance(many, tuple) or len(many) != len(start):
        raise ParameterError(
            f"The body of a loop in a kernel returns {result!r}, and carries {len(start)} numbers.",
            "Return as many as init has.",
        )
    return tuple(as_value(x, first.dtype) for x, first in zip(many, start, strict=True))
