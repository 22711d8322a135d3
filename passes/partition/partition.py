"""The `partition` pass: one program over a mesh becomes the program of each of its devices.

The driver walks a function with the parts that a device holds, and asks each primitive how its
dimensions are related; it knows no op by name. The layouts that later values need are found
beforehand (`propagation.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from iree.compiler import ir

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import Params
from axir.dialect.core.array import ConcreteArray
from axir.dialect.core.context import describe_location
from axir.dialect.core.memo import derived
from axir.dialect.core.state import attributed, with_axes
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.calls.jit_call import call
from axir.dialect.ops.collectives.axis_exchanges import reduce_scatter_primitive
from axir.dialect.ops.collectives.axis_reductions import (
    pmax_primitive,
    pmin_primitive,
    psum_primitive,
)
from axir.dialect.ops.elementwise.arithmetic import add, mul
from axir.dialect.ops.elementwise.comparison import select_n
from axir.dialect.ops.elementwise.conversion import convert_element_type
from axir.dialect.ops.elementwise.family import full
from axir.dialect.program.dimensions import Dimensions
from axir.dialect.program.effects import is_effectful
from axir.dialect.program.equation import Equation, Literal, Var
from axir.dialect.program.function import Function
from axir.dialect.program.meshes.layouts import (
    Layout,
    MeshAxes,
    axes_in,
    check_mesh,
    device_count,
    is_cut_evenly,
    local_shape,
    replicated,
)
from axir.dialect.program.meshes.partitioning import Note, Partitioned, Placed
from axir.dialect.program.module_writer import embed_captures
from axir.dialect.program.primitive import primitive_of
from axir.dialect.program.rules import Results, Value
from axir.dialect.program.tracer import Trace, state
from axir.passes.framework.base import Pass
from axir.passes.framework.module_functions import replace_main

from .borders import (
    is_first,
    on_first_device,
    own_positions,
    position_along,
    with_halo,
    zero_elsewhere,
)
from .choices import Choice, Lying, choose
from .delayed_sums import delay_sums
from .layout_text import checked_layouts, read_layouts, read_mesh
from .moves import moved, steps
from .propagation import callee_of, dimensions_of, stays, wishes

_COMBINE = {"sum": psum_primitive, "max": pmax_primitive, "min": pmin_primitive}


def partition_function(
    function: Function,
    axes: MeshAxes,
    in_layouts: Sequence[Layout | None] | None = None,
    out_layouts: Sequence[Layout | None] | None = None,
) -> Partitioned:
    """Returns the program that each device of a mesh runs, given one of whole arrays.

    Args:
        function: The program.
        axes: Names and extents of the axes of the mesh.
        in_layouts: For each argument (inputs, then captures) how it is cut. None means that the
            pass finds the layout: the one that later ops want, else no cut.
        out_layouts: The same for results.

    Raises:
        LayoutError: if a layout does not fit the mesh or the rank, or their number is wrong.
        ShapeError: if an extent is no multiple of the number of its parts.
        MeshMismatchError: if the program itself names other meshes.

    >>> from axir.dialect.core.types import ShapedArray
    >>> from axir.dialect.ops.reductions.reduce import reduce_sum
    >>> from axir.dialect.program.function_tracing import trace_function
    >>> total = trace_function(lambda x: [reduce_sum(x, (0, 1))], [ShapedArray((8, 3), "float32")])
    >>> found = partition_function(total, (("x", 4),), [(("x",), ())])
    >>> [e.primitive.name for e in found.local.equations], found.local.input_types[0].shape
    (['reduce_sum', 'psum'], (2, 3))
    """
    arguments = [v.type for v in (*function.inputs, *function.captures)]
    check_mesh("partition", axes, ())
    ins = checked_layouts("argument", in_layouts, arguments, axes)
    outs = checked_layouts("result", out_layouts, function.output_types, axes)
    found = _partitioned(function, axes, ins, outs)
    return replace(found, local=delay_sums(found.local))


@derived
def _partitioned(
    function: Function,
    axes: MeshAxes,
    in_layouts: tuple[Layout | None, ...],
    out_layouts: tuple[Layout | None, ...],
) -> Partitioned:
    wanted = wishes(function, axes, in_layouts, out_layouts)
    variables = (*function.inputs, *function.captures)
    ins = tuple(
        _possible(wanted.get(v), v.type, axes) if layout is None else layout
        for v, layout in zip(variables, in_layouts, strict=True)
    )
    sizes = {**state.axis_sizes, **dict(axes)}
    tracked = state.tracked_axes.difference(dict(axes))
    with with_axes(sizes, tracked), Trace(function.name, "Partition") as trace:
        partitioner = _Partitioner(trace, axes, wanted)
        arguments = [
            Placed(_part(trace, v.type, layout, axes), layout, v.type.shape)
            for v, layout in zip(variables, ins, strict=True)
        ]
        results = partitioner.run(function, arguments)
        placed = [
            x if layout is None else partitioner.moved(x, layout)
            for x, layout in zip(results, out_layouts, strict=True)
        ]
        local = embed_captures(trace.finish([x.value for x in placed]))
    return Partitioned(local, ins, tuple(x.layout for x in placed), tuple(partitioner.notes))


def _part(trace: Trace, whole: ShapedArray, layout: Layout, axes: MeshAxes) -> Value:
    shape = local_shape(whole.shape, layout, axes)
    return trace.add_input(ShapedArray(shape, whole.dtype, whole.weak_type))


def _possible(layout: Layout | None, whole: ShapedArray, axes: MeshAxes) -> Layout:
    if layout is None or not is_cut_evenly(whole.shape, layout, axes):
        return replicated(whole.ndim)
    return layout


class _Partitioner:
    """Writes the ops of a program on parts into a trace.

    Args:
        trace: The trace that records the ops.
        axes: The axes of the mesh.
        wanted: The layouts that variables should have, as far as known.

    Attributes:
        notes: Remarks for the user, such as gathers.
    """

    def __init__(self, trace: Trace, axes: MeshAxes, wanted: dict[Var, Layout]):
        self.trace = trace
        self.axes = axes
        self._wanted = wanted
        self.notes: list[Note] = []
        self._equation: Equation | None = None

    def run(self, function: Function, arguments: Sequence[Placed]) -> list[Placed]:
        """Writes the ops of a function; returns the parts of its results."""
        places: dict[Var, Placed] = dict(
            zip((*function.inputs, *function.captures), arguments, strict=True)
        )
        for equation in attributed(function.equations):
            self._equation = equation
            operands = [_placed(v, places) for v in equation.operands]
            results = self._apply(equation, operands)
            places.update(zip(equation.results, results, strict=True))
        return [_placed(v, places) for v in function.outputs]

    # The interface for rules, see `Partitioner` ---------------------------------------------------

    def moved(self, operand: Placed, layout: Layout) -> Placed:
        found = steps(operand.layout, layout)
        return Placed(moved(operand.value, found, self.axes), layout, operand.shape)

    def function(
        self,
        function: Function,
        in_layouts: Sequence[Layout],
        out_layouts: Sequence[Layout | None] | None = None,
        axes: MeshAxes | None = None,
        is_trial: bool = False,
    ) -> Partitioned:
        outs = (None,) * len(function.outputs) if out_layouts is None else tuple(out_layouts)
        within = self.axes if axes is None else axes
        found = _partitioned(function, within, tuple(in_layouts), outs)
        if not is_trial:
            self.notes += (note for note in found.notes if note not in self.notes)
        return found

    def wanted(self) -> list[Layout | None]:
        assert self._equation is not None
        return [self._wanted.get(v) for v in self._equation.results]

    def note(self, text: str) -> None:
        assert self._equation is not None
        place = describe_location(self._equation.location)
        note = Note(self._equation.primitive.name, place, text)
        if note not in self.notes:
            self.notes.append(note)

    # Ops -----------------------------------------------------------------------------------------

    def _apply(self, equation: Equation, operands: Sequence[Placed]) -> list[Placed]:
        rule = primitive_of(equation).partition
        if rule is not None:
            return rule(self, equation, operands)
        callee = callee_of(equation)
        if callee is not None:
            return self._call(callee, operands, equation if stays(equation) else None)
        if is_effectful(equation):
            return self._act(equation, operands)
        dimensions = dimensions_of(equation)
        if dimensions is None:
            return self._on_wholes(equation, operands)
        if isinstance(dimensions, Function):
            return self._call(dimensions, operands)
        return self._on_parts(equation, operands, dimensions)

    def _call(
        self, callee: Function, operands: Sequence[Placed], around: Equation | None = None
    ) -> list[Placed]:
        """Calls a function with parts; if an op stands around the call, by this op."""
        found = self.function(callee, [x.layout for x in operands], self.wanted())
        values = [x.value for x in operands]
        if around is None:
            results = call(found.local, *values)
        else:
            results = self._bind(around, values, {**around.params, "jaxpr": found.local})
        return self._results(callee.output_types, results, found.out_layouts)

    def _results(
        self, types: Sequence[ShapedArray], values: Sequence[Value], layouts: Sequence[Layout]
    ) -> list[Placed]:
        return [
            Placed(value, layout, t.shape)
            for t, value, layout in zip(types, values, layouts, strict=True)
        ]

    def _on_wholes(self, equation: Equation, operands: Sequence[Placed]) -> list[Placed]:
        """Applies an op to whole operands, on every device."""
        whole = self._gathered(operands)
        results = self._bind(equation, whole, equation.params)
        types = [v.type for v in equation.results]
        return self._results(types, results, [replicated(t.ndim) for t in types])

    def _gathered(self, operands: Sequence[Placed]) -> list[Value]:
        cut = [n for n, x in enumerate(operands) if axes_in(x.layout)]
        if cut:
            self.note(f"needs whole operands: {self._described(cut, operands)}")
        return [self.moved(x, replicated(len(x.shape))).value for x in operands]

    def _described(self, numbers: Sequence[int], operands: Sequence[Placed]) -> str:
        return ", ".join(
            f"operand {n} of shape {operands[n].shape} is gathered along "
            f"{', '.join(map(repr, axes_in(operands[n].layout)))}"
            for n in numbers
        )

    def _act(self, equation: Equation, operands: Sequence[Placed]) -> list[Placed]:
        """Runs an op with effects once, on the first device, which sends the results to all."""
        whole = self._gathered(operands)
        types = [v.type for v in equation.results]
        results = on_first_device(
            lambda *values: self._bind(equation, values, equation.params), whole, types, self.axes
        )
        return self._results(types, results, [replicated(t.ndim) for t in types])

    def _on_parts(
        self, equation: Equation, operands: Sequence[Placed], dimensions: Dimensions
    ) -> list[Placed]:
        types = [v.type for v in equation.results]
        choice = choose(
            dimensions,
            [
                Lying(x.shape, v.type.dtype.itemsize, x.layout)
                for x, v in zip(operands, equation.operands, strict=True)
            ],
            [
                Lying(t.shape, t.dtype.itemsize, self._reachable(layout, t))
                for t, layout in zip(types, self.wanted(), strict=True)
            ],
            self.axes,
        )
        self._note_wholes(operands, dimensions, choice)
        parts = [
            self.moved(x, layout).value for x, layout in zip(operands, choice.operands, strict=True)
        ]
        parts = self._contributed_once(parts, dimensions, choice)
        params = equation.params
        if dimensions.local_params is not None:
            params = {**params, **self._local_params(dimensions, parts, types, choice)}
        for factor, halo in dimensions.halos.items():
            if names := choice.assignment.get(factor):
                parts[halo.operand] = with_halo(parts[halo.operand], halo, names, self.axes)
        results = self._looked_up(equation, parts, params, dimensions, choice)
        if dimensions.counted is not None:
            results = [self._counted_on(results[0], dimensions.counted, choice)]
        combined = [self._combined(x, choice) for x in results]
        return self._results(types, combined, choice.results)

    def _looked_up(
        self,
        equation: Equation,
        parts: list[Value],
        params: Params,
        dimensions: Dimensions,
        choice: Choice,
    ) -> list[Value]:
        """Applies an op to parts; each device looks up the positions in its part."""
        look_up = dimensions.look_up
        names = choice.assignment.get(look_up.factor) if look_up is not None else None
        if look_up is None or not names:
            return self._bind(equation, parts, params)
        whole = dimensions.extents[look_up.factor]
        part = whole // device_count(names, self.axes)
        parts[1], answers = own_positions(parts[1], look_up, part, whole, names, self.axes)
        results = self._bind(equation, parts, params)
        if look_up.batch is None:
            return results
        return [zero_elsewhere(x, answers, look_up.batch) for x in results]

    def _reachable(self, layout: Layout | None, whole: ShapedArray) -> Layout | None:
        if layout is None or not is_cut_evenly(whole.shape, layout, self.axes):
            return None
        return layout

    def _note_wholes(
        self, operands: Sequence[Placed], dimensions: Dimensions, choice: Choice
    ) -> None:
        """Notes the dimensions that are gathered because the op needs them whole."""
        for number, (x, own) in enumerate(zip(operands, dimensions.operands, strict=True)):
            for place, (names, factors) in enumerate(zip(x.layout, own, strict=True)):
                if names and not factors:
                    self.note(
                        f"needs dimension {place} of operand {number} of shape {x.shape} whole: it "
                        f"is gathered along {', '.join(map(repr, names))}"
                    )

    def _bind(self, equation: Equation, operands: Sequence[Value], params: Params) -> list[Value]:
        # Recorded even if all operands are known: each device makes constants itself.
        trace = state.ambient
        assert trace is not None
        results: Results = trace.record(equation.primitive, operands, params)
        return list(results) if equation.primitive.multiple_results else [results]

    def _local_params(
        self,
        dimensions: Dimensions,
        parts: Sequence[Value],
        types: Sequence[ShapedArray],
        choice: Choice,
    ) -> Params:
        assert dimensions.local_params is not None
        # Before scattering, a part of a sum is as large as the sum.
        before = [
            tuple(tuple(n for n in names if n not in choice.scattered) for names in layout)
            for layout in choice.results
        ]
        shapes = [
            local_shape(t.shape, layout, self.axes) for t, layout in zip(types, before, strict=True)
        ]
        return dimensions.local_params([x.shape for x in parts], shapes)

    def _contributed_once(
        self, parts: list[Value], dimensions: Dimensions, choice: Choice
    ) -> list[Value]:
        number = dimensions.contributing
        if number is None or not choice.combined:
            return parts
        x = parts[number]
        parts[number] = select_n(is_first(list(choice.combined)), full(x.shape, 0, x.dtype), x)
        return parts

    def _counted_on(self, x: Value, factor: int, choice: Choice) -> Value:
        """Adds the start of this device's part to a result that counts along a factor."""
        names = choice.assignment.get(factor, ())
        if not names:
            return x
        position = position_along(names, self.axes)
        dimension = next(d for d, cut in enumerate(choice.results[0]) if cut == names)
        start = convert_element_type(mul(position, x.shape[dimension]), x.dtype)
        return add(x, start)

    def _combined(self, x: Value, choice: Choice) -> Value:
        """Combines the devices' results along the axes of reduced factors."""
        for name, dimension in choice.scattered.items():
            x = reduce_scatter_primitive.bind(
                x, axis_name=name, scatter_dimension=dimension, axis_size=dict(self.axes)[name],
                tiled=True, axis_index_groups=None,
            )  # fmt: skip
        for kind, primitive in _COMBINE.items():
            names = tuple(
                n for n, k in choice.combined.items() if k == kind and n not in choice.scattered
            )
            if names:
                number = convert_element_type(x, np.int32) if x.dtype == dtypes.bool_ else x
                total = primitive.bind(number, axes=names, axis_index_groups=None)
                x = total if number is x else convert_element_type(total, x.dtype)
        return x


