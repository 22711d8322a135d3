"""A sample call of each function, taken from its examples, and its compiled forms.

The examples run with the function replaced by one that records its arguments. A call can be shown
if its arrays can be traced while all its other arguments stay as they are. Functions of arrays
without such an example are called with small arrays, of the first kind that they take.
"""

from __future__ import annotations

import doctest
import importlib
import inspect
import io
import sys
import warnings
from collections.abc import Callable
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

import axir
from axir.dialect.program.op_table import OPS
from axir.dialect.program.primitive import Primitive

from .names import Name

# Modules with functions of arrays, and the arrays that these may take.
ARRAY_MODULES = ("axir.numpy", "axir.lax", "axir.nn", "axir.scipy")
ARRAYS = (
    np.full(3, 0.5, np.float32),
    np.eye(3, dtype=np.float32),
    np.ones(3, np.int32),
    np.ones(3, bool),
    np.ones(4, np.complex64),
)

# Longer programs are cut: a page shows only their beginning.
LINES = 60


class Sample(NamedTuple):
    """A call, and its programs."""

    call: str
    jaxpr: str
    stablehlo: str
    primitives: list[Primitive]


def sample_of(name: Name) -> Sample | None:
    """Returns the programs of a function's first example that can be traced, if there is one."""
    if inspect.isclass(name.value):
        return None
    for arguments, keywords in (*calls_of(name), *calls_with_arrays(name)):
        # Whatever goes wrong says that this call is not one to show.
        try:
            return _traced(name, arguments, keywords)
        except Exception:
            continue
    return None


def calls_of(name: Name) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Returns the arguments of a function's calls in its own examples."""
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    def recorded(*arguments: Any, **keywords: Any) -> Any:
        calls.append((arguments, keywords))
        return name.value(*arguments, **keywords)

    examples = doctest.DocTestParser().get_examples(inspect.getdoc(name.value) or "")
    home = sys.modules.get(name.value.__module__)
    scope = {**vars(home), name.name: recorded} if home else {name.name: recorded}
    with ExitStack() as stack:
        stack.enter_context(
            mock.patch.object(importlib.import_module(name.module), name.name, recorded)
        )
        stack.enter_context(redirect_stdout(io.StringIO()))
        stack.enter_context(redirect_stderr(io.StringIO()))
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        for example in examples:
            try:
                exec(compile(example.source, "<example>", "single"), scope)
            except Exception:
                break
    return calls


def calls_with_arrays(name: Name) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Returns calls of a function of arrays with one small array for all that it must have."""
    if not name.module.startswith(ARRAY_MODULES):
        return []
    try:
        parameters = inspect.signature(name.value).parameters.values()
    except (TypeError, ValueError):
        return []
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    wanted = [p for p in parameters if p.kind in positional and p.default is p.empty]
    return [((array,) * len(wanted), {}) for array in ARRAYS if wanted]


def _traced(name: Name, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Sample:
    leaves, structure = axir.tree.flatten(arguments)
    places = [index for index, leaf in enumerate(leaves) if _is_traced(leaf)]
    values = [leaves[index] for index in places]

    def call(*traced: Any) -> Any:
        filled = list(leaves)
        for place, value in zip(places, traced, strict=True):
            filled[place] = value
        return name.value(*axir.tree.unflatten(structure, filled), **keywords)

    call.__name__ = name.name
    if not values:
        raise ValueError("nothing to trace")
    closed = axir.make_jaxpr(call)(*values)
    primitives = {equation.primitive.name: equation.primitive for equation in closed.jaxpr.eqns}
    return Sample(
        _shown_call(name, arguments, keywords),
        _cut(str(closed)),
        _cut(axir.jit(call).lower(*values).as_text()),
        [primitive for key, primitive in primitives.items() if key in OPS],
    )


def _is_traced(leaf: Any) -> bool:
    return isinstance(leaf, (axir.Array, np.ndarray, float, complex))


def _shown_call(name: Name, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> str:
    shown = [_shown(argument) for argument in arguments]
    shown += [f"{key}={_shown(value)}" for key, value in keywords.items()]
    return f"{name.full}({', '.join(shown)})"


def _shown(value: Any) -> str:
    """Returns an argument as the sample shows it: of arrays the type."""
    if isinstance(value, (axir.Array, np.ndarray)):
        return str(axir.typeof(value))
    if isinstance(value, (list, tuple)):
        shown = ", ".join(map(_shown, value))
        return f"[{shown}]" if isinstance(value, list) else f"({shown})"
    if isinstance(value, Callable):
        return getattr(value, "__name__", "function").replace("<lambda>", "function")
    return " ".join(repr(value).split())[:60]


def _cut(text: str) -> str:
    lines = text.rstrip().splitlines()
    more = len(lines) - LINES
    return "\n".join(lines if more <= 0 else [*lines[:LINES], f"... {more} lines more"])
