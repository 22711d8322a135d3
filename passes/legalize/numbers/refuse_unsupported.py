"""`refuse-unsupported`: operations that a GPU cannot compute are errors with line and reason."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from iree.compiler import ir

from axir.dialect.core.context import describe_location
from axir.dialect.core.errors import UnsupportedByDeviceError
from axir.passes.framework.base import Pass

# Functions that SPIR-V's extended instructions (GLSL.std.450) have only for 16 and 32 bits.
_NARROW_FUNCTIONS = frozenset(
    f"{dialect}.{name}"
    for dialect, names in (
        (
            "stablehlo",
            "atan2 cbrt cosine exponential exponential_minus_one log log_plus_one logistic power "
            "remainder sine tan tanh",
        ),
        ("chlo", "acos acosh asin asinh atan atanh cosh digamma erf erf_inv erfc lgamma sinh tan"),
        ("math", "acos asin atan atan2 cbrt cos cosh erf exp exp2 expm1 log log10 log1p log2 powf "
                 "sin sinh tan tanh"),
        ("arith", "remf"),
    )
    for name in names.split()
)  # fmt: skip
_WAY_OUT = "Compute with float32, or run it on devices('cpu')."


@dataclasses.dataclass(frozen=True)
class RefuseUnsupported(Pass):
    """Refuses programs that a GPU cannot run, before IREE fails with an error in its terms.

    The fact: IREE compiles for types that a device does not have ("type out of range", or a device
    that is lost), and SPIR-V has most functions for numbers of up to 32 bits only.

    1. Refuse an operation with numbers of a type in `missing`.
    2. For Vulkan and Metal, refuse the functions of f64 that SPIR-V does not have.

    Raises:
        UnsupportedByDeviceError: for the first such operation, with its line.
    """

    name: ClassVar[str] = "refuse-unsupported"
    platform: str = "vulkan"
    missing: str = ""

    def run(self, module: ir.Module) -> None:
        """Looks at all operations."""
        failures: list[UnsupportedByDeviceError] = []

        def visit(operation: ir.Operation) -> ir.WalkResult:
            reason = self._reason(operation)
            if reason is None:
                return ir.WalkResult.ADVANCE
            # An error that is raised inside a walk becomes another error.
            failures.append(UnsupportedByDeviceError(reason, _WAY_OUT, _place(operation)))
            return ir.WalkResult.INTERRUPT

        module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
        if failures:
            raise failures[0]

    def _reason(self, operation: ir.Operation) -> str | None:
        """Returns why an operation cannot be compiled, or None."""
        kinds = _number_types(operation)
        for kind in sorted(kinds & frozenset(self.missing.split())):
            return (
                f"The program has numbers of type {kind}, with which this {self.platform} device "
                "does not compute."
            )
        has_few_functions = self.platform in ("vulkan", "metal")
        if has_few_functions and "f64" in kinds and operation.name in _NARROW_FUNCTIONS:
            name = operation.name.partition(".")[2]
            return (
                f"The program computes {name} of 64-bit floats, which programs for "
                f"{self.platform} cannot: SPIR-V has it for up to 32 bits."
            )
        return None


def _place(operation: ir.Operation) -> str | None:
    """Returns the user's line; operations in the body of a loop over elements have the loop's."""
    parent = operation.parent
    if parent is not None and parent.name == "linalg.generic":
        operation = parent.operation
    return describe_location(operation.location)


def _number_types(operation: ir.Operation) -> frozenset[str]:
    """Returns the number types of an operation's operands and results; parts of complex ones."""
    if operation.name == "func.func":
        kind = operation.attributes["function_type"].value
        types = [*kind.inputs, *kind.results]
    else:
        types = [value.type for value in (*operation.operands, *operation.results)]
    return frozenset(map(_number_type, types))


def _number_type(kind: ir.Type) -> str:
    element = kind.element_type if isinstance(kind, ir.ShapedType) else kind
    if isinstance(element, ir.ComplexType):
        element = element.element_type
    return str(element)
