// RUN: axir opt %s -p linearize > %t.CHECK
// RUN: filecheck %s --input-file %t.CHECK
// RUN: iree-opt --irdl-file=%S/../../dialect/text/jaxpr.irdl.mlir %t.CHECK > /dev/null
// RUN: axir opt %s -p 'linearize{argnums=0}' > %t.FIRST
// RUN: filecheck %s --input-file %t.FIRST --check-prefix=FIRST
// RUN: iree-opt --irdl-file=%S/../../dialect/text/jaxpr.irdl.mlir %t.FIRST > /dev/null
// RUN: iree-opt --irdl-file=%S/../../dialect/text/jaxpr.irdl.mlir %s > /dev/null

// Known values stay in main, which returns the residuals; the rest becomes linear.

func.func @main(%x: tensor<f32>, %y: tensor<f32>) -> tensor<f32> {
  %0 = "jaxpr.exp"(%x) : (tensor<f32>) -> tensor<f32>
  %1 = "jaxpr.mul"(%0, %y) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}

// CHECK: func.func @main(%arg0: tensor<f32>, %arg1: tensor<f32>) -> (tensor<f32>, tensor<f32>, tensor<f32>) {
// CHECK-NEXT: %0 = "jaxpr.exp"(%arg0) : (tensor<f32>) -> tensor<f32>
// CHECK-NEXT: %1 = "jaxpr.mul"(%0, %arg1) : (tensor<f32>, tensor<f32>) -> tensor<f32>
// CHECK-NEXT: return %1, %0, %arg1 : tensor<f32>, tensor<f32>, tensor<f32>
// CHECK-NEXT: }
// CHECK: func.func @linear(%arg0: tensor<f32> {jaxpr.linear}, %arg1: tensor<f32> {jaxpr.linear}, %arg2: tensor<f32>, %arg3: tensor<f32>) -> tensor<f32> {
// CHECK-NEXT: %0 = "jaxpr.mul"(%arg0, %arg2) : (tensor<f32>, tensor<f32>) -> tensor<f32>
// CHECK-NEXT: %1 = "jaxpr.mul"(%0, %arg3) : (tensor<f32>, tensor<f32>) -> tensor<f32>
// CHECK-NEXT: %2 = "jaxpr.mul"(%arg2, %arg1) : (tensor<f32>, tensor<f32>) -> tensor<f32>
// CHECK-NEXT: %3 = "jaxpr.add"(%1, %2) : (tensor<f32>, tensor<f32>) -> tensor<f32>
// CHECK-NEXT: return %3 : tensor<f32>
// CHECK-NEXT: }

// FIRST: func.func @main(%arg0: tensor<f32>, %arg1: tensor<f32>) -> (tensor<f32>, tensor<f32>, tensor<f32>) {
// FIRST-NEXT: %0 = "jaxpr.exp"(%arg0) : (tensor<f32>) -> tensor<f32>
// FIRST-NEXT: %1 = "jaxpr.mul"(%0, %arg1) : (tensor<f32>, tensor<f32>) -> tensor<f32>
// FIRST-NEXT: return %1, %0, %arg1 : tensor<f32>, tensor<f32>, tensor<f32>
// FIRST-NEXT: }
// FIRST: func.func @linear(%arg0: tensor<f32> {jaxpr.linear}, %arg1: tensor<f32>, %arg2: tensor<f32>) -> tensor<f32> {
// FIRST-NEXT: %0 = "jaxpr.mul"(%arg0, %arg1) : (tensor<f32>, tensor<f32>) -> tensor<f32>
// FIRST-NEXT: %1 = "jaxpr.mul"(%0, %arg2) : (tensor<f32>, tensor<f32>) -> tensor<f32>
// FIRST-NEXT: return %1 : tensor<f32>
// FIRST-NEXT: }
