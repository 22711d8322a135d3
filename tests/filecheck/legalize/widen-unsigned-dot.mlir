// RUN: axir opt %s -p widen-unsigned-dot > %t
// RUN: filecheck %s --input-file %t

// Unsigned operands are widened behind a barrier.

func.func @main(%a: tensor<4x5xui8>, %b: tensor<5x6xui8>) -> tensor<4x6xui32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<4x5xui8>, tensor<5x6xui8>) -> tensor<4x6xui32>
  return %0 : tensor<4x6xui32>
}

// CHECK: func.func @main(%arg0: tensor<4x5xui8>, %arg1: tensor<5x6xui8>) -> tensor<4x6xui32> {
// CHECK-NEXT: %0 = stablehlo.convert %arg0 : (tensor<4x5xui8>) -> tensor<4x5xui32>
// CHECK-NEXT: %1 = stablehlo.bitcast_convert %0 : (tensor<4x5xui32>) -> tensor<4x5xi32>
// CHECK-NEXT: %2 = stablehlo.optimization_barrier %1 : tensor<4x5xi32>
// CHECK-NEXT: %3 = stablehlo.convert %arg1 : (tensor<5x6xui8>) -> tensor<5x6xui32>
// CHECK-NEXT: %4 = stablehlo.bitcast_convert %3 : (tensor<5x6xui32>) -> tensor<5x6xi32>
// CHECK-NEXT: %5 = stablehlo.optimization_barrier %4 : tensor<5x6xi32>
// CHECK-NEXT: %6 = stablehlo.dot_general %2, %5, contracting_dims = [1] x [0] : (tensor<4x5xi32>, tensor<5x6xi32>) -> tensor<4x6xi32>
// CHECK-NEXT: %7 = stablehlo.bitcast_convert %6 : (tensor<4x6xi32>) -> tensor<4x6xui32>
// CHECK-NEXT: return %7 : tensor<4x6xui32>
// CHECK-NEXT: }
