"""`scan` and `map`: a function applied to one slice of its arguments after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import index as as_index

import numpy as np

from axir._arguments.wrapping import boundary
from axir._transforms.carried_refs import scanned
from axir._transforms.vectorize import vmap
from axir._trees import tree
from axir.dialect.core.annotations import PyTree, R, T, Tree, UserFunction, UserObject
from axir.dialect.core.config import config
from axir.dialect.core.errors import (
    AxirError,
    ConcretizationTypeError,
    ParameterError,
    ShapeError,
    TreeError,
)
from axir.dialect.core.symbolic_dims import as_extent, is_same, is_symbolic_dim
from axir.dialect.ops.control_flow.closed_bodies import Body
from axir.dialect.ops.control_flow.scan import bind_scan
from axir.dialect.ops.elementwise.family import as_value
from axir.dialect.ops.indexing.static_slicing import index_in_dim, slice_in_dim
from axir.dialect.ops.shape.broadcasting import expand_dims
from axir.dialect.ops.shape.concatenation import concatenate
from axir.dialect.ops.shape.rearranging import reshape

from ._body_tracing import (
    Adapted,
    check_body,
    check_carry,
    flatten_values,
    promoted_carry,
    trace_user_body,
)


@boundary
def scan(
    f: Callable[[UserObject, UserObject], tuple[UserObject, R]],
    init: T,
    xs: Tree = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
) -> tuple[T, R]:
    """Applies `carry, y = f(carry, x)` to the slices x of `xs` along their first axis.

    The function is traced once, however long the loop is. Differentiable in both modes; reverse
    mode keeps the residuals of each iteration.

    Args:
        f: From the carry and a slice to a pair: a carry of the same structure and types, and
            values to collect, which may be None.
        init: The first carry, a tree of arrays.
        xs: A tree of arrays of equal first extent, or None.
        length: Number of passes; needed if `xs` has no arrays.
        reverse: Whether to go from the last slice to the first. Each y still has the place of
            its x.
        unroll: Number of passes that are written out in one pass of the loop; True for all.
        _split_transpose: Accepted for compatibility.

    Returns:
        The last carry, and the values collected, stacked along a new first axis.

    Raises:
        ParameterError: if the number of passes is unknown or ambiguous.
        ShapeError: if something to scan over is a scalar.
        TreeError, DTypeError: if `f` returns no pair, or another carry than it takes.

    >>> import axir.numpy as jnp
    >>> from axir import lax
    >>> total, sums = lax.scan(lambda c, x: (c + x, c + x), 0, jnp.arange(4))
    >>> int(total), sums.tolist()
    (6, [0, 1, 3, 6])
    """
    check_body(f, "scan: f")
    slices, xs_tree = flatten_values(xs, "scan")
    count = _length(slices, xs_tree, length)
    passes = unroll_count(unroll, count)

    def run(body: Callable[..., object], first: Tree) -> tuple[UserObject, UserObject]:
        return _scanned(body, first, xs, slices, count, reverse, passes)

    return scanned(run, f, init)


def _scanned(
    f: Callable[..., object],
    init: Tree,
    xs: Tree,
    slices: Sequence[UserObject],
    count: int,
    reverse: bool,
    passes: int,
) -> tuple[object, object]:
    if config.jax_disable_jit:
        return _scan_in_python(f, init, slices, tree.structure(xs), count, reverse)
    carry, carry_tree = flatten_values(init, "scan")
    x_types = [x.type.update(shape=x.shape[1:]) for x in slices]
    in_tree = tree.structure(((init, xs), {}))
    body, out_tree = _trace(f, in_tree, carry, x_types)
    carry_out, y_tree = _carry_and_ys(f, out_tree)
    count_out = carry_out.num_leaves
    while (promoted := promoted_carry(carry, body.function.output_types[:count_out])) is not None:
        carry = promoted
        body, out_tree = _trace(f, in_tree, carry, x_types)
    outputs = body.function.output_types
    check_carry(
        "scan: f",
        "init",
        (carry_tree, [x.type for x in carry]),
        (carry_out, outputs[:count_out]),
    )
    carried, ys = bind_scan(
        body, [], carry, slices, length=count, reverse=bool(reverse), unroll=passes
    )
    return carry_tree.unflatten(carried), y_tree.unflatten(ys)


def _trace(
    f: UserFunction,
    in_tree: tree.TreeDef,
    carry: Sequence[UserObject],
    x_types: Sequence[UserObject],
) -> tuple[Body, tree.TreeDef]:
    return trace_user_body(f, in_tree, [*(x.type for x in carry), *x_types])


def _carry_and_ys(f: object, out_tree: tree.TreeDef) -> tuple[tree.TreeDef, tree.TreeDef]:
    children = out_tree.children()
    container = out_tree.type
    if len(children) != 2 or container is None or not issubclass(container, (tuple, list)):
        raise TreeError(
            f"scan: f must return a pair (carry, y), but {getattr(f, '__name__', f)!r} returns "
            f"{out_tree}.",
            "Return None as y if there is nothing to collect.",
        )
    return children[0], children[1]


def _length(slices: Sequence[UserObject], structure: tree.TreeDef, length: object) -> int:
    """Returns the number of passes."""
    extents = {x.shape[0] if x.shape else None for x in slices}
    if None in extents or len(extents) > 1:
        raise _no_common_length(slices, structure)
    if length is None:
        if not extents:
            raise ParameterError(
                "scan: xs has no arrays and length is not given, so the number of passes is "
                "unknown.",
                "Pass length=n.",
            )
        return slices[0].shape[0]
    count = _integer(length, "length")
    if count < 0 or not all(is_same(extent, count) for extent in extents):
        raise ParameterError(
            f"scan: length={count} does not fit"
            + (f" xs, whose first axis has {next(iter(extents))}." if extents else "."),
            "Leave length out where xs tells it.",
        )
    return count


def _no_common_length(slices: Sequence[UserObject], structure: tree.TreeDef) -> AxirError:
    paths = tree.paths(structure.unflatten(range(structure.num_leaves)))
    for path, x in zip(paths, slices, strict=True):
        if not x.shape:
            return ShapeError(
                f"scan: xs{path} is a scalar of type {x.type}, which has no axis to scan over.",
                "Close over values that are the same in each pass.",
            )
    extents = {x.shape[0]: f"xs{path}" for path, x in zip(paths, slices, strict=True)}
    listing = ", ".join(f"{name} has {extent}" for extent, name in extents.items())
    return ParameterError(
        f"scan: the arrays in xs differ in the extent of their first axis: {listing}.",
        "Scan over arrays of one length.",
    )


def unroll_count(unroll: object, length: int) -> int:
    """Returns how many passes to write out."""
    if unroll is True:
        return 1 if is_symbolic_dim(length) else max(length, 1)
    count = _integer(unroll, "unroll")
    if count < 0:
        raise ParameterError(
            f"scan: unroll={unroll!r} must be a bool or a non-negative integer.",
            "Pass the number of passes to write out in one.",
        )
    return max(count, 1)


def _integer(value: object, name: str) -> int:
    if isinstance(value, (float, np.floating)) and value.is_integer():
        return int(value)
    try:
        return as_extent(value)
    except ConcretizationTypeError:
        raise
    except TypeError:
        raise ParameterError(
            f"scan: {name}={value!r} is not an integer.", "Pass a Python integer."
        ) from None


def _scan_in_python(
    f: UserFunction,
    carry: PyTree,
    slices: Sequence[UserObject],
    structure: tree.TreeDef,
    length: int,
    reverse: bool,
) -> tuple[UserObject, UserObject]:
    if length == 0:
        raise ParameterError(
            "scan: without jit a loop of no passes cannot tell the types of its results.",
            "Run it with jit, or leave it out.",
        )
    collected = []
    for place in range(length - 1, -1, -1) if reverse else range(length):
        x = structure.unflatten([index_in_dim(x, place, 0, keepdims=False) for x in slices])
        carry, y = f(carry, x)
        collected.append(y)
    return carry, tree.map(_stack, *(collected[::-1] if reverse else collected))


def _stack(*ys: object) -> object:
    return concatenate([expand_dims(as_value(y), (0,)) for y in ys], 0)


@boundary
def map(f: Callable[..., object], xs: Tree, *, batch_size: int | None = None) -> UserObject:
    """Applies a function to each slice along the first axis, one after the other.

    Like `vmap`, but in a loop: slower, and in the memory of one application.

    Args:
        f: From a slice to a tree of arrays.
        xs: A tree of arrays of equal first extent.
        batch_size: How many slices to apply `f` to at once, by `vmap`; none, or 0, is one by one.

    >>> import axir.numpy as jnp
    >>> from axir import lax
    >>> lax.map(lambda x: x * x, jnp.arange(3)).tolist()
    [0, 1, 4]
    """
    check_body(f, "map: f")
    if batch_size:
        return _map_batches(f, xs, as_index(batch_size))
    return scan(Adapted(f, "map", lambda _, x: ((), f(x))), (), xs)[1]


def _map_batches(f: Callable[..., object], xs: Tree, size: int) -> object:
    if size <= 0:
        raise ParameterError(
            f"map: batch_size={size} must be positive.", "Leave it out to map one by one."
        )
    slices, structure = flatten_values(xs, "map")
    length = _length(slices, structure, None)
    count = length // size
    whole = count * size
    batches = structure.unflatten(
        reshape(slice_in_dim(x, 0, whole), (count, size, *x.shape[1:])) for x in slices
    )
    batched = scan(Adapted(f, "map batches", lambda _, x: ((), vmap(f)(x))), (), batches)[1]
    results = tree.map(lambda y: reshape(y, (whole, *y.shape[2:])), batched)
    if whole == length:
        return results
    rest = vmap(f)(structure.unflatten(slice_in_dim(x, whole, length) for x in slices))
    return tree.map(lambda a, b: concatenate([a, b], 0), results, rest)
