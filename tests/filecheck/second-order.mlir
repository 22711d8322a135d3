// RUN: axir opt %s -p 'jvp,jvp{argnums=0},simplify' > %t
// RUN: filecheck %s --input-file %t
// RUN: iree-opt --irdl-file=%S/../../dialect/text/jaxpr.irdl.mlir %t > /dev/null
// RUN: iree-opt --irdl-file=%S/../../dialect/text/jaxpr.irdl.mlir %s > /dev/null

// A pass runs on its own result: the tangent of the tangent.

func.func @main(%x: tensor<f32>) -> tensor<f32> {
  %0 = "jaxpr.sin"(%x) : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// CHECK: func.func @main(%arg0: tensor<f32>, %arg1: tensor<f32>, %arg2: tensor<f32>) -> (tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) {
// CHECK-NEXT: %0 = "jaxpr.sin"(%arg0) : (tensor<f32>) -> tensor<f32>
// CHECK-NEXT: %1 = "jaxpr.cos"(%arg0) : (tensor<f32>) -> tensor<f32>
// CHECK-NEXT: %2 = "jaxpr.mul"(%arg2, %1) : (tensor<f32>, tensor<f32>) -> tensor<f32>
// CHECK-NEXT: %3 = "jaxpr.mul"(%arg2, %0) : (tensor<f32>, tensor<f32>) -> tensor<f32>
// CHECK-NEXT: %4 = "jaxpr.neg"(%3) : (tensor<f32>) -> tensor<f32>
// CHECK-NEXT: %5 = "jaxpr.mul"(%arg1, %1) : (tensor<f32>, tensor<f32>) -> tensor<f32>
// CHECK-NEXT: %6 = "jaxpr.mul"(%arg1, %4) : (tensor<f32>, tensor<f32>) -> tensor<f32>
// CHECK-NEXT: return %0, %5, %2, %6 : tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>
// CHECK-NEXT: }
