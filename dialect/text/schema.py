"""Compares the attributes of an op with its declared parameters, as edited text needs it.

Recorded ops are right by construction and are not compared.
"""

from __future__ import annotations

import difflib
import functools
import typing
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from iree.compiler import ir

from axir.dialect.core.annotations import Param, Params
from axir.dialect.core.attributes import Symbols, decode
from axir.dialect.core.errors import VerificationError
from axir.dialect.program.function import DeferredFunction, Function
from axir.dialect.program.parameters import AnyKind, Ints, alternatives, fits, is_named_tuple
from axir.dialect.program.primitive import Primitive

# The text of an attribute of a kind.
_WRITTEN: dict[AnyKind, str] = {
    bool: "true or false",
    int: "an integer such as 2 : i64",
    float: "a number such as 0.5",
    str: "a text in quotes",
    type(None): "unit",
    np.dtype: "a type such as f32",
    np.ndarray: "numbers such as dense<0.0> : tensor<f32>",
    Function: "the name of a function such as @body",
    Hashable: 'a name such as "i"',
    Ints: "array<i64: ...>",
}
_SHOWN = 60


class Functions(Symbols, Protocol):
    """The functions of a module that is read."""

    def deferring(self, is_deferred: bool) -> Symbols:
        """Returns itself; if deferred, a reader that allows a function in its derivative rule."""
        ...


def read_attributes(primitive: Primitive, op: ir.Operation, functions: Functions) -> Params:
    """Returns the parameters that the attributes of an op encode.

    Args:
        primitive: The primitive of the op.
        op: The op.
        functions: The functions of the module by symbol name.

    Raises:
        VerificationError: if one is missing, unknown or of another type than is declared.
    """
    attributes = op.attributes
    if primitive.parameters is None:
        return {name: decode(attributes[name], functions) for name in attributes}
    schema = _schema_of(primitive)
    params = {
        name: decode(
            attributes[name],
            functions.deferring(name in schema.deferred),
            schema.named_tuples.get(name),
        )
        for name in attributes
    }
    declared = primitive.parameters
    if params.keys() != declared.keys():
        raise _wrong_names(primitive, params, declared)
    for name, check in schema.checks.items():
        if not check(params[name]):
            found = str(attributes[name])
            shown = found if len(found) <= _SHOWN else f"{found[:_SHOWN]}..."
            wanted = " or ".join(_ways_to_write(declared[name]))
            raise VerificationError(
                f"{primitive.op_name}: the attribute {name!r} must be {wanted}, not {shown}.",
                "Correct it in the text, or export the module again.",
                where="",
            )
    return params


@dataclass(frozen=True)
class _Schema:
    """The declared parameters of an op, as reading needs them.

    Attributes:
        checks: For each parameter, whether a value is of its type.
        deferred: The parameters with functions that are read at their first use.
        named_tuples: The classes of the parameters that are named tuples.
    """

    checks: dict[str, Callable[[Param], bool]]
    deferred: frozenset[str]
    named_tuples: dict[str, type]


@functools.cache  # primitives that declare parameters are in the table, which keeps them
def _schema_of(primitive: Primitive) -> _Schema:
    declared = primitive.parameters or {}
    kinds = {name: alternatives(kind) for name, kind in declared.items()}
    return _Schema(
        {name: fits(kind) for name, kind in declared.items()},
        frozenset(name for name, found in kinds.items() if DeferredFunction in found),
        {name: kind for name, found in kinds.items() for kind in found if is_named_tuple(kind)},
    )


def _wrong_names(
    primitive: Primitive, params: Mapping[str, object], declared: Mapping[str, AnyKind]
) -> VerificationError:
    listing = f"It has {', '.join(sorted(declared))}." if declared else "It has none."
    for name in params.keys() - declared.keys():
        near = difflib.get_close_matches(name, declared, n=1, cutoff=0.5)
        hint = f"Did you mean {near[0]!r}? " if near else ""
        return VerificationError(
            f"{primitive.op_name}: there is no attribute {name!r}.", hint + listing, where=""
        )
    missing = ", ".join(sorted(map(repr, declared.keys() - params.keys())))
    return VerificationError(
        f"{primitive.op_name}: the attribute {missing} is missing.", listing, where=""
    )


def _ways_to_write(kind: AnyKind) -> Iterator[str]:
    """Yields the texts of values of a type, one for each type that text can hold."""
    for alternative in alternatives(kind):
        if alternative in _WRITTEN:
            yield _WRITTEN[alternative]
        elif is_named_tuple(alternative):
            yield "{" + ", ".join(f"{name} = ..." for name in alternative._fields) + "}"
        elif typing.get_origin(alternative) is tuple:
            yield "a list in brackets"
