"""Sums of products of short integers: several products for each 32-bit lane in one operation.

Processors multiply neighbours and add the products to a wider lane (x86: VPDPBUSD, VPDPWSSD and
VPMADDWD, see Intel's Intrinsics Guide). Elsewhere: the matrix products that use them
(`passes/tune/products/integer_kernel.py`).
"""

from __future__ import annotations

from iree.compiler import ir

from axir.dialect.builders.scalars import Scalar, integer, operation

from .lanes import shuffle

WORD = 32
"""The bits of a lane of the sums."""


def regrouped(x: Scalar, width: int) -> Scalar:
    """Returns the bits of a vector of integers as integers of another width."""
    count = x.type.shape[0] * x.width // width
    return operation("vector.bitcast", (x,), ir.VectorType.get([count], integer(width)))


def add_byte_products(unsigned: Scalar, signed: Scalar, sums: Scalar) -> Scalar:
    """Adds the products of four unsigned with four signed bytes to each lane of 32 bits.

    Only processors with AVX-512 VNNI have the instruction.
    """
    name = f"llvm.x86.avx512.vpdpbusd.{sums.type.shape[0] * WORD}"
    attributes = {
        "intrin": ir.StringAttr.get(name),
        "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([3, 0]),
    }
    return operation("llvm.call_intrinsic", (sums, unsigned, signed), sums.type, attributes)


def add_pair_products(x: Scalar, y: Scalar, sums: Scalar) -> Scalar:
    """Adds the products of two neighbours of 16 bits, both signed, to each lane of 32 bits.

    LLVM finds an instruction for it if the processor has one.
    """
    wide = [operation("arith.extsi", (z,), z.like(integer(WORD))) for z in (x, y)]
    products = operation("arith.muli", wide)
    count = products.type.shape[0]
    even, odd = (shuffle(products, products, range(first, count, 2)) for first in (0, 1))
    return sums + (even + odd)
