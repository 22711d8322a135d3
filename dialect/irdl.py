"""The dialect in IRDL: `jaxpr.irdl.mlir`, with which `iree-opt --irdl-file` verifies modules.

The text is derived from the op table: operand names and counts from the `infer` rules, attributes
from their annotations and from the samples. It is a second verifier, independent of `reading.py`,
and says less: counts and kinds, but not which shapes and dtypes fit together. One thing it cannot
say at all: to IRDL the values of a variadic group are of one type, so it refuses calls, sorts and
concatenations of values of different types. `make irdl` writes the file that stands beside this
one.
"""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .attributes import encode
from .function import Function
from .primitive import Primitive, Sample
from .types import ShapedArray

FILE = Path(__file__).with_name("jaxpr.irdl.mlir")

_HEADER = """\
// The jaxpr dialect, derived from the op table by `make irdl`: do not edit.
// iree-opt --irdl-file=jaxpr.irdl.mlir checks a module against it.
"""

_KEY_TYPE = """\
  irdl.type @key {
    %tag = irdl.base "#builtin.string"
    irdl.parameters(tag: %tag)
  }
"""

# MLIR's names of the attributes that `attributes.encode` makes.
_KIND_OF_ATTRIBUTE = {
    "ArrayAttr": "array",
    "BoolAttr": "integer",
    "DenseI64ArrayAttr": "dense_array",
    "DictAttr": "dictionary",
    "FlatSymbolRefAttr": "symbol_ref",
    "FloatAttr": "float",
    "IntegerAttr": "integer",
    "StringAttr": "string",
    "TypeAttr": "type",
    "UnitAttr": "unit",
}
_KIND_OF_TYPE: dict[Any, str] = {
    bool: "integer",
    int: "integer",
    float: "float",
    str: "string",
    type(None): "unit",
    np.dtype: "type",
    Function: "symbol_ref",
}
_ANY = "any"
_OPERAND_NAMES = {1: ["x"], 2: ["lhs", "rhs"]}


def irdl_text() -> str:
    """Returns the definition of the dialect as IRDL text.

    >>> "irdl.operation @sin {" in irdl_text()
    True
    """
    from .ops import OPS

    with np.errstate(all="ignore"):  # samples hold what overflows when it is cast
        operations = "\n".join(_operation(primitive) for _, primitive in sorted(OPS.items()))
    return f"{_HEADER}irdl.dialect @jaxpr {{\n{_KEY_TYPE}{operations}}}\n"


def _operation(primitive: Primitive) -> str:
    samples = primitive.samples() if primitive.samples else []
    operands, results = list(_operands(primitive, samples)), _results(primitive, samples)
    # Values that share a constraint would have to be of the same type.
    lines = [f'%{name} = irdl.base "!builtin.tensor"' for name, _ in (*operands, *results)]
    for op, values in (("operands", operands), ("results", results)):
        if values:
            listing = ", ".join(f"{name}: {count}%{name}" for name, count in values)
            lines.append(f"irdl.{op}({listing})")
    attributes = _attribute_kinds(primitive, samples)
    entries = []
    for number, (name, kinds) in enumerate(sorted(attributes.items())):
        lines += _constraint(f"%a{number}", kinds)
        entries.append(f'"{name}" = %a{number}')
    if entries:
        lines.append(f"irdl.attributes {{ {', '.join(entries)} }}")
    body = "".join(f"    {line}\n" for line in lines)
    return f"  irdl.operation @{primitive.name} {{\n{body}  }}\n"


def _constraint(name: str, kinds: set[str]) -> Iterator[str]:
    """Yields the lines that define the constraint `name`: an attribute of one of the kinds."""
    if _ANY in kinds or not kinds:
        yield f"{name} = irdl.any"
    elif len(kinds) == 1:
        yield f'{name} = irdl.base "#builtin.{next(iter(kinds))}"'
    else:
        parts = []
        for kind in sorted(kinds):
            parts.append(f"{name}_{kind}")
            yield f'{parts[-1]} = irdl.base "#builtin.{kind}"'
        yield f"{name} = irdl.any_of({', '.join(parts)})"


