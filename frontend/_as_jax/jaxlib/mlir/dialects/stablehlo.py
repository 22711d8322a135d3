"""The module `jaxlib.mlir.dialects.stablehlo`, and `hlo` of `jax._src.lib.mlir.dialects`.

`hlo.AddOp(x, y).result` and `hlo.add(x, y)` write an operation where a lowering rule writes. The
functions of `axir.interpreters.mlir.hlo` infer the types of results.
"""

from __future__ import annotations

from axir.dialect.builders.stablehlo.dialect_attributes import ATTRIBUTES
from axir.dialect.builders.stablehlo.operation_classes import class_names, operation_named
from axir.dialect.core.annotations import UserObject


def __getattr__(name: str) -> UserObject:
    found = ATTRIBUTES.get(name)
    return operation_named("stablehlo", name, __name__) if found is None else found


def __dir__() -> list[str]:
    return sorted([*ATTRIBUTES, *class_names("stablehlo")])
