// RUN: axir opt %s -p simplify > %t.CHECK
// RUN: filecheck %s --input-file %t.CHECK
// RUN: iree-opt --irdl-file=%S/../../dialect/text/jaxpr.irdl.mlir %t.CHECK > /dev/null
// RUN: axir opt %s -p 'simplify{inline="none"}' > %t.CALL
// RUN: filecheck %s --input-file %t.CALL --check-prefix=CALL
// RUN: iree-opt --irdl-file=%S/../../dialect/text/jaxpr.irdl.mlir %t.CALL > /dev/null
// RUN: iree-opt --irdl-file=%S/../../dialect/text/jaxpr.irdl.mlir %s > /dev/null

// Calls are inlined, constants folded, equal ops merged, identities and dead ops removed.

func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %two = "jaxpr.constant"() {value = dense<2.0> : tensor<f32>} : () -> tensor<f32>
  %half = "jaxpr.constant"() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %one = "jaxpr.mul"(%two, %half) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %dead = "jaxpr.cos"(%x) : (tensor<3xf32>) -> tensor<3xf32>
  %0 = "jaxpr.mul"(%x, %one) : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
  %1 = "jaxpr.jit"(%0) {jaxpr = @inner, name = "inner"} : (tensor<3xf32>) -> tensor<3xf32>
  %2 = "jaxpr.tanh"(%x) : (tensor<3xf32>) -> tensor<3xf32>
  %3 = "jaxpr.add"(%1, %2) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  return %3 : tensor<3xf32>
}
func.func private @inner(%x: tensor<3xf32>) -> tensor<3xf32> {
  %0 = "jaxpr.tanh"(%x) : (tensor<3xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// CHECK: func.func @main(%arg0: tensor<3xf32>) -> tensor<3xf32> {
// CHECK-NEXT: %0 = "jaxpr.tanh"(%arg0) : (tensor<3xf32>) -> tensor<3xf32>
// CHECK-NEXT: %1 = "jaxpr.add"(%0, %0) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
// CHECK-NEXT: return %1 : tensor<3xf32>
// CHECK-NEXT: }

// CALL: func.func @main(%arg0: tensor<3xf32>) -> tensor<3xf32> {
// CALL-NEXT: %0 = "jaxpr.jit"(%arg0) {jaxpr = @inner, name = "inner"} : (tensor<3xf32>) -> tensor<3xf32>
// CALL-NEXT: %1 = "jaxpr.tanh"(%arg0) : (tensor<3xf32>) -> tensor<3xf32>
// CALL-NEXT: %2 = "jaxpr.add"(%0, %1) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
// CALL-NEXT: return %2 : tensor<3xf32>
// CALL-NEXT: }
// CALL: func.func private @inner(%arg0: tensor<3xf32>) -> tensor<3xf32> {
// CALL-NEXT: %0 = "jaxpr.tanh"(%arg0) : (tensor<3xf32>) -> tensor<3xf32>
// CALL-NEXT: return %0 : tensor<3xf32>
// CALL-NEXT: }
