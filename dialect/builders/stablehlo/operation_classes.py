"""Classes of operations, as MLIR's bindings for Python have them: `AddOp(x, y).result`.

They are made from `operation_table.py`. A class takes the types of results that MLIR cannot infer,
operands and attributes; Python's numbers and sequences become attributes. The caller fills in the
regions. Elsewhere: the functions that build operations for axir's own rules, which check more.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

import numpy as np
from iree.compiler import ir

from axir.dialect.core.annotations import UserObject

from .core import StableHLOError, as_values, booleans, integer, integers
from .operation_table import CHLO, STABLEHLO

_TABLES = {"stablehlo": STABLEHLO, "chlo": CHLO}
_RETURN = "stablehlo.return"  # has no results
# An argument of a constructor, and its converted form.
Given: TypeAlias = UserObject


@dataclass(frozen=True)
class Field:
    """An argument of an operation's constructor.

    Attributes:
        name: Its name.
        role: `result`, `operand`, `attribute` or `regions`.
        kind: The kind of an attribute; see the table.
        is_many: Whether it is a sequence of types or operands.
        is_optional: Whether it may be left out.
        by_keyword: Whether it goes by keyword.
    """

    name: str
    role: str
    kind: str = ""
    is_many: bool = False
    is_optional: bool = False
    by_keyword: bool = False

    @property
    def parameter(self) -> inspect.Parameter:
        """The parameter in the constructor's signature."""
        kind = inspect.Parameter.KEYWORD_ONLY if self.by_keyword else _BY_PLACE
        default = None if self.is_optional else inspect.Parameter.empty
        return inspect.Parameter(self.name, kind, default=default)


_BY_PLACE = inspect.Parameter.POSITIONAL_OR_KEYWORD
_FIELD = re.compile(r"(?P<mark>>?\*?|#)(?P<name>\w+)(:(?P<kind>\w))?(?P<optional>\??)")


@dataclass(frozen=True)
class Description:
    """A line of the table.

    Attributes:
        operation: The full name of the operation.
        fields: The arguments of its constructor.
        regions: The number of its regions, except the regions that a field counts.
    """

    operation: str
    fields: tuple[Field, ...]
    regions: int

    @property
    def tells_results(self) -> bool:
        """Whether the types of results are arguments, because MLIR cannot infer them."""
        return any(field.role == "result" for field in self.fields)

    @property
    def signature(self) -> inspect.Signature:
        """The signature of the constructor."""
        shown = [field.parameter for field in self.fields]
        keyword = inspect.Parameter.KEYWORD_ONLY
        others = ("loc", "ip") if self.tells_results else ("results", "loc", "ip")
        shown += [inspect.Parameter(name, keyword, default=None) for name in others]
        return inspect.Signature(shown)


@cache
def descriptions(dialect: str) -> Mapping[str, Description]:
    """Returns the operations of a dialect by the names of their classes."""
    lines = _TABLES[dialect].replace("\n    ", " ").strip().splitlines()
    return {line.split()[0]: _read(dialect, line) for line in lines}


def _read(dialect: str, line: str) -> Description:
    _, name, *words = line.split()
    regions = next((int(word[1]) for word in words if word.startswith("{")), 0)
    fields = tuple(_fields([word for word in words if not word.startswith("{")]))
    return Description(f"{dialect}.{name}", fields, regions)


def _fields(words: Sequence[str]) -> Iterator[Field]:
    by_keyword = False
    for word in words:
        if word == ",":
            by_keyword = True
            continue
        match = _FIELD.fullmatch(word)
        assert match, word
        mark, kind = match["mark"], match["kind"] or ""
        role = "attribute" if kind else {">": "result", "#": "regions"}.get(mark[:1], "operand")
        yield Field(match["name"], role, kind, "*" in mark, bool(match["optional"]), by_keyword)


# Arguments ---------------------------------------------------------------------------------------


def _value(given: Given) -> ir.Value:
    """Returns an operand; an operation stands for its one result."""
    return given if isinstance(given, ir.Value) else given.result


def _elements(given: Given) -> ir.Attribute:
    return ir.DenseIntElementsAttr.get(np.asarray(given, np.int64))


_ATTRIBUTES: dict[str, Callable[[Given], ir.Attribute]] = {
    "I": integers,
    "D": _elements,
    "B": booleans,
    "i": integer,
    "w": lambda given: integer(given, 32),
    "b": lambda given: ir.BoolAttr.get(bool(given)),
    "u": lambda given: ir.UnitAttr.get(),
    "f": lambda given: ir.FloatAttr.get(ir.F32Type.get(), float(given)),
    "s": lambda given: ir.StringAttr.get(given),
    "y": lambda given: ir.FlatSymbolRefAttr.get(given),
}


