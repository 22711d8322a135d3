"""Names of the arguments and results that a pass leaves, made from those before it.

Passes work on values; that the tangent of `x` should be called `dx` matters only to people, and to
the command line, where arguments are given by name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from axir.dialect import dtypes
from axir.dialect.signature import Argument, Signature
from axir.passes.base import Pass

_KEEPS_SIGNATURE = ("simplify", "vmap")


def signatures_after(
    stage: Pass, before: Mapping[str, Signature], after: Mapping[str, Signature]
) -> dict[str, Signature]:
    """Returns the signatures, with names, of those functions whose names a pass lets us know."""
    named = {symbol: _renamed(stage, before.get(symbol), found) for symbol, found in after.items()}
    return {symbol: signature for symbol, signature in named.items() if signature is not None}


def _renamed(stage: Pass, old: Signature | None, after: Signature) -> Signature | None:
    if old is None or not old.is_named:
        return None
    if stage.name in _KEEPS_SIGNATURE and _counts(old) == _counts(after):
        named = after.renamed(_names(old.arguments), _names(old.results))
        return replace(named, in_tree=old.in_tree, out_tree=old.out_tree)
    if stage.name == "jvp":
        return _with_tangents(stage, old, after)
    if stage.name == "linearize":
        return _with_residuals(old, after)
    return None


def _counts(signature: Signature) -> tuple[int, int]:
    return len(signature.arguments), len(signature.results)


def _names(values: Sequence[Argument]) -> list[str]:
    return [value.name for value in values]


def _with_tangents(stage: Pass, old: Signature, after: Signature) -> Signature | None:
    indices = getattr(stage, "argnums", None)
    if indices is None:
        indices = range(len(old.arguments))
    elif isinstance(indices, int):
        indices = (indices,)
    inputs = [
        value.name
        for index, value in enumerate(old.arguments)
        if index in indices and dtypes.is_inexact(value.type.dtype)
    ]
    outputs = [value.name for value in old.results if dtypes.is_inexact(value.type.dtype)]
    arguments = [*_names(old.arguments), *(f"d{name}" for name in inputs)]
    results = [*_names(old.results), *(f"d{name}" for name in outputs)]
    if (len(arguments), len(results)) != _counts(after):
        return None
    return after.renamed(arguments, results)


def _with_residuals(old: Signature, after: Signature) -> Signature | None:
    count = len(after.results) - len(old.results)
    if len(old.arguments) != len(after.arguments) or count < 0:
        return after
    residuals = [f"residual{index}" for index in range(count)]
    return after.renamed(_names(old.arguments), [*_names(old.results), *residuals])
