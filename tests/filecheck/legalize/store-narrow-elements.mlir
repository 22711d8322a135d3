// RUN: axir opt %s -p store-narrow-elements > %t
// RUN: filecheck %s --input-file %t

// Elements of few bits are bytes, in whose low bits they are.

func.func @main(%x: tensor<4xi8>) -> tensor<2x4xi4> {
  %c = stablehlo.constant dense<[1, -2, 3, -4]> : tensor<4xi4>
  %0 = stablehlo.convert %x : (tensor<4xi8>) -> tensor<4xi4>
  %1 = stablehlo.reshape %0 : (tensor<4xi4>) -> tensor<1x4xi4>
  %2 = stablehlo.reshape %c : (tensor<4xi4>) -> tensor<1x4xi4>
  %3 = stablehlo.concatenate %1, %2, dim = 0 : (tensor<1x4xi4>, tensor<1x4xi4>) -> tensor<2x4xi4>
  return %3 : tensor<2x4xi4>
}
// CHECK: func.func @main(%arg0: tensor<4xi8>) -> tensor<2x4xui8> {
// CHECK-NEXT: %c = stablehlo.constant dense<[1, 14, 3, 12]> : tensor<4xui8>
// CHECK-NEXT: %0 = stablehlo.bitcast_convert %arg0 : (tensor<4xi8>) -> tensor<4xui8>
// CHECK-NEXT: %c_0 = stablehlo.constant dense<15> : tensor<4xui8>
// CHECK-NEXT: %1 = stablehlo.and %0, %c_0 : tensor<4xui8>
// CHECK-NEXT: %2 = stablehlo.reshape %1 : (tensor<4xui8>) -> tensor<1x4xui8>
// CHECK-NEXT: %3 = stablehlo.reshape %c : (tensor<4xui8>) -> tensor<1x4xui8>
// CHECK-NEXT: %4 = stablehlo.concatenate %2, %3, dim = 0 : (tensor<1x4xui8>, tensor<1x4xui8>) -> tensor<2x4xui8>
// CHECK-NEXT: return %4 : tensor<2x4xui8>
// CHECK-NEXT: }
