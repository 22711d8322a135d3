"""Names of the arguments and results that a pass leaves, made from those before it.

Passes work on values; that the tangent of `x` should be called `dx` matters only to people, and to
the command line, where arguments are given by name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from axir.dialect import dtypes
from axir.dialect.signature import Argument, Signature
from axir.passes.base import Pass

_KEEPS_SIGNATURE = ("simplify", "vmap")


def signatures_after(
    stage: Pass, before: Mapping[str, Signature], after: Mapping[str, Signature]
) -> dict[str, Signature]:
    """Returns the signatures of a module after a pass, with names where they are known."""
    return {
        symbol: _renamed(stage, symbol, before, signature) for symbol, signature in after.items()
    }


def _renamed(
    stage: Pass, symbol: str, before: Mapping[str, Signature], after: Signature
) -> Signature:
    old = before.get(symbol)
    if stage.name == "linearize":
        old = before.get("main", old) if symbol == "linear" else old
    if old is None:
        return after
    if stage.name in _KEEPS_SIGNATURE and _counts(old) == _counts(after):
        named = after.renamed(_names(old.arguments), _names(old.results))
        return Signature(named.arguments, named.results, old.in_tree, old.out_tree)
    if stage.name == "jvp":
        return _with_tangents(stage, old, after)
    if stage.name == "linearize" and symbol == "main":
        return _with_residuals(old, after)
    return after


def _counts(signature: Signature) -> tuple[int, int]:
    return len(signature.arguments), len(signature.results)


def _names(values: Sequence[Argument]) -> list[str]:
    return [value.name for value in values]


def _with_tangents(stage: Pass, old: Signature, after: Signature) -> Signature:
    chosen = getattr(stage, "argnums", None)
    indices = range(len(old.arguments)) if chosen is None else [chosen] if isinstance(chosen, int) else chosen
    inputs = [
        value.name
        for index, value in enumerate(old.arguments)
        if index in indices and dtypes.is_inexact(value.type.dtype)
    ]
    outputs = [value.name for value in old.results if dtypes.is_inexact(value.type.dtype)]
    arguments = [*_names(old.arguments), *(f"d{name}" for name in inputs)]
    results = [*_names(old.results), *(f"d{name}" for name in outputs)]
    if (len(arguments), len(results)) != _counts(after):
        return after
    return after.renamed(arguments, results)


def _with_residuals(old: Signature, after: Signature) -> Signature:
    count = len(after.results) - len(old.results)
    if len(old.arguments) != len(after.arguments) or count < 0:
        return after
    residuals = [f"residual{index}" for index in range(count)]
    return after.renamed(_names(old.arguments), [*_names(old.results), *residuals])