def _attribute(field: Field, given: Given) -> ir.Attribute | None:
    if isinstance(given, ir.Attribute) or given is None or (field.kind == "u" and not given):
        return given if isinstance(given, ir.Attribute) else None
    if field.kind in _ATTRIBUTES:
        return _ATTRIBUTES[field.kind](given)
    if isinstance(given, (list, tuple)):
        return ir.ArrayAttr.get(list(given))
    if isinstance(given, Mapping):
        return ir.DictAttr.get(dict(given))
    if isinstance(given, str):
        return ir.StringAttr.get(given)
    raise StableHLOError(
        f"{field.name} is {given!r}, which is no attribute of MLIR.",
        "Make one with ir.Attribute.parse(text), or with a class such as DotDimensionNumbers.",
    )


# Operations --------------------------------------------------------------------------------------


def _create(name: str, described: Description, arguments: dict[str, Given]) -> ir.Operation:
    results: list[ir.Type] = []
    operands: list[ir.Value] = []
    attributes: dict[str, ir.Attribute] = {}
    regions = described.regions
    for field in described.fields:
        given = arguments[field.name]
        if field.role == "result":
            results += list(given) if field.is_many else [given]
        elif field.role == "operand":
            operands += [_value(x) for x in given] if field.is_many else [_value(given)]
        elif field.role == "regions":
            regions += given
        else:
            made = _attribute(field, given)
            if made is not None:
                attributes[field.name] = made
    told = arguments.get("results")
    infers = not described.tells_results and told is None and described.operation != _RETURN
    try:
        return ir.Operation.create(
            described.operation,
            results=None if infers else results or list(told or ()),
            operands=operands,
            attributes=attributes,
            regions=regions,
            loc=arguments["loc"],
            ip=arguments["ip"],
            infer_type=infers,
        )
    except ir.MLIRError as error:
        messages = "; ".join(d.message for d in error.error_diagnostics) or str(error)
        types = ", ".join(str(x.type) for x in operands)
        raise StableHLOError(f"{name}({types}): {messages}") from None


def _constructor(name: str, described: Description) -> Callable[..., None]:
    signature = described.signature

    def __init__(self: ir.OpView, *args: Given, **kwargs: Given) -> None:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        ir.OpView.__init__(self, _create(name, described, bound.arguments))

    __init__.__signature__ = signature  # type: ignore[attr-defined]
    return __init__


@cache
def operation_class(dialect: str, name: str) -> type | None:
    """Returns the class of an operation, or None if the dialect lacks the name.

    Args:
        dialect: `stablehlo` or `chlo`.
        name: The name of the class.

    >>> operation_class("stablehlo", "AddOp").OPERATION_NAME
    'stablehlo.add'
    """
    described = descriptions(dialect).get(name)
    if described is None:
        return None
    space = {
        "OPERATION_NAME": described.operation,
        "__init__": _constructor(name, described),
        "__doc__": f"`{described.operation}`.",
    }
    return type(name, (ir.OpView,), space)


@cache
def operation_function(dialect: str, name: str) -> Callable[..., object] | None:
    """Returns the function that makes an operation and returns its result or results, or None.

    Args:
        dialect: `stablehlo` or `chlo`.
        name: The name of the operation; with `_` behind it if Python has the word.

    >>> operation_function("stablehlo", "and_").__name__
    'and_'
    """
    wanted = f"{dialect}.{name.rstrip('_')}"
    for class_name, described in descriptions(dialect).items():
        if described.operation.replace("-", "_") == wanted:
            kind = operation_class(dialect, class_name)
            assert kind is not None
            return _function_of(name, described, kind)
    return None


def class_names(dialect: str) -> list[str]:
    """Returns the names of the classes of a dialect's operations."""
    return list(descriptions(dialect))


def operation_named(dialect: str, name: str, module: str) -> object:
    """Returns the class or the function of an operation, as an attribute of its module.

    Raises:
        AttributeError: for an unknown operation.
    """
    if not name.startswith("__"):
        found = operation_class(dialect, name) or operation_function(dialect, name)
        if found is not None:
            return found
    raise AttributeError(f"module {module!r} has no attribute {name!r}")


def _function_of(name: str, described: Description, kind: type) -> Callable[..., object]:
    def function(*args: Given, **kwargs: Given) -> UserObject:
        made = kind(*args, **kwargs)
        results = as_values(list(made.results))
        return results[0] if len(results) == 1 else made if not results else made.results

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`{described.operation}`."
    function.__signature__ = described.signature  # type: ignore[attr-defined]
    return function
