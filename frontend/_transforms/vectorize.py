"""Vectorization: `vmap`."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING

from axir._arguments.arguments import (
    FlatFunction,
    check_callable,
    flatten_arguments,
    to_values,
    trace_abstract,
)
from axir._arguments.wrapping import wraps, wraps_as
from axir._trees import tree
from axir.dialect.core.annotations import (
    Axes,
    Options,
    P,
    PyTree,
    R,
    Tree,
    UserObject,
)
from axir.dialect.core.errors import AxisError, BatchSizeError, TreeError
from axir.dialect.core.state import BatchFrame
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.elementwise.family import as_value
from axir.dialect.program.effects import named_axis
from axir.dialect.program.function import Function
from axir.dialect.program.rules import Value
from axir.passes.transforms.vmap import batch, to_axis

from .carried_refs import carrying, values_of, with_refs
from .gradient_refs import is_ref
from .mapped_containers import Opened, holds_containers, is_spec

if TYPE_CHECKING:
    from .refs import Ref


def vmap(
    fun: Callable[P, R],
    in_axes: Tree = 0,
    out_axes: PyTree = 0,
    axis_name: Hashable | None = None,
    axis_size: int | None = None,
    spmd_axis_name: Hashable | None = None,
    sum_match: bool = False,
) -> Callable[P, R]:
    """Returns `fun` mapped over an axis of its arguments, without a loop.

    Args:
        fun: Function of arrays or trees of arrays.
        in_axes: Which axis of the arguments to map over: an integer or None (not mapped) for all,
            or a tuple or list with an entry for each positional argument, which may be a tree that
            is a prefix of the argument's. Unmapped arguments reach `fun` unchanged, and need not be
            arrays. Keyword arguments are mapped over axis 0.
        out_axes: Where the mapped axis goes in the results: an integer, None for results that do
            not depend on mapped arguments, or a tree that is a prefix of the result's.
        axis_name: Name of the mapped axis for collectives (`axir.lax.psum` and others).
        axis_size: Extent of the mapped axis; needed only if no argument is mapped.
        spmd_axis_name: Name of an axis of a mesh, or a tuple of such, along which sharding
            constraints and `shard_map` in `fun` cut the mapped axis.
        sum_match: The same for results that are unreduced sums over the mapped axis.

    Raises:
        TreeError: if `in_axes` or `out_axes` does not fit.
        BatchSizeError: if mapped axes differ in extent.
        AxisError: if an argument does not have the axis.

    >>> import axir, axir.numpy as jnp
    >>> axir.vmap(jnp.dot, in_axes=(0, None))(jnp.eye(2), jnp.array([3.0, 4.0]))
    Array([3., 4.], dtype=float32)
    """
    check_callable(fun, "vmap")
    in_axes = checked_in_axes(in_axes)
    check_axes(out_axes, "out_axes")
    fun_name = getattr(fun, "__name__", "the function")
    given = () if spmd_axis_name is None else spmd_axis_name
    mesh_axes = given if isinstance(given, tuple) else (given,)

    @wraps_as(
        fun,
        "Vectorized version of {fun}: mapped arguments, and the results, have one axis more.",
        keeps_original=True,
    )
    def mapped(*args: object, **kwargs: object) -> UserObject:
        check_number(in_axes, args, fun_name)
        if holds_containers(args, kwargs):
            opened = Opened(fun, args, kwargs, in_axes, out_axes, axis_size)
            return opened.closed(
                apply(opened.function, opened.in_axes, opened.out_axes, opened.arguments, {})
            )

        def carried(refs: Sequence[Ref]) -> UserObject:
            places = _axes_of_refs(in_axes, args, kwargs)
            axes = tuple(places.get(id(ref)) for ref in refs)
            each = in_axes if isinstance(in_axes, tuple) else (in_axes,) * len(args)
            values = values_of(refs)
            inside = wraps(fun)(carrying(fun, refs))
            return apply(inside, (axes, *each), (out_axes, axes), (values, *args), kwargs, refs)

        return with_refs(lambda: apply(fun, in_axes, out_axes, args, kwargs), carried, (fun,))

    def apply(
        function: Callable[..., object],
        in_axes: Tree,
        out_axes: Tree,
        args: tuple[object, ...],
        kwargs: dict[str, object],
        refs: Sequence[Ref] = (),
    ) -> UserObject:
        flat, values, axes, size = mapped_arguments(
            function, args, kwargs, in_axes, axis_size, traces_unmapped=False, refs=refs
        )
        traced = trace_element(flat, values, axes, size, axis_name, "Vmap")
        axes += [None] * len(traced.captures)
        frame = BatchFrame(size, axis_name, mesh_axes)
        outputs, found = batch(traced, [*values, *traced.captured], axes, frame)
        outputs = [as_value(x) for x in outputs]
        result = flat.out_tree.unflatten(outputs)
        wanted = tree.broadcast_prefix(out_axes, result, "out_axes")
        _check_refs(refs, found, wanted, flat.name)
        placed = [
            _place(x, axis, goal, size, flat.name)
            for x, axis, goal in zip(outputs, found, wanted, strict=True)
        ]
        return flat.out_tree.unflatten(placed)

    return mapped


def _check_refs(
    refs: Sequence[Ref],
    found: Sequence[int | None],
    wanted: Sequence[int | None],
    name: str,
) -> None:
    """Raises `TreeError` if a ref that is one for all elements would get a value for each."""
    count = len(refs)
    for ref, axis, place in zip(refs, found[-count:], wanted[-count:], strict=False):
        if place is None and axis is not None:
            raise TreeError(
                f"vmap of {name!r}: {ref!r} is one for all elements, but is assigned a value that "
                "differs between them.",
                "Pass a ref that has the mapped axis as an argument, with its in_axes entry.",
            )


def _axes_of_refs(
    in_axes: Tree, args: tuple[object, ...], kwargs: dict[str, object]
) -> dict[int, int | None]:
    """Returns along which axis each ref among arguments is mapped, by its address."""
    axes = tree.broadcast_prefix(in_axes, args, "in_axes") if args else []
    pairs = [*zip(tree.leaves(args), axes, strict=True), *((x, 0) for x in tree.leaves(kwargs))]
    return {id(x): axis for x, axis in pairs if is_ref(x)}


def mapped_arguments(
    fun: Callable[..., object],
    args: tuple[object, ...],
    kwargs: dict[str, Options],
    in_axes: Tree,
    axis_size: int | None,
    traces_unmapped: bool,
    refs: Sequence[Ref] = (),
) -> tuple[FlatFunction, list[Value], list[int | None], int]:
    """Flattens the arguments of a mapped function.

    Args:
        fun: The function.
        args: Its positional arguments.
        kwargs: Its keyword arguments.
        in_axes: As `vmap` takes it.
        axis_size: As `vmap` takes it.
        traces_unmapped: Whether leaves that are not mapped count as arguments, too, instead of
            being passed on unchanged.
        refs: Refs among them that the function carries; they are passed on.

    Returns:
        The function of flat values, the values, which axis of each is mapped, and its extent.
    """
    leaves, in_tree = flatten_arguments((args, kwargs))
    axes = tree.broadcast_prefix(in_axes, args, "in_axes") if args else []
    axes = [*axes, *(0 for _ in range(len(leaves) - len(axes)))]
    unmapped = {n: leaves[n] for n, axis in enumerate(axes) if axis is None}
    if refs:
        unmapped |= {n: x for n, x in enumerate(leaves) if any(x is ref for ref in refs)}
        axes = [None if is_ref(x) else axis for x, axis in zip(leaves, axes, strict=True)]
    flat = FlatFunction(fun, in_tree, given={} if traces_unmapped else unmapped)
    values = to_values(leaves, (args, kwargs) if kwargs else args, flat.name, flat.given)
    size = _batch_size(values, axes, (args, kwargs), flat.name, axis_size)
    pairs = [pair for n, pair in enumerate(zip(values, axes, strict=True)) if n not in flat.given]
    axes = [axis if axis is None or axis >= 0 else axis + x.ndim for x, axis in pairs]
    return flat, [x for x, _ in pairs], axes, size


def trace_element(
    flat: FlatFunction,
    values: Sequence[Value],
    axes: Sequence[int | None],
    size: int,
    axis_name: Hashable | None,
    kind: str,
) -> Function:
    """Traces a mapped function on the types of one element of the mapped axis."""
    types = [_element_type(x, axis) for x, axis in zip(values, axes, strict=True)]
    with named_axis(axis_name, size):
        return trace_abstract(flat, types, kind)


def checked_in_axes(in_axes: Tree) -> UserObject:
    """Returns `in_axes` with a tuple for a list; raises `TreeError` if it cannot be one."""
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    if not (in_axes is None or isinstance(in_axes, (int, tuple))):
        raise TreeError(
            f"in_axes must be an int, None, or a tuple with an entry for each positional "
            f"argument, not {in_axes!r}.",
            "Put a tree for a single argument into a tuple: in_axes=(tree,).",
        )
    check_axes(in_axes, "in_axes")
    return in_axes


def check_number(in_axes: Tree, args: tuple[object, ...], fun_name: str) -> None:
    """Raises `TreeError` unless there is an entry of `in_axes` for each argument."""
    if isinstance(in_axes, tuple) and len(in_axes) != len(args):
        raise TreeError(
            f"in_axes has {len(in_axes)} entries, but {fun_name} was called with "
            f"{len(args)} positional arguments.",
            "Give an entry for each positional argument; None where it is not mapped.",
        )


def check_axes(axes: Axes, name: str) -> None:
    """Raises `TreeError` unless a tree of axes holds integers and None only."""
    for entry in tree.leaves(axes):
        if isinstance(entry, bool) or not (isinstance(entry, int) or is_spec(entry)):
            raise TreeError(
                f"{name} must be made of integers and None, but holds {entry!r}.",
                "Name axes by their position.",
            )


def _batch_size(
    values: list[Value],
    axes: list[int | None],
    arguments: object,
    name: str,
    axis_size: int | None,
) -> int:
    sizes: dict[int, str] = {}
    for index, (x, axis) in enumerate(zip(values, axes, strict=True)):
        if axis is None:
            continue
        path = tree.paths(arguments)[index] if not -x.ndim <= axis < x.ndim else ""
        if not -x.ndim <= axis < x.ndim:
            raise AxisError(
                f"vmap was asked to map {name!r} over axis {axis} of its argument {path}, which "
                f"is of type {x.type} and has {x.ndim} axes.",
                "Pass in_axes=None for arguments that are not mapped.",
            )
        sizes.setdefault(x.shape[axis], f"argument leaf {index} of type {x.type} along axis {axis}")
    if axis_size is not None:
        sizes.setdefault(axis_size, "axis_size")
    if not sizes:
        raise BatchSizeError(
            f"vmap of {name!r}: no argument is mapped, so the extent of the mapped axis is "
            "unknown.",
            "Map at least one argument, or pass axis_size.",
        )
    if len(sizes) > 1:
        listing = "; ".join(f"{size} for {origin}" for size, origin in sizes.items())
        raise BatchSizeError(
            f"vmap of {name!r}: the mapped axes differ in extent: {listing}.",
            "Use in_axes to say which axes are mapped.",
        )
    return next(iter(sizes))


def _element_type(x: Value, axis: int | None) -> ShapedArray:
    if axis is None:
        return x.type
    shape = x.type.shape
    return x.type.update(shape=shape[:axis] + shape[axis + 1 :])


def _place(value: Value, axis: int | None, wanted: int | None, size: int, name: str) -> Value:
    if wanted is None and axis is not None:
        raise TreeError(
            f"vmap of {name!r}: a result has out_axes None, but depends on mapped arguments.",
            "Give the position of the mapped axis in the result.",
        )
    rank = value.ndim + (axis is None)
    if wanted is not None and not -rank <= wanted < rank:
        raise AxisError(
            f"vmap of {name!r}: out_axes {wanted} is out of range for a result with {rank} axes."
        )
    if wanted is not None and wanted < 0:
        wanted += rank
    return to_axis(value, axis, wanted, size)
