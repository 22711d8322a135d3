"""Every op on parts equals the op on whole arrays, however its operands are cut.

The program of a device is vectorized over the axes of the mesh, which resolves its collectives, so
one device is enough.
"""

from __future__ import annotations

import numpy as np
import pytest
from support.op_cases import Case, cases_of, differences, sampled_ops, values
from support.partitions import on_one_device

from axir.dialect.core.array import as_array
from axir.dialect.program.meshes.layouts import Layout, MeshAxes
from axir.passes.partition.partition import partition_function

AXES: MeshAxes = (("x", 2), ("y", 3))
_CASES, _DRAWS = 4, 3
# Sums of parts are rounded at other places than whole sums.
_LOOSER = 8.0


def drawn(generator: np.random.Generator, shape: tuple[int, ...], axes: MeshAxes) -> Layout:
    """A layout that cuts some of the dimensions that can be cut."""
    layout: list[tuple[str, ...]] = [()] * len(shape)
    for name, size in generator.permutation(np.array(axes, object)):
        places = [
            d
            for d, extent in enumerate(shape)
            if extent and extent % (size * int(np.prod([dict(axes)[n] for n in layout[d]]))) == 0
        ]
        if places and generator.random() < 0.8:
            layout[generator.choice(places)] += (name,)
    return tuple(layout)


def _can_be_cut(case: Case) -> bool:
    shapes = [x.shape for x in case.args]
    return any(n and (n % 2 == 0 or n % 3 == 0) for shape in shapes for n in shape)


def _chosen(name: str) -> list[Case]:
    """A few cases that can be cut, of different shapes."""
    found: dict[object, Case] = {}
    for case in filter(_can_be_cut, cases_of(name)):
        found.setdefault((*(x.shape for x in case.args), repr(case.params)), case)
    cases = list(found.values())
    count = 1 if cases[0].is_elementwise else min(len(cases), _CASES)  # elementwise ops are alike
    return [cases[i] for i in np.linspace(0, len(cases) - 1, count, dtype=int)]


@pytest.mark.parametrize("name", [n for n in sampled_ops() if any(map(_can_be_cut, cases_of(n)))])
def test_parts_make_the_whole(name: str) -> None:
    problems: list[str] = []
    for case in _chosen(name):
        generator = case.generator()
        function = case.function()
        axes = (case.params.get("devices") is not None and case.params["axes"]) or AXES
        arguments = [as_array(x) for x in (*case.args, *function.captured)]
        expected = case.evaluate()
        for draw in range(_DRAWS):
            ins = [drawn(generator, x.shape, axes) for x in arguments]
            outs = [
                drawn(generator, t.shape, axes) if draw % 2 else None for t in function.output_types
            ]
            parts = partition_function(function, axes, ins, outs)
            problems += differences(
                f"{case} cut as {ins}, results as {parts.out_layouts}",
                values(on_one_device(parts, axes, arguments)),
                expected,
                _LOOSER * case.tolerance,
                zero_signs=False,
            )
    assert not problems, "\n".join(problems)
