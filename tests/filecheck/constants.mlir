// RUN: axir opt %s -p 'vmap{axis_size=5},jvp' > %t
// RUN: filecheck %s --input-file %t
// RUN: iree-opt --irdl-file=%S/../../dialect/text/jaxpr.irdl.mlir %t > /dev/null
// RUN: iree-opt --irdl-file=%S/../../dialect/text/jaxpr.irdl.mlir %s > /dev/null

// Constants stay constants: they do not become arguments.

func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %0 = "jaxpr.constant"() {value = dense<[1.0, 2.0, 3.0]> : tensor<3xf32>} : () -> tensor<3xf32>
  %1 = "jaxpr.mul"(%x, %0) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  return %1 : tensor<3xf32>
}

// CHECK: func.func @main(%arg0: tensor<5x3xf32>, %arg1: tensor<5x3xf32>) -> (tensor<5x3xf32>, tensor<5x3xf32>) {
// CHECK-NEXT: %0 = "jaxpr.constant"() {value = dense<{{\[\[}}1.000000e+00, 2.000000e+00, 3.000000e+00], [1.000000e+00, 2.000000e+00, 3.000000e+00], [1.000000e+00, 2.000000e+00, 3.000000e+00], [1.000000e+00, 2.000000e+00, 3.000000e+00], [1.000000e+00, 2.000000e+00, 3.000000e+00]]> : tensor<5x3xf32>} : () -> tensor<5x3xf32>
// CHECK-NEXT: %1 = "jaxpr.mul"(%arg0, %0) : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
// CHECK-NEXT: %2 = "jaxpr.mul"(%arg1, %0) : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
// CHECK-NEXT: return %1, %2 : tensor<5x3xf32>, tensor<5x3xf32>
// CHECK-NEXT: }
