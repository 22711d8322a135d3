// RUN: axir opt %s -p transpose > %t
// RUN: filecheck %s --input-file %t
// RUN: iree-opt --irdl-file=%S/../../dialect/text/jaxpr.irdl.mlir %t > /dev/null
// RUN: iree-opt --irdl-file=%S/../../dialect/text/jaxpr.irdl.mlir %s > /dev/null

// Cotangents flow backwards and are added where a value was used twice.

func.func @main(%x: tensor<2x3xf32> {jaxpr.linear}, %r: tensor<3x4xf32>) -> (tensor<2x4xf32>, tensor<f32>) {
  %0 = "jaxpr.sin"(%r) : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %1 = "jaxpr.dot_general"(%x, %0) {dimension_numbers = [[array<i64: 1>, array<i64: 0>], [array<i64>, array<i64>]], precision, preferred_element_type} : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  %2 = "jaxpr.reduce_sum"(%x) {axes = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<f32>
  return %1, %2 : tensor<2x4xf32>, tensor<f32>
}

// CHECK: func.func @main(%arg0: tensor<3x4xf32>, %arg1: tensor<2x4xf32>, %arg2: tensor<f32>) -> tensor<2x3xf32> {
// CHECK-NEXT: %0 = "jaxpr.sin"(%arg0) : (tensor<3x4xf32>) -> tensor<3x4xf32>
// CHECK-NEXT: %1 = "jaxpr.broadcast_in_dim"(%arg2) {broadcast_dimensions = array<i64>, shape = array<i64: 2, 3>} : (tensor<f32>) -> tensor<2x3xf32>
// CHECK-NEXT: %2 = "jaxpr.dot_general"(%arg1, %0) {dimension_numbers = {{\[\[}}array<i64: 1>, array<i64: 1>], [array<i64>, array<i64>]], precision, preferred_element_type} : (tensor<2x4xf32>, tensor<3x4xf32>) -> tensor<2x3xf32>
// CHECK-NEXT: %3 = "jaxpr.add"(%1, %2) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
// CHECK-NEXT: return %3 : tensor<2x3xf32>
// CHECK-NEXT: }
