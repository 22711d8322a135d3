"""The pairs of operations that IREE computes wrongly in one dispatch, a row for each pair.

Here: the facts, each with the smallest module that shows it.
Elsewhere: how a pair is found (`dispatch_searches.py`, `slice_searches.py`), and the pass that
separates the pairs (`separate_dispatches.py`). `docs/passes.md` lists the rows.
"""

from __future__ import annotations

import dataclasses

from axir.passes.legalize.stages import SPIRV

from . import dispatch_searches as searches
from . import slice_searches


@dataclasses.dataclass(frozen=True)
class Row:
    """A pair of operations that IREE must not compute in one dispatch.

    Attributes:
        name: The name of the row, by which the pass can run it without the others.
        at: StableHLO's operations, or others with their dialect; without any of them in a module,
            nothing is searched.
        find: Finds the values that are read from memory.
        fact: IREE's error.
        smallest: The smallest module that shows the error.
        on: The platforms with the error; empty for all.
    """

    name: str
    at: str
    find: searches.Search
    fact: str
    smallest: str
    on: tuple[str, ...] = ()

    @property
    def operations(self) -> frozenset[str]:
        """Full names of the operations in `at`."""
        return frozenset(x if "." in x else f"stablehlo.{x}" for x in self.at.split())

    def is_on(self, platform: str) -> bool:
        """Tells whether a platform has the error."""
        return not self.on or platform in self.on


