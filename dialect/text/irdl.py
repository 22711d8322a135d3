"""The dialect in IRDL: `jaxpr.irdl.mlir`, which `iree-opt --irdl-file` uses to verify modules.

The text is derived from the op table: operands and results from the signatures of the `infer`
rules, attributes from the declared parameters. It is a second verifier, independent of
`module_reader.py`, and checks less: counts and kinds, but not the agreement of shapes and dtypes.
In IRDL all values of a variadic group have one type, so it refuses calls, sorts and concatenations
of values of different types. `make irdl` writes the file beside this one.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from axir.dialect.ops import OPS
from axir.dialect.program.function import DeferredFunction, Function
from axir.dialect.program.parameters import AnyKind, Ints, alternatives, is_named_tuple
from axir.dialect.program.primitive import Primitive

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

_KIND_OF_TYPE: dict[AnyKind, str] = {
    bool: "integer",
    int: "integer",
    str: "string",
    type(None): "unit",
    np.dtype: "type",
    Function: "symbol_ref",
    DeferredFunction: "symbol_ref",
}
_ANY = "any"


def irdl_text() -> str:
    """Returns the definition of the dialect as IRDL text.

    >>> "irdl.operation @sin {" in irdl_text()
    True
    """
    operations = "\n".join(_operation(primitive) for _, primitive in sorted(OPS.items()))
    return f"{_HEADER}irdl.dialect @jaxpr {{\n{_KEY_TYPE}{operations}}}\n"


def _operation(primitive: Primitive) -> str:
    assert primitive.infer is not None
    signature = inspect.signature(primitive.infer, eval_str=True)
    operands, results = list(_operands(signature)), _results(signature)
    # Values that share a constraint must have the same type.
    lines = [f'%{name} = irdl.base "!builtin.tensor"' for name, _ in (*operands, *results)]
    for op, values in (("operands", operands), ("results", results)):
        if values:
            listing = ", ".join(f"{name}: {count}%{name}" for name, count in values)
            lines.append(f"irdl.{op}({listing})")
    entries = []
    for number, (name, kind) in enumerate(sorted((primitive.parameters or {}).items())):
        lines += _constraint(f"%a{number}", _attribute_kinds(kind))
        entries.append(f'"{name}" = %a{number}')
    if entries:
        lines.append(f"irdl.attributes {{ {', '.join(entries)} }}")
    body = "".join(f"    {line}\n" for line in lines)
    return f"  irdl.operation @{primitive.name} {{\n{body}  }}\n"


def _constraint(name: str, kinds: set[str]) -> Iterator[str]:
    """Yields the lines that define the constraint `name`: an attribute of one of the kinds."""
    if _ANY in kinds:
        yield f"{name} = irdl.any"
    elif len(kinds) == 1:
        yield f'{name} = irdl.base "#builtin.{next(iter(kinds))}"'
    else:
        parts = []
        for kind in sorted(kinds):
            parts.append(f"{name}_{kind}")
            yield f'{parts[-1]} = irdl.base "#builtin.{kind}"'
        yield f"{name} = irdl.any_of({', '.join(parts)})"


def _operands(signature: inspect.Signature) -> Iterator[tuple[str, str]]:
    """Yields names of operands, each with `variadic ` or nothing before its constraint."""
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            yield parameter.name, "variadic "
        elif parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            yield parameter.name, ""


def _results(signature: inspect.Signature) -> list[tuple[str, str]]:
    """Returns names of results, each with `variadic ` or nothing before its constraint."""
    returned = signature.return_annotation
    if typing.get_origin(returned) is list:
        return [("results", "variadic ")]
    if typing.get_origin(returned) is tuple:
        return [(f"result{index}", "") for index in range(len(typing.get_args(returned)))]
    return [("result", "")]


def _attribute_kinds(kind: AnyKind) -> set[str]:
    """Returns MLIR's names of the attributes that encode values of a type."""
    return {name for alternative in alternatives(kind) for name in _attributes_of(alternative)}


def _attributes_of(kind: AnyKind) -> tuple[str, ...]:
    if is_named_tuple(kind):
        return ("dictionary",)
    if typing.get_origin(kind) is tuple:
        # An empty tuple of anything is written as an empty array of integers.
        return ("dense_array",) if kind == Ints else ("array", "dense_array")
    if kind is float:
        return "float", "integer"
    return (_KIND_OF_TYPE.get(kind, _ANY),)


def main() -> None:
    """Writes the file."""
    FILE.write_text(irdl_text())


if __name__ == "__main__":
    main()