def _placed(variable: Var, places: dict[Var, Placed]) -> Placed:
    if type(variable) is Literal:
        array: ConcreteArray = variable.array
        return Placed(array, replicated(array.ndim), array.shape)
    return places[variable]


@dataclass(frozen=True)
class Partition(Pass):
    """Replaces `main`, a program of whole arrays, by the program of one device of a mesh.

    Algorithm:
        1. Find the layouts that values should have: forward from arguments, backward from results.
        2. Walk the ops in order with parts of arrays. For each op choose the cut that moves the
           fewest bytes; bring the operands to their layouts by slices, gathers and exchanges.
        3. Apply the op to parts. Where a sum or an extremum was cut, combine the devices' results.
        4. Apply ops that cannot work on parts to whole arrays, on every device.

    Before:
        ```mlir
        func.func @main(%x: tensor<8x3xf32>) -> tensor<3xf32> {
          %0 = "jaxpr.reduce_sum"(%x) {axes = array<i64: 0>}
              : (tensor<8x3xf32>) -> tensor<3xf32>
          return %0 : tensor<3xf32>
        }
        ```
    After `partition{mesh="data=4",inputs="data, -"}`:
        ```mlir
        func.func @main(%x: tensor<2x3xf32>) -> tensor<3xf32> {
          %0 = "jaxpr.reduce_sum"(%x) {axes = array<i64: 0>}
              : (tensor<2x3xf32>) -> tensor<3xf32>
          %1 = "jaxpr.psum"(%0) {axes = ["data"], axis_index_groups}
              : (tensor<3xf32>) -> tensor<3xf32>
          return %1 : tensor<3xf32>
        }
        ```

    Preconditions:
        The module has a function `main` of the jaxpr dialect, which is not differentiated later.

    Attributes:
        mesh: Names and extents of the axes of the mesh, as in `data=4, model=2`.
        inputs: How the arguments are cut, as in `data, -; -, data*model; ?`; by default open.
        outputs: The same for results.
    """

    name: ClassVar[str] = "partition"
    mesh: str
    inputs: str | None = None
    outputs: str | None = None

    def run(self, module: ir.Module) -> None:
        """Replaces `main` by the program of one device."""
        axes = read_mesh(self.mesh)
        ins, outs = read_layouts(self.inputs), read_layouts(self.outputs)
        replace_main(module, lambda main: partition_function(main, axes, ins, outs).local)