ROWS = (
    Row(
        "slice-before-scatter",
        at="scatter",
        find=slice_searches.slices_before_scatters,
        fact="IREE fuses an operand that is a slice into the scatter, and keeps it on the stack"
        ' there. More than 32 KB do not compile: "exceeded stack allocation limit". A slice with'
        " other readers is copied first.",
        smallest="""
        func.func @f(%x: tensor<10000x5xf32>, %i: tensor<4x1xi32>, %u: tensor<4x3xf32>)
            -> tensor<10000x3xf32> {
          %0 = stablehlo.slice %x [0:10000, 0:3] : (tensor<10000x5xf32>) -> tensor<10000x3xf32>
          %1 = "stablehlo.scatter"(%0, %i, %u) <{
            scatter_dimension_numbers = #stablehlo.scatter<
              update_window_dims = [1], inserted_window_dims = [0],
              scatter_dims_to_operand_dims = [0], index_vector_dim = 1>
          }> ({
          ^bb0(%old: tensor<f32>, %new: tensor<f32>):
            stablehlo.return %new : tensor<f32>
          }) : (tensor<10000x3xf32>, tensor<4x1xi32>, tensor<4x3xf32>) -> tensor<10000x3xf32>
          return %1 : tensor<10000x3xf32>
        }""",
    ),
    Row(
        "positions-beside-reduction",
        at="iota",
        find=searches.positions_beside_reductions,
        on=SPIRV,
        fact="A loop may read its own index and share a dispatch with a reduction that the threads"
        " of a subgroup compute together. IREE then keeps the indices in workgroup memory as type"
        " `index`, which SPIR-V does not have (\"failed to legalize operation 'memref.alloc'\")."
        " Every mask beside a sum is such a loop; `lu` of 37 x 36 failed in this way. Only the"
        " positions along one axis are kept in memory, and broadcast.",
        smallest="""
        func.func @f(%x: tensor<8x64xi32>) -> tensor<8xi32> {
          %zero = stablehlo.constant dense<0> : tensor<i32>
          %0 = stablehlo.iota dim = 1 : tensor<8x64xi32>
          %1 = stablehlo.multiply %0, %x : tensor<8x64xi32>
          %2 = stablehlo.reduce(%1 init: %zero) applies stablehlo.add across dimensions = [1]
            : (tensor<8x64xi32>, tensor<i32>) -> tensor<8xi32>
          return %2 : tensor<8xi32>
        }""",
    ),
    Row(
        "reduction-before-broadcast",
        at="broadcast_in_dim",
        find=searches.reductions_before_broadcasts,
        on=SPIRV,
        fact="IREE tiles all loops of a dispatch like the loops of its reduction, with the axes of"
        " the result first. Operations in the same dispatch have their loops in another order if"
        " the result is broadcast along an axis that precedes its own axes: `x - x.sum(0)` was"
        " wrong, and so was `x - v @ x`.",
        smallest="""
        func.func @f(%x: tensor<16x16xf32>) -> tensor<16x16xf32> {
          %zero = stablehlo.constant dense<0.0> : tensor<f32>
          %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0]
            : (tensor<16x16xf32>, tensor<f32>) -> tensor<16xf32>
          %1 = stablehlo.broadcast_in_dim %0, dims = [1] : (tensor<16xf32>) -> tensor<16x16xf32>
          %2 = stablehlo.subtract %x, %1 : tensor<16x16xf32>
          return %2 : tensor<16x16xf32>
        }""",
    ),
    Row(
        "several-results",
        at="reduce linalg.generic",
        find=searches.several_results,
        fact="IREE fuses a transpose with the loops that produce its operand. If the loops have"
        " several results, it keeps only the buffer of the transposed one, and the compiler"
        " crashes on the others (SIGSEGV in `FuseTransposeWithProducerLinalgOp`), for example on"
        " `argmax(x, -1).T`. Before that it moves transposes through elementwise operations and"
        " views, and adds transposes for products. So the readers of a result do not tell whether"
        " it will be transposed.",
        smallest="""
        func.func @f(%x: tensor<4x3x5xi32>, %y: tensor<4x3x5xi32>) -> tensor<3x4xi32> {
          %zero = stablehlo.constant dense<0> : tensor<i32>
          %0:2 = stablehlo.reduce(%x init: %zero), (%y init: %zero) across dimensions = [2]
            : (tensor<4x3x5xi32>, tensor<4x3x5xi32>, tensor<i32>, tensor<i32>)
            -> (tensor<4x3xi32>, tensor<4x3xi32>)
            reducer(%a: tensor<i32>, %b: tensor<i32>) (%c: tensor<i32>, %d: tensor<i32>) {
              %3 = stablehlo.add %a, %b : tensor<i32>
              %4 = stablehlo.maximum %c, %d : tensor<i32>
              stablehlo.return %3, %4 : tensor<i32>, tensor<i32>
            }
          %1 = stablehlo.transpose %0#1, dims = [1, 0] : (tensor<4x3xi32>) -> tensor<3x4xi32>
          return %1 : tensor<3x4xi32>
        }""",
    ),
    Row(
        "widening-before-reduction",
        at="convert select linalg.generic",
        find=searches.widening_before_reductions,
        on=SPIRV,
        fact="If an elementwise operation has a result with wider elements than its operands, IREE"
        " repeats it in each dispatch that uses the result. If the dispatch has a reduction, a"
        " product or the like, the wide numbers get workgroup memory, and this memory is written"
        " in another layout than it is read. Let `y` be `x.astype(float32)` of f16: `y - y.sum(0)`"
        ' was wrong, and `y - y.sum()` did not compile ("uses 36736 bytes of shared memory").',
        smallest="""
        func.func @f(%x: tensor<70x131xf16>) -> (tensor<70x131xf32>, tensor<131xf32>) {
          %zero = stablehlo.constant dense<0.0> : tensor<f32>
          %0 = stablehlo.convert %x : (tensor<70x131xf16>) -> tensor<70x131xf32>
          %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [0]
            : (tensor<70x131xf32>, tensor<f32>) -> tensor<131xf32>
          return %0, %1 : tensor<70x131xf32>, tensor<131xf32>
        }""",
    ),
    Row(
        "widening-before-move",
        at="convert",
        find=searches.widening_before_moves,
        on=("cuda",),
        fact="IREE repeats a conversion to wider floats in each dispatch that reads the result. Its"
        " fusion fails if that dispatch is a scatter, or a concatenation of slices"
        ' ("failed to apply fusion + hoisting patterns"). Examples are `cumlogsumexp` of bf16 and'
        " the gradient of `max_pool` of f16.",
        smallest="""
        func.func @f(%x: tensor<7x4xbf16>) -> tensor<7x2xf32> {
          %0 = stablehlo.convert %x : (tensor<7x4xbf16>) -> tensor<7x4xf32>
          %1 = stablehlo.slice %0 [0:7, 0:4:2] : (tensor<7x4xf32>) -> tensor<7x2xf32>
          return %1 : tensor<7x2xf32>
        }""",
    ),
    Row(
        "dilation-beside-pad",
        at="pad",
        find=searches.dilations_beside_pads,
        fact="A pad with interior padding becomes a `tensor.insert_slice` with strides. IREE folds"
        " a `tensor.pad` of its result (windows have one, too) into the insertion and drops the"
        " strides: the elements were then adjacent. It also folds a `tensor.pad` with the same"
        " number before the insertion, and takes an element's position after the first pad for its"
        " position before the strides.",
        smallest="""
        func.func @f(%x: tensor<3xf32>) -> tensor<6xf32> {
          %zero = stablehlo.constant dense<0.0> : tensor<f32>
          %0 = stablehlo.pad %x, %zero, low = [0], high = [0], interior = [1]
            : (tensor<3xf32>, tensor<f32>) -> tensor<5xf32>
          %1 = stablehlo.pad %0, %zero, low = [1], high = [0], interior = [0]
            : (tensor<5xf32>, tensor<f32>) -> tensor<6xf32>
          return %1 : tensor<6xf32>
        }""",
    ),
    Row(
        "slice-before-update",
        at="dynamic_update_slice",
        find=slice_searches.slices_before_updates,
        fact="IREE fuses a slice with the kernel that writes it to a computed position"
        " (`slow_memcpy`), and the kernel works in place. If a slice of an array is written back to"
        " another place of the same array, and moves by less than its extent, the kernel reads"
        " elements that it has just written.",
        smallest="""
        func.func @f(%x: tensor<7x5xf32>, %i: tensor<i32>, %j: tensor<i32>) -> tensor<7x5xf32> {
          %zero = stablehlo.constant dense<0> : tensor<i32>
          %0 = stablehlo.dynamic_slice %x, %i, %zero, sizes = [6, 5]
            : (tensor<7x5xf32>, tensor<i32>, tensor<i32>) -> tensor<6x5xf32>
          %1 = stablehlo.dynamic_update_slice %x, %0, %j, %zero
            : (tensor<7x5xf32>, tensor<6x5xf32>, tensor<i32>, tensor<i32>) -> tensor<7x5xf32>
          return %1 : tensor<7x5xf32>
        }""",
    ),
    Row(
        "widening-before-slice",
        at="slice dynamic_slice",
        find=slice_searches.widening_before_slices,
        fact="If an elementwise operation has a result with wider elements than its operands, IREE"
        " repeats it in each dispatch that uses the result, even behind a slice. Such a dispatch"
        " has loops over the whole array and over the slice, and is tiled by one of them. Let `y`"
        " be `x.astype(float64)` of five int32: `2 * y[::2]` put into a longer array was silently"
        " wrong, and the compiler did not terminate on `y.reshape(10)[5] * z`.",
        smallest="""
        func.func @f(%x: tensor<5xi32>, %z: tensor<3xf64>) -> tensor<10xf64> {
          %seven = stablehlo.constant dense<7.0> : tensor<f64>
          %0 = stablehlo.convert %x : (tensor<5xi32>) -> tensor<5xf64>
          %1 = stablehlo.slice %0 [0:5:2] : (tensor<5xf64>) -> tensor<3xf64>
          %2 = stablehlo.multiply %1, %z : tensor<3xf64>
          %3 = stablehlo.pad %2, %seven, low = [2], high = [5], interior = [0]
            : (tensor<3xf64>, tensor<f64>) -> tensor<10xf64>
          return %3 : tensor<10xf64>
        }""",
    ),
    Row(
        "slice-before-gather",
        at="gather reverse",
        find=slice_searches.slices_before_gathers,
        fact="IREE reads a slice in place. If the slice is strided along its innermost dimension, a"
        ' gather from it does not compile: "LLVM Translation failed for operation:'
        ' builtin.unrealized_conversion_cast". A reversal is compiled as a gather. An elementwise'
        " operation that widens numbers is fused with a gather that reads them as its operand or"
        " its indices. Gathers from contiguous rows need no barrier.",
        smallest="""
        func.func @f(%x: tensor<4x6xf32>) -> tensor<4x3xf32> {
          %0 = stablehlo.slice %x [0:4, 0:6:2] : (tensor<4x6xf32>) -> tensor<4x3xf32>
          %1 = stablehlo.reverse %0, dims = [0] : tensor<4x3xf32>
          return %1 : tensor<4x3xf32>
        }""",
    ),
    Row(
        "slice-before-sort",
        at="sort func.call",
        find=slice_searches.slices_before_sorts,
        fact='IREE reads a slice in place, and a sort works in place: it does not compile ("write'
        ' affecting operations on global resources are restricted"). Called functions may hold'
        " sorts. A slice with other readers is copied first.",
        smallest="""
        func.func @f(%x: tensor<4x6xf32>) -> tensor<3x6xf32> {
          %0 = stablehlo.slice %x [1:4, 0:6] : (tensor<4x6xf32>) -> tensor<3x6xf32>
          %1 = "stablehlo.sort"(%0) <{dimension = 0 : i64, is_stable = false}> ({
          ^bb0(%a: tensor<f32>, %b: tensor<f32>):
            %2 = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
            stablehlo.return %2 : tensor<i1>
          }) : (tensor<3x6xf32>) -> tensor<3x6xf32>
          return %1 : tensor<3x6xf32>
        }""",
    ),
)
"""The rows in order: a search sees the barriers of the rows before it."""
