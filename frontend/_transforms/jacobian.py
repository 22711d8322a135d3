"""Jacobians and Hessians: the linear function of a derivative, vectorized over unit vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from axir._arguments.argnums import check_differentiable, normalize_argnums, select_arguments
from axir._arguments.arguments import check_callable, flat_arguments
from axir._arguments.wrapping import wraps_as
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import P, UserObject
from axir.dialect.core.array import ConcreteArray
from axir.dialect.core.errors import GradientError
from axir.dialect.core.state import BatchFrame
from axir.dialect.core.symbolic_dims import is_symbolic_dim
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.elementwise.arithmetic import add
from axir.dialect.ops.elementwise.comparison import eq
from axir.dialect.ops.elementwise.conversion import convert_element_type
from axir.dialect.ops.elementwise.family import as_value, full, instantiate
from axir.dialect.ops.indexing.dynamic_slicing import slice_in_dim
from axir.dialect.ops.shape.constants import broadcasted_iota
from axir.dialect.ops.shape.rearranging import moveaxis, reshape
from axir.dialect.program.function_tracing import trace_function
from axir.dialect.program.rules import Value
from axir.passes.transforms.vmap import batch, to_axis

from .autodiff import Derivative
from .carried_refs import differentiated


def _basis(types: Sequence[ShapedArray]) -> tuple[list[Value], int]:
    """Returns the unit vectors of a product space, stacked in front of each of its factors."""
    total = sum(t.size for t in types)
    offset = 0
    stacked: list[Value] = []
    for t in types:
        if is_symbolic_dim(total):
            stacked.append(_open_rows(t, total, offset))
            offset += t.size
            continue
        rows = np.zeros((total, t.size), t.dtype)
        rows[offset + np.arange(t.size), np.arange(t.size)] = 1
        host = rows.reshape(total, *t.shape)
        stacked.append(ConcreteArray(ShapedArray(host.shape, t.dtype), host))
        offset += t.size
    return stacked, total


def _open_rows(kind: ShapedArray, total: int, offset: int) -> Value:
    """Returns the unit vectors of one factor; their number is not known while tracing."""
    shape = (total, kind.size)
    places, columns = (broadcasted_iota(dtypes.int32, shape, axis) for axis in (0, 1))
    is_one = eq(places, add(columns, convert_element_type(as_value(offset), dtypes.int32)))
    return reshape(convert_element_type(is_one, kind.dtype), (total, *kind.shape))


def _numbers(tangents: Sequence[UserObject], values: Sequence[Value]) -> list[Value]:
    """Returns tangents as arrays; where values have none, zeros of the values' dtype."""
    return [
        instantiate(t) if dtypes.is_inexact(x.dtype) else full(x.shape, 0, x.dtype)
        for t, x in zip(tangents, values, strict=True)
    ]


def _batched(
    function: Callable[..., Sequence[Value]], columns: Sequence[Value], size: int
) -> list[Value]:
    """Applies a function of flat values to stacked arguments; returns stacked results."""
    types = [c.type.update(shape=c.shape[1:], weak_type=False) for c in columns]
    traced = trace_function(function, types, name="basis", kind="Vmap")
    axes = [*(0 for _ in columns), *(None for _ in traced.captures)]
    outputs, found = batch(traced, [*columns, *traced.captured], axes, BatchFrame(size))
    return [to_axis(x, axis, 0, size) for x, axis in zip(outputs, found, strict=True)]


