"""Functions for kernels on blocks: grid position, loops, branches, scoped memory, products."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import numpy as np

from axir import debug, lax
from axir._transforms.refs import Ref
from axir._trees import tree
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import PyTree, Tree, UserFunction, UserObject
from axir.dialect.core.errors import KernelScopeError, OutOfBoundsError, ParameterError, ShapeError
from axir.dialect.program.rules import Value
from axir.dialect.program.tracer import state
from axir.numpy import asarray, promote_types, result_type
from axir.numpy import reciprocal as numpy_reciprocal

from ._memory import available, uninitialized, wanted_type


def _in_grid(what: str, axis: int, number: int) -> UserObject:
    grid = state.grid
    if grid is None:
        raise KernelScopeError(
            f"{what} is called outside of a kernel.",
            "Call it in the function that is passed to pallas_call.",
        )
    if not 0 <= axis < len(grid[1]):
        raise OutOfBoundsError(
            f"Axis {axis} is out of bounds for grid {grid[1]}: {what}({axis}).",
            "Pass grid to pallas_call.",
        )
    return grid[number][axis]


def program_id(axis: int) -> Value:
    """Returns the place of the running instance along an axis of the grid, an int32."""
    return _in_grid("program_id", axis, 0)


def num_programs(axis: int) -> UserObject:
    """Returns how many instances there are along an axis of the grid."""
    return _in_grid("num_programs", axis, 1)


def when(condition: object, /) -> Callable[[UserFunction], None]:
    """Runs the function that it decorates if a condition holds."""

    def run(body: Callable[..., object]) -> None:
        if isinstance(condition, (bool, np.bool_)):
            if condition:
                body()
        else:
            lax.cond(condition, body, lambda: None)

    return run


def loop(
    lower: UserObject,
    upper: UserObject,
    *,
    init_carry: Tree = None,
    step: UserObject = 1,
    unroll: int | bool | None = None,
) -> Callable[[UserFunction], PyTree]:
    """Runs the function that it decorates for `lower`, `lower + step`, ... below `upper`.

    Args:
        lower: The first index.
        upper: Where the indices end.
        init_carry: Initial value of the carry, the function's second argument; then the previous
            result. Without it, the function takes only the index.
        step: From one index to the next.
        unroll: Number of passes that are written out in one; True for all.

    Returns:
        A decorator; it returns the result of the last iteration.
    """
    ends = (lower, upper, step)
    if not all(isinstance(x, (int, np.integer)) for x in ends):
        kind = result_type(*ends)
        lower, upper, step = (asarray(x, kind) for x in ends)

    def run(body: Callable[..., object]) -> PyTree:
        def each(i: Value, carry: Tree) -> PyTree:
            place = lower + i * step
            return body(place) if init_carry is None else body(place, carry)

        return lax.fori_loop(0 * lower, cdiv(upper - lower, step), each, init_carry, unroll=unroll)

    return run


def run_scoped(
    f: Callable[..., object],
    *types: object,
    collective_axes: Hashable = (),
    **kw_types: object,
) -> PyTree:
    """Calls a function with scoped memory; returns its result.

    Args:
        f: Takes a ref for each type.
        *types: Memory requests such as `pltpu.VMEM(shape, dtype)`, or trees of these.
        collective_axes: Accepted for compatibility: instances run one after the other.
        **kw_types: The same, by name.
    """
    leaves, structure = tree.flatten((types, kw_types))
    wanted = [available(wanted_type(x, "run_scoped")) for x in leaves]
    refs = [Ref(uninitialized(t.shape, t.dtype), state.ambient) for t in wanted]
    arguments: UserObject = structure.unflatten(refs)
    result = f(*arguments[0], **arguments[1])
    for ref in refs:
        ref._value = None
    return result


def with_scoped(
    *types: object, collective_axes: Hashable = (), **kw_types: object
) -> Callable[[UserFunction], UserFunction]:
    """Returns a decorator: the function gets memory for its time after its other arguments."""

    def decorated(f: Callable[..., object]) -> Callable[..., object]:
        def run(*args: object) -> PyTree:
            return run_scoped(lambda *refs, **named: f(*args, *refs, **named), *types, **kw_types)

        return run

    return decorated


def debug_print(fmt: str, *args: object) -> None:
    """Prints values while a kernel runs; without a place for them in the text, behind it.

    >>> from axir.experimental import pallas as pl
    >>> pl.debug_print("it is {}", 3)
    it is 3
    """
    text = fmt if "{" in fmt else fmt + " {}" * len(args)
    debug.print(text, *args)


def multiple_of(x: Value, values: Sequence[int] | int) -> Value:
    """Returns `x`, which is said to be a multiple of a number. Nothing here uses that."""
    return x


def max_contiguous(x: Value, values: Sequence[int] | int) -> Value:
    """Returns `x`. The hint, that so many elements are consecutive, is ignored."""
    return x


def reciprocal(x: Value, *, approx: bool = False, full_range: bool = True) -> Value:
    """Returns 1/x.

    Args:
        x: Floats.
        approx: Whether bfloat16's precision is enough. The result here has float32 precision.
        full_range: Accepted for compatibility.
    """
    return numpy_reciprocal(x)


def delay(nanos: object) -> None:
    """Does nothing: there are no other cores to wait for."""


# Numbers that programs need around kernels --------------------------------------------------------


def cdiv(a: UserObject, b: UserObject) -> UserObject:
    """Returns a/b, rounded up.

    >>> cdiv(7, 2)
    4
    """
    if isinstance(a, int) and isinstance(b, int):
        return -(-a // b)
    return lax.div(a + (b - 1), asarray(b, result_type(a, b)))


def align_to(a: object, alignment: object) -> UserObject:
    """Returns the least multiple of a number that is not less than another one.

    >>> align_to(7, 4)
    8
    """
    return cdiv(a, alignment) * alignment


def next_power_of_2(x: int) -> int:
    """Returns the least power of two that is not less than an integer.

    >>> next_power_of_2(9)
    16
    """
    if x < 0:
        raise ValueError("`next_power_of_2` requires a non-negative integer.")
    return 1 if x == 0 else 1 << (x - 1).bit_length()


def strides_from_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Returns how far apart neighbours along each axis lie in an array without gaps.

    >>> strides_from_shape((2, 3, 4))
    (12, 4, 1)
    """
    strides = [1]
    for extent in reversed(shape[1:]):
        strides.insert(0, strides[0] * extent)
    return tuple(strides[: len(shape)])


