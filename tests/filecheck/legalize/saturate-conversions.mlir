// RUN: axir opt %s -p saturate-conversions > %t
// RUN: filecheck %s --input-file %t

// Floats out of range become the nearest integer, nan becomes 0.

func.func @main(%x: tensor<4xf32>) -> tensor<4xi8> {
  %0 = stablehlo.convert %x : (tensor<4xf32>) -> tensor<4xi8>
  return %0 : tensor<4xi8>
}

// CHECK: func.func @main(%arg0: tensor<4xf32>) -> tensor<4xi8> {
// CHECK-NEXT: %0 = stablehlo.convert %arg0 : (tensor<4xf32>) -> tensor<4xi8>
// CHECK-NEXT: %cst = stablehlo.constant dense<1.280000e+02> : tensor<4xf32>
// CHECK-NEXT: %1 = stablehlo.compare GE, %arg0, %cst, FLOAT : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
// CHECK-NEXT: %cst_0 = stablehlo.constant dense<-1.280000e+02> : tensor<4xf32>
// CHECK-NEXT: %2 = stablehlo.compare LE, %arg0, %cst_0, FLOAT : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
// CHECK-NEXT: %3 = stablehlo.compare NE, %arg0, %arg0, FLOAT : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
// CHECK-NEXT: %c = stablehlo.constant dense<127> : tensor<4xi8>
// CHECK-NEXT: %4 = stablehlo.select %1, %c, %0 : tensor<4xi1>, tensor<4xi8>
// CHECK-NEXT: %c_1 = stablehlo.constant dense<-128> : tensor<4xi8>
// CHECK-NEXT: %5 = stablehlo.select %2, %c_1, %4 : tensor<4xi1>, tensor<4xi8>
// CHECK-NEXT: %c_2 = stablehlo.constant dense<0> : tensor<4xi8>
// CHECK-NEXT: %6 = stablehlo.select %3, %c_2, %5 : tensor<4xi1>, tensor<4xi8>
// CHECK-NEXT: return %6 : tensor<4xi8>
// CHECK-NEXT: }
