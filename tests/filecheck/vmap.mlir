// RUN: axir opt %s -p 'vmap{axis_size=5,in_axes=(1,none)}' > %t.CHECK
// RUN: filecheck %s --input-file %t.CHECK
// RUN: iree-opt --irdl-file=%S/../../dialect/text/jaxpr.irdl.mlir %t.CHECK > /dev/null
// RUN: axir opt %s -p 'vmap{axis_size=5,in_axes=(0,none),out_axes=(0,none)}' > %t.NONE
// RUN: filecheck %s --input-file %t.NONE --check-prefix=NONE
// RUN: iree-opt --irdl-file=%S/../../dialect/text/jaxpr.irdl.mlir %t.NONE > /dev/null
// RUN: iree-opt --irdl-file=%S/../../dialect/text/jaxpr.irdl.mlir %s > /dev/null

// An argument without the axis, axes in the middle, and a result that lacks it.

func.func @main(%x: tensor<3xf32>, %y: tensor<3xf32>) -> (tensor<3xf32>, tensor<f32>) {
  %0 = "jaxpr.add"(%x, %y) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %1 = "jaxpr.reduce_max"(%y) {axes = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
  return %0, %1 : tensor<3xf32>, tensor<f32>
}

// CHECK: func.func @main(%arg0: tensor<3x5xf32>, %arg1: tensor<3xf32>) -> (tensor<5x3xf32>, tensor<5xf32>) {
// CHECK-NEXT: %0 = "jaxpr.broadcast_in_dim"(%arg1) {broadcast_dimensions = array<i64: 0>, shape = array<i64: 3, 5>} : (tensor<3xf32>) -> tensor<3x5xf32>
// CHECK-NEXT: %1 = "jaxpr.add"(%arg0, %0) : (tensor<3x5xf32>, tensor<3x5xf32>) -> tensor<3x5xf32>
// CHECK-NEXT: %2 = "jaxpr.reduce_max"(%arg1) {axes = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
// CHECK-NEXT: %3 = "jaxpr.transpose"(%1) {permutation = array<i64: 1, 0>} : (tensor<3x5xf32>) -> tensor<5x3xf32>
// CHECK-NEXT: %4 = "jaxpr.broadcast_in_dim"(%2) {broadcast_dimensions = array<i64>, shape = array<i64: 5>} : (tensor<f32>) -> tensor<5xf32>
// CHECK-NEXT: return %3, %4 : tensor<5x3xf32>, tensor<5xf32>
// CHECK-NEXT: }

// NONE: func.func @main(%arg0: tensor<5x3xf32>, %arg1: tensor<3xf32>) -> (tensor<5x3xf32>, tensor<f32>) {
// NONE-NEXT: %0 = "jaxpr.broadcast_in_dim"(%arg1) {broadcast_dimensions = array<i64: 1>, shape = array<i64: 5, 3>} : (tensor<3xf32>) -> tensor<5x3xf32>
// NONE-NEXT: %1 = "jaxpr.add"(%arg0, %0) : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
// NONE-NEXT: %2 = "jaxpr.reduce_max"(%arg1) {axes = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
// NONE-NEXT: return %1, %2 : tensor<5x3xf32>, tensor<f32>
// NONE-NEXT: }
