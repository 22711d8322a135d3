// RUN: axir opt %s -p negate-products > %t
// RUN: filecheck %s --input-file %t

// The vector varies along one of the two axes that are summed over; a sum over one axis stays.

func.func @main(%x: tensor<2x3xf32>, %y: tensor<3xf32>) -> (tensor<f32>, tensor<2xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.broadcast_in_dim %y, dims = [1] : (tensor<3xf32>) -> tensor<2x3xf32>
  %1 = stablehlo.multiply %x, %0 : tensor<2x3xf32>
  %2 = stablehlo.reduce(%1 init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<f32>
  %3 = stablehlo.reduce(%1 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
  return %2, %3 : tensor<f32>, tensor<2xf32>
}

// CHECK: [[PRODUCT:%[0-9]+]] = stablehlo.multiply
// CHECK: [[NEGATIVE:%[0-9]+]] = stablehlo.negate [[PRODUCT]]
// CHECK: [[INIT:%[0-9]+]] = stablehlo.negate
// CHECK: [[SUM:%[0-9]+]] = stablehlo.reduce([[NEGATIVE]] init: [[INIT]]) applies stablehlo.add across dimensions = [0, 1]
// CHECK: [[TOTAL:%[0-9]+]] = stablehlo.subtract {{.*}}, [[SUM]]
// CHECK: [[ROWS:%[0-9]+]] = stablehlo.reduce([[PRODUCT]]
// CHECK: return [[TOTAL]], [[ROWS]]
