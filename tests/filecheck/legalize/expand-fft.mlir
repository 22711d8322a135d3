// RUN: axir opt %s -p expand-fft > %t
// RUN: filecheck %s --input-file %t

// A short transform is one product of a real matrix with real and imaginary parts.

func.func @main(%x: tensor<3x2xcomplex<f32>>) -> tensor<3x2xcomplex<f32>> {
  %0 = stablehlo.fft %x, type = FFT, length = [2] : (tensor<3x2xcomplex<f32>>) -> tensor<3x2xcomplex<f32>>
  return %0 : tensor<3x2xcomplex<f32>>
}

// CHECK: func.func @main(%arg0: tensor<3x2xcomplex<f32>>) -> tensor<3x2xcomplex<f32>> {
// CHECK-NEXT: %0 = stablehlo.transpose %arg0, dims = [1, 0] : (tensor<3x2xcomplex<f32>>) -> tensor<2x3xcomplex<f32>>
// CHECK-NEXT: %1 = stablehlo.real %0 : (tensor<2x3xcomplex<f32>>) -> tensor<2x3xf32>
// CHECK-NEXT: %2 = stablehlo.imag %0 : (tensor<2x3xcomplex<f32>>) -> tensor<2x3xf32>
// CHECK-NEXT: %3 = stablehlo.reshape %1 : (tensor<2x3xf32>) -> tensor<1x2x3xf32>
// CHECK-NEXT: %4 = stablehlo.reshape %2 : (tensor<2x3xf32>) -> tensor<1x2x3xf32>
// CHECK-NEXT: %5 = stablehlo.concatenate %3, %4, dim = 0 : (tensor<1x2x3xf32>, tensor<1x2x3xf32>) -> tensor<2x2x3xf32>
// CHECK-NEXT: %6 = stablehlo.reshape %5 : (tensor<2x2x3xf32>) -> tensor<4x3xf32>
// CHECK-NEXT: %cst = stablehlo.constant dense<{{\[\[}}1.000000e+00, 1.000000e+00, 0.000000e+00, 0.000000e+00], [1.000000e+00, -1.000000e+00, 0.000000e+00, 0.000000e+00], [0.000000e+00, 0.000000e+00, 1.000000e+00, 1.000000e+00], [0.000000e+00, 0.000000e+00, 1.000000e+00, -1.000000e+00{{\]\]}}> : tensor<4x4xf32>
// CHECK-NEXT: %7 = stablehlo.dot_general %cst, %6, contracting_dims = [1] x [0], precision = [HIGHEST, HIGHEST] : (tensor<4x4xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
// CHECK-NEXT: %8 = stablehlo.reshape %7 : (tensor<4x3xf32>) -> tensor<2x2x3xf32>
// CHECK-NEXT: %9 = stablehlo.slice %8 [0:1, 0:2, 0:3] : (tensor<2x2x3xf32>) -> tensor<1x2x3xf32>
// CHECK-NEXT: %10 = stablehlo.slice %8 [1:2, 0:2, 0:3] : (tensor<2x2x3xf32>) -> tensor<1x2x3xf32>
// CHECK-NEXT: %11 = stablehlo.reshape %9 : (tensor<1x2x3xf32>) -> tensor<2x3xf32>
// CHECK-NEXT: %12 = stablehlo.reshape %10 : (tensor<1x2x3xf32>) -> tensor<2x3xf32>
// CHECK-NEXT: %13 = stablehlo.complex %11, %12 : tensor<2x3xcomplex<f32>>
// CHECK-NEXT: %14 = stablehlo.transpose %13, dims = [1, 0] : (tensor<2x3xcomplex<f32>>) -> tensor<3x2xcomplex<f32>>
// CHECK-NEXT: return %14 : tensor<3x2xcomplex<f32>>
// CHECK-NEXT: }