def _parameters(primitive: Primitive) -> list[inspect.Parameter]:
    rule = primitive.infer
    return [] if rule is None else list(inspect.signature(rule).parameters.values())


def _operands(primitive: Primitive, samples: list[Sample]) -> Iterator[tuple[str, str]]:
    """Yields names of operands, each with `variadic ` or nothing before its constraint."""
    parameters = _parameters(primitive)
    named = [
        p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    yield from ((name, "") for name in named)
    rest = [p.name for p in parameters if p.kind is p.VAR_POSITIONAL]
    if not rest:
        return
    counts = {len(sample.args) - len(named) for sample in samples}
    takes_function = _has_function(samples)
    if len(counts) != 1 or takes_function:
        yield rest[0], "variadic "
        return
    (count,) = counts
    names = _OPERAND_NAMES.get(count) or [f"{rest[0]}{index}" for index in range(count)]
    yield from ((name, "") for name in names)


def _has_function(samples: list[Sample]) -> bool:
    """Tells whether the op calls functions, whose signatures its operands and results follow."""
    values = [value for sample in samples for value in sample.params.values()]
    nested = [item for value in values if isinstance(value, tuple) for item in value]
    return any(isinstance(value, Function) for value in (*values, *nested))


def _results(primitive: Primitive, samples: list[Sample]) -> list[tuple[str, str]]:
    """Returns names of results, each with `variadic ` or nothing before its constraint."""
    if not primitive.multiple_results:
        return [("result", "")]
    counts = {len(_result_types(primitive, sample)) for sample in samples}
    if len(counts) != 1 or _has_function(samples):
        return [("results", "variadic ")]
    return [(f"result{index}", "") for index in range(counts.pop())]


def _result_types(primitive: Primitive, sample: Sample) -> list[Any]:
    types_in = [ShapedArray(np.shape(x), np.asarray(x).dtype) for x in sample.args]
    assert primitive.infer is not None
    return primitive.infer(*types_in, **sample.params)


def _attribute_kinds(primitive: Primitive, samples: list[Sample]) -> dict[str, set[str]]:
    """Returns the kinds of each attribute that is always there."""
    kinds: dict[str, set[str]] = {}
    hints = _hints(primitive)
    for parameter in _parameters(primitive):
        if parameter.kind is parameter.KEYWORD_ONLY:
            kinds[parameter.name] = _kinds_of_hint(hints.get(parameter.name, Any))
    names = [set(sample.params) for sample in samples]
    required = set.intersection(*names) if names else set(kinds)
    for sample in samples:
        for name in required & set(sample.params):
            kinds.setdefault(name, set()).update(_kinds_of_value(sample.params[name]))
    return {name: found for name, found in kinds.items() if name in required}


def _hints(primitive: Primitive) -> dict[str, Any]:
    try:
        return typing.get_type_hints(primitive.infer)
    except (NameError, TypeError):  # an annotation that only type checkers can resolve
        return {}


def _kinds_of_hint(hint: Any) -> set[str]:
    arguments = typing.get_args(hint)
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return set().union(*map(_kinds_of_hint, arguments))
    if hasattr(hint, "_fields"):
        return {"dictionary"}
    if typing.get_origin(hint) is tuple:
        # An empty tuple of anything is written as an empty array of integers.
        return {"dense_array"} if arguments == (int, ...) else {"array", "dense_array"}
    return {_KIND_OF_TYPE.get(hint, _ANY)}


def _kinds_of_value(value: Any) -> set[str]:
    if isinstance(value, np.ndarray):
        return {_ANY}  # dense elements have several forms, by how many elements they repeat
    kind = _KIND_OF_ATTRIBUTE[type(encode(value)).__name__]
    # A number that may have a fraction may also have none.
    return {"float", "integer"} if kind == "float" else {kind}


def main() -> None:
    """Writes the file."""
    FILE.write_text(irdl_text())


if __name__ == "__main__":
    main()
