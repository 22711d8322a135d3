"""Arrays from outside that a few numbers describe: a trace records the ops that make them.

Masks, positions and filled arrays of a program are mostly repeated or counted. Captured, they would
be arguments as large as the arrays that they are compared with. Recorded as ops, they become part
of the loops that use them.

Elsewhere: captures (`tracer.py`).

Here: also the origins of arrays that are computed while a program is traced.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from axir.dialect.core.annotations import HostArray, Params
from axir.dialect.core.array import ConcreteArray
from axir.dialect.core.context import current_location
from axir.dialect.core.state import state
from axir.dialect.core.types import ShapedArray

from .equation import Equation, Literal, MadeEquation, Var
from .operation import Operation, later
from .rules import Operand, Results


class Origin(NamedTuple):
    """The op that computed an array.

    Attributes:
        equation: The op, of literals.
        place: Which of its results the array is.
    """

    equation: Equation
    place: int


# By id, as long as the array lives: arrays are unhashable.
_origins: dict[int, tuple[weakref.ref[ConcreteArray], Origin | None]] = {}


def keep_origin(
    primitive: Operation, operands: Sequence[Operand], params: Params, results: Results
) -> None:
    """Keeps the op that computed arrays, as long as the arrays live."""
    values = list(results) if primitive.multiple_results else [results]
    made = [x for x in values if type(x) is ConcreteArray]
    if len(made) < len(values):
        return
    equation = MadeEquation(
        [Literal(x) for x in operands],
        [Var(x.type) for x in made],
        primitive,
        params,
        current_location(),
    )
    for place, x in enumerate(made):
        _keep(x, Origin(equation, place))


def note_computed(array: ConcreteArray) -> ConcreteArray:
    """Notes that an array was computed, but not by an op; returns the array."""
    if state.shows_captures:
        _keep(array, None)
    return array


def _keep(array: ConcreteArray, origin: Origin | None) -> None:
    _origins[id(array)] = weakref.ref(array, _forgetting(id(array))), origin


def _forgetting(key: int) -> Callable[[weakref.ref[ConcreteArray]], None]:
    def forget(_: weakref.ref[ConcreteArray]) -> None:
        _origins.pop(key, None)

    return forget


def origin_of(array: ConcreteArray) -> Origin | None:
    """Returns the op that computed an array, if it was kept."""
    found = _origins.get(id(array))
    return found[1] if found is not None and found[0]() is array else None


def is_computed(array: ConcreteArray) -> bool:
    """Tells whether an array is noted as computed."""
    found = _origins.get(id(array))
    return found is not None and found[0]() is array


# Shorter arrays are captured.
_FEWEST_COUNTED = 16
# The least number of elements for a description instead of a constant in the text.
_FEWEST_EMBEDDED = 1024


class Recorder(Protocol):
    """A function under construction: `Trace`."""

    def record(self, primitive: Operation, operands: Sequence[Operand], params: Params) -> Results:
        """Appends the op of a primitive, and returns its results."""
        ...

    def embed(self, array: ConcreteArray) -> None:
        """Makes later uses of an array a constant in the text."""
        ...


def record_description(trace: Recorder, array: ConcreteArray, embeds: bool = False) -> Var | None:
    """Records the ops that make an array, if the trace has no tracer for the array yet.

    It describes only arrays with elements on the host that are views of fewer elements, or that
    count up from a number in equal steps.

    Args:
        trace: Where to record them.
        array: The array.
        embeds: Whether the repeated elements become a constant; else they are captured.

    Returns:
        The array in the trace; None if it must be captured.
    """
    host = array._host
    if host is None or host.size < (_FEWEST_EMBEDDED if embeds else 2):
        return None
    repeated = [d for d, n in enumerate(host.shape) if n > 1 and not host.strides[d]]
    kept = [d for d, n in enumerate(host.shape) if n > 1 and host.strides[d]]
    if not repeated:
        counted: Var | None = _counted(trace, array, host)
        return counted
    place = (*(slice(None) if d in kept else 0 for d in range(host.ndim)), ...)
    base = host[place]
    small = ConcreteArray(ShapedArray(base.shape, array.dtype, array.weak_type), base)
    source = _counted(trace, small, base)
    if source is None and embeds:
        trace.embed(small)
    params = {"shape": array.shape, "broadcast_dimensions": tuple(kept)}
    operand = small if source is None else source
    found: Var = trace.record(later.OPS["broadcast_in_dim"], [operand], params)
    return found


def _counted(trace: Recorder, array: ConcreteArray, host: HostArray) -> Results:
    """Records the whole numbers of an axis in equal steps, None for other arrays."""
    if host.ndim != 1 or host.size < _FEWEST_COUNTED or array.weak_type:
        return None
    if host.dtype.kind not in "iu" or host.dtype.itemsize < 4:
        return None
    # Steps of unsigned numbers wrap around, so they are compared and multiplied with wrapping.
    steps = host[1:] - host[:-1]
    first, step = int(host[0]), int(host[1]) - int(host[0])
    if not step or int(host[-1]) != first + step * (host.size - 1) or (steps != steps[0]).any():
        return None
    params = {"dtype": array.dtype, "shape": host.shape, "dimension": 0}
    found = trace.record(later.OPS["iota"], [], params)
    for name, number, nothing in (("mul", steps[:1], 1), ("add", host[:1], 0)):
        if number[0] != nothing:
            scalar = ConcreteArray(ShapedArray((), array.dtype), number.reshape(()))
            found = trace.record(later.OPS[name], [found, scalar], {})
    return found
