// RUN: axir opt %s -p jvp > %t
// RUN: filecheck %s --input-file %t
// RUN: iree-opt --irdl-file=%S/../../dialect/text/jaxpr.irdl.mlir %t > /dev/null
// RUN: iree-opt --irdl-file=%S/../../dialect/text/jaxpr.irdl.mlir %s > /dev/null

// Tangents of what is active; integers and what depends on them alone have none.

func.func @main(%x: tensor<3xf32>, %n: tensor<3xi32>) -> (tensor<3xf32>, tensor<3xi32>) {
  %0 = "jaxpr.sin"(%x) : (tensor<3xf32>) -> tensor<3xf32>
  %1 = "jaxpr.neg"(%n) : (tensor<3xi32>) -> tensor<3xi32>
  %2 = "jaxpr.convert_element_type"(%1) {new_dtype = f32, weak_type = false} : (tensor<3xi32>) -> tensor<3xf32>
  %3 = "jaxpr.mul"(%0, %2) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  return %3, %1 : tensor<3xf32>, tensor<3xi32>
}

// CHECK: func.func @main(%arg0: tensor<3xf32>, %arg1: tensor<3xi32>, %arg2: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xi32>, tensor<3xf32>) {
// CHECK-NEXT: %0 = "jaxpr.sin"(%arg0) : (tensor<3xf32>) -> tensor<3xf32>
// CHECK-NEXT: %1 = "jaxpr.cos"(%arg0) : (tensor<3xf32>) -> tensor<3xf32>
// CHECK-NEXT: %2 = "jaxpr.mul"(%arg2, %1) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
// CHECK-NEXT: %3 = "jaxpr.neg"(%arg1) : (tensor<3xi32>) -> tensor<3xi32>
// CHECK-NEXT: %4 = "jaxpr.convert_element_type"(%3) {new_dtype = f32, weak_type = false} : (tensor<3xi32>) -> tensor<3xf32>
// CHECK-NEXT: %5 = "jaxpr.mul"(%0, %4) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
// CHECK-NEXT: %6 = "jaxpr.mul"(%2, %4) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
// CHECK-NEXT: return %5, %3, %6 : tensor<3xf32>, tensor<3xi32>, tensor<3xf32>
// CHECK-NEXT: }
