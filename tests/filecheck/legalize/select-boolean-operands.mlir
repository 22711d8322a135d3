// RUN: axir opt %s -p select-boolean-operands > %t
// RUN: filecheck %s --input-file %t

// A mask that is an operand of a product selects; one that is added is converted.

func.func @main(%mask: tensor<5xi1>, %b: tensor<5x6xf32>, %c: tensor<5xf32>) -> (tensor<6xf32>, tensor<5xf32>) {
  %0 = stablehlo.convert %mask : (tensor<5xi1>) -> tensor<5xf32>
  %1 = stablehlo.dot_general %0, %b, contracting_dims = [0] x [0] : (tensor<5xf32>, tensor<5x6xf32>) -> tensor<6xf32>
  %2 = stablehlo.convert %mask : (tensor<5xi1>) -> tensor<5xf32>
  %3 = stablehlo.add %2, %c : tensor<5xf32>
  return %1, %3 : tensor<6xf32>, tensor<5xf32>
}

// CHECK: stablehlo.select %arg0
// CHECK-NEXT: stablehlo.dot_general
// CHECK-NEXT: stablehlo.convert %arg0
// CHECK-NEXT: stablehlo.add
