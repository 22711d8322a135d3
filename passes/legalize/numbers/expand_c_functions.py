"""`expand-c-functions`: functions of doubles for programs without a C library."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from iree.compiler import ir
from iree.compiler.passmanager import PassManager

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.builders.scalars import Scalar, element_of
from axir.dialect.core.annotations import Returning
from axir.passes.framework.base import Pass
from axir.passes.legalize.doubles import (
    exponential,
    exponential_minus_one,
    hyperbolic_tangent,
    logarithm,
    logarithm_plus_one,
    logistic,
)
from axir.passes.legalize.elementwise_loops import elementwise
from axir.passes.legalize.rewriting import replace
from axir.passes.legalize.stages import operation_names

from . import functions_of_doubles as doubles

# By the names of the operations on arrays, and on numbers in the bodies of loops and kernels.
_FUNCTIONS: dict[str, Returning[Scalar]] = {
    "stablehlo.sine": doubles.sine,
    "stablehlo.cosine": doubles.cosine,
    "stablehlo.tan": doubles.tangent,
    "stablehlo.tanh": hyperbolic_tangent,
    "stablehlo.atan2": doubles.arc_tangent_2,
    "stablehlo.remainder": doubles.remainder,
    "chlo.tan": doubles.tangent,
    "chlo.atan": doubles.arc_tangent,
    "chlo.asin": doubles.arc_sine,
    "chlo.acos": doubles.arc_cosine,
    "math.sin": doubles.sine,
    "math.cos": doubles.cosine,
    "math.tan": doubles.tangent,
    "math.tanh": hyperbolic_tangent,
    "math.atan2": doubles.arc_tangent_2,
    "math.atan": doubles.arc_tangent,
    "math.asin": doubles.arc_sine,
    "math.acos": doubles.arc_cosine,
    "arith.remf": doubles.remainder,
}
# Functions that IREE writes out for CPUs. For GPUs it uses SPIR-V's, which exist only for f32.
_FURTHER: dict[str, Returning[Scalar]] = {
    "stablehlo.exponential": exponential,
    "stablehlo.log": logarithm,
    "stablehlo.exponential_minus_one": exponential_minus_one,
    "stablehlo.log_plus_one": logarithm_plus_one,
    "stablehlo.logistic": logistic,
    "math.exp": exponential,
    "math.log": logarithm,
    "math.expm1": exponential_minus_one,
    "math.log1p": logarithm_plus_one,
}
_OF_CHLO = frozenset(("chlo.lgamma", "chlo.digamma", "chlo.polygamma", "chlo.zeta"))
_FURTHER_OF_CHLO = frozenset(("chlo.erf", "chlo.erfc", "chlo.erf_inv"))
_LEGALIZE_CHLO = "builtin.module(func.func(chlo-legalize-to-stablehlo))"
_OF_NUMBERS = ("math.", "arith.")


@dataclasses.dataclass(frozen=True)
class ExpandCFunctions(Pass):
    """Writes out functions of f64: sine, cosine, tangent, their inverses, tanh, remainders.

    The fact: for these functions IREE calls the C library. A program that is loaded without a C
    library, such as a program for other CPUs (`--iree-llvmcpu-link-embedded=true`), fails:
    "undefined symbol: sin". IREE writes out exponentials, logarithms and functions made from them,
    except for Vulkan and Metal. There it uses SPIR-V's extended instructions, which have none of
    these functions for f64.

    0. Write out the CHLO operations that IREE would expand to these functions (lgamma, digamma).
    1. Operations on arrays become loops over their elements; operations on numbers, in such loops
       and in kernels, are replaced in place.
    2. |x| < 2^28: subtract the nearest multiple of pi/2 in three parts (Cody and Waite 1980).
       Otherwise take the fraction of x 2/pi in integers of 128 bits (Payne and Hanek 1983). Then
       polynomials for sine and cosine on [-pi/4, pi/4].
    3. Arc tangents by a polynomial on [0, tan(pi/8)], with the rounding error of the division; arc
       sine and arc cosine are arc tangents of points.
    4. Remainders in integers: exact, by powers of two modulo the divisor.

    Largest errors measured against mpmath, for 100,000 numbers of all sizes each, in units in the
    last place: sine and cosine 0.8, tangent 2.0, atan 1.5, atan2 1.8, asin 2.2, acos 2.1, tanh 2.8,
    remainder 0.

    Before::

        %0 = stablehlo.sine %x : tensor<9xf64>

    After::

        %0 = linalg.generic {…} ins(%x : tensor<9xf64>) … { ^bb0(%in: f64, %out: f64): … }
    """

    name: ClassVar[str] = "expand-c-functions"
    platform: str = "cpu"

    def run(self, module: ir.Module) -> None:
        """Replaces the operations of the module, each once."""
        functions, of_chlo = _FUNCTIONS, _OF_CHLO
        if self.platform != "cpu":
            functions, of_chlo = functions | _FURTHER, of_chlo | _FURTHER_OF_CHLO
        if not operation_names(module).isdisjoint(of_chlo):
            PassManager.parse(_LEGALIZE_CHLO, module.context).run(module.operation)
        found: list[ir.Operation] = []

        def collect(operation: ir.Operation) -> ir.WalkResult:
            if operation.name in functions and _is_double(operation):
                found.append(operation)
            return ir.WalkResult.ADVANCE

        module.operation.walk(collect)
        for operation in found:
            with ir.InsertionPoint(operation), operation.location:
                replace(operation, _expanded(operation, functions[operation.name]))


def _is_double(operation: ir.Operation) -> bool:
    kind = operation.results[0].type
    element = kind.element_type if isinstance(kind, ir.RankedTensorType) else element_of(kind)
    return isinstance(element, ir.F64Type)


def _expanded(operation: ir.Operation, function: Returning[Scalar]) -> list[ir.Value]:
    if operation.name.startswith(_OF_NUMBERS):
        return [function(*map(Scalar, operation.operands)).value]
    element = hlo.element_type_of(operation.results[0])
    name = f"{operation.name} without a C library"
    return elementwise(name, operation.operands, function, [element])
