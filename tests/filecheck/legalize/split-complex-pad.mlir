// RUN: axir opt %s -p split-complex-pad > %t
// RUN: filecheck %s --input-file %t

// Complex numbers are padded part by part.

func.func @main(%x: tensor<4xcomplex<f32>>, %z: tensor<complex<f32>>) -> tensor<5xcomplex<f32>> {
  %0 = stablehlo.pad %x, %z, low = [1], high = [0], interior = [0] : (tensor<4xcomplex<f32>>, tensor<complex<f32>>) -> tensor<5xcomplex<f32>>
  return %0 : tensor<5xcomplex<f32>>
}

// CHECK: func.func @main(%arg0: tensor<4xcomplex<f32>>, %arg1: tensor<complex<f32>>) -> tensor<5xcomplex<f32>> {
// CHECK-NEXT: %0 = stablehlo.real %arg0 : (tensor<4xcomplex<f32>>) -> tensor<4xf32>
// CHECK-NEXT: %1 = stablehlo.real %arg1 : (tensor<complex<f32>>) -> tensor<f32>
// CHECK-NEXT: %2 = stablehlo.pad %0, %1, low = [1], high = [0], interior = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<5xf32>
// CHECK-NEXT: %3 = stablehlo.imag %arg0 : (tensor<4xcomplex<f32>>) -> tensor<4xf32>
// CHECK-NEXT: %4 = stablehlo.imag %arg1 : (tensor<complex<f32>>) -> tensor<f32>
// CHECK-NEXT: %5 = stablehlo.pad %3, %4, low = [1], high = [0], interior = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<5xf32>
// CHECK-NEXT: %6 = stablehlo.complex %2, %5 : tensor<5xcomplex<f32>>
// CHECK-NEXT: return %6 : tensor<5xcomplex<f32>>
// CHECK-NEXT: }
