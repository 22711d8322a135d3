// RUN: axir opt %s -p convert-by-single > %t
// RUN: filecheck %s --input-file %t

// Integers become bf16 by way of f32, for which IREE needs no function of LLVM's.

func.func @main(%x: tensor<4xi32>, %y: tensor<4xf32>) -> (tensor<4xbf16>, tensor<4xbf16>) {
  %0 = stablehlo.convert %x : (tensor<4xi32>) -> tensor<4xbf16>
  %1 = stablehlo.convert %y : (tensor<4xf32>) -> tensor<4xbf16>
  return %0, %1 : tensor<4xbf16>, tensor<4xbf16>
}

// CHECK: func.func @main
// CHECK-NEXT: %0 = stablehlo.convert %arg0 : (tensor<4xi32>) -> tensor<4xf32>
// CHECK-NEXT: %1 = stablehlo.bitcast_convert %0 : (tensor<4xf32>) -> tensor<4xui32>
// CHECK: stablehlo.shift_right_logical
// CHECK: %7 = stablehlo.convert %6 : (tensor<4xui32>) -> tensor<4xui16>
// CHECK-NEXT: %8 = stablehlo.bitcast_convert %7 : (tensor<4xui16>) -> tensor<4xbf16>
// CHECK-NEXT: %9 = stablehlo.convert %arg1 : (tensor<4xf32>) -> tensor<4xbf16>
// CHECK-NEXT: return %8, %9
