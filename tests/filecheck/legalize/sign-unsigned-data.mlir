// RUN: axir opt %s -p sign-unsigned-data > %t
// RUN: filecheck %s --input-file %t

// Unsigned data moves as signless data.

func.func @main(%x: tensor<4xui8>) -> tensor<4xui8> {
  %0 = stablehlo.reverse %x, dims = [0] : tensor<4xui8>
  return %0 : tensor<4xui8>
}

// CHECK: func.func @main(%arg0: tensor<4xui8>) -> tensor<4xui8> {
// CHECK-NEXT: %0 = stablehlo.bitcast_convert %arg0 : (tensor<4xui8>) -> tensor<4xi8>
// CHECK-NEXT: %1 = stablehlo.reverse %0, dims = [0] : tensor<4xi8>
// CHECK-NEXT: %2 = stablehlo.bitcast_convert %1 : (tensor<4xi8>) -> tensor<4xui8>
// CHECK-NEXT: return %2 : tensor<4xui8>
// CHECK-NEXT: }
