// RUN: axir opt %s -p 'limit-fusion{buffers=2}' > %t
// RUN: filecheck %s --input-file %t

// A barrier stands where more than two arrays would be read.

func.func @main(%a: tensor<3xf32>, %b: tensor<3xf32>, %c: tensor<3xf32>) -> tensor<3xf32> {
  %0 = stablehlo.add %a, %b : tensor<3xf32>
  %1 = stablehlo.add %0, %c : tensor<3xf32>
  return %1 : tensor<3xf32>
}

// CHECK: func.func @main(%arg0: tensor<3xf32>, %arg1: tensor<3xf32>, %arg2: tensor<3xf32>) -> tensor<3xf32> {
// CHECK-NEXT: %0 = stablehlo.add %arg0, %arg1 : tensor<3xf32>
// CHECK-NEXT: %1 = stablehlo.optimization_barrier %0 : tensor<3xf32>
// CHECK-NEXT: %2 = stablehlo.add %1, %arg2 : tensor<3xf32>
// CHECK-NEXT: return %2 : tensor<3xf32>
// CHECK-NEXT: }