def dot(
    a: Value,
    b: Value,
    trans_a: bool = False,
    trans_b: bool = False,
    allow_tf32: bool | None = None,
    precision: object = None,
) -> Value:
    """Returns the product of two matrices: float32 of narrower floats, int32 of integers.

    Args:
        a: A matrix.
        b: A matrix.
        trans_a: Whether to transpose the first one before.
        trans_b: Whether to transpose the second one before.
        allow_tf32: Accepted for compatibility.
        precision: See `lax.dot_general`; not together with `allow_tf32`.

    >>> import axir.numpy as jnp
    >>> dot(jnp.ones((2, 3)), jnp.ones((2, 3)), trans_b=True)
    Array([[3., 3.],
           [3., 3.]], dtype=float32)
    """
    if a.ndim != 2 or b.ndim != 2:
        raise ShapeError(
            f"dot: `a` and `b` must be 2D arrays, not of shapes {a.shape} and {b.shape}.",
            "Use axir.numpy.matmul for arrays of other ranks.",
        )
    if allow_tf32 is not None and precision is not None:
        raise ParameterError(
            "dot: only one of allow_tf32 and precision can be specified.", "Leave allow_tf32 out."
        )
    kind = promote_types(a.dtype, b.dtype)
    result = np.dtype(np.int32) if dtypes.is_integer(kind) else promote_types(kind, np.float32)
    numbers = (((0 if trans_a else 1,), (1 if trans_b else 0,)), ((), ()))
    return lax.dot_general(a, b, numbers, precision=precision, preferred_element_type=result)
