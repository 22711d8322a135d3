"""Names of the arguments and results after a pass, derived from the names before it.

Passes work on values; that the tangent of `x` should be called `dx` matters only to people, and to
the command line, where arguments are given by name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from axir.dialect.core import dtypes
from axir.dialect.text.signature import Argument, Signature, default_names

from .base import Pass

_KEEPS_SIGNATURE = ("instantiate", "simplify", "vmap")
_LINEAR = "linear"


def signatures_after(
    stage: Pass,
    before: Mapping[str, Signature],
    after: Mapping[str, Signature],
    marked: Mapping[str, Sequence[int]] | None = None,
) -> dict[str, Signature]:
    """Returns the signatures, with names, of the functions for which a pass determines names.

    Args:
        stage: The pass.
        before: The signatures of the module before the pass.
        after: The signatures of the module after the pass.
        marked: Arguments that had the mark `jaxpr.linear` before the pass, by function.
    """
    named = {}
    for symbol, found in after.items():
        is_linear_part = stage.name == "linearize" and symbol == _LINEAR
        old = before.get("main" if is_linear_part else symbol)
        if old is None or not old.is_named:
            continue
        if is_linear_part:
            renamed = _of_linear_part(stage, old, found)
        elif stage.name == "transpose" and symbol == getattr(stage, "function", None):
            renamed = _of_transpose(stage, old, found, (marked or {}).get(symbol, ()))
        else:
            renamed = _renamed(stage, old, found)
        if renamed is not None:
            named[symbol] = renamed
    return named


def _renamed(stage: Pass, old: Signature, after: Signature) -> Signature | None:
    if stage.name in _KEEPS_SIGNATURE and _counts(old) == _counts(after):
        named = after.renamed(_names(old.arguments), _names(old.results))
        return replace(named, in_tree=old.in_tree, out_tree=old.out_tree)
    if stage.name == "jvp":
        return _with_tangents(stage, old, after)
    if stage.name == "linearize":
        return _with_residuals(old, after)
    if stage.name == "grad":
        return _with_gradients(stage, old, after)
    return None


def _counts(signature: Signature) -> tuple[int, int]:
    return len(signature.arguments), len(signature.results)


def _names(values: Sequence[Argument]) -> list[str]:
    return [value.name for value in values]


def _chosen(stage: Pass, default: Sequence[int]) -> Sequence[int]:
    """Returns the arguments that the option `argnums` names."""
    indices: int | tuple[int, ...] | None = getattr(stage, "argnums", None)
    if indices is None:
        return default
    return (indices,) if isinstance(indices, int) else indices


def _tangents(stage: Pass, old: Signature) -> tuple[list[str], list[str]]:
    """Returns the names of the tangents of arguments and of results."""
    indices = _chosen(stage, range(len(old.arguments)))
    inputs = [
        f"d{value.name}"
        for index, value in enumerate(old.arguments)
        if index in indices and dtypes.is_inexact(value.type.dtype)
    ]
    outputs = [f"d{value.name}" for value in old.results if dtypes.is_inexact(value.type.dtype)]
    return inputs, outputs


def _fitting(after: Signature, arguments: list[str], results: list[str]) -> Signature | None:
    if (len(arguments), len(results)) != _counts(after):
        return None
    return after.renamed(arguments, results)


def _with_tangents(stage: Pass, old: Signature, after: Signature) -> Signature | None:
    inputs, outputs = _tangents(stage, old)
    return _fitting(after, [*_names(old.arguments), *inputs], [*_names(old.results), *outputs])


def _with_gradients(stage: Pass, old: Signature, after: Signature) -> Signature | None:
    tangents, _ = _tangents(stage, old)
    gradients = [f"grad_{name.removeprefix('d')}" for name in tangents]
    values = _names(old.results) if getattr(stage, "with_value", False) else []
    return _fitting(after, _names(old.arguments), [*values, *gradients])


def _with_residuals(old: Signature, after: Signature) -> Signature | None:
    count = len(after.results) - len(old.results)
    if len(old.arguments) != len(after.arguments) or count < 0:
        return after
    return after.renamed(_names(old.arguments), [*_names(old.results), *_residuals(count)])


def _residuals(count: int) -> list[str]:
    return [f"residual{index}" for index in range(count)]


def _of_linear_part(stage: Pass, old: Signature, after: Signature) -> Signature | None:
    """Names the tangents and residuals that `linear` takes; residuals are results of `main`."""
    inputs, outputs = _tangents(stage, old)
    residuals = _residuals(len(after.arguments) - len(inputs))
    if len(outputs) != len(after.results):  # a result that does not depend on the arguments
        outputs = default_names("result", len(after.results))
    return _fitting(after, [*inputs, *residuals], outputs)


def _of_transpose(
    stage: Pass, old: Signature, after: Signature, marked: Sequence[int]
) -> Signature | None:
    linear = _chosen(stage, marked or range(len(old.arguments)))
    arguments = _names(old.arguments)
    rest = [name for index, name in enumerate(arguments) if index not in linear]
    # If `linearize` set the marks, the names are the names of tangents.
    prefix = "d" if marked else ""
    cotangents = [f"ct_{name.removeprefix(prefix)}" for name in _names(old.results)]
    results = [
        f"ct_{name.removeprefix(prefix)}" for index, name in enumerate(arguments) if index in linear
    ]
    return _fitting(after, [*rest, *cotangents], results)
