// RUN: axir opt %s -p clamp-unsigned-operands > %t
// RUN: filecheck %s --input-file %t

// What a product takes is not below zero, integers as signed ones; what is added is converted only.

func.func @main(%a: tensor<4x5xui8>, %b: tensor<5x6xf32>, %c: tensor<5x6xui32>, %d: tensor<4x5xf32>) -> (tensor<4x6xf32>, tensor<4x6xui32>, tensor<4x5xf32>) {
  %0 = stablehlo.convert %a : (tensor<4x5xui8>) -> tensor<4x5xf32>
  %1 = stablehlo.dot_general %0, %b, contracting_dims = [1] x [0] : (tensor<4x5xf32>, tensor<5x6xf32>) -> tensor<4x6xf32>
  %2 = stablehlo.convert %a : (tensor<4x5xui8>) -> tensor<4x5xui32>
  %3 = stablehlo.dot_general %2, %c, contracting_dims = [1] x [0] : (tensor<4x5xui32>, tensor<5x6xui32>) -> tensor<4x6xui32>
  %4 = stablehlo.convert %a : (tensor<4x5xui8>) -> tensor<4x5xf32>
  %5 = stablehlo.add %4, %d : tensor<4x5xf32>
  return %1, %3, %5 : tensor<4x6xf32>, tensor<4x6xui32>, tensor<4x5xf32>
}

// CHECK: stablehlo.convert %arg0
// CHECK: stablehlo.maximum {{.*}} : tensor<4x5xf32>
// CHECK-NEXT: stablehlo.dot_general
// CHECK: stablehlo.convert %arg0
// CHECK-NEXT: stablehlo.bitcast_convert
// CHECK: stablehlo.maximum {{.*}} : tensor<4x5xi32>
// CHECK-NEXT: stablehlo.bitcast_convert
// CHECK-NEXT: stablehlo.dot_general
// CHECK-NEXT: stablehlo.convert %arg0
// CHECK-NEXT: stablehlo.add
