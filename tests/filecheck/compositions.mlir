// RUN: axir opt %s -p 'vmap{axis_size=5,in_axes=0},jvp,simplify' > %t.CHECK
// RUN: filecheck %s --input-file %t.CHECK
// RUN: iree-opt --irdl-file=%S/../../dialect/text/jaxpr.irdl.mlir %t.CHECK > /dev/null
// RUN: axir opt %s -p 'jvp,vmap{axis_size=5,in_axes=0},simplify' > %t.OTHER
// RUN: filecheck %s --input-file %t.OTHER --check-prefix=OTHER
// RUN: iree-opt --irdl-file=%S/../../dialect/text/jaxpr.irdl.mlir %t.OTHER > /dev/null
// RUN: axir opt %s -p 'linearize,transpose{function=linear},simplify' > %t.GRAD
// RUN: filecheck %s --input-file %t.GRAD --check-prefix=GRAD
// RUN: iree-opt --irdl-file=%S/../../dialect/text/jaxpr.irdl.mlir %t.GRAD > /dev/null
// RUN: iree-opt --irdl-file=%S/../../dialect/text/jaxpr.irdl.mlir %s > /dev/null

// Passes compose in any order.

func.func @main(%x: tensor<3xf32>) -> tensor<f32> {
  %0 = "jaxpr.sin"(%x) : (tensor<3xf32>) -> tensor<3xf32>
  %1 = "jaxpr.mul"(%0, %0) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %2 = "jaxpr.reduce_sum"(%1) {axes = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
  return %2 : tensor<f32>
}

// CHECK: func.func @main(%arg0: tensor<5x3xf32>, %arg1: tensor<5x3xf32>) -> (tensor<5xf32>, tensor<5xf32>) {
// CHECK-NEXT: %0 = "jaxpr.sin"(%arg0) : (tensor<5x3xf32>) -> tensor<5x3xf32>
// CHECK-NEXT: %1 = "jaxpr.cos"(%arg0) : (tensor<5x3xf32>) -> tensor<5x3xf32>
// CHECK-NEXT: %2 = "jaxpr.mul"(%arg1, %1) : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
// CHECK-NEXT: %3 = "jaxpr.mul"(%0, %0) : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
// CHECK-NEXT: %4 = "jaxpr.mul"(%2, %0) : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
// CHECK-NEXT: %5 = "jaxpr.add"(%4, %4) : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
// CHECK-NEXT: %6 = "jaxpr.reduce_sum"(%3) {axes = array<i64: 1>} : (tensor<5x3xf32>) -> tensor<5xf32>
// CHECK-NEXT: %7 = "jaxpr.reduce_sum"(%5) {axes = array<i64: 1>} : (tensor<5x3xf32>) -> tensor<5xf32>
// CHECK-NEXT: return %6, %7 : tensor<5xf32>, tensor<5xf32>
// CHECK-NEXT: }

// OTHER: func.func @main(%arg0: tensor<5x3xf32>, %arg1: tensor<5x3xf32>) -> (tensor<5xf32>, tensor<5xf32>) {
// OTHER-NEXT: %0 = "jaxpr.sin"(%arg0) : (tensor<5x3xf32>) -> tensor<5x3xf32>
// OTHER-NEXT: %1 = "jaxpr.cos"(%arg0) : (tensor<5x3xf32>) -> tensor<5x3xf32>
// OTHER-NEXT: %2 = "jaxpr.mul"(%arg1, %1) : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
// OTHER-NEXT: %3 = "jaxpr.mul"(%0, %0) : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
// OTHER-NEXT: %4 = "jaxpr.mul"(%2, %0) : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
// OTHER-NEXT: %5 = "jaxpr.add"(%4, %4) : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
// OTHER-NEXT: %6 = "jaxpr.reduce_sum"(%3) {axes = array<i64: 1>} : (tensor<5x3xf32>) -> tensor<5xf32>
// OTHER-NEXT: %7 = "jaxpr.reduce_sum"(%5) {axes = array<i64: 1>} : (tensor<5x3xf32>) -> tensor<5xf32>
// OTHER-NEXT: return %6, %7 : tensor<5xf32>, tensor<5xf32>
// OTHER-NEXT: }

// GRAD: func.func @main(%arg0: tensor<3xf32>) -> (tensor<f32>, tensor<3xf32>, tensor<3xf32>) {
// GRAD-NEXT: %0 = "jaxpr.sin"(%arg0) : (tensor<3xf32>) -> tensor<3xf32>
// GRAD-NEXT: %1 = "jaxpr.cos"(%arg0) : (tensor<3xf32>) -> tensor<3xf32>
// GRAD-NEXT: %2 = "jaxpr.mul"(%0, %0) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
// GRAD-NEXT: %3 = "jaxpr.reduce_sum"(%2) {axes = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
// GRAD-NEXT: return %3, %1, %0 : tensor<f32>, tensor<3xf32>, tensor<3xf32>
// GRAD-NEXT: }
// GRAD: func.func @linear(%arg0: tensor<3xf32>, %arg1: tensor<3xf32>, %arg2: tensor<f32>) -> tensor<3xf32> {
// GRAD-NEXT: %0 = "jaxpr.broadcast_in_dim"(%arg2) {broadcast_dimensions = array<i64>, shape = array<i64: 3>} : (tensor<f32>) -> tensor<3xf32>
// GRAD-NEXT: %1 = "jaxpr.mul"(%arg1, %0) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
// GRAD-NEXT: %2 = "jaxpr.add"(%1, %1) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
// GRAD-NEXT: %3 = "jaxpr.mul"(%2, %arg0) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
// GRAD-NEXT: return %3 : tensor<3xf32>
// GRAD-NEXT: }
