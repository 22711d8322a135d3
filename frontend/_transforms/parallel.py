"""`pmap`: one program for every element of a mapped axis, an element for each device."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from axir._arguments.arguments import check_callable
from axir._arguments.wrapping import boundary, wraps
from axir._trees import tree
from axir.dialect.core.annotations import Options, PyTree, Tree, UserFunction, UserObject
from axir.dialect.core.errors import TreeError
from axir.dialect.core.state import state
from axir.dialect.ops.sharding.parallel_map import parallel_map
from axir.dialect.program.tracer import Tracer
from axir.runtime import Device, local_devices
from axir.runtime.errors import TooFewDevicesError

from .jit_function import JitFunction
from .vectorize import check_axes, check_number, checked_in_axes, mapped_arguments, trace_element


class _AnonymousAxis:
    """The name of the axis of a `pmap` that names none."""

    def __repr__(self) -> str:
        return "<axis>"


def pmap(
    fun: UserFunction,
    axis_name: Hashable | None = None,
    *,
    in_axes: PyTree = 0,
    out_axes: PyTree = 0,
    static_broadcasted_argnums: int | Sequence[int] = (),
    devices: Sequence[UserObject] | None = None,
    backend: str | None = None,
    axis_size: int | None = None,
    donate_argnums: int | Sequence[int] = (),
) -> UserFunction:
    """Returns `fun` mapped over an axis of its arguments, with a device for each element.

    The function is compiled once for each combination of argument types, and runs on all devices;
    results lie there in parts. Within other transformations the map is part of their programs.

    Args:
        fun: Function of arrays or trees of arrays.
        axis_name: Name of the mapped axis for collectives (`axir.lax.psum` and others).
        in_axes: Which axis of the arguments to map over, as `vmap` takes it.
        out_axes: Where the mapped axis goes in the results.
        static_broadcasted_argnums: Positional arguments that are passed on as they are.
        devices: The devices to use; all of the backend by default.
        backend: Platform of the devices; by default the default platform.
        axis_size: Extent of the mapped axis; needed only if no argument is mapped.
        donate_argnums: Positional arguments with memory that results may reuse; they are deleted.

    Raises:
        TooFewDevicesError: when called with more elements than there are devices.
        TreeError: if `in_axes` or `out_axes` does not fit.
        BatchSizeError: if mapped axes differ in extent.

    >>> import axir, axir.numpy as jnp
    >>> axir.pmap(lambda x: x / axir.lax.psum(x, "i"), axis_name="i")(jnp.array([4.0]))
    Array([1.], dtype=float32)
    """
    check_callable(fun, "pmap")
    in_axes = checked_in_axes(in_axes)
    check_axes(out_axes, "out_axes")
    name = _AnonymousAxis() if axis_name is None else axis_name
    static = _numbers(static_broadcasted_argnums)
    available = None if devices is None else list(devices)

    def apply(is_alone: bool, *args: Options, **kwargs: Options) -> UserObject:
        function, dynamic, dynamic_axes = _without_static(fun, args, in_axes, static)
        check_number(dynamic_axes, dynamic, getattr(fun, "__name__", "the function"))
        flat, values, axes, size = mapped_arguments(
            function, dynamic, kwargs, dynamic_axes, axis_size, traces_unmapped=True
        )
        found = local_devices(backend=backend) if available is None else available
        numbers = _devices_for(size, found, is_alone)
        traced = trace_element(flat, values, axes, size, name, "Pmap")
        results = flat.out_tree.unflatten(traced.outputs)
        wanted = tree.broadcast_prefix(out_axes, results, "out_axes")
        placed = [
            axis if axis is None or axis >= 0 else axis + v.type.ndim + 1
            for axis, v in zip(wanted, traced.outputs, strict=True)
        ]
        found = parallel_map(traced, values, name, size, axes, placed, numbers)
        return flat.out_tree.unflatten(found)

    @wraps(fun)
    def whole(*args: object, **kwargs: object) -> UserObject:
        return apply(True, *args, **kwargs)

    donated = _numbers(donate_argnums)
    alone = JitFunction(whole, static, (), donated, (), None, False, None)
    places = None if available is None else tuple(available)
    options = (axis_name, in_axes, out_axes, static, places, backend, axis_size, donated)
    alone.share_programs(fun, ("pmap", *options))

    @wraps(fun)
    @boundary
    def mapped(*args: object, **kwargs: object) -> UserObject:
        is_traced = any(type(x) is Tracer for x in tree.leaves((args, kwargs)))
        return apply(False, *args, **kwargs) if is_traced else alone(*args, **kwargs)

    return mapped


def _without_static(
    fun: Callable[..., object], args: tuple[object, ...], in_axes: Tree, static: tuple[int, ...]
) -> tuple[Callable[..., object], tuple[object, ...], object]:
    """Returns the function of the arguments that are not static, those, and their axes."""
    if not static:
        return fun, args, in_axes
    chosen = {number % len(args) for number in static if -len(args) <= number < len(args)}
    if len(chosen) != len(static):
        raise TreeError(
            f"pmap: static_broadcasted_argnums {static} are out of range: the function was called "
            f"with {len(args)} positional arguments.",
            "Name positions of arguments, counted from 0.",
        )

    @wraps(fun)
    def partial(*dynamic: object, **kwargs: object) -> UserObject:
        remaining = iter(dynamic)
        full = [x if n in chosen else next(remaining) for n, x in enumerate(args)]
        return fun(*full, **kwargs)

    dynamic = tuple(x for number, x in enumerate(args) if number not in chosen)
    if isinstance(in_axes, tuple) and len(in_axes) == len(args):
        in_axes = tuple(axis for number, axis in enumerate(in_axes) if number not in chosen)
    return partial, dynamic, in_axes


def _devices_for(size: int, available: Sequence[Device], is_alone: bool) -> tuple[int, ...]:
    """Returns the numbers of the devices that compute the elements, none for a single one.

    Within a program there may be too few devices: then the program's device computes all elements.

    Raises:
        TooFewDevicesError: there are, and the map is no part of a program.
    """
    if size > len(available) and is_alone:
        raise TooFewDevicesError(
            f"pmap maps over an axis of extent {size}, but there are {len(available)} devices: "
            f"{', '.join(map(str, available))}.",
            "Use axir.vmap to compute all elements on one device, or divide the CPU into more "
            "devices (jax_num_cpu_devices).",
        )
    if size > len(available) or state.axis_sizes:
        return ()
    return tuple(device.id for device in available[:size])


def _numbers(given: int | Sequence[int]) -> tuple[int, ...]:
    return (given,) if isinstance(given, int) else tuple(given)
