// RUN: axir opt %s -p split-complex-conv > %t
// RUN: filecheck %s --input-file %t

// Complex numbers are convolved part by part.

func.func @main(%x: tensor<1x2x3xcomplex<f32>>, %k: tensor<2x2x2xcomplex<f32>>) -> tensor<1x2x4xcomplex<f32>> {
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {pad = [[1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x2x3xcomplex<f32>>, tensor<2x2x2xcomplex<f32>>) -> tensor<1x2x4xcomplex<f32>>
  return %0 : tensor<1x2x4xcomplex<f32>>
}

// CHECK: func.func @main(%arg0: tensor<1x2x3xcomplex<f32>>, %arg1: tensor<2x2x2xcomplex<f32>>) -> tensor<1x2x4xcomplex<f32>> {
// CHECK-NEXT: %0 = stablehlo.real %arg0 : (tensor<1x2x3xcomplex<f32>>) -> tensor<1x2x3xf32>
// CHECK-NEXT: %1 = stablehlo.imag %arg0 : (tensor<1x2x3xcomplex<f32>>) -> tensor<1x2x3xf32>
// CHECK-NEXT: %2 = stablehlo.real %arg1 : (tensor<2x2x2xcomplex<f32>>) -> tensor<2x2x2xf32>
// CHECK-NEXT: %3 = stablehlo.imag %arg1 : (tensor<2x2x2xcomplex<f32>>) -> tensor<2x2x2xf32>
// CHECK-NEXT: %4 = stablehlo.convolution(%0, %2) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {pad = [[1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x2x3xf32>, tensor<2x2x2xf32>) -> tensor<1x2x4xf32>
// CHECK-NEXT: %5 = stablehlo.convolution(%1, %3) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {pad = [[1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x2x3xf32>, tensor<2x2x2xf32>) -> tensor<1x2x4xf32>
// CHECK-NEXT: %6 = stablehlo.subtract %4, %5 : tensor<1x2x4xf32>
// CHECK-NEXT: %7 = stablehlo.convolution(%0, %3) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {pad = [[1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x2x3xf32>, tensor<2x2x2xf32>) -> tensor<1x2x4xf32>
// CHECK-NEXT: %8 = stablehlo.convolution(%1, %2) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {pad = [[1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x2x3xf32>, tensor<2x2x2xf32>) -> tensor<1x2x4xf32>
// CHECK-NEXT: %9 = stablehlo.add %7, %8 : tensor<1x2x4xf32>
// CHECK-NEXT: %10 = stablehlo.complex %6, %9 : tensor<1x2x4xcomplex<f32>>
// CHECK-NEXT: return %10 : tensor<1x2x4xcomplex<f32>>
// CHECK-NEXT: }
