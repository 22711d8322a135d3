// RUN: axir opt %s -p drop-scatter > %t
// RUN: filecheck %s --input-file %t

// Updates outside the operand go to padding that is sliced off.

func.func @main(%x: tensor<10xf32>, %i: tensor<3x1xi32>, %u: tensor<3xf32>) -> tensor<10xf32> {
  %0 = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<10xf32>, tensor<3x1xi32>, tensor<3xf32>) -> tensor<10xf32>
  return %0 : tensor<10xf32>
}

// CHECK: func.func @main(%arg0: tensor<10xf32>, %arg1: tensor<3x1xi32>, %arg2: tensor<3xf32>) -> tensor<10xf32> {
// CHECK-NEXT: %c = stablehlo.constant dense<0> : tensor<3x1xi32>
// CHECK-NEXT: %0 = stablehlo.compare GE, %arg1, %c, SIGNED : (tensor<3x1xi32>, tensor<3x1xi32>) -> tensor<3x1xi1>
// CHECK-NEXT: %c_0 = stablehlo.constant dense<9> : tensor<1xi32>
// CHECK-NEXT: %1 = stablehlo.broadcast_in_dim %c_0, dims = [1] : (tensor<1xi32>) -> tensor<3x1xi32>
// CHECK-NEXT: %2 = stablehlo.compare LE, %arg1, %1, SIGNED : (tensor<3x1xi32>, tensor<3x1xi32>) -> tensor<3x1xi1>
// CHECK-NEXT: %3 = stablehlo.and %0, %2 : tensor<3x1xi1>
// CHECK-NEXT: %c_1 = stablehlo.constant dense<10> : tensor<1xi32>
// CHECK-NEXT: %4 = stablehlo.broadcast_in_dim %c_1, dims = [1] : (tensor<1xi32>) -> tensor<3x1xi32>
// CHECK-NEXT: %5 = stablehlo.select %3, %arg1, %4 : tensor<3x1xi1>, tensor<3x1xi32>
// CHECK-NEXT: %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT: %6 = stablehlo.pad %arg0, %cst, low = [0], high = [1], interior = [0] : (tensor<10xf32>, tensor<f32>) -> tensor<11xf32>
// CHECK-NEXT: %7 = "stablehlo.scatter"(%6, %5, %arg2) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
// CHECK-NEXT: ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
// CHECK-NEXT: %9 = stablehlo.add %arg3, %arg4 : tensor<f32>
// CHECK-NEXT: stablehlo.return %9 : tensor<f32>
// CHECK-NEXT: }) : (tensor<11xf32>, tensor<3x1xi32>, tensor<3xf32>) -> tensor<11xf32>
// CHECK-NEXT: %8 = stablehlo.slice %7 [0:10] : (tensor<11xf32>) -> tensor<10xf32>
// CHECK-NEXT: return %8 : tensor<10xf32>
// CHECK-NEXT: }
