// RUN: axir opt %s -p fit-scatter-operands > %t
// RUN: filecheck %s --input-file %t

// Windows leave out the end of a dimension that is not indexed.

func.func @rows(%x: tensor<4x5xf32>, %i: tensor<7x1xi32>, %u: tensor<7x3xf32>) -> tensor<4x5xf32> {
  %0 = "stablehlo.scatter"(%x, %i, %u) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %b : tensor<f32>
  }) : (tensor<4x5xf32>, tensor<7x1xi32>, tensor<7x3xf32>) -> tensor<4x5xf32>
  return %0 : tensor<4x5xf32>
}

// Nothing is indexed: all windows are written to the front.

func.func @nothing(%x: tensor<4x5xf32>, %i: tensor<7x0xi32>, %u: tensor<7x5xf32>) -> tensor<4x5xf32> {
  %0 = "stablehlo.scatter"(%x, %i, %u) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %b : tensor<f32>
  }) : (tensor<4x5xf32>, tensor<7x0xi32>, tensor<7x5xf32>) -> tensor<4x5xf32>
  return %0 : tensor<4x5xf32>
}

// CHECK-LABEL: func.func @rows
// CHECK-NEXT: %0 = stablehlo.slice %arg0 [0:4, 0:3] : (tensor<4x5xf32>) -> tensor<4x3xf32>
// CHECK-NEXT: %1 = "stablehlo.scatter"(%0, %arg1, %arg2)
// CHECK-SAME: update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>
// CHECK: %c = stablehlo.constant dense<0> : tensor<i32>
// CHECK-NEXT: %2 = stablehlo.dynamic_update_slice %arg0, %1, %c, %c
// CHECK-NEXT: return %2

// CHECK-LABEL: func.func @nothing
// CHECK-NEXT: %0 = stablehlo.slice %arg0 [0:1, 0:5] : (tensor<4x5xf32>) -> tensor<1x5xf32>
// CHECK-NEXT: %c = stablehlo.constant dense<0> : tensor<7x1xi32>
// CHECK-NEXT: %1 = "stablehlo.scatter"(%0, %c, %arg2)
// CHECK-SAME: update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>
// CHECK: %2 = stablehlo.dynamic_update_slice %arg0, %1, %c_0, %c_0
// CHECK-NEXT: return %2
