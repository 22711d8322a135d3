"""The module `jaxlib.mlir.dialects.chlo`: operations composed of StableHLO's."""

from __future__ import annotations

from axir.dialect.builders.stablehlo.operation_classes import class_names, operation_named
from axir.dialect.core.annotations import UserObject


def __getattr__(name: str) -> UserObject:
    return operation_named("chlo", name, __name__)


def __dir__() -> list[str]:
    return sorted(class_names("chlo"))
