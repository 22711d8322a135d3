// RUN: axir opt %s -p fit-conv-windows > %t
// RUN: filecheck %s --input-file %t

// One position along a dimension needs no stride: what the window does not cover is cut off.

func.func @main(%x: tensor<1x2x3xf32>, %k: tensor<2x2x2xf32>) -> tensor<1x2x1xf32> {
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {stride = [2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x2x3xf32>, tensor<2x2x2xf32>) -> tensor<1x2x1xf32>
  return %0 : tensor<1x2x1xf32>
}

// CHECK: func.func @main(%arg0: tensor<1x2x3xf32>, %arg1: tensor<2x2x2xf32>) -> tensor<1x2x1xf32> {
// CHECK-NEXT: %0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {stride = [1], pad = [[0, -1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x2x3xf32>, tensor<2x2x2xf32>) -> tensor<1x2x1xf32>
// CHECK-NEXT: return %0 : tensor<1x2x1xf32>
// CHECK-NEXT: }