def jacfwd(
    fun: Callable[P, object],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[P, UserObject]:
    """Returns a function that computes the Jacobian of `fun`, column by column (forward mode).

    Args:
        fun: Function of arrays or trees of arrays.
        argnums: Which positional arguments to differentiate in.
        has_aux: Whether `fun` returns a pair; only its first element is differentiated.
        holomorphic: Whether `fun` is holomorphic; inputs must then be complex.

    Returns:
        A function that returns for each output leaf of shape `s` and input leaf of shape `t` an
        array of shape `(*s, *t)`.

    >>> import axir, axir.numpy as jnp
    >>> axir.jacfwd(lambda x: x ** 2)(jnp.array([1.0, 2.0]))
    Array([[2., 0.],
           [0., 4.]], dtype=float32)
    """
    check_callable(fun, "jacfwd")

    @wraps_as(
        fun, f"Jacobian of {{fun}} by the arguments {argnums}; it takes the arguments of {{fun}}."
    )
    def jacobian(*args: object, **kwargs: object) -> object:
        derivative, is_single, auxiliary = _jacobian_setup(
            fun, args, kwargs, argnums, has_aux, holomorphic, "jacfwd"
        )
        columns, size = _basis([x.type for x in derivative.values])
        outs = derivative.outs
        rows = _batched(lambda *dx: _numbers(derivative.push(dx), outs), columns, size)
        blocks = [_split(moved, derivative.values) for moved in (_last(row) for row in rows)]
        return _assemble(derivative, blocks, is_single, auxiliary)

    return jacobian


def jacrev(
    fun: Callable[P, object],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[P, UserObject]:
    """Returns a function that computes the Jacobian of `fun`, row by row (reverse mode).

    Arguments and results are the same as for `jacfwd`. The better choice for fewer outputs than
    inputs.

    >>> import axir, axir.numpy as jnp
    >>> axir.jacrev(lambda x: jnp.sum(x ** 2))(jnp.array([1.0, 2.0]))
    Array([2., 4.], dtype=float32)
    """
    check_callable(fun, "jacrev")

    @wraps_as(
        fun, f"Jacobian of {{fun}} by the arguments {argnums}; it takes the arguments of {{fun}}."
    )
    def jacobian(*args: object, **kwargs: object) -> object:
        derivative, is_single, auxiliary = _jacobian_setup(
            fun, args, kwargs, argnums, has_aux, holomorphic, "jacrev", allow_int
        )
        rows, size = _basis([x.type for x in derivative.outs])
        columns = _batched(
            lambda *cotangents: _numbers(derivative.pull(cotangents), derivative.values),
            rows,
            size,
        )
        by_input = [_split_rows(column, derivative.outs) for column in columns]
        blocks = [list(row) for row in zip(*by_input, strict=True)]
        return _assemble(derivative, blocks, is_single, auxiliary)

    return jacobian


def _jacobian_setup(
    fun: Callable[..., object],
    args: tuple[object, ...],
    kwargs: dict[str, object],
    argnums: int | Sequence[int],
    has_aux: bool,
    holomorphic: bool,
    name: str,
    allow_int: bool = False,
) -> tuple[Derivative, bool, list[object]]:
    chosen, is_single = normalize_argnums(argnums, len(args), name)
    selected = tuple(args[number] for number in chosen)
    point = flat_arguments(selected, name)
    check_differentiable(point.values, holomorphic, name, allow_int)
    is_complex = any(dtypes.is_complex(x.dtype) for x in point.values)
    if name == "jacfwd" and not holomorphic and is_complex:
        raise GradientError(
            "jacfwd requires real inputs unless holomorphic=True.",
            "Differentiate in the real and imaginary parts, or set holomorphic=True.",
        )
    partial = select_arguments(fun, args, kwargs, chosen)

    def run(function: Callable[..., object], has_aux: bool) -> tuple[UserObject, ...]:
        derivative = Derivative(function, point, has_aux, name.capitalize())
        return (derivative, derivative.auxiliary_result()) if has_aux else (derivative,)

    derivative, *auxiliary = differentiated(run, partial, has_aux)
    if name == "jacrev" and not holomorphic:
        for out in derivative.outs:
            if not dtypes.is_float(out.dtype):
                raise GradientError(
                    f"jacrev requires real-valued outputs, but got {out.type}.",
                    "Set holomorphic=True for holomorphic functions, else split the complex parts.",
                )
    return derivative, is_single, auxiliary


def _last(value: Value) -> Value:
    return moveaxis(value, 0, value.ndim - 1)


def _split(stacked: Value, inputs: Sequence[Value]) -> list[Value]:
    """Splits the last axis into one piece for each input, of its shape."""
    pieces, offset = [], 0
    axis = stacked.ndim - 1
    for x in inputs:
        piece = slice_in_dim(stacked, offset, offset + x.size, axis=axis)
        pieces.append(reshape(piece, (*stacked.shape[:-1], *x.shape)))
        offset += x.size
    return pieces


def _split_rows(stacked: Value, outputs: Sequence[Value]) -> list[Value]:
    """Splits the first axis into one piece for each output, of its shape."""
    pieces, offset = [], 0
    for x in outputs:
        piece = slice_in_dim(stacked, offset, offset + x.size, axis=0)
        pieces.append(reshape(piece, (*x.shape, *stacked.shape[1:])))
        offset += x.size
    return pieces


def _assemble(
    derivative: Derivative,
    blocks: Sequence[Sequence[Value]],
    is_single: bool,
    auxiliary: Sequence[object],
) -> object:
    """Builds the tree of Jacobians: outputs outside, inputs inside."""

    def inner(row: Sequence[Value]) -> UserObject:
        arguments = derivative.in_tree.unflatten(row)[0]
        return arguments[0] if is_single else arguments

    result = derivative.flat.out_tree.unflatten([inner(row) for row in blocks])
    return (result, *auxiliary) if auxiliary else result


def hessian(
    fun: Callable[P, object],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[P, UserObject]:
    """Returns a function that computes the Hessian of `fun`: forward over reverse mode.

    >>> import axir, axir.numpy as jnp
    >>> axir.hessian(lambda x: jnp.sum(x ** 3))(jnp.array([1.0, 2.0]))
    Array([[ 6.,  0.],
           [ 0., 12.]], dtype=float32)
    """
    return jacfwd(
        jacrev(fun, argnums, has_aux=has_aux, holomorphic=holomorphic),
        argnums,
        has_aux=has_aux,
        holomorphic=holomorphic,
    )
