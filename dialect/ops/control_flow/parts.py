"""Loops and choices on the parts of arrays that a device holds: the rules `partition`, `varying`.

All devices make the same passes and choose the same branch, because all of them hold the condition;
so their collectives meet. The layout of a carry is an invariant of its loop. It begins as the
layout of the initial carry. If the initial carry is not cut at all, the layout of the body's result
replaces it.
"""

from __future__ import annotations

from collections.abc import Sequence

from axir.dialect.program.equation import Equation
from axir.dialect.program.function import Function
from axir.dialect.program.meshes.layouts import Layout, axes_in, is_cut_evenly, replicated
from axir.dialect.program.meshes.partitioning import Partitioned, Partitioner, Placed
from axir.dialect.program.meshes.varying_axes import Axes, joined, varying_axes, varying_loop

from .closed_bodies import split


def partition_scan(
    partitioner: Partitioner, equation: Equation, operands: Sequence[Placed]
) -> list[Placed]:
    """Scans parts; each device needs the whole scanned axis."""
    params = equation.params
    consts, carry, xs = split(operands, params["num_consts"], params["num_carry"])
    whole = []
    for number, x in enumerate(xs, start=len(consts) + len(carry)):
        if x.layout[0]:
            partitioner.note(
                f"needs dimension 0 of operand {number} of shape {x.shape} whole, for it is scanned"
            )
        whole.append(partitioner.moved(x, ((), *x.layout[1:])))
    slices = [x.layout[1:] for x in whole]
    first = [x.layout for x in consts]
    layouts = _invariant(partitioner, params["jaxpr"], first, carry, slices)
    added = [None] * (len(equation.results) - len(carry))
    body = partitioner.function(params["jaxpr"], [*first, *layouts, *slices], [*layouts, *added])
    init = _moved(partitioner, carry, layouts)
    stacked: list[Layout] = [((), *layout) for layout in body.out_layouts[len(carry) :]]
    values = [x.value for x in (*consts, *init, *whole)]
    results = equation.primitive.bind(*values, **{**params, "jaxpr": body.local})
    return _placed(equation, results, [*layouts, *stacked])


def partition_while(
    partitioner: Partitioner, equation: Equation, operands: Sequence[Placed]
) -> list[Placed]:
    """Loops over parts; all devices know whether to go on."""
    params = equation.params
    first, second, carry = split(operands, params["cond_nconsts"], params["body_nconsts"])
    consts = [x.layout for x in second]
    layouts = _invariant(partitioner, params["body_jaxpr"], consts, carry, [])
    body = partitioner.function(params["body_jaxpr"], [*consts, *layouts], layouts)
    tested = [*(x.layout for x in first), *layouts]
    condition = partitioner.function(params["cond_jaxpr"], tested, [()])
    init = _moved(partitioner, carry, layouts)
    values = [x.value for x in (*first, *second, *init)]
    functions = {"cond_jaxpr": condition.local, "body_jaxpr": body.local}
    results = equation.primitive.bind(*values, **{**params, **functions})
    return _placed(equation, results, layouts)


def partition_cond(
    partitioner: Partitioner, equation: Equation, operands: Sequence[Placed]
) -> list[Placed]:
    """Chooses a branch for parts; each result gets the layout of the branch that cuts it most."""
    index, *others = operands
    branches: tuple[Function, ...] = equation.params["branches"]
    given = [x.layout for x in others]
    trials = [partitioner.function(each, given, is_trial=True) for each in branches]
    layouts = [
        max(found, key=lambda layout: len(axes_in(layout)))
        for found in zip(*(each.out_layouts for each in trials), strict=True)
    ]
    parts: list[Partitioned] = [partitioner.function(each, given, layouts) for each in branches]
    chosen = partitioner.moved(index, replicated(len(index.shape)))
    values = [chosen.value, *(x.value for x in others)]
    results = equation.primitive.bind(*values, branches=tuple(each.local for each in parts))
    return _placed(equation, results, layouts)


def varying_scan(
    given: Sequence[Axes], *, jaxpr: Function, num_consts: int, num_carry: int, **params: object
) -> list[Axes]:
    """Returns the axes along which the results of a scan differ."""
    carried, stacked = varying_loop(jaxpr, *split(given, num_consts, num_carry))
    return [*carried, *stacked]


def varying_while(
    given: Sequence[Axes],
    *,
    cond_jaxpr: Function,
    cond_nconsts: int,
    body_jaxpr: Function,
    body_nconsts: int,
) -> list[Axes]:
    """Returns the axes along which a loop's results differ: all results if its end differs."""
    first, second, carry = split(given, cond_nconsts, body_nconsts)
    carried, _ = varying_loop(body_jaxpr, second, carry)
    (ends,) = varying_axes(cond_jaxpr, (*first, *carried))
    return [axes | ends for axes in carried]


def varying_cond(given: Sequence[Axes], *, branches: tuple[Function, ...]) -> list[Axes]:
    """Returns the axes along which a choice's results differ: all results if the choice differs."""
    index, *others = given
    found = [varying_axes(branch, tuple(others)) for branch in branches]
    return [joined([index, *axes]) for axes in zip(*found, strict=True)]


def _invariant(
    partitioner: Partitioner,
    body: Function,
    before: Sequence[Layout],
    carry: Sequence[Placed],
    behind: Sequence[Layout],
) -> list[Layout]:
    """Returns the layouts of a carry before and after each pass of a body.

    Args:
        partitioner: The partitioner of the loop.
        body: The body.
        before: Layouts of the body's inputs before the carry.
        carry: The initial carry.
        behind: Layouts of the body's inputs after the carry.
    """
    wanted = partitioner.wanted()[: len(carry)]
    layouts = [
        layout if layout is not None and not axes_in(x.layout) and _fits(partitioner, x, layout)
        else x.layout
        for x, layout in zip(carry, wanted, strict=True)
    ]  # fmt: skip
    while True:
        trial = partitioner.function(body, [*before, *layouts, *behind], is_trial=True)
        grown = [
            own if axes_in(own) else made
            for own, made in zip(layouts, trial.out_layouts, strict=False)
        ]
        if grown == layouts:
            return layouts
        layouts = grown  # ends, because each pass of this loop cuts a value that was not cut before


def _fits(partitioner: Partitioner, x: Placed, layout: Layout) -> bool:
    return is_cut_evenly(x.shape, layout, partitioner.axes)


def _moved(
    partitioner: Partitioner, values: Sequence[Placed], layouts: Sequence[Layout]
) -> list[Placed]:
    return [partitioner.moved(x, layout) for x, layout in zip(values, layouts, strict=True)]


def _placed(
    equation: Equation, results: Sequence[object], layouts: Sequence[Layout]
) -> list[Placed]:
    return [
        Placed(value, layout, v.type.shape)  # type: ignore[arg-type]
        for value, layout, v in zip(results, layouts, equation.results, strict=True)
    ]
