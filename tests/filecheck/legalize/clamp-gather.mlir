// RUN: axir opt %s -p clamp-gather > %t
// RUN: filecheck %s --input-file %t

// Start indices are clamped to what fits into the operand.

func.func @main(%x: tensor<10x5xf32>, %i: tensor<3x1xi32>) -> tensor<3x1x5xf32> {
  %0 = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1, 2], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 5>}> : (tensor<10x5xf32>, tensor<3x1xi32>) -> tensor<3x1x5xf32>
  return %0 : tensor<3x1x5xf32>
}

// CHECK: func.func @main(%arg0: tensor<10x5xf32>, %arg1: tensor<3x1xi32>) -> tensor<3x1x5xf32> {
// CHECK-NEXT: %c = stablehlo.constant dense<9> : tensor<1xi32>
// CHECK-NEXT: %0 = stablehlo.broadcast_in_dim %c, dims = [1] : (tensor<1xi32>) -> tensor<3x1xi32>
// CHECK-NEXT: %c_0 = stablehlo.constant dense<0> : tensor<3x1xi32>
// CHECK-NEXT: %1 = stablehlo.clamp %c_0, %arg1, %0 : tensor<3x1xi32>
// CHECK-NEXT: %2 = "stablehlo.gather"(%arg0, %1) <{dimension_numbers = #stablehlo.gather<offset_dims = [1, 2], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 5>}> : (tensor<10x5xf32>, tensor<3x1xi32>) -> tensor<3x1x5xf32>
// CHECK-NEXT: return %2 : tensor<3x1x5xf32>
// CHECK-NEXT: }
