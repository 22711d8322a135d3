"""Named axes: the axes that code inside `vmap(..., axis_name="i")` may refer to.

While a function is traced under a named axis, `axis_sizes` holds the extent. The ops that
communicate over the axis keep its name; vectorizing over it (`BatchFrame`) resolves them.
"""

from __future__ import annotations

from collections.abc import Hashable

from axir.dialect.core.errors import UnboundAxisNameError
from axir.dialect.core.memo import quickly_derived
from axir.dialect.core.state import BatchFrame, Change, state, vectorization, with_axes

from .equation import Equation
from .function import Function, functions_of
from .parameters import AxisName


def named_axis(name: Hashable | None, size: int) -> Change:
    """Lets the code traced inside name an axis; None adds no name."""
    return with_axes(_axes_with(name, size), state.tracked_axes - {name})


def _axes_with(name: Hashable | None, size: int) -> dict[Hashable, int]:
    return state.axis_sizes if name is None else {**state.axis_sizes, name: size}


def axis_extent(name: Hashable) -> int:
    """Returns the extent of a named axis in scope.

    Raises:
        UnboundAxisNameError: if no axis in scope has the name.
    """
    try:
        return state.axis_sizes[name]
    except KeyError:
        known = ", ".join(map(repr, state.axis_sizes)) or "none"
        raise UnboundAxisNameError(
            f"unbound axis name: {name!r}. The axis names in scope are: {known}.",
            f"Call the function inside axir.vmap(..., axis_name={name!r}).",
        ) from None


def batching_over(frame: BatchFrame) -> Change:
    """Sets the axis over which the rules called inside vectorize."""
    sizes = _axes_with(frame.name, frame.size)
    return vectorization(frame, sizes, state.tracked_axes - {frame.name})


def current_frame() -> BatchFrame:
    """Returns the axis over which a pass vectorizes now."""
    frame = state.batching
    assert frame is not None
    return frame


def names_in(equation: Equation) -> frozenset[AxisName]:
    """Returns the names of the axes over which an op, or a function it calls, communicates."""
    rule = equation.primitive.axis_names
    if rule is not None:
        return frozenset(rule(**equation.params))
    names: frozenset[Hashable] = frozenset()
    for function in functions_of(equation.params):
        names |= axis_names_of(function)
    return names


@quickly_derived
def axis_names_of(function: Function) -> frozenset[Hashable]:
    """Returns the names of the axes over which a function communicates."""
    return frozenset().union(*map(names_in, function.equations))
