"""The layouts that the values of a program should have, as far as they follow from known ones.

Forward, results are cut like their operands. Backward, operands are cut like the results of their
ops should be, unless their layout is known. So an array without operands is created in parts if it
is wanted in parts, and a sum is scattered instead of replicated.

Here: the layouts, and the inside of an op for partitioning, a function that it calls or its
dimensions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from axir.dialect.core.memo import derived
from axir.dialect.program.dimensions import Dimensions
from axir.dialect.program.equation import Equation, Literal, Var
from axir.dialect.program.function import Function
from axir.dialect.program.meshes.layouts import Layout, MeshAxes, axes_in, replicated
from axir.dialect.program.primitive import primitive_of

from .choices import Names, factor_axes, layout_of


def callee_of(equation: Equation) -> Function | None:
    """Returns the function that an op calls with its operands; None if it is no plain call."""
    primitive, params = primitive_of(equation), equation.params
    if primitive.partition is not None:
        return None
    if primitive.is_call:
        return params["jaxpr"]
    if primitive.body is None:
        return None
    body = primitive.body(**params)
    return params.get("jaxpr") if body is None else body


def stays(equation: Equation) -> bool:
    """Tells whether an op is more than the call of a function, and so stays around the callee.

    Checkpoints in a backward pass stay, because the compiler must not see across them.
    """
    primitive = equation.primitive
    return primitive.body is not None and primitive.body(**equation.params) is None


def dimensions_of(equation: Equation) -> Dimensions | Function | None:
    """Returns how the dimensions of an op are related; None if it needs whole arrays."""
    rule = primitive_of(equation).dimensions
    if rule is None:
        return None
    operands = [v.type for v in equation.operands]
    return rule(operands, [v.type for v in equation.results], **equation.params)


# Rounds of forward and backward propagation; each continues from the layouts of the previous one.
_ROUNDS = 2


@derived
def wishes(
    function: Function,
    axes: MeshAxes,
    in_layouts: tuple[Layout | None, ...],
    out_layouts: tuple[Layout | None, ...],
) -> dict[Var, Layout]:
    """Returns the layouts that variables should have, for variables with a known wish.

    Args:
        function: The program.
        axes: The axes of the mesh.
        in_layouts: The layouts of the arguments (inputs, then captures); None if open.
        out_layouts: The layouts that results should have; None if open.
    """
    return _Propagation(function, axes, in_layouts, out_layouts).run()


class _Propagation:
    def __init__(
        self,
        function: Function,
        axes: MeshAxes,
        in_layouts: Sequence[Layout | None],
        out_layouts: Sequence[Layout | None],
    ):
        self.function = function
        self.axes = axes
        self.found: dict[Var, Layout] = {}
        for variables, layouts in (
            ((*function.inputs, *function.captures), in_layouts),
            (function.outputs, out_layouts),
        ):
            for variable, layout in zip(variables, layouts, strict=True):
                if layout is not None and type(variable) is not Literal:
                    self.found.setdefault(variable, layout)
        self.known = set(self.found)

    def run(self) -> dict[Var, Layout]:
        for _ in range(_ROUNDS):
            before = dict(self.found)
            for equation in self.function.equations:
                self._visit(equation, equation.results)
            for equation in reversed(self.function.equations):
                self._visit(equation, equation.operands)
            if self.found == before:
                break
        return self.found

    def _visit(self, equation: Equation, targets: Sequence[Var]) -> None:
        """Finds layouts of an op's operands or results from the known layouts of both."""
        if not any(map(self._is_open, targets)):
            return
        if equation.primitive.fixed_layout is not None:
            self._constrain(equation)
            return
        callee = callee_of(equation)
        if callee is not None:
            self._enter(equation, callee)
            return
        dimensions = dimensions_of(equation)
        if isinstance(dimensions, Function):
            self._enter(equation, dimensions)
        elif dimensions is not None:
            self._spread(equation, dimensions)

    def _is_open(self, variable: Var) -> bool:
        return type(variable) is not Literal and variable not in self.known

    def _set(self, variable: Var, layout: Layout | None) -> None:
        """Sets the layout of an open variable if it cuts further than the previous one."""
        if layout is None or not axes_in(layout) or not self._is_open(variable):
            return
        before = self.found.get(variable, replicated(len(layout)))
        if all(new[: len(old)] == old for old, new in zip(before, layout, strict=True)):
            self.found[variable] = layout

    def _constrain(self, equation: Equation) -> None:
        rule = equation.primitive.fixed_layout
        assert rule is not None
        layout = rule(**equation.params)
        own = {name for name, _ in self.axes}
        for variable in (*equation.results, *equation.operands):
            if own.issuperset(axes_in(layout)):
                self._set(variable, tuple(names or () for names in layout))

    def _enter(self, equation: Equation, callee: Function) -> None:
        def layouts(variables: Iterable[Var]) -> tuple[Layout | None, ...]:
            return tuple(self.found.get(v) for v in variables)

        inner = wishes(callee, self.axes, layouts(equation.operands), layouts(equation.results))
        pairs = [
            *zip(equation.operands, (*callee.inputs, *callee.captures), strict=True),
            *zip(equation.results, callee.outputs, strict=True),
        ]
        for variable, inside in pairs:
            self._set(variable, inner.get(inside))

    def _spread(self, equation: Equation, dimensions: Dimensions) -> None:
        arrays = [
            *zip(equation.operands, dimensions.operands, strict=True),
            *zip(equation.results, dimensions.results, strict=True),
        ]
        assignment: dict[int, Names] = {}
        used: set[object] = set()
        # The layouts of larger arrays take precedence.
        for variable, own in sorted(arrays, key=lambda pair: -pair[0].type.size):
            layout = self.found.get(variable)
            if layout is None:
                continue
            for factor, names in factor_axes(own, layout, dimensions.extents, self.axes).items():
                if factor not in assignment and used.isdisjoint(names):
                    assignment[factor] = names
                    used.update(names)
        for variable, own in arrays:
            self._set(variable, layout_of(own, assignment, dimensions.extents, self.axes))
