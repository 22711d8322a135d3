// RUN: axir opt %s -p separate-views > %t
// RUN: filecheck %s --input-file %t

// The second view of the sums reads them behind a barrier; what reads one view only stays.

func.func @main(%x: tensor<4x6xf32>, %y: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [0] : (tensor<4xf32>) -> tensor<4x4xf32>
  %2 = stablehlo.multiply %1, %y : tensor<4x4xf32>
  %3 = stablehlo.broadcast_in_dim %0, dims = [1] : (tensor<4xf32>) -> tensor<4x4xf32>
  %4 = stablehlo.add %1, %3 : tensor<4x4xf32>
  return %2, %4 : tensor<4x4xf32>, tensor<4x4xf32>
}

// CHECK: [[SUMS:%[0-9]+]] = stablehlo.reduce
// CHECK-NEXT: [[ROWS:%[0-9]+]] = stablehlo.broadcast_in_dim [[SUMS]], dims = [0]
// CHECK-NEXT: stablehlo.multiply [[ROWS]], %arg1
// CHECK-NEXT: [[BARRIER:%[0-9]+]] = stablehlo.optimization_barrier [[SUMS]]
// CHECK-NEXT: [[COLUMNS:%[0-9]+]] = stablehlo.broadcast_in_dim [[BARRIER]], dims = [1]
// CHECK-NEXT: stablehlo.add [[ROWS]], [[COLUMNS]]
// CHECK-NOT: optimization_barrier
