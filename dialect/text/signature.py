"""Signatures of saved functions: names of arguments and results, and the trees they come from.

They stand in the module as attributes: `jaxpr.name` on each argument and result, `jaxpr.in_tree`
and `jaxpr.out_tree` on the function (the writer of trees defines the notation). A compiled program
carries the same as JSON, in IREE's reflection attributes. Modules from elsewhere lack these
attributes: their arguments are `arg0`, `arg1`, ...
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from iree.compiler import ir

from axir.dialect.core.context import context, describe_location
from axir.dialect.core.errors import AxirError, VerificationError
from axir.dialect.core.types import ShapedArray, element_type, type_of_mlir

NAME = "jaxpr.name"
WEAK = "jaxpr.weak_type"
IN_TREE = "jaxpr.in_tree"
OUT_TREE = "jaxpr.out_tree"
REFLECTION = "axir.signature"
PLATFORM = "axir.platform"
_DECLARATION = "iree.abi.declaration"
_DECLARED = re.compile(r"%(input|output)\d+: (tensor<[^{}]*?>)(?: \{[^{}]*\})?(?=[,)])")
_ENCODED = re.compile(
    r"%(input|output)\d+: tensor<[^{}]*?> \{iree\.abi\.encoding = (tensor<[^{}]*?>)\}"
)


@dataclass(frozen=True)
class Argument:
    """An argument or a result: its name and type.

    >>> import numpy as np
    >>> Argument("x", ShapedArray((2, 3), np.float32)).text
    '2x3xf32'
    """

    name: str
    type: ShapedArray

    @property
    def text(self) -> str:
        """The type as `2x3xf32`; with symbolic dimensions `bx(2*t + 1)xf32`."""
        if self.type.is_open:
            words = [str(extent) for extent in self.type.shape]
            words = [f"({word})" if " " in word else word for word in words]
            return "x".join([*words, str(element_type(self.type.dtype))])
        return str(self.type.mlir).removeprefix("tensor<").removesuffix(">")


@dataclass(frozen=True)
class Signature:
    """The arguments and results of a function.

    Attributes:
        arguments: Its arguments, in order.
        results: Its results, in order.
        in_tree: Notation of the tree of arguments, if it is known.
        out_tree: Notation of the tree of results, if it is known.
        is_named: Whether the names were given, and are not only `arg0`, `arg1`, ...
    """

    arguments: tuple[Argument, ...]
    results: tuple[Argument, ...]
    in_tree: str | None = None
    out_tree: str | None = None
    is_named: bool = False

    def renamed(self, arguments: Sequence[str], results: Sequence[str]) -> Signature:
        """Returns the signature with other names of arguments and results."""
        return replace(
            self,
            arguments=tuple(map(replace_name, self.arguments, arguments)),
            results=tuple(map(replace_name, self.results, results)),
            is_named=True,
        )

    def to_json(self) -> str:
        """Returns the signature as JSON."""
        rows = [
            [[a.name, a.text, a.type.weak_type] for a in group]
            for group in (self.arguments, self.results)
        ]
        rest = {"in_tree": self.in_tree, "out_tree": self.out_tree, "is_named": self.is_named}
        return json.dumps({"arguments": rows[0], "results": rows[1], **rest})

    @staticmethod
    def from_json(text: str) -> Signature:
        """Reads a signature that `to_json` wrote."""
        entries = json.loads(text)
        groups = [
            tuple(Argument(name, parse_type(kind, weak)) for name, kind, weak in entries[group])
            for group in ("arguments", "results")
        ]
        rest = {name: entries[name] for name in ("in_tree", "out_tree", "is_named")}
        return Signature(groups[0], groups[1], **rest)


def replace_name(argument: Argument, name: str) -> Argument:
    """Returns the argument under another name."""
    return Argument(name, argument.type)


def parse_type(text: str, weak_type: bool = False) -> ShapedArray:
    """Reads a type such as `2x3xf32` (scalars: `f32`).

    Raises:
        VerificationError: if it is not one.

    >>> parse_type("2x3xf32")
    ShapedArray(float32[2,3])
    """
    try:
        with context():
            return type_of_mlir(ir.Type.parse(f"tensor<{text}>"), weak_type)
    except (ir.MLIRError, ValueError, AxirError):
        raise VerificationError(
            f"{text!r} is not the type of an array.",
            "Write extents and element type as 2x3xf32; a scalar is f32.",
            where="",
        ) from None


def default_names(kind: str, count: int) -> list[str]:
    """Returns names for values without names: `arg0`, `arg1`, ..."""
    return [f"{kind}{index}" for index in range(count)]


def signatures(module: ir.Module) -> dict[str, Signature]:
    """Returns the signatures of a module's public functions by symbol.

    Raises:
        VerificationError: if an argument or a result is not an array of static shape.
    """
    found = {}
    for op in module.body.operations:
        operation = op.operation
        if operation.name == "func.func" and is_public(operation):
            found[ir.StringAttr(operation.attributes["sym_name"]).value] = _signature(operation)
    return found


def has_open_dimensions(module: ir.Module) -> bool:
    """Tells whether a public function of a module takes arrays of open extents."""
    for view in module.body.operations:
        op = view.operation
        if op.name == "func.func" and is_public(op):
            function_type = ir.FunctionType(ir.TypeAttr(op.attributes["function_type"]).value)
            if any("?" in str(kind) for kind in function_type.inputs):
                return True
    return False


def is_public(op: ir.Operation) -> bool:
    """Tells whether a function can be called from outside its module."""
    visibility = op.attributes["sym_visibility"] if "sym_visibility" in op.attributes else None
    return visibility is None or ir.StringAttr(visibility).value == "public"


def _signature(op: ir.Operation) -> Signature:
    function_type = ir.FunctionType(ir.TypeAttr(op.attributes["function_type"]).value)
    return Signature(
        _group(op, "arg_attrs", "arg", function_type.inputs),
        _group(op, "res_attrs", "result", function_type.results),
        _text(op, IN_TREE),
        _text(op, OUT_TREE),
        "arg_attrs" in op.attributes and NAME in str(op.attributes["arg_attrs"]),
    )


def _text(op: ir.Operation, attribute: str) -> str | None:
    return _string(op, attribute, op.attributes[attribute]) if attribute in op.attributes else None


def _string(op: ir.Operation, name: str, attribute: ir.Attribute) -> str:
    if isinstance(attribute, ir.StringAttr):
        return attribute.value
    symbol = ir.StringAttr(op.attributes["sym_name"]).value
    raise VerificationError(
        f"@{symbol}: the attribute {name} must be a text in quotes, not {attribute}.",
        "Correct it, or remove it: functions need no names.",
        where=describe_location(op.location) or "",
    )


def _group(
    op: ir.Operation, attribute: str, kind: str, value_types: Sequence[ir.Type]
) -> tuple[Argument, ...]:
    names = default_names(kind, len(value_types))
    weak = [False] * len(names)
    if attribute in op.attributes:
        for index, marks in enumerate(ir.ArrayAttr(op.attributes[attribute])):
            if NAME in marks:
                names[index] = _string(op, NAME, marks[NAME])
            weak[index] = WEAK in marks
    try:
        return tuple(
            Argument(name, type_of_mlir(value_type, is_weak))
            for name, value_type, is_weak in zip(names, value_types, weak, strict=True)
        )
    except AxirError as error:
        symbol = ir.StringAttr(op.attributes["sym_name"]).value
        raise VerificationError(f"@{symbol}: {error.message}", error.way_out, where="") from None


def annotate(module: ir.Module, symbol: str, signature: Signature) -> None:
    """Writes the names and trees of a signature to a function of a module."""
    op = _function(module, symbol)
    with context():
        _mark(op, "arg_attrs", signature.arguments)
        _mark(op, "res_attrs", signature.results)
        for attribute, text in ((IN_TREE, signature.in_tree), (OUT_TREE, signature.out_tree)):
            if text is not None:
                op.attributes[attribute] = ir.StringAttr.get(text)


def _function(module: ir.Module, symbol: str) -> ir.Operation:
    for op in module.body.operations:
        if ir.StringAttr(op.attributes["sym_name"]).value == symbol:
            return op.operation
    raise VerificationError(f"The module has no function @{symbol}.", where="")


def _mark(op: ir.Operation, attribute: str, values: Sequence[Argument]) -> None:
    if not values:
        return
    present = op.attributes[attribute] if attribute in op.attributes else [{}] * len(values)
    marks = []
    for entry, value in zip(present, values, strict=True):
        items = {entry[i].name: entry[i].attr for i in range(len(entry))}
        marks.append(ir.DictAttr.get({**items, NAME: ir.StringAttr.get(value.name)}))
    op.attributes[attribute] = ir.ArrayAttr.get(marks)


def attach_reflection(module: ir.Module, found: dict[str, Signature], platform: str) -> None:
    """Adds signatures and platform to a StableHLO module, so that the compiled program has them."""
    with context():
        for symbol, signature in found.items():
            entries = {
                REFLECTION: ir.StringAttr.get(signature.to_json()),
                PLATFORM: ir.StringAttr.get(platform),
            }
            _function(module, symbol).attributes["iree.reflection"] = ir.DictAttr.get(entries)


def reflected_target(reflection: dict[str, str]) -> str | None:
    """Returns the platform that a function was compiled for, if its reflection has it."""
    return reflection.get(PLATFORM)


def reflected_signature(reflection: dict[str, str]) -> Signature:
    """Returns the signature of a function of a compiled program from its reflection.

    Raises:
        VerificationError: if it takes or returns anything but arrays of static shape.
    """
    if REFLECTION in reflection:
        return Signature.from_json(reflection[REFLECTION])
    declaration = reflection.get(_DECLARATION, "")
    # Unsigned integers are declared as signless integers, with the true type beside them.
    declaration = _ENCODED.sub(r"%\g<1>0: \g<2>", declaration)
    groups: dict[str, list[ShapedArray]] = {"input": [], "output": []}
    for kind, text in _DECLARED.findall(declaration):
        groups[kind].append(parse_type(text.removeprefix("tensor<").removesuffix(">")))
    names = {"input": "arg", "output": "result"}
    arguments, results = (
        tuple(map(Argument, default_names(names[kind], len(found)), found))
        for kind, found in groups.items()
    )
    return Signature(arguments, results)
