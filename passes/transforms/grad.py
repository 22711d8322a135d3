"""The `grad` pass: the gradient of a saved function as one function.

It is `linearize` and `transpose` in one pass, so that no residuals pass between two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from iree.compiler import ir

from axir.dialect.core import dtypes
from axir.dialect.core.array import as_array
from axir.dialect.core.symbolic_zeros import UndefinedPrimal, Zero
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.elementwise.family import instantiate
from axir.dialect.program.function import Function
from axir.dialect.program.rules import Cotangent, Value
from axir.dialect.program.tracer import Trace
from axir.passes.framework.base import Pass
from axir.passes.framework.errors import OptionValueError
from axir.passes.framework.module_functions import replace_main

from .jvp import active_arguments
from .linearize import linearize
from .transpose import transpose


@dataclass(frozen=True)
class Grad(Pass):
    """Replaces `main` by the gradient of one of its results.

    Algorithm:
        1. Linearize the function in the arguments of `argnums`.
        2. Transpose the linear part, and apply it to the cotangent 1 of the result.
        3. Return a gradient for each of these arguments; after the results if `with_value` is set.

    Before:
        ```mlir
        func.func @main(%x: tensor<f32>) -> tensor<f32> {
          %0 = "jaxpr.sin"(%x) : (tensor<f32>) -> tensor<f32>
          return %0 : tensor<f32>
        }
        ```
    After:
        ```mlir
        func.func @main(%x: tensor<f32>) -> tensor<f32> {
          %0 = "jaxpr.sin"(%x) : (tensor<f32>) -> tensor<f32>
          %1 = "jaxpr.cos"(%x) : (tensor<f32>) -> tensor<f32>
          %2 = "jaxpr.constant"() {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
          %3 = "jaxpr.mul"(%2, %1) : (tensor<f32>, tensor<f32>) -> tensor<f32>
          return %3 : tensor<f32>
        }
        ```

    Preconditions:
        The module has a function `main` of the jaxpr dialect; the result is a real scalar.

    Attributes:
        argnums: Arguments to differentiate in; all float and complex ones by default.
        result: The result to differentiate, counted from 0.
        with_value: Whether to return the results, too.
    """

    name: ClassVar[str] = "grad"
    argnums: int | tuple[int, ...] | None = None
    result: int = 0
    with_value: bool = False

    def run(self, module: ir.Module) -> None:
        """Replaces `main` by its gradient."""

        def transform(main: Function) -> Function:
            active = active_arguments(main, self.argnums, self.name)
            self._check_result([v.type for v in main.outputs])
            return self._gradient(main, active)

        replace_main(module, transform)

    def _check_result(self, types: list[ShapedArray]) -> None:
        if not 0 <= self.result < len(types):
            raise OptionValueError(
                f"grad: the function has no result {self.result}.",
                f"It has {len(types)} results, counted from 0.",
            )
        found = types[self.result]
        if found.shape or not dtypes.is_float(found.dtype):
            raise OptionValueError(
                f"grad: result {self.result} is of type {found}.",
                "Only a real scalar has a gradient: choose one with the option result, take a loss "
                "(`axir grad --loss squared-error`), or use linearize and transpose, which take a "
                "cotangent.",
            )

    def _gradient(self, main: Function, active: tuple[bool, ...]) -> Function:
        with Trace(f"{main.name}_grad", "Grad") as trace:
            primals: list[Value] = [trace.add_input(v.type) for v in (*main.inputs, *main.captures)]
            made = linearize(main, primals, active)
            cotangents: list[Cotangent] = []
            for number, is_active in enumerate(made.active_outputs):
                if is_active:
                    kind = main.outputs[number].type
                    one = as_array(np.ones((), kind.dtype))
                    cotangents.append(one if number == self.result else Zero(kind))
            linear = [UndefinedPrimal(v.type) for v in made.linear.inputs]
            pulled = transpose(made.linear, [*linear, *made.linear.captured], cotangents)
            gradients = [instantiate(x) for x in pulled[: len(linear)] if x is not None]
            return trace.finish([*(made.outs if self.with_value else ()), *gradients])
