"""Which attributes an op of the dialect has, and of what kind: for text that people have edited.

The names are those that the `infer` rule takes, or that all samples have; the kinds are the rules'
annotations. What tracing records is right by construction and never comes here.
"""

from __future__ import annotations

import difflib
import inspect
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from iree.compiler import ir

from .deferred import DeferredFunction
from .errors import VerificationError
from .function import Function
from .primitive import Primitive, Sample

# How an attribute of a kind is written.
_KINDS: dict[Any, str] = {
    bool: "true or false",
    int: "an integer such as 2 : i64",
    float: "a number such as 0.5",
    str: "a text in quotes",
    tuple: "a list in brackets",
    type(None): "unit",
    np.dtype: "a type such as f32",
    Function: "the name of a function such as @body",
}
_SHOWN = 60


def check_attributes(primitive: Primitive, params: Mapping[str, Any], op: ir.Operation) -> None:
    """Compares the attributes of an op with those that its rules take.

    Raises:
        VerificationError: if one is missing, unknown or of another kind.
    """
    schema = _schemas.get(primitive)
    if schema is None:
        schema = _schemas[primitive] = _schema_of(primitive)
    names, kinds = schema
    if names is None:
        return
    if params.keys() != names:
        raise _wrong_names(primitive, params, names)
    for name, hint, fits in kinds:
        if not fits(params[name]):
            found = str(op.attributes[name])
            shown = found if len(found) <= _SHOWN else f"{found[:_SHOWN]}..."
            raise VerificationError(
                f"{primitive.op_name}: the attribute {name!r} must be {_kind(hint)}, not {shown}.",
                "Correct it in the text, or export the module again.",
                where="",
            )


def _wrong_names(
    primitive: Primitive, params: Mapping[str, Any], names: frozenset[str]
) -> VerificationError:
    listing = f"It has {', '.join(sorted(names))}." if names else "It has none."
    for name in params.keys() - names:
        near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
        hint = f"Did you mean {near[0]!r}? " if near else ""
        return VerificationError(
            f"{primitive.op_name}: there is no attribute {name!r}.", hint + listing, where=""
        )
    missing = ", ".join(sorted(map(repr, names - params.keys())))
    return VerificationError(
        f"{primitive.op_name}: the attribute {missing} is missing.", listing, where=""
    )


_Schema = tuple[frozenset[str] | None, list[tuple[str, Any, Callable[[Any], bool]]]]
_schemas: WeakKeyDictionary[Primitive, _Schema] = WeakKeyDictionary()


def _schema_of(primitive: Primitive) -> _Schema:
    """Returns the names of the attributes, None where nothing tells them, and checks of some."""
    from .ops.table import OPS

    if OPS.get(primitive.name) is not primitive or primitive.infer is None:
        return None, []
    parameters = inspect.signature(primitive.infer).parameters.values()
    names = frozenset(p.name for p in parameters if p.kind is p.KEYWORD_ONLY)
    hints: dict[str, Any] = {}
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        samples = _samples(primitive)
        if not samples:
            return None, []
        names = frozenset(samples[0].params)
        for name in names:
            found = {type(sample.params[name]) for sample in samples}
            if len(found) == 1 and found <= {bool, int, tuple}:
                hints[name] = found.pop()
    rules = (primitive.batch, primitive.lower, primitive.evaluate, primitive.infer)
    for more in (*map(_hints, rules), primitive.param_types):
        hints.update(more)
    checks = ((name, hint, _check_of(hint)) for name, hint in hints.items() if name in names)
    return names, [(name, hint, check) for name, hint, check in checks if check is not None]


def _samples(primitive: Primitive) -> list[Sample]:
    if primitive.samples is None:
        return []
    with np.errstate(all="ignore"):  # samples hold what overflows when it is cast
        return primitive.samples()


def _hints(rule: Callable[..., Any] | None) -> dict[str, Any]:
    if not inspect.isfunction(rule):
        return {}
    try:
        hints = typing.get_type_hints(rule)
    except (NameError, TypeError):  # an annotation that only type checkers can resolve
        return {}
    parameters = inspect.signature(rule).parameters.values()
    keywords = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
    return {name: hints[name] for name in keywords if name in hints}


def _check_of(hint: Any) -> Callable[[Any], bool] | None:
    """Returns what tells whether a value is of an annotated type; None where attributes cannot."""
    arguments = typing.get_args(hint)
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        checks = [check for check in map(_check_of, arguments) if check is not None]
        is_complete = len(checks) == len(arguments)
        return (lambda value: any(check(value) for check in checks)) if is_complete else None
    if typing.get_origin(hint) is tuple:
        return _check_of_tuple(arguments)
    if hint in (int, float):
        kinds = (int, float) if hint is float else int
        return lambda value: isinstance(value, kinds) and value is not True and value is not False
    if hint is Function:
        return lambda value: isinstance(value, (Function, DeferredFunction))
    if hint in _KINDS or hasattr(hint, "_fields"):
        return lambda value: isinstance(value, hint)
    return None


def _check_of_tuple(arguments: tuple[Any, ...]) -> Callable[[Any], bool]:
    checks = [_check_of(argument) or (lambda _: True) for argument in arguments if argument != ...]
    if arguments[-1:] == (...,):
        return lambda value: isinstance(value, tuple) and all(map(checks[0], value))
    return lambda value: (
        isinstance(value, tuple)
        and len(value) == len(checks)
        and all(check(item) for check, item in zip(checks, value, strict=True))
    )


def _kind(hint: Any) -> str:
    arguments = typing.get_args(hint)
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return " or ".join(_kind(argument) for argument in arguments)
    if typing.get_origin(hint) is tuple:
        return "array<i64: ...>" if arguments == (int, ...) else "a list in brackets"
    if hasattr(hint, "_fields"):
        return "{" + ", ".join(f"{name} = ..." for name in hint._fields) + "}"
    return _KINDS.get(hint, getattr(hint, "__name__", str(hint)))
