"""Functions derived from functions: the interface of call rules to transformed bodies.

The op of a nested `jit`, like every op with functions among its parameters, needs the tangent,
transpose or batched version of its body. The dialect must not import the transformations, so they
register here by name. Each derived function is made once and kept with its origin.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Concatenate, Literal, ParamSpec, TypeVar, overload

from axir.dialect.core.annotations import Made, Returning
from axir.dialect.core.array import Array
from axir.dialect.core.memo import derived
from axir.dialect.core.state import state

from .function import Function
from .rules import Value

Marks = tuple[bool, ...]
Axes = tuple[int | None, ...]

Key = ParamSpec("Key")
Result = TypeVar("Result")

_TRANSFORMATIONS: dict[str, Returning[Made]] = {}


@dataclass(frozen=True)
class TangentFunction:
    """A function that computes another one and its tangents.

    Attributes:
        function: Takes the arguments, then the tangents of the active ones; returns the outputs,
            then the tangents of the active outputs.
        active_outputs: Which outputs have a tangent other than zero.
    """

    function: Function
    active_outputs: Marks


@dataclass(frozen=True)
class LinearizedFunction:
    """A function split into a known part and a linear part.

    Attributes:
        known: From the arguments to the outputs and the residuals.
        linear: From the tangents of the active arguments, then the residuals, to the tangents of
            the active outputs.
        residuals: Where each residual comes from: the index of an argument, an `Array`, or None
            for the next additional output of `known`.
        active_outputs: Which outputs have a tangent other than zero.
    """

    known: Function
    linear: Function
    residuals: tuple[int | Array | None, ...]
    active_outputs: Marks

    def residual_values(
        self, arguments: Sequence[Value] | Mapping[int, Value], extra: Sequence[Value]
    ) -> list[Value]:
        """Returns the residuals for values of the arguments and the additional outputs."""
        rest = iter(extra)
        return [
            next(rest)
            if source is None
            else arguments[source]
            if isinstance(source, int)
            else source
            for source in self.residuals
        ]


@dataclass(frozen=True)
class TransposedFunction:
    """The transpose of a function in its linear arguments.

    Attributes:
        function: Takes the arguments that are not linear, then the cotangents of the active
            outputs; returns the cotangents of the linear arguments that have any.
        active_arguments: Which linear arguments have a cotangent other than zero.
    """

    function: Function
    active_arguments: Marks


@dataclass(frozen=True)
class BatchedFunction:
    """A vectorized function.

    Attributes:
        function: Takes the arguments with their batch axes; returns the outputs with theirs.
        axes: For each output the position of its batch axis, or None.
    """

    function: Function
    axes: Axes


@dataclass(frozen=True)
class RematerializedFunction:
    """A checkpointed function, split at the values that are kept.

    Attributes:
        forward: From the arguments to the outputs and the kept values.
        derivative: From the moving tangents, the arguments in `used`, and the kept values to the
            tangents of the active outputs.
        used: Which arguments the derivative takes.
        active_outputs: Which outputs have a tangent other than zero.
    """

    forward: Function
    derivative: Function
    used: tuple[int, ...]
    active_outputs: Marks


def transformation(
    name: str,
) -> Callable[
    [Callable[Concatenate[Function, Key], Result]], Callable[Concatenate[Function, Key], Result]
]:
    """Registers a transformation of functions under a name (a decorator)."""

    def register(
        transform: Callable[Concatenate[Function, Key], Result],
    ) -> Callable[Concatenate[Function, Key], Result]:
        kept = _TRANSFORMATIONS[name] = derived(transform)
        return kept

    return register


def derive_batched(
    function: Function,
    axes: Sequence[int | None],
    out_axes: Sequence[int | None] | None = None,
) -> BatchedFunction:
    """Returns a function vectorized over the current pass's axis.

    Args:
        function: The function to vectorize.
        axes: For each argument (inputs, then captures) the position of the batch axis, or None.
        out_axes: Where the outputs' batch axes go; by default where they come out.
    """
    frame = state.batching
    assert frame is not None
    wanted = None if out_axes is None else tuple(out_axes)
    key = (frame.size, tuple(axes), wanted, frame.name, frame.mesh_axes, frame.maps_devices)
    return derive(function, "vmap", *key)


@overload
def derive(
    function: Function, name: Literal["jvp"], active: Marks, instantiate: bool = ..., /
) -> TangentFunction: ...
@overload
def derive(
    function: Function, name: Literal["linearize"], active: Marks, /
) -> LinearizedFunction: ...
@overload
def derive(
    function: Function,
    name: Literal["transpose"],
    is_linear: Marks,
    active_outputs: Marks,
    instantiate: bool = ...,
    /,
) -> TransposedFunction: ...
@overload
def derive(
    function: Function,
    name: Literal["vmap"],
    size: int,
    axes: Axes,
    out_axes: Axes | None = ...,
    axis_name: Hashable | None = ...,
    mesh_axes: tuple[Hashable, ...] = ...,
    maps_devices: bool = ...,
    /,
) -> BatchedFunction: ...
@overload
def derive(
    function: Function, name: Literal["rematerialize"], active: Marks, policy: Hashable, /
) -> RematerializedFunction: ...
@overload
def derive(function: Function, name: Literal["prune", "silence"], /) -> Function: ...
@overload
def derive(
    function: Function, name: Literal["simplify"], inline: str, is_final: bool, /
) -> Function: ...
def derive(function: Function, name: str, /, *key: Hashable) -> Made:
    """Returns the transformation `name` of a function under static parameters `key`."""
    return _TRANSFORMATIONS[name](function, *key)
