"""`write-transforms`: kernels of a length for the Fourier transforms that IREE compiles."""

from __future__ import annotations

from typing import ClassVar

from iree.compiler import ir

from axir.passes.framework.base import Pass
from axir.passes.legalize.regions import TRANSFORM
from axir.passes.legalize.rewriting import find_operations

from .kernels import Arrays
from .library import PREFIX
from .rows import transform_of


class WriteTransforms(Pass):
    """Replaces calls of the library of transforms by kernels for their lengths.

    The fact: IREE's programs run kernels on all threads, and the library runs on one.

    1. Find dispatches of the library's kernel; an attribute holds the transform.
    2. Dispatch a kernel for this transform, which reads the same table.
    3. Erase the declarations of the library's kernels.

    Before::

        %0:3 = flow.dispatch @axir_transform_f32_16::@axir_transform_f32_16(%plan, %table, %x)
            {axir.transform = "turned-rows 16 1.0 1 0 1 64 1024"} : …

    After::

        %0:3 = flow.dispatch @fft_…::@fft_…(%x, %table) : …
    """

    name: ClassVar[str] = "write-transforms"

    def run(self, module: ir.Module) -> None:
        """Writes the kernels, and erases the declarations."""
        for operation in find_operations(module.operation, ["flow.dispatch"]):
            if TRANSFORM in operation.attributes:
                with ir.InsertionPoint(operation), operation.location:
                    _write(operation)
        for operation in find_operations(module.operation, ["stream.executable"]):
            if ir.StringAttr(operation.attributes["sym_name"]).value.startswith(PREFIX):
                operation.erase()


def _write(operation: ir.Operation) -> None:
    transform = transform_of(ir.StringAttr(operation.attributes[TRANSFORM]).value)
    _, table, *values = operation.operands
    made = transform.run_alone(Arrays(tuple(values), transform.shape), table)
    # The last result is the library's working memory, which nobody reads.
    for result, value in zip(operation.results, made.values, strict=False):
        result.replace_all_uses_with(value)
    operation.erase()
