// RUN: axir opt %s -p fill-empty-dot > %t
// RUN: filecheck %s --input-file %t

// A contraction over nothing is zero.

func.func @main(%a: tensor<4x0xf32>, %b: tensor<0x6xf32>) -> tensor<4x6xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<4x0xf32>, tensor<0x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// CHECK: func.func @main(%arg0: tensor<4x0xf32>, %arg1: tensor<0x6xf32>) -> tensor<4x6xf32> {
// CHECK-NEXT: %cst = stablehlo.constant dense<0.000000e+00> : tensor<4x6xf32>
// CHECK-NEXT: return %cst : tensor<4x6xf32>
// CHECK-NEXT: }
