"""Functions derived from functions: how the rules of calls ask for transformed bodies.

The op that a nested `jit` leaves, like every op with functions among its parameters, needs the
tangent, transpose or batched version of its body. The transformations stand to the left of the
dialect, so they register here by name; each derived function is made once and kept with its origin.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from .context import state
from .function import Function
from .single_flight import made_once

_TRANSFORMATIONS: dict[str, Callable[..., Any]] = {}


def transformation(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers a transformation of functions under a name (a decorator)."""

    def register(transform: Callable[..., Any]) -> Callable[..., Any]:
        _TRANSFORMATIONS[name] = transform
        return transform

    return register


def derive_batched(
    function: Function,
    axes: Sequence[int | None],
    out_axes: Sequence[int | None] | None = None,
) -> Any:
    """Returns a function vectorized over the axis over which a pass vectorizes now.

    Args:
        function: What to vectorize.
        axes: For each argument (inputs, then captures) the position of the batch axis, or None.
        out_axes: Where the outputs' batch axes go; by default where they come out.

    Returns:
        The `BatchedFunction`: its `function`, and the `axes` of its outputs.
    """
    frame = state.batching
    wanted = None if out_axes is None else tuple(out_axes)
    return derive(function, "vmap", frame.size, tuple(axes), wanted, frame.name)


def derive(function: Function, name: str, *key: Hashable) -> Any:
    """Returns the transformation `name` of a function under static parameters `key`."""
    full_key = (name, *key)
    return made_once(
        function.derived, full_key, lambda: _TRANSFORMATIONS[name](function, *key)
    )
