"""A function of parts of arrays as a function of whole arrays: all parts computed together.

An array is cut along new leading axes, one for each axis of the mesh that its layout names. The
function is vectorized over these axes under their names, so its collectives become ordinary ops.
This defines the results of a program on a mesh of any size, and one device computes it so.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from axir.dialect.core.memo import derived
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.indexing.static_slicing import index_in_dim
from axir.dialect.ops.shape.rearranging import reshape, transpose
from axir.dialect.program.derived_functions import derive
from axir.dialect.program.function import Function
from axir.dialect.program.meshes.layouts import Layout, MeshAxes, axes_in, global_shape
from axir.dialect.program.module_writer import embed_captures
from axir.dialect.program.rules import Value
from axir.dialect.program.tracer import Trace


def whole_type(part: ShapedArray, layout: Layout, axes: MeshAxes) -> ShapedArray:
    """Returns the type of an array, given the type of its parts."""
    return part.update(shape=global_shape(part.shape, layout, axes))


@derived
def on_whole_arrays(
    function: Function,
    axes: MeshAxes,
    in_layouts: tuple[Layout, ...],
    out_layouts: tuple[Layout, ...],
) -> Function:
    """Returns a function of whole arrays, given the function of the parts of one device.

    Args:
        function: Takes and returns parts.
        axes: The axes of the mesh, which its collectives may name.
        in_layouts: How arguments (inputs, then captures) are cut.
        out_layouts: How results are cut. Along axes that a layout does not name, all devices should
            hold the same; the value of the first device is taken.
    """
    with Trace(function.name, "ShardMap") as trace:
        parts = [
            split(trace.add_input(whole_type(v.type, layout, axes)), layout, axes)
            for v, layout in zip((*function.inputs, *function.captures), in_layouts, strict=True)
        ]
        mapped, constants, present = _mapped(function, axes, in_layouts, out_layouts)
        results = mapped.interpret([*parts, *constants])
        joined = trace.finish(
            [
                join(x, names, layout)
                for x, names, layout in zip(results, present, out_layouts, strict=True)
            ]
        )
    return embed_captures(joined)  # positions along the axes: the function takes only operands


def split(x: Value, layout: Layout, axes: MeshAxes) -> Value:
    """Returns an array with a leading axis for each axis of its layout, in the mesh's order."""
    sizes, shape, kept = dict(axes), list[int](), list[int]()
    places: dict[Hashable, int] = {}
    for extent, names in zip(x.shape, layout, strict=True):
        for name in names:
            places[name] = len(shape)
            shape.append(sizes[name])
            extent //= sizes[name]
        kept.append(len(shape))
        shape.append(extent)
    leading = [places[name] for name, _ in axes if name in places]
    return transpose(reshape(x, tuple(shape)), (*leading, *kept)) if leading else x


def join(x: Value, present: Sequence[Hashable], layout: Layout) -> Value:
    """Returns the whole of an array.

    Args:
        x: Its parts, with leading axes.
        present: The names of the leading axes; they include the names in the layout.
        layout: How it was cut.
    """
    named = axes_in(layout)
    for place in reversed(range(len(present))):
        if present[place] not in named:
            x = index_in_dim(x, 0, place, keepdims=False)
    leading = [name for name in present if name in named]
    if not leading:
        return x
    order, shape = list[int](), list[int]()
    for dimension, names in enumerate(layout, start=len(leading)):
        cuts = [leading.index(name) for name in names]
        order += [*cuts, dimension]
        shape.append(x.shape[dimension])
        for cut in cuts:
            shape[-1] *= x.shape[cut]
    return reshape(transpose(x, tuple(order)), tuple(shape))


def _mapped(
    function: Function,
    axes: MeshAxes,
    in_layouts: tuple[Layout, ...],
    out_layouts: tuple[Layout, ...],
) -> tuple[Function, list[Value], list[list[Hashable]]]:
    """Vectorizes a function over the axes of a mesh; values have the axes that they depend on.

    Returns:
        The function, values of its further inputs and captures, and for each result the names of
        its leading axes.
    """
    taken = [axes_in(layout) for layout in in_layouts]
    wanted = [axes_in(layout) for layout in out_layouts]
    present: list[list[Hashable]] = [[] for _ in wanted]
    constants: list[Value] = []
    for name, size in reversed(axes):
        in_axes = tuple(0 if name in names else None for names in taken)
        in_axes += (None,) * len(constants)
        found = derive(function, "vmap", size, in_axes, None, name, (), True).axes
        out_axes = tuple(
            None if axis is None and name not in names else 0
            for axis, names in zip(found, wanted, strict=True)
        )
        function = derive(function, "vmap", size, in_axes, out_axes, name, (), True).function
        constants += function.captured  # inputs of the next vectorization
        for names, axis in zip(present, out_axes, strict=True):
            if axis is not None:
                names.insert(0, name)
    return function, constants, present
