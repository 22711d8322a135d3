// RUN: axir opt %s -p split-complex-loops > %t
// RUN: filecheck %s --input-file %t

// The loop carries parts; what it reads from outside is parted in front of it.

func.func @main(%a: tensor<complex<f32>>, %c: tensor<complex<f32>>) -> tensor<complex<f32>> {
  %0 = stablehlo.while(%z = %a) : tensor<complex<f32>>
  cond {
    %real = stablehlo.real %z : (tensor<complex<f32>>) -> tensor<f32>
    %two = stablehlo.constant dense<2.0> : tensor<f32>
    %1 = stablehlo.compare LT, %real, %two : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %2 = stablehlo.multiply %z, %c : tensor<complex<f32>>
    stablehlo.return %2 : tensor<complex<f32>>
  }
  return %0 : tensor<complex<f32>>
}

// CHECK:      %0 = stablehlo.real %arg1
// CHECK-NEXT: %1 = stablehlo.imag %arg1
// CHECK-NEXT: %2 = stablehlo.real %arg0
// CHECK-NEXT: %3 = stablehlo.imag %arg0
// CHECK-NEXT: %4:2 = stablehlo.while(%iterArg = %2, %iterArg_0 = %3) : tensor<f32>, tensor<f32>
// CHECK:        stablehlo.compare LT, %iterArg, %cst
// CHECK:      do {
// CHECK-NEXT:   %6 = stablehlo.multiply %iterArg, %0
// CHECK-NEXT:   %7 = stablehlo.multiply %iterArg_0, %1
// CHECK-NEXT:   %8 = stablehlo.subtract %6, %7
// CHECK-NEXT:   %9 = stablehlo.multiply %iterArg, %1
// CHECK-NEXT:   %10 = stablehlo.multiply %iterArg_0, %0
// CHECK-NEXT:   %11 = stablehlo.add %9, %10
// CHECK-NEXT:   stablehlo.return %8, %11
// CHECK:      %5 = stablehlo.complex %4#0, %4#1
// CHECK-NEXT: return %5
