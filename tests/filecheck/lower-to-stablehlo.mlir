// RUN: axir opt %s --to stablehlo > %t
// RUN: filecheck %s --input-file %t
// RUN: iree-opt --irdl-file=%S/../../dialect/text/jaxpr.irdl.mlir %s > /dev/null

// Calls are functions, scalar operands are broadcast, captured constants are constants.

func.func @main(%x: tensor<3xf32>, %s: tensor<f32>) -> (tensor<3xf32>, tensor<f32>) {
  %0 = "jaxpr.mul"(%x, %s) : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
  %1 = "jaxpr.jit"(%0) {jaxpr = @inner, name = "inner"} : (tensor<3xf32>) -> tensor<3xf32>
  %2 = "jaxpr.jit"(%1) {jaxpr = @inner, name = "inner"} : (tensor<3xf32>) -> tensor<3xf32>
  %3 = "jaxpr.reduce_max"(%2) {axes = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
  return %2, %3 : tensor<3xf32>, tensor<f32>
}
func.func private @inner(%x: tensor<3xf32>) -> tensor<3xf32> {
  %0 = "jaxpr.tanh"(%x) : (tensor<3xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// CHECK: func.func @main(%arg0: tensor<3xf32>, %arg1: tensor<f32>) -> (tensor<3xf32>, tensor<f32>) {
// CHECK-NEXT: %0 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<3xf32>
// CHECK-NEXT: %1 = stablehlo.multiply %arg0, %0 : tensor<3xf32>
// CHECK-NEXT: %2 = call @inner(%1) : (tensor<3xf32>) -> tensor<3xf32>
// CHECK-NEXT: %3 = call @inner(%2) : (tensor<3xf32>) -> tensor<3xf32>
// CHECK-NEXT: %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
// CHECK-NEXT: %4 = stablehlo.reduce(%3 init: %cst) applies stablehlo.maximum across dimensions = [0] : (tensor<3xf32>, tensor<f32>) -> tensor<f32>
// CHECK-NEXT: return %3, %4 : tensor<3xf32>, tensor<f32>
// CHECK-NEXT: }
// CHECK: func.func private @inner(%arg0: tensor<3xf32>) -> tensor<3xf32> {
// CHECK-NEXT: %0 = stablehlo.tanh %arg0 : tensor<3xf32>
// CHECK-NEXT: return %0 : tensor<3xf32>
// CHECK-NEXT: }
